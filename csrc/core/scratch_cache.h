// Scratch memory for the time of one call, from the allocator of new storages.
//
// The built-in allocator keeps blocks by itself. Of any other, which may be slow (a pair of Python
// functions), each thread keeps the last block for its next call. Kept blocks go back to the
// allocator that made them when another takes its place, and when their thread ends.
#pragma once

#include "core/allocator.h"

namespace weft {

struct ScratchBlock {
  Allocator* allocator = nullptr;
  void* data = nullptr;
  size_t nbytes = 0;
};

// At least `nbytes` > 0, uninitialised. Raises what the allocator raises.
ScratchBlock take_scratch(size_t nbytes);
void give_scratch(const ScratchBlock& block) noexcept;

namespace detail {
// Frees what all threads keep; called once another allocator is the current one.
void drop_scratch() noexcept;
}  // namespace detail

}  // namespace weft
