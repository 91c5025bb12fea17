// Future: the result of a forked call, on its way.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>

#include "runtime/value.h"

namespace weft {

class FutureObject final : public ValueObject {
 public:
  // Exactly one of the two is called, once.
  void set_value(Value value);
  void set_error(std::exception_ptr error);
  bool done() const;
  // Blocks until there is a result; throws what set_error was given.
  Value wait() const;

 private:
  void finish(Value value, std::exception_ptr error);

  mutable std::mutex mutex_;
  mutable std::condition_variable ready_;
  bool done_ = false;
  Value value_;
  std::exception_ptr error_;
};
inline Value make_future() { return Value(ValueTag::Future, make_ref<FutureObject>()); }

}  // namespace weft
