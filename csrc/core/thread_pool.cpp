// The pool: one region at a time, cut into pieces, of which every thread has its own (a lane).
//
// Equal regions give a thread equal pieces, whose memory its core's cache may still hold. Whoever
// is done with its own takes what is unclaimed of the others', the caller too, so a sleeping or
// descheduled worker never holds a small region up. A second caller that finds the pool busy runs
// inline.
#include "core/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/fork.h"
#include "core/meta.h"

namespace weft {
namespace {

using Body = FunctionRef<void(int64_t, int64_t)>;

constexpr int kMaxThreads = 1024;
constexpr int kPiecesPerThread = 2;  // some slack for a thread that is slower than the others
constexpr int kSweepPieces = 32;     // so that what the caches hold is several pieces
// How long a thread that is done waits for the others, in parts of the time it needed itself,
// before it takes pieces of a lane that is begun. Sooner does not pay: what they touch would move
// to another core, and back in the next region.
constexpr int kPatience = 4;
constexpr auto kSpinTime = std::chrono::microseconds(80);

thread_local constinit bool tls_in_region = false;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Calls done() until it is true or the spin time is over; says which.
template <class Done>
bool spin_until(Done&& done) {
  std::chrono::steady_clock::time_point end{};  // the clock costs more than a short wait
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      relax();
    }
    const auto now = std::chrono::steady_clock::now();
    if (end == decltype(end){}) end = now + kSpinTime;
    if (now >= end) return false;
  }
}

