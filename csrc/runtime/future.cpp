#include "runtime/future.h"

#include "core/error.h"

namespace weft {

void FutureObject::set_value(Value value) { finish(std::move(value), nullptr); }
void FutureObject::set_error(std::exception_ptr error) { finish(Value(), std::move(error)); }

void FutureObject::finish(Value value, std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  WEFT_INTERNAL_ASSERT(!done_, "a future has one result");
  value_ = std::move(value);
  error_ = std::move(error);
  done_ = true;
  ready_.notify_all();
}

bool FutureObject::done() const {
  std::lock_guard lock(mutex_);
  return done_;
}

Value FutureObject::wait() const {
  std::unique_lock lock(mutex_);
  ready_.wait(lock, [&] { return done_; });
  if (error_) std::rethrow_exception(error_);
  return value_;
}

}  // namespace weft
