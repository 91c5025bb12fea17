// Memory for nodes and per-tensor state: per-thread lists of freed blocks, in steps of 64 bytes.
//
// A block may be freed by another thread than the one that made it; it then serves that thread.
// Bounded: a thread keeps at most kPoolKeep blocks of each size. Under AddressSanitizer every block
// goes to the system, so that use after free is seen.
#pragma once

#include <cstddef>

namespace weft::autograd {

inline constexpr unsigned kPoolKeep = 1024;

void* pool_allocate(size_t size);
void pool_free(void* block, size_t size) noexcept;

}  // namespace weft::autograd
