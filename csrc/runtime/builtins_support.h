// What the expressions of rows use besides arithmetic.h.
#pragma once

#include <cmath>
#include <complex>

#include "core/error.h"
#include "core/scalar.h"
#include "runtime/list.h"
#include "runtime/object.h"

namespace weft::builtins {

// ---- numbers of any type ----

// on_real(double) or on_complex(complex), by what the number is.
template <class Real, class Imaginary>
Scalar scalar_math(const Scalar& a, Real on_real, Imaginary on_complex) {
  if (a.is_complex()) return Scalar(on_complex(a.to_complex()));
  return Scalar(on_real(a.to_double()));
}
[[noreturn]] std::complex<double> no_complex(const char* op);
// The number as a float; TypeError when it is complex.
double real_part(const char* op, const Scalar& a);

// The one element of a tensor; RuntimeError when it has another count.
inline Scalar tensor_item(const Tensor& tensor) { return tensor.item(); }
// x + y * 1j
std::complex<double> make_complex(const Scalar& x, const Scalar& y);

// ---- containers ----

Value list_min(const Value& list);
Value list_max(const Value& list);
Value dict_keys(const Value& dict, ValueTag list);
inline const Value& enum_value(const Value& member) {
  const auto* object = member.object<EnumObject>();
  return object->def->values[object->index];
}

// ---- tensors ----

int64_t tensor_len(const Tensor& tensor);
inline bool tensor_never(const Tensor&) { return false; }
inline bool is_signed(DType dtype) {
  return dtype != DType::Bool &&
         !(dtype == DType::U8 || (dtype >= DType::U16 && dtype <= DType::U64));
}
inline int64_t device_number(const Tensor& tensor) {
  const Device device = tensor.device();
  return device.type == DeviceType::CPU ? -1 : device.index;
}

}  // namespace weft::builtins
