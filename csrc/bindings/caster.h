// nanobind casters for our value types, so that cold-path functions can take and give them
// directly.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"

namespace nanobind::detail {

template <>
struct type_caster<weft::Tensor> {
  NB_TYPE_CASTER(weft::Tensor, const_name("weft.Tensor"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    if (!weft::py::is_tensor(source.ptr())) return false;
    value = weft::py::unwrap(source.ptr());
    return true;
  }
  static handle from_cpp(const weft::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    return weft::py::guarded([&] { return weft::py::wrap(tensor); });
  }
};

template <>
struct type_caster<weft::DType> {
  NB_TYPE_CASTER(weft::DType, const_name("weft.dtype"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    return weft::py::to_dtype(source.ptr(), &value);
  }
  static handle from_cpp(weft::DType dtype, rv_policy, cleanup_list*) noexcept {
    return weft::py::new_ref(weft::py::dtype_object(dtype));
  }
};

template <>
struct type_caster<weft::Scalar> {
  NB_TYPE_CASTER(weft::Scalar, const_name("bool | int | float | complex"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    try {
      return weft::py::to_scalar(source.ptr(), &value);
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const weft::Scalar& scalar, rv_policy, cleanup_list*) noexcept {
    return weft::py::from_scalar(scalar);
  }
};

}  // namespace nanobind::detail
