// Yielding the GIL to the compiling thread.
//
// Calls on small tensors keep the GIL, so that a loop of them gives it away only to a thread that
// has waited for the whole switch interval. The compiling thread lets go of it for every file it
// reads, some hundred times before its first kernel: it would spend most of its time waiting. So a
// call yields the GIL while that thread has Python to run, and gets it back within the interval.
#pragma once

namespace weft::py {

// Whether the compiling thread wants the GIL: while it has a request, and LLVM is not at work.
// Gives what it was.
bool set_gil_wanted(bool wanted) noexcept;
class GilUnwanted {
 public:
  GilUnwanted() : before_(set_gil_wanted(false)) {}
  ~GilUnwanted() { set_gil_wanted(before_); }
  GilUnwanted(const GilUnwanted&) = delete;
  GilUnwanted& operator=(const GilUnwanted&) = delete;

 private:
  bool before_;
};

// Lets go of the GIL, which the caller holds, for a moment if it is wanted and this thread has held
// it for some calls.
void yield_gil();

}  // namespace weft::py
