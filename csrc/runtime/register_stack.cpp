#include "runtime/register_stack.h"

#include <algorithm>

#include "runtime/interpreter.h"

namespace weft {
namespace {

constexpr size_t kChunk = size_t{1} << 12;          // registers of the first chunk
constexpr size_t kMostRegisters = size_t{1} << 24;  // 256 MB

}  // namespace

RegisterStack& RegisterStack::current() {
  static thread_local std::unique_ptr<RegisterStack> stack;
  static thread_local RegisterStack* pointer = nullptr;
  if (!pointer) [[unlikely]] {
    stack = std::make_unique<RegisterStack>();
    pointer = stack.get();
  }
  return *pointer;
}

Value* RegisterStack::push_slow(const Function& function) {
  const size_t size = function.frame_size;
  // The chunk kept from before may be too small: it and those behind it go.
  if (in_use_ < chunks_.size() &&
      static_cast<size_t>(chunks_[in_use_].end - chunks_[in_use_].begin) < size) {
    while (chunks_.size() > in_use_) drop_last();
  }
  if (in_use_ == chunks_.size()) {
    const size_t count = std::max(std::max(size, kChunk), std::min(total_, kMostRegisters / 8));
    if (total_ + count > kMostRegisters) {
      throw ProgramError("RecursionError",
                         "maximum recursion depth exceeded: the program needs more "
                         "than 256 MB of registers");
    }
    Chunk chunk;
    chunk.memory = std::make_unique_for_overwrite<std::byte[]>(count * sizeof(Value));
    chunk.begin = reinterpret_cast<Value*>(chunk.memory.get());
    chunk.end = chunk.begin + count;
    chunks_.push_back(std::move(chunk));
    total_ += count;
  }
  Chunk& chunk = chunks_[in_use_++];
  chunk.outer_top = top_;
  begin_ = chunk.begin;
  end_ = chunk.end;
  top_ = begin_ + size;
  clear(begin_, function);
  return begin_;
}

// The first chunk stays, and one behind the last in use: calls that cross the border again and
// again find it, and a deep recursion does not keep its memory.
void RegisterStack::leave_chunk() noexcept {
  if (in_use_ <= 1) return;
  top_ = chunks_[--in_use_].outer_top;
  begin_ = chunks_[in_use_ - 1].begin;
  end_ = chunks_[in_use_ - 1].end;
  while (chunks_.size() > in_use_ + 1) drop_last();
}

void RegisterStack::drop_last() noexcept {
  total_ -= static_cast<size_t>(chunks_.back().end - chunks_.back().begin);
  chunks_.pop_back();
}

}  // namespace weft