class Stopwatch {
 public:
  // Calls done() until it is true or a part of the time since the start has passed again.
  template <class Done>
  void wait_a_part(Done&& done) const {
    auto now = Clock::now();
    const auto end = now + (now - start_) / kPatience;
    while (now < end) {
      for (int i = 0; i < 8; ++i) {
        if (done()) return;
        relax();
      }
      now = Clock::now();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start_ = Clock::now();
};

// Marks the thread as inside a region, also when the body throws.
struct RegionMark {
  RegionMark() { tls_in_region = true; }
  ~RegionMark() { tls_in_region = false; }
};

// How a region is cut: count elements in so many pieces, shared by so many lanes.
struct Cut {
  int64_t count = 0;
  uint32_t pieces = 0, lanes = 0;
  bool descending = false;  // the order in which a lane hands out its pieces

  uint32_t first_piece(uint32_t lane) const {
    return static_cast<uint32_t>(uint64_t{lane} * pieces / lanes);
  }
  uint32_t lane_size(uint32_t lane) const { return first_piece(lane + 1) - first_piece(lane); }
  // Where a piece begins; what does not divide evenly is spread over all lanes.
  int64_t begin(int64_t piece) const {
    return piece * (count / pieces) + piece * (count % pieces) / pieces;
  }
  // The piece that is handed out when `left` of the lane's pieces are unclaimed.
  uint32_t piece(uint32_t lane, uint32_t left) const {
    return first_piece(lane) + (descending ? left - 1 : lane_size(lane) - left);
  }
};

// The pieces meant for one thread, lane 0 for the caller. All that a worker needs to begin is in
// one cache line, which it polls: a region costs one line's journey there and one back.
struct alignas(64) Lane {
  // High half: number of the region; low half: pieces not yet claimed. One word, so that a late
  // thread cannot claim a piece of a region it has not seen.
  std::atomic<uint64_t> claims{0};
  std::atomic<uint32_t> asleep{0};  // its thread waits on this
  // Read after claiming a piece only, which keeps the region alive.
  Body body;
  Cut cut;

  uint32_t left() const { return static_cast<uint32_t>(claims.load(std::memory_order_seq_cst)); }
};

class Pool {
 public:
  explicit Pool(int threads) : threads_(threads), lanes_(new Lane[static_cast<size_t>(threads)]) {}

  int threads() const { return threads_; }
  // One region; the caller holds the pool's mutex.
  void run(const Cut& cut, Body body);
  // Starts the workers; they keep the pool alive until they have seen stop().
  static void start(const std::shared_ptr<Pool>& pool);
  void stop();

  std::mutex mutex;  // held by the thread whose region runs

 private:
  void work(uint32_t own);
  uint32_t run_lane(uint32_t number);
  uint32_t run_others(uint32_t own, uint32_t lanes);
  void run_piece(const Lane& lane, uint32_t piece) noexcept;
  void report(uint32_t pieces);
  static void wake(Lane& lane);
  // In the child of a fork inside of a region: the other threads are gone, and so are their pieces.
  bool is_of_parent() const { return generation_ != fork_generation(); }

  const int threads_;
  const uint32_t generation_ = fork_generation();
  const std::unique_ptr<Lane[]> lanes_;
  bool started_ = false;
  uint32_t region_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr exception_;
  alignas(64) std::atomic<uint32_t> done_{0};  // pieces that workers have finished, ever
};

void Pool::run_piece(const Lane& lane, uint32_t piece) noexcept {
  try {
    lane.body(lane.cut.begin(piece), lane.cut.begin(int64_t{piece} + 1));
  } catch (...) {
    if (!failed_.exchange(true)) exception_ = std::current_exception();
  }
}

// Runs what is unclaimed of a lane; says how many pieces that were.
uint32_t Pool::run_lane(uint32_t number) {
  Lane& lane = lanes_[number];
  uint32_t ran = 0;
  uint64_t claims = lane.claims.load(std::memory_order_acquire);
  while (const auto left = static_cast<uint32_t>(claims)) {
    if (!lane.claims.compare_exchange_weak(claims, claims - 1, std::memory_order_acq_rel)) continue;
    run_piece(lane, lane.cut.piece(number, left));
    ++ran;
    if (is_of_parent()) break;
    claims = lane.claims.load(std::memory_order_acquire);
  }
  return ran;
}

// Helps the threads that are slower than this one, or asleep.
uint32_t Pool::run_others(uint32_t own, uint32_t lanes) {
  uint32_t ran = 0;
  for (uint32_t i = 1; i < lanes; ++i) ran += run_lane((own + i) % lanes);
  return ran;
}

void Pool::report(uint32_t pieces) {
  // A piece of a worker's was forked in: this is the child's only thread, and nobody waits for it.
  // It ends without the exit handlers of libraries, which would wait for threads that are gone.
  if (is_of_parent()) _exit(0);
  if (pieces == 0) return;
  done_.fetch_add(pieces, std::memory_order_acq_rel);
  done_.notify_one();
}

void Pool::work(uint32_t own) {
  tls_in_region = true;  // whatever runs here is inside a region
  Lane& lane = lanes_[own];
  const auto called = [&] { return lane.left() != 0 || stopped_.load(std::memory_order_seq_cst); };
  while (!stopped_.load(std::memory_order_acquire)) {
    const Stopwatch watch;
    if (const uint32_t ran = run_lane(own)) {
      report(ran);
      watch.wait_a_part(called);
      if (!called()) report(run_others(own, static_cast<uint32_t>(threads_)));
    }
    if (spin_until(called)) continue;
    // Whoever hands out pieces after this store sees it, and wakes this thread.
    lane.asleep.store(1, std::memory_order_seq_cst);
    if (!called()) lane.asleep.wait(1);
    lane.asleep.store(0, std::memory_order_relaxed);
  }
}

void Pool::wake(Lane& lane) {
  if (lane.asleep.load(std::memory_order_seq_cst) == 0) return;
  lane.asleep.store(0, std::memory_order_seq_cst);
  lane.asleep.notify_one();
}

void Pool::start(const std::shared_ptr<Pool>& pool) {
  if (std::exchange(pool->started_, true)) return;
  for (int i = 1; i < pool->threads_; ++i) {
    try {
      std::thread([pool, i] { pool->work(static_cast<uint32_t>(i)); }).detach();
    } catch (const std::system_error&) {
      return;  // fewer workers: the others take their pieces
    }
  }
}

void Pool::stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  for (int i = 1; i < threads_; ++i) wake(lanes_[i]);
}

void Pool::run(const Cut& cut, Body body) {
  const uint32_t done_before = done_.load(std::memory_order_relaxed);
  const uint64_t region = uint64_t{++region_} << 32;
  for (uint32_t i = cut.lanes; i-- > 0;) {
    Lane& lane = lanes_[i];
    lane.body = body;
    lane.cut = cut;
    lane.claims.store(region | cut.lane_size(i), std::memory_order_seq_cst);
    if (i > 0) wake(lane);
  }
  uint32_t mine = 0;
  const auto all_done = [&] {
    return done_.load(std::memory_order_acquire) == done_before + cut.pieces - mine;
  };
  {
    const RegionMark mark;
    const Stopwatch watch;
    mine = run_lane(0);
    for (uint32_t i = 1; i < cut.lanes && !is_of_parent(); ++i) {
      const bool begun = lanes_[i].left() < cut.lane_size(i);
      if (!begun) mine += run_lane(i);
    }
    if (!is_of_parent()) {
      watch.wait_a_part(all_done);
      mine += run_others(0, cut.lanes);
    }
  }
  WEFT_CHECK(
      !is_of_parent(),
      "parallel_for: expected to end in the process it began in, got a child that was forked "
      "inside the parallel region; its other pieces are lost");
  const uint32_t target = done_before + cut.pieces - mine;
  if (!spin_until(all_done)) {
    for (uint32_t done = done_.load(); done != target; done = done_.load()) done_.wait(done);
  }
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(exception_, nullptr));
}

// ---- how many threads ----

int parse_count(const char* text) {
  const int count = text != nullptr ? std::atoi(text) : 0;
  return std::clamp(count, 0, kMaxThreads);
}

// Cores by the control group's quota: "max 100000" or "200000 100000"; 0 when there is none.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(quota / period + 0.5));
}

