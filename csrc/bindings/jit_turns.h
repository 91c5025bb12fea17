// Turns of the interpreter lock between the compiling thread and programs that call without a
// pause.
//
// Calls on small tensors keep the lock, so that a loop of them gives it away only to a thread that
// has waited for the whole switch interval. The compiling thread lets go of it for every file it
// reads, some hundred times before its first kernel: it would spend most of its time waiting. So a
// call offers the lock while that thread has Python to run, and gets it back within the interval.
#pragma once

namespace weft::py {

// Whether the compiling thread wants the lock: while it has a request, and LLVM is not at work.
// Gives what it was.
bool set_lock_wanted(bool wanted) noexcept;
class LockUnwanted {
 public:
  LockUnwanted() : before_(set_lock_wanted(false)) {}
  ~LockUnwanted() { set_lock_wanted(before_); }
  LockUnwanted(const LockUnwanted&) = delete;
  LockUnwanted& operator=(const LockUnwanted&) = delete;

 private:
  bool before_;
};

// Lets go of the lock, which the caller holds, for a moment if it is wanted and this thread has had
// its turn.
void offer_lock();

}  // namespace weft::py
