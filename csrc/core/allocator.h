// Allocators hand out blocks of bytes. They are pluggable while the program runs: a block always
// goes back to the allocator that made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/stream.h"

namespace weft {

// What an allocator has done so far. Bytes are those of the blocks, rounding included.
struct AllocatorStats {
  uint64_t allocations = 0;         // blocks handed out
  uint64_t frees = 0;               // blocks given back
  uint64_t system_allocations = 0;  // of those, how many had to ask the system
  size_t bytes_in_use = 0;
  size_t peak_bytes_in_use = 0;
  size_t bytes_cached = 0;  // held free for reuse
};

// The blocks of one size that an allocator holds.
struct BlockCount {
  size_t block_bytes;
  uint64_t in_use, cached;
};

// Thread-safe. Every block starts at a multiple of kAlignment; a request of 0 bytes may return
// null.
class Allocator {
 public:
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;
  // Raises OutOfMemory "<op>: ... " with the size when the system or the limit says no.
  virtual void* allocate(size_t nbytes) = 0;
  // `nbytes` is the size that was asked for. Work queued on `stream` before may still use the
  // block: only work on the same stream may have it at once.
  virtual void free(void* block, size_t nbytes, Stream stream = {}) noexcept = 0;
  virtual AllocatorStats stats() const = 0;
  virtual void reset_peak() {}
  // Gives cached blocks back to the system.
  virtual void empty_cache() {}
  // Most bytes in use plus cached; 0 means no limit.
  virtual void set_limit(size_t nbytes) = 0;
  virtual size_t limit() const = 0;
  virtual const char* name() const { return "allocator"; }
  // The sizes held, ascending; empty where the allocator does not know.
  virtual std::vector<BlockCount> snapshot() const { return {}; }
};

// The built-in CPU allocator: caches by size class, per thread for small blocks; large blocks are
// 2 MB aligned and ask for huge pages, because first touch of a page costs more than the
// arithmetic.
Allocator& caching_allocator();

// The allocator of new CPU storages. Set returns the old one; both must outlive their blocks.
Allocator& cpu_allocator();
Allocator& set_cpu_allocator(Allocator& allocator);

}  // namespace weft