int default_threads() {
  for (const char* name : {"WEFT_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (const int count = parse_count(std::getenv(name)); count > 0) return count;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  int cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0
                  ? CPU_COUNT(&cpus)
                  : static_cast<int>(std::thread::hardware_concurrency());
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return std::clamp(cores, 1, kMaxThreads);
}

// ---- the pool of this process ----

// Reachable for ever: workers may still run during static destruction.
struct Current {
  std::mutex mutex;  // guards the pointer
  std::shared_ptr<Pool> pool;
  std::atomic<int> threads{0};
};

std::atomic<Current*> current_state{nullptr};

// The child of a fork has none of the workers, and locks in whatever state: it forgets them all.
void forget_in_child() {
  Current* old = current_state.load(std::memory_order_relaxed);
  if (old == nullptr) return;
  auto* fresh = new Current;
  fresh->threads.store(old->threads.load());
  current_state.store(fresh, std::memory_order_relaxed);
  tls_in_region = false;
}

Current& current() {
  if (Current* state = current_state.load(std::memory_order_acquire)) return *state;
  static const bool once = [] {
    auto* state = new Current;
    state->threads.store(default_threads());
    current_state.store(state, std::memory_order_release);
    return true;
  }();
  (void)once;
  return *current_state.load(std::memory_order_acquire);
}

// Before a fork: no other thread may be in the middle of making it.
[[maybe_unused]] const bool thread_pool_knows_forks =
    at_fork(ForkRank::Threads, {[] { current(); }, nullptr, forget_in_child});

std::shared_ptr<Pool> current_pool() {
  Current& state = current();
  const std::lock_guard guard(state.mutex);
  if (!state.pool) state.pool = std::make_shared<Pool>(state.threads.load());
  return state.pool;
}

}  // namespace

int num_threads() { return current().threads.load(std::memory_order_relaxed); }

void set_num_threads(int count) {
  WEFT_CHECK(count >= 1 && count <= kMaxThreads, "set_num_threads: expected a count in [1, ",
             kMaxThreads, "], got ", count);
  WEFT_CHECK(!tls_in_region,
             "set_num_threads: expected a call outside parallel regions, got one inside");
  Current& state = current();
  const std::lock_guard guard(state.mutex);
  if (state.threads.exchange(count) == count) return;
  if (state.pool) state.pool->stop();
  state.pool.reset();
}

bool in_parallel_region() { return tls_in_region; }

meta::InThisThread::InThisThread() noexcept : outer_(std::exchange(tls_in_region, true)) {}
meta::InThisThread::~InThisThread() { tls_in_region = outer_; }

namespace {

std::atomic<const RegionHooks*> region_hooks{nullptr};

}  // namespace

RegionScope::RegionScope() : hooks_(region_hooks.load(std::memory_order_acquire)) {
  if (hooks_ != nullptr) state_ = hooks_->enter();
}

void set_region_hooks(const RegionHooks* hooks) {
  region_hooks.store(hooks, std::memory_order_release);
}

namespace {

// Every other sweep goes down: it meets first what the one before left in the caches.
bool next_direction() {
  static std::atomic<uint32_t> sweeps{0};
  return sweeps.fetch_add(1, std::memory_order_relaxed) & 1u;
}

// The region for one thread, piece by piece.
void run_inline(const Cut& cut, Body body) {
  for (int64_t i = 0; i < cut.pieces; ++i) {
    const int64_t piece = cut.descending ? cut.pieces - 1 - i : i;
    body(cut.begin(piece), cut.begin(piece + 1));
  }
}

void run_region(int64_t count, int64_t grain, int64_t pieces_per_thread, bool sweep, Body body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (tls_in_region || count < 2 * grain) return body(0, count);
  const int threads = num_threads();
  // Rounded down, so that every piece has at least `grain`.
  int64_t pieces = std::min<int64_t>(count / grain, int64_t{threads} * pieces_per_thread);
  if (threads == 1 && !sweep) pieces = 1;
  if (pieces <= 1) return body(0, count);
  if (pieces > threads) pieces -= pieces % threads;
  Cut cut;
  cut.count = count;
  cut.pieces = static_cast<uint32_t>(pieces);
  cut.lanes = static_cast<uint32_t>(std::min<int64_t>(threads, pieces));
  cut.descending = sweep && next_direction();
  if (threads == 1) return run_inline(cut, body);
  const std::shared_ptr<Pool> pool = current_pool();
  const std::unique_lock lock(pool->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return body(0, count);
  Pool::start(pool);
  const RegionScope scope;
  pool->run(cut, body);
}

}  // namespace

void parallel_for(int64_t count, int64_t grain, Body body) {
  run_region(count, grain, kPiecesPerThread, false, body);
}

void parallel_sweep(int64_t count, int64_t grain, Body body) {
  run_region(count, grain, kSweepPieces, true, body);
}

}  // namespace weft
