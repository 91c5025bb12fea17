// Future: the result of a forked call, on its way.
#pragma once

#include <atomic>
#include <exception>

#include "core/fork.h"
#include "runtime/value.h"

namespace weft {

class FutureObject final : public ValueObject {
 public:
  // Exactly one of the two is called, once.
  void set_value(Value value);
  void set_error(std::exception_ptr error);
  bool done() const;
  // Blocks until there is a result; throws what set_error was given. RuntimeError in a child
  // process for a call that ran on a thread of its parent: nobody will finish it.
  Value wait() const;

 private:
  void finish(Value value, std::exception_ptr error);

  const uint32_t generation_ = fork_generation();
  std::atomic<uint32_t> done_{0};  // 1: what follows is there and stays as it is
  Value value_;
  std::exception_ptr error_;
};
inline Value make_future() { return Value(ValueTag::Future, make_ref<FutureObject>()); }

}  // namespace weft
