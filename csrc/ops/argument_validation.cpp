#include "ops/argument_validation.h"

#include "ops/copy.h"
#include "ops/support.h"

namespace weft::validation {

namespace {

// A number counts only where it is of a higher category than the tensor.
DType dtype_beside(const Scalar& number, const Tensor& self) {
  const bool counts = number.category() > category(self.dtype());
  return counts ? promote(number.dtype(), self.dtype()) : self.dtype();
}

bool is_unsigned(DType dtype) {
  return dtype == DType::U8 || dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64;
}

}  // namespace

void refuse_zeros(const char* op, const Tensor& divisor) {
  const Tensor values = native::in_order(on_device(divisor, {}));
  native::dispatch_size(values.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* data = values.data_as<const T>();
      const int64_t count = values.numel();
      bool any = false;
      for (int64_t i = 0; i < count; ++i) any |= data[i] == 0;
      WEFT_CHECK(!any, op, ": expected integer divisors other than 0, got 0 (ZeroDivisionError)");
    }
  });
}

void mask_and_value(const char* op, const Tensor& self, const Tensor& mask, const Scalar& value) {
  WEFT_CHECK(mask.dtype() == DType::Bool, op, ": expected a mask of dtype bool, got ",
             mask.dtype());
  value_fits(op, self, mask, value);
}

void value_fits(const char* op, const Tensor& self, const Tensor&, const Scalar& value) {
  check_number(value, self.dtype(), op);
}

void number_fits(const char* op, const Tensor& self, const Scalar& number) {
  if (number.category() == DTypeCategory::Bool || number.is_complex()) return;
  check_number(number, dtype_beside(number, self), op);
}

void where_fits(const char* op, const Tensor&, const Tensor& self, const Scalar& other) {
  if (other.category() == DTypeCategory::Bool || other.is_complex()) return;
  check_range(other, dtype_beside(other, self), op);
}

void limits(const char* op, const Tensor& self, const Scalar& low, const Scalar& high) {
  if (!is_whole(self.dtype())) return;
  for (const Scalar& limit : {low, high}) {
    if (limit.is_complex()) continue;  // refused by the kernel
    WEFT_CHECK(!is_unsigned(self.dtype()) || limit.to_double() >= 0, op,
               ": expected limits of at least 0 for ", self.dtype(), ", got ", limit);
    check_range(limit, self.dtype(), op);
  }
}

}  // namespace weft::validation
