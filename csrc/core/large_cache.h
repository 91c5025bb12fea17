// Memory from the system in large pieces, and the cache of large free blocks. Internal to core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace weft::detail {

// Bytes this process can have: physical memory, or the control group's limit where that is less.
size_t machine_memory();

// The size a block above kSmallMax has: eight steps to the doubling below 2 MB, then multiples of
// 64 KB, from 16 MB of 2 MB.
size_t round_large(size_t nbytes);

// Null when the system says no. From 2 MB on, blocks start at a multiple of 2 MB and ask for huge
// pages; smaller ones are 64-byte aligned. `nbytes` as it came from round_large or a size class.
void* system_allocate(size_t nbytes);
void system_free(void* block, size_t nbytes) noexcept;

// Free blocks by size, shared by all threads. The caller holds the lock.
class LargeCache {
 public:
  // A block of at least nbytes and at most an eighth more, or null; its size goes to *size. Of
  // equal ones it is the last that came: its bytes may still be in the processor's caches.
  void* take(size_t nbytes, size_t* size);
  // False when there is not even memory for the list: the block stays the caller's.
  bool give(void* block, size_t size) noexcept;
  // Returns the least recently used block to the system; gives its size, 0 when there is none.
  size_t evict();
  size_t bytes() const { return bytes_; }
  // Calls visit(size) for every block.
  template <class Visit>
  void count(Visit visit) const {
    for (const auto& [size, entry] : blocks_) visit(size);
  }

 private:
  struct Entry {
    void* block;
    uint64_t stamp;
  };
  std::multimap<size_t, Entry> blocks_;
  size_t bytes_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace weft::detail
