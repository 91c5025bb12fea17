// The caching CPU allocator.
//
//   up to 32 KB     thread caches, by size class; no lock, no atomic read-modify-write
//   up to 2 MB      one shared cache, rounded to 8 steps to the doubling, from the C library
//   from 2 MB       the same cache, best fit within 12.5 %, mapped at 2 MB with huge pages
//
// The limit is on bytes held (in use and cached), so it is looked at only where memory is asked of
// the system. Without a limit of the user's, the memory of the machine is the limit: what it cannot
// back would end the process instead of raising.
#include "core/allocator.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/fork.h"
#include "core/large_cache.h"
#include "core/scratch_cache.h"
#include "core/thread_cache.h"

namespace weft {
namespace detail {

thread_local constinit ThreadCache* tls_cache = nullptr;

}  // namespace detail

namespace {

using detail::class_bytes;
using detail::kBinCount;
using detail::kDataClasses;
using detail::kSmallMax;
using detail::LargeCache;
using detail::machine_memory;
using detail::round_large;
using detail::size_class;
using detail::system_allocate;
using detail::system_free;
using detail::ThreadCache;
using detail::tls_cache;

constexpr size_t kBinBytes = 256 * 1024;          // a thread keeps this much of one size class
constexpr size_t kThreadBytes = size_t{4} << 20;  // and this much in all
constexpr uint32_t kBinBlocks = 256;
constexpr int64_t kReportBytes = 64 * 1024;  // in-use change after which a thread reports
// Cached blocks may exceed the most that was ever in use at once by half of it, plus this.
constexpr size_t kCacheSlack = size_t{64} << 20;

GlobalMutex cache_mutex(ForkRank::Cache);

class CachingAllocator final : public Allocator {
 public:
  void* allocate(size_t nbytes) override;
  void free(void* block, size_t nbytes, Stream stream = {}) noexcept override;
  AllocatorStats stats() const override;
  void reset_peak() override;
  void empty_cache() override;
  void set_limit(size_t nbytes) override { limit_.store(nbytes, std::memory_order_relaxed); }
  size_t limit() const override { return limit_.load(std::memory_order_relaxed); }
  const char* name() const override { return "caching"; }
  std::vector<BlockCount> snapshot() const override;

  void add_thread(ThreadCache* cache);
  void remove_thread(ThreadCache* cache);

 private:
  void* allocate_small_slow(int cls);
  void free_small_slow(void* block, int cls) noexcept;
  void* allocate_large(size_t nbytes);
  void* take_cached(size_t rounded);
  void free_large(void* block, size_t nbytes) noexcept;

  void* from_system(size_t block_bytes, size_t nbytes);
  bool reserve(size_t block_bytes);
  void to_system(void* block, size_t block_bytes) noexcept;
  void small_to_system(void* block, int cls) noexcept;
  [[noreturn]] void raise_out_of_memory(size_t nbytes);
  void drop_caches();
  void drop_bins(ThreadCache& cache) noexcept;
  size_t take_large_size(void* block, size_t rounded) noexcept;
  void count_large(size_t size, int64_t change);

  void count_use(ThreadCache& cache, int64_t bytes) noexcept;
  void report(ThreadCache& cache) noexcept;
  void change_in_use(int64_t bytes, int64_t peak_bytes) noexcept;

  // What follows up to the atomics is guarded by cache_mutex.
  LargeCache large_;
  std::map<void*, size_t> odd_blocks_;  // large blocks in use that are bigger than their rounding
  std::map<size_t, int64_t> large_in_use_;  // blocks by size
  std::vector<ThreadCache*> threads_;
  uint64_t ended_allocations_ = 0, ended_frees_ = 0;  // of threads that are gone, and of none

