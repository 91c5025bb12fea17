#include "runtime/future.h"

#include "core/error.h"

namespace weft {

void FutureObject::set_value(Value value) { finish(std::move(value), nullptr); }
void FutureObject::set_error(std::exception_ptr error) { finish(Value(), std::move(error)); }

void FutureObject::finish(Value value, std::exception_ptr error) {
  WEFT_INTERNAL_ASSERT(!done(), "a future has one result");
  value_ = std::move(value);
  error_ = std::move(error);
  done_.store(1, std::memory_order_release);
  done_.notify_all();
}

bool FutureObject::done() const { return done_.load(std::memory_order_acquire) != 0; }

Value FutureObject::wait() const {
  while (!done()) {
    WEFT_CHECK(generation_ == fork_generation(),
               "wait: expected a call of this process, got one that was still running when the "
               "process was forked; its thread is in the parent");
    done_.wait(0, std::memory_order_acquire);
  }
  if (error_) std::rethrow_exception(error_);
  return value_;
}

}  // namespace weft
