// The registers and frames of one thread.
//
// Registers lie in chunks that never move, so a frame may be pointed into while others come and go.
#pragma once

#include <memory>
#include <vector>

#include "runtime/program.h"

namespace weft {

// A call under way. The running one keeps its position in the interpreter's own variables.
struct Frame {
  const Function* function;
  const Instruction* at;  // of the running frame: not up to date
  Value* registers;
  size_t entered;  // how many modes and contexts were entered when it started
};

// What the end of a `with` block takes back: a mode, which becomes what it was before; or the
// context of an object, where an exception that leaves the block calls `exit` with it.
struct Entered {
  bool grad;
  unsigned char autocast;
  const Function* exit;  // null: a mode
  Value manager;
};

class RegisterStack {
 public:
  // Room for a frame: registers that instructions address and results on their way are None, the
  // operands' scratch behind them is raw memory. Raises RecursionError's ProgramError.
  Value* push(const Function& function) {
    const size_t size = function.frame_size;
    if (static_cast<size_t>(end_ - top_) < size) [[unlikely]]
      return push_slow(function);
    Value* registers = top_;
    top_ += size;
    clear(registers, function);
    return registers;
  }
  // Frees what the frame still holds. Frames go in the order opposite to that of push.
  void pop(const Function& function, Value* registers) noexcept {
    sweep(registers, function.objects);
    if (function.scratch) sweep(registers + function.objects + function.scalars, function.scratch);
    top_ = registers;
    if (registers == begin_) [[unlikely]]
      leave_chunk();
  }

  std::vector<Frame> frames;
  std::vector<Entered> entered;  // the innermost last

  // Of the calling thread.
  static RegisterStack& current();

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    Value *begin, *end;
    Value* outer_top;  // of the chunk before, while this one is in use
  };
  static void clear(Value* registers, const Function& function) noexcept {
    std::memset(static_cast<void*>(registers), 0,
                (function.objects + function.scalars + function.scratch) * sizeof(Value));
  }
  static void sweep(Value* first, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) first[i].~Value();
  }
  Value* push_slow(const Function& function);
  void leave_chunk() noexcept;
  void drop_last() noexcept;

  Value *begin_ = nullptr, *top_ = nullptr, *end_ = nullptr;
  std::vector<Chunk> chunks_;
  size_t in_use_ = 0;  // chunks
  size_t total_ = 0;   // registers of all of them
};

}  // namespace weft