  std::atomic<uint64_t> system_allocations_{0};
  std::atomic<int64_t> in_use_{0};      // as reported
  std::atomic<int64_t> peak_{0};        // since reset_peak
  std::atomic<int64_t> high_water_{0};  // ever
  std::atomic<size_t> held_{0};         // bytes got from the system and not given back
  std::atomic<size_t> limit_{0};
  std::atomic<int64_t> small_held_[kDataClasses]{};  // blocks got from the system, by size class
  const size_t machine_bytes_ = machine_memory();
};

// Never destroyed: tensors may outlive static destruction.
CachingAllocator& instance() {
  static CachingAllocator* const allocator = new CachingAllocator;
  return *allocator;
}
// Before a fork: no other thread may be in the middle of making it.
[[maybe_unused]] const bool allocator_knows_forks = at_fork(ForkRank::Cache, {[] { instance(); }});

void raise_to(std::atomic<int64_t>& maximum, int64_t value) noexcept {
  int64_t seen = maximum.load(std::memory_order_relaxed);
  while (value > seen && !maximum.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// ---- accounting ----

void CachingAllocator::change_in_use(int64_t bytes, int64_t peak_bytes) noexcept {
  const int64_t before = in_use_.fetch_add(bytes, std::memory_order_relaxed);
  raise_to(peak_, before + peak_bytes);
  raise_to(high_water_, before + peak_bytes);
}

void CachingAllocator::report(ThreadCache& cache) noexcept {
  change_in_use(cache.in_use.get(), cache.in_use_peak.get());
  cache.in_use.set(0);
  cache.in_use_peak.set(0);
}

inline void CachingAllocator::count_use(ThreadCache& cache, int64_t bytes) noexcept {
  const int64_t in_use = cache.in_use.get() + bytes;
  cache.in_use.set(in_use);
  if (in_use > cache.in_use_peak.get()) cache.in_use_peak.set(in_use);
  if (in_use > kReportBytes || in_use < -kReportBytes) [[unlikely]]
    report(cache);
}

AllocatorStats CachingAllocator::stats() const {
  const std::lock_guard guard(cache_mutex);
  AllocatorStats stats;
  stats.allocations = ended_allocations_;
  stats.frees = ended_frees_;
  int64_t in_use = in_use_.load(std::memory_order_relaxed);
  int64_t peak = in_use;
  for (const ThreadCache* cache : threads_) {
    stats.allocations += static_cast<uint64_t>(cache->allocations.get());
    stats.frees += static_cast<uint64_t>(cache->frees.get());
    stats.bytes_cached += static_cast<size_t>(cache->bytes_cached.get());
    peak += cache->in_use_peak.get();
    in_use += cache->in_use.get();
  }
  stats.bytes_cached += large_.bytes();
  stats.system_allocations = system_allocations_.load(std::memory_order_relaxed);
  stats.bytes_in_use = static_cast<size_t>(std::max<int64_t>(in_use, 0));
  stats.peak_bytes_in_use =
      static_cast<size_t>(std::max({peak_.load(std::memory_order_relaxed), peak, in_use}));
  return stats;
}

std::vector<BlockCount> CachingAllocator::snapshot() const {
  const std::lock_guard guard(cache_mutex);
  std::vector<BlockCount> blocks;
  for (int cls = 0; cls < kDataClasses; ++cls) {
    int64_t cached = 0;
    for (const ThreadCache* cache : threads_) cached += cache->bins[cls].count.get();
    const int64_t held = small_held_[cls].load(std::memory_order_relaxed);
    const int64_t in_use = std::max<int64_t>(held - cached, 0);
    if (held <= 0 && cached <= 0) continue;
    blocks.push_back(
        {class_bytes(cls), static_cast<uint64_t>(in_use), static_cast<uint64_t>(cached)});
  }
  std::map<size_t, BlockCount> large;
  for (const auto& [size, count] : large_in_use_) {
    if (count > 0) large[size] = {size, static_cast<uint64_t>(count), 0};
  }
  large_.count([&](size_t size) {
    BlockCount& entry = large[size];
    entry.block_bytes = size;
    ++entry.cached;
  });
  for (const auto& [size, entry] : large) blocks.push_back(entry);
  return blocks;
}

void CachingAllocator::reset_peak() {
  const std::lock_guard guard(cache_mutex);
  // Only this thread's counters may be written; others' are within their reporting step.
  if (ThreadCache* cache = tls_cache) report(*cache);
  peak_.store(in_use_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// ---- the system ----

bool CachingAllocator::reserve(size_t block_bytes) {
  const size_t user_limit = limit();
  const size_t limit = user_limit == 0 ? machine_bytes_ : std::min(user_limit, machine_bytes_);
  size_t held = held_.load(std::memory_order_relaxed);
  do {
    if (block_bytes > limit || held > limit - block_bytes) return false;
  } while (!held_.compare_exchange_weak(held, held + block_bytes, std::memory_order_relaxed));
  return true;
}

void CachingAllocator::to_system(void* block, size_t block_bytes) noexcept {
  system_free(block, block_bytes);
  held_.fetch_sub(block_bytes, std::memory_order_relaxed);
}

void CachingAllocator::small_to_system(void* block, int cls) noexcept {
  to_system(block, class_bytes(cls));
  small_held_[cls].fetch_sub(1, std::memory_order_relaxed);
}

void* CachingAllocator::from_system(size_t block_bytes, size_t nbytes) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (reserve(block_bytes)) {
      if (void* block = system_allocate(block_bytes)) {
        system_allocations_.fetch_add(1, std::memory_order_relaxed);
        return block;
      }
      held_.fetch_sub(block_bytes, std::memory_order_relaxed);
    }
    if (attempt == 0) drop_caches();
  }
  raise_out_of_memory(nbytes);
}

void CachingAllocator::raise_out_of_memory(size_t nbytes) {
  const size_t user_limit = limit();
  const size_t limit = user_limit == 0 ? machine_bytes_ : std::min(user_limit, machine_bytes_);
  const size_t held = held_.load(std::memory_order_relaxed);
  const size_t available = limit > held ? limit - held : 0;
  WEFT_CHECK_AS(OutOfMemory, nbytes <= available, "allocator: expected at most ", available,
                " bytes (of ", limit, ", ", held, " are in use), got ", nbytes);
  fail(ErrorKind::OutOfMemory, str("allocator: expected at most what the system has left, got ",
                                   nbytes, " bytes (", held, " are in use)"));
}

void CachingAllocator::drop_bins(ThreadCache& cache) noexcept {
  for (int cls = 0; cls < kDataClasses; ++cls) {
    const size_t bytes = class_bytes(cls);
    while (void* block = cache.pop(cls, bytes)) small_to_system(block, cls);
  }
  cache.bytes_cached.set(0);
}

void CachingAllocator::drop_caches() {
  if (ThreadCache* cache = tls_cache) drop_bins(*cache);
  const std::lock_guard guard(cache_mutex);
  while (const size_t size = large_.evict()) held_.fetch_sub(size, std::memory_order_relaxed);
}

void CachingAllocator::empty_cache() { drop_caches(); }

// ---- threads ----

void CachingAllocator::add_thread(ThreadCache* cache) {
  const std::lock_guard guard(cache_mutex);
  threads_.push_back(cache);
}

void CachingAllocator::remove_thread(ThreadCache* cache) {
  drop_bins(*cache);
  report(*cache);
  const std::lock_guard guard(cache_mutex);
  ended_allocations_ += static_cast<uint64_t>(cache->allocations.get());
  ended_frees_ += static_cast<uint64_t>(cache->frees.get());
  std::erase(threads_, cache);
}

// ---- small blocks ----

void* CachingAllocator::allocate(size_t nbytes) {
  if (nbytes == 0) return nullptr;
  if (nbytes > kSmallMax) return allocate_large(nbytes);
  const int cls = size_class(nbytes);
  if (ThreadCache* cache = tls_cache; cache != nullptr) [[likely]] {
    const size_t bytes = class_bytes(cls);
    if (void* block = cache->pop(cls, bytes)) [[likely]] {
      cache->allocations.add(1);
      cache->bytes_cached.add(-static_cast<int64_t>(bytes));
      count_use(*cache, static_cast<int64_t>(bytes));
      return block;
    }
  }
  return allocate_small_slow(cls);
}

void CachingAllocator::free(void* block, size_t nbytes, Stream) noexcept {
  if (block == nullptr) return;
  if (nbytes > kSmallMax) return free_large(block, nbytes);
  const int cls = size_class(nbytes);
  const auto bytes = static_cast<int64_t>(class_bytes(cls));
  if (ThreadCache* cache = tls_cache; cache != nullptr) [[likely]] {
    const bool fits = cache->bytes_cached.get() + bytes <= static_cast<int64_t>(kThreadBytes);
    if (fits && cache->push(cls, block, static_cast<size_t>(bytes))) [[likely]] {
      cache->frees.add(1);
      cache->bytes_cached.add(bytes);
      count_use(*cache, -bytes);
      return;
    }
  }
  free_small_slow(block, cls);
}

void* CachingAllocator::allocate_small_slow(int cls) {
  ThreadCache* cache = tls_cache != nullptr ? tls_cache : detail::make_thread_cache();
  const size_t bytes = class_bytes(cls);
  void* block = from_system(bytes, bytes);
  small_held_[cls].fetch_add(1, std::memory_order_relaxed);
  if (cache != nullptr) {
    cache->allocations.add(1);
    count_use(*cache, static_cast<int64_t>(bytes));
  } else {
    change_in_use(static_cast<int64_t>(bytes), static_cast<int64_t>(bytes));
    const std::lock_guard guard(cache_mutex);
    ++ended_allocations_;
  }
  return block;
}

void CachingAllocator::free_small_slow(void* block, int cls) noexcept {
  const size_t bytes = class_bytes(cls);
  small_to_system(block, cls);
  if (ThreadCache* cache = tls_cache) {
    cache->frees.add(1);
    count_use(*cache, -static_cast<int64_t>(bytes));
  } else {
    change_in_use(-static_cast<int64_t>(bytes), 0);
    const std::lock_guard guard(cache_mutex);
    ++ended_frees_;
  }
}

// ---- large blocks ----

void* CachingAllocator::allocate_large(size_t nbytes) {
  if (nbytes > machine_bytes_) raise_out_of_memory(nbytes);  // before rounding can overflow
  if (ThreadCache* cache = tls_cache) report(*cache);        // the peak counts small blocks too
  const size_t rounded = round_large(nbytes);
  if (void* block = take_cached(rounded)) return block;
  void* block = from_system(rounded, nbytes);
  change_in_use(static_cast<int64_t>(rounded), static_cast<int64_t>(rounded));
  const std::lock_guard guard(cache_mutex);
  ++ended_allocations_;
  count_large(rounded, 1);
  return block;
}

void* CachingAllocator::take_cached(size_t rounded) {
  const std::lock_guard guard(cache_mutex);
  size_t size = 0;
  void* block = large_.take(rounded, &size);
  if (block == nullptr) return nullptr;
  if (size != rounded) odd_blocks_.emplace(block, size);
  ++ended_allocations_;
  count_large(size, 1);
  change_in_use(static_cast<int64_t>(size), static_cast<int64_t>(size));
  return block;
}

// The caller holds the lock. An entry stays once it is made, so that freeing needs no memory.
void CachingAllocator::count_large(size_t size, int64_t change) { large_in_use_[size] += change; }

size_t CachingAllocator::take_large_size(void* block, size_t rounded) noexcept {
  if (odd_blocks_.empty()) return rounded;
  const auto found = odd_blocks_.find(block);
  if (found == odd_blocks_.end()) return rounded;
  const size_t size = found->second;
  odd_blocks_.erase(found);
  return size;
}

void CachingAllocator::free_large(void* block, size_t nbytes) noexcept {
  const std::lock_guard guard(cache_mutex);
  ++ended_frees_;
  const size_t size = take_large_size(block, round_large(nbytes));
  count_large(size, -1);
  change_in_use(-static_cast<int64_t>(size), 0);
  if (!large_.give(block, size)) return to_system(block, size);
  const auto most = static_cast<size_t>(high_water_.load(std::memory_order_relaxed));
  const auto used =
      static_cast<size_t>(std::max<int64_t>(in_use_.load(std::memory_order_relaxed), 0));
  const size_t bound = most + most / 2 + kCacheSlack;
  while (used + large_.bytes() > bound) {
    const size_t evicted = large_.evict();
    if (evicted == 0) break;
    held_.fetch_sub(evicted, std::memory_order_relaxed);
  }
}

std::atomic<Allocator*> current{nullptr};

}  // namespace

namespace detail {
namespace {

// Set once the thread has begun to end: what is freed after that goes straight to the system.
thread_local constinit bool tls_ended = false;

struct ThreadExit {
  ~ThreadExit();
};

ThreadExit::~ThreadExit() {
  ThreadCache* cache = std::exchange(tls_cache, nullptr);
  tls_ended = true;
  if (cache == nullptr) return;
  instance().remove_thread(cache);
  for (int bin = kDataClasses; bin < kBinCount; ++bin) {
    const size_t first_word = sizeof(FreeBlock);  // all that the list touches
    while (void* object = cache->pop(bin, first_word))
      ::operator delete(object, std::align_val_t{64});
  }
  delete cache;
}

}  // namespace

ThreadCache* make_thread_cache() {
  if (tls_ended) return nullptr;
  auto* cache = new ThreadCache;
  for (int cls = 0; cls < kDataClasses; ++cls) {
    cache->bins[cls].limit =
        std::clamp<uint32_t>(static_cast<uint32_t>(kBinBytes / class_bytes(cls)), 4, kBinBlocks);
  }
  for (int bin = kDataClasses; bin < kBinCount; ++bin) cache->bins[bin].limit = 4 * kBinBlocks;
  instance().add_thread(cache);
  [[maybe_unused]] thread_local ThreadExit at_exit;
  tls_cache = cache;
  return cache;
}

void* take_object_slow(size_t nbytes) {
  if (tls_cache == nullptr) make_thread_cache();
  return ::operator new(nbytes, std::align_val_t{64});
}

void give_object_slow(ObjectBin, void* object, size_t) noexcept {
  ::operator delete(object, std::align_val_t{64});
}

}  // namespace detail

Allocator& caching_allocator() { return instance(); }

Allocator& cpu_allocator() {
  Allocator* allocator = current.load(std::memory_order_acquire);
  return allocator != nullptr ? *allocator : caching_allocator();
}

Allocator& set_cpu_allocator(Allocator& allocator) {
  Allocator* old = current.exchange(&allocator, std::memory_order_acq_rel);
  if (old != &allocator) detail::drop_scratch();
  return old != nullptr ? *old : caching_allocator();
}

}  // namespace weft
