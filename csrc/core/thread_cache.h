// Free blocks that one thread keeps for itself: taking and giving one is a handful of instructions.
//
// Two kinds of bins: data blocks by size class (they count in the allocator's statistics) and the
// objects of the hot path (Storage, TensorImpl). Internal to core.
//
// Ownership: the cache belongs to its thread; other threads read only the atomic counters. It is
// emptied when the thread ends; a block may be given to another thread's cache than it came from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define WEFT_POISON(block, size) ASAN_POISON_MEMORY_REGION(block, size)
#define WEFT_UNPOISON(block, size) ASAN_UNPOISON_MEMORY_REGION(block, size)
#else
#define WEFT_POISON(block, size) ((void)0)
#define WEFT_UNPOISON(block, size) ((void)0)
#endif

namespace weft::detail {

// Size classes: multiples of 64 up to 1 KB, then 8 steps to the doubling up to kSmallMax, so that
// rounding wastes at most 1/9 of the block (and less than 64 bytes below 1 KB).
inline constexpr size_t kSmallMax = 32 * 1024;
inline constexpr int kLinearClasses = 16;
inline constexpr int kDataClasses = kLinearClasses + 5 * 8;

constexpr int size_class(size_t nbytes) {
  if (nbytes <= 1024) return static_cast<int>((nbytes - 1) / 64);
  const int log = 63 - __builtin_clzll(nbytes - 1);  // 10 for (1024, 2048]
  const int step = static_cast<int>((nbytes - 1) >> (log - 3)) - 8;
  return kLinearClasses + (log - 10) * 8 + step;
}
constexpr size_t class_bytes(int cls) {
  if (cls < kLinearClasses) return static_cast<size_t>(cls + 1) * 64;
  const int log = 10 + (cls - kLinearClasses) / 8, step = (cls - kLinearClasses) % 8;
  return static_cast<size_t>(9 + step) << (log - 3);
}
static_assert(size_class(kSmallMax) == kDataClasses - 1 &&
              class_bytes(kDataClasses - 1) == kSmallMax);
static_assert(class_bytes(size_class(1025)) == 1152 && size_class(1) == 0 && size_class(65) == 1);

// Bins after the data classes hold objects; class_bytes does not apply to them.
enum ObjectBin { kStorageBin = kDataClasses, kTensorBin, kBinCount };

// A counter with one writer: readers elsewhere see a recent value, the writer pays a plain add.
class OwnedCounter {
 public:
  void add(int64_t amount) noexcept { set(get() + amount); }
  void set(int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  int64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

struct FreeBlock {
  FreeBlock* next;
};

struct Bin {
  FreeBlock* head = nullptr;
  OwnedCounter count;
  uint32_t limit = 0;  // blocks kept at most
};

struct ThreadCache {
  Bin bins[kBinCount];
  OwnedCounter allocations, frees, bytes_cached;
  // Bytes in use since the last report to the global sum, and the highest value in between.
  OwnedCounter in_use, in_use_peak;

  void* pop(int bin_index, [[maybe_unused]] size_t nbytes) noexcept {
    Bin& bin = bins[bin_index];
    FreeBlock* block = bin.head;
    if (block == nullptr) return nullptr;
    WEFT_UNPOISON(block, nbytes);
    bin.head = block->next;
    bin.count.add(-1);
    return block;
  }
  bool push(int bin_index, void* memory, [[maybe_unused]] size_t nbytes) noexcept {
    Bin& bin = bins[bin_index];
    if (bin.count.get() == bin.limit) return false;
    auto* block = static_cast<FreeBlock*>(memory);
    block->next = bin.head;
    bin.head = block;
    bin.count.add(1);
    WEFT_POISON(memory, nbytes);
    return true;
  }
};

// This thread's cache; null before its first use and again once the thread is ending.
extern thread_local constinit ThreadCache* tls_cache;
// Makes it. Still null when the thread is ending.
ThreadCache* make_thread_cache();

// Memory for one object of the hot path (64-byte aligned, uninitialised), and back.
void* take_object_slow(size_t nbytes);
void give_object_slow(ObjectBin bin, void* object, size_t nbytes) noexcept;

inline void* take_object(ObjectBin bin, size_t nbytes) {
  if (ThreadCache* cache = tls_cache; cache != nullptr) [[likely]] {
    if (void* object = cache->pop(bin, nbytes)) [[likely]]
      return object;
  }
  return take_object_slow(nbytes);
}
inline void give_object(ObjectBin bin, void* object, size_t nbytes) noexcept {
  if (ThreadCache* cache = tls_cache; cache != nullptr) [[likely]] {
    if (cache->push(bin, object, nbytes)) [[likely]]
      return;
  }
  give_object_slow(bin, object, nbytes);
}

}  // namespace weft::detail
