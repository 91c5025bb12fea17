#include "ops/precheck.h"

#include "ops/support.h"

namespace weft::precheck {

void refuse_zeros(const char* op, const Tensor& divisor) {
  const Tensor values = native::in_order(divisor);
  native::dispatch_size(values.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>) {
      const T* data = values.data_as<const T>();
      const int64_t count = values.numel();
      bool any = false;
      for (int64_t i = 0; i < count; ++i) any |= data[i] == 0;
      WEFT_CHECK(!any, op, ": expected integer divisors other than 0, got 0 (ZeroDivisionError)");
    }
  });
}

}  // namespace weft::precheck
