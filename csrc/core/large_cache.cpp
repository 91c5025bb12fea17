// The system's side of the allocator: mapped memory, huge pages, free large blocks.
#include "core/large_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <new>

#include "core/allocator.h"
#include "core/thread_cache.h"

namespace weft::detail {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

void* map_huge(size_t nbytes) {
  // Mapped with room to align, then trimmed.
  const size_t total = nbytes + kHugePage;
  void* raw = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (start + kHugePage - 1) & ~(kHugePage - 1);
  if (aligned > start) munmap(raw, aligned - start);
  const size_t tail = total - (aligned - start) - nbytes;
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + nbytes), tail);
  void* block = reinterpret_cast<void*>(aligned);
  madvise(block, nbytes, MADV_HUGEPAGE);
  return block;
}

}  // namespace

size_t machine_memory() {
  size_t bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    size_t limit = 0;
    if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

size_t round_large(size_t nbytes) {
  size_t step = kHugePage;
  if (nbytes < kHugePage) {
    step = (size_t{1} << (63 - __builtin_clzll(nbytes))) / 8;
  } else if (nbytes < 8 * kHugePage) {
    step = 64 * 1024;
  }
  return (nbytes + step - 1) / step * step;
}

void* system_allocate(size_t nbytes) {
  if (nbytes >= kHugePage) return map_huge(nbytes);
  void* block = nullptr;
  return posix_memalign(&block, Allocator::kAlignment, nbytes) == 0 ? block : nullptr;
}

void system_free(void* block, size_t nbytes) noexcept {
  if (nbytes >= kHugePage) {
    munmap(block, nbytes);
  } else {
    std::free(block);
  }
}

void* LargeCache::take(size_t nbytes, size_t* size) {
  const auto found = blocks_.lower_bound(nbytes);
  if (found == blocks_.end() || found->first > nbytes + nbytes / 8) return nullptr;
  void* block = found->second.block;
  *size = found->first;
  bytes_ -= found->first;
  blocks_.erase(found);
  WEFT_UNPOISON(block, *size);
  return block;
}

bool LargeCache::give(void* block, size_t size) noexcept {
  try {
    blocks_.emplace_hint(blocks_.lower_bound(size), size, Entry{block, ++clock_});
  } catch (const std::bad_alloc&) {
    return false;
  }
  WEFT_POISON(block, size);
  bytes_ += size;
  return true;
}

size_t LargeCache::evict() {
  const auto oldest = std::min_element(
      blocks_.begin(), blocks_.end(),
      [](const auto& a, const auto& b) { return a.second.stamp < b.second.stamp; });
  if (oldest == blocks_.end()) return 0;
  const size_t size = oldest->first;
  WEFT_UNPOISON(oldest->second.block, size);
  system_free(oldest->second.block, size);
  bytes_ -= size;
  blocks_.erase(oldest);
  return size;
}

}  // namespace weft::detail
