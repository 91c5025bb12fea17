// The pool: workers claim pieces of one region at a time from a shared ticket.
//
// The caller works too and takes every piece that nobody has claimed, so a sleeping or descheduled
// worker never holds a small region up. A second caller that finds the pool busy runs inline.
#include "core/thread_pool.h"

#include <sched.h>

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

namespace weft {
namespace {

using Body = FunctionRef<void(int64_t, int64_t)>;

constexpr int kMaxThreads = 1024;
constexpr int kPiecesPerThread = 2;  // some slack for a thread that is slower than the others
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

// Marks the thread as inside a region, also when the body throws.
struct RegionMark {
  RegionMark() { tls_in_region = true; }
  ~RegionMark() { tls_in_region = false; }
};

class Pool {
 public:
  explicit Pool(int threads) : threads_(threads) {}

  int threads() const { return threads_; }
  // One region; the caller holds the pool's mutex.
  void run(int64_t count, int pieces, Body body);
  // Starts the workers; they keep the pool alive until they have seen stop().
  static void start(const std::shared_ptr<Pool>& pool);
  void stop();

  std::mutex mutex;  // held by the thread whose region runs

 private:
  void work();
  bool claim_and_run();
  void run_piece(uint32_t piece) noexcept;
  bool has_pieces() const;
  void wake(int workers);
  // In the child of a fork inside of a region: the other threads are gone, and so are their pieces.
  bool is_of_parent() const { return generation_ != fork_generation(); }

  const int threads_;
  const uint32_t generation_ = fork_generation();
  bool started_ = false;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr exception_;

  // The region. Workers read these only after claiming a piece, which keeps the region alive. Apart
  // from the ticket, which they poll: a write to a polled line costs a round trip to their core.
  alignas(64) const Body* body_ = nullptr;
  int64_t count_ = 0;
  uint32_t pieces_ = 0;
  // High half: number of the region; low half: pieces not yet claimed. One word, so that a late
  // worker cannot claim a piece of a region it has not seen.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> done_{0};   // pieces that workers have finished, ever
  alignas(64) std::atomic<uint32_t> epoch_{0};  // what sleeping workers wait on
  std::atomic<int> sleepers_{0};
};

void Pool::run_piece(uint32_t piece) noexcept {
  const int64_t size = count_ / pieces_, rest = count_ % pieces_;
  const int64_t begin = piece * size + std::min<int64_t>(piece, rest);
  const int64_t end = begin + size + (piece < rest ? 1 : 0);
  try {
    (*body_)(begin, end);
  } catch (...) {
    if (!failed_.exchange(true)) exception_ = std::current_exception();
  }
}

bool Pool::claim_and_run() {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(ticket) != 0) {
    if (ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) {
      run_piece(static_cast<uint32_t>(ticket));  // piece 0 is the caller's from the start
      return true;
    }
  }
  return false;
}

bool Pool::has_pieces() const {
  return static_cast<uint32_t>(ticket_.load(std::memory_order_seq_cst)) != 0;
}

void Pool::work() {
  tls_in_region = true;  // whatever runs here is inside a region
  while (!stopped_.load(std::memory_order_acquire)) {
    if (claim_and_run()) {
      if (is_of_parent()) return;  // the only thread there is: its end is that of the process
      done_.fetch_add(1, std::memory_order_acq_rel);
      done_.notify_one();
      continue;
    }
    if (spin_until([this] { return has_pieces() || stopped_.load(std::memory_order_relaxed); })) {
      continue;
    }
    // A caller that does not see this sleeper yet runs its pieces itself; the next one wakes it.
    const uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!has_pieces() && !stopped_.load(std::memory_order_seq_cst)) epoch_.wait(epoch);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Pool::wake(int workers) {
  const int asleep = std::min(workers, sleepers_.load(std::memory_order_relaxed));
  if (asleep == 0) return;
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  for (int i = 0; i < asleep; ++i) epoch_.notify_one();
}

void Pool::start(const std::shared_ptr<Pool>& pool) {
  if (std::exchange(pool->started_, true)) return;
  for (int i = 1; i < pool->threads_; ++i) {
    try {
      std::thread([pool] { pool->work(); }).detach();
    } catch (const std::system_error&) {
      return;  // fewer workers: the caller takes their pieces
    }
  }
}

void Pool::stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  epoch_.notify_all();
}

void Pool::run(int64_t count, int pieces, Body body) {
  body_ = &body;
  count_ = count;
  pieces_ = static_cast<uint32_t>(pieces);
  const uint32_t done_before = done_.load(std::memory_order_relaxed);
  const uint64_t region = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store((region << 32) | (pieces_ - 1), std::memory_order_release);
  wake(std::min(pieces, threads_) - 1);
  uint32_t mine = 1;
  {
    const RegionMark mark;
    run_piece(0);
    while (!is_of_parent() && claim_and_run()) ++mine;
  }
  WEFT_CHECK(
      !is_of_parent(),
      "parallel_for: expected to end in the process it began in, got a child that was forked "
      "inside the parallel region; its other pieces are lost");
  const uint32_t target = done_before + pieces_ - mine;
  if (!spin_until([&] { return done_.load(std::memory_order_acquire) == target; })) {
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
[[maybe_unused]] const bool handlers_known =
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

namespace {

std::atomic<const RegionHooks*> region_hooks{nullptr};

}  // namespace

RegionScope::RegionScope() : hooks_(region_hooks.load(std::memory_order_acquire)) {
  if (hooks_ != nullptr) state_ = hooks_->enter();
}

void set_region_hooks(const RegionHooks* hooks) {
  region_hooks.store(hooks, std::memory_order_release);
}

void parallel_for(int64_t count, int64_t grain, Body body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = tls_in_region || count <= grain ? 1 : num_threads();
  // Rounded down, so that every piece has at least `grain`.
  const int64_t pieces = std::min<int64_t>(count / grain, int64_t{threads} * kPiecesPerThread);
  if (threads == 1 || pieces <= 1) return body(0, count);
  const std::shared_ptr<Pool> pool = current_pool();
  const std::unique_lock lock(pool->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return body(0, count);
  Pool::start(pool);
  const RegionScope scope;
  pool->run(count, static_cast<int>(pieces), body);
}

}  // namespace weft
