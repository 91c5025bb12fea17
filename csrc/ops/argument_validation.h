// Looks at the arguments of pointwise operators before their kernels run: what PyTorch refuses for
// integers, kernels cannot raise. Rows name these functions in `validate=`.
#pragma once

#include "core/error.h"
#include "core/tensor.h"

namespace weft::validation {

inline bool is_whole(DType dtype) { return !is_floating(dtype) && !is_complex(dtype); }

// Raises RuntimeError when an element is 0.
void refuse_zeros(const char* op, const Tensor& divisor);

// Integers are not divided by zero.
inline void divisor(const char* op, const Tensor& self, const Tensor& other) {
  if (!is_whole(self.dtype()) || !is_whole(other.dtype())) return;
  refuse_zeros(op, other);
}
inline void divisor(const char* op, const Tensor& self, const Scalar& other) {
  if (!is_whole(self.dtype()) || !other.is_integral() || other.to_int() != 0) return;
  WEFT_CHECK(false, op, ": expected an integer divisor other than 0, got 0 (ZeroDivisionError)");
}

// A factor that is True or False is for masks.
inline void alpha(const char* op, const Tensor& self, DType other, const Scalar& alpha) {
  WEFT_CHECK(alpha.category() != DTypeCategory::Bool ||
                 (self.dtype() == DType::Bool && other == DType::Bool),
             op, ": expected a bool alpha beside bools only, got dtypes ", self.dtype(), " and ",
             other);
}
inline void alpha(const char* op, const Tensor& self, const Tensor& other, const Scalar& factor) {
  alpha(op, self, other.dtype(), factor);
}
inline void alpha(const char* op, const Tensor& self, const Scalar& other, const Scalar& factor) {
  alpha(op, self, other.dtype(), factor);
}

// A number beside a tensor fits the dtype of both.
void number_fits(const char* op, const Tensor& self, const Scalar& number);
inline void number_fits(const char* op, const Tensor& self, const Scalar& low, const Scalar& high) {
  number_fits(op, self, low);
  number_fits(op, self, high);
}

// The number of a `where`, which may come first; it may become infinite in 16 bits.
void where_fits(const char* op, const Tensor& condition, const Tensor& self, const Scalar& other);
inline void where_fits(const char* op, const Tensor& condition, const Scalar& self,
                       const Tensor& other) {
  where_fits(op, condition, other, self);
}

// A number that is written into a tensor must fit its dtype.
void value_fits(const char* op, const Tensor& self, const Tensor& mask, const Scalar& value);

// The mask of a masked_fill holds bools, and the number fits.
void mask_and_value(const char* op, const Tensor& self, const Tensor& mask, const Scalar& value);

// Operands of one dtype; a weight of no dims is a number.
inline void one_dtype(const char* op, const Tensor& self, const Tensor& other) {
  WEFT_CHECK(self.dtype() == other.dtype(), op, ": expected tensors of one dtype, got ",
             self.dtype(), " and ", other.dtype());
}
inline void one_dtype(const char* op, const Tensor& self, const Tensor& end, const Scalar&) {
  one_dtype(op, self, end);
}
inline void one_dtype(const char* op, const Tensor& self, const Tensor& end, const Tensor& weight) {
  one_dtype(op, self, end);
  if (weight.dim() > 0) one_dtype(op, self, weight);
}

// Integers are not divided by integers.
inline void quotient(const char* op, const Tensor&, const Tensor& tensor1, const Tensor& tensor2,
                     const Scalar&) {
  WEFT_CHECK(!is_whole(tensor1.dtype()) || !is_whole(tensor2.dtype()), op,
             ": expected tensor1 or tensor2 of a floating or complex dtype, got ", tensor1.dtype(),
             " and ", tensor2.dtype());
}

// Limits of integers are integers of the dtype, and none is negative where it has no sign.
void limits(const char* op, const Tensor& self, const Scalar& low, const Scalar& high);

// Integers are not raised to negative integers.
inline void exponent(const char* op, const Tensor& self, const Scalar& exponent) {
  if (!is_whole(self.dtype()) || !exponent.is_integral() || exponent.to_int() >= 0) return;
  WEFT_CHECK(false, op, ": expected an exponent >= 0 for an integer tensor, got ",
             exponent.to_int());
}

}  // namespace weft::validation
