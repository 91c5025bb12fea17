// Small helpers shared by the native operators: operands in the form a loop wants them.
#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "core/error.h"
#include "core/tensor.h"
#include "ops/copy.h"

namespace weft::native {

inline void copy_into(const Tensor& dst, const Tensor& src) { weft::copy_into(dst, src, "copy_"); }

// The tensor itself when its elements lie in order without gaps, else a copy for which they do.
inline Tensor in_order(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : contiguous_copy(tensor);
}

// Items of so much work each that a thread should have at least.
inline int64_t grain_of(int64_t work) {
  return (int64_t{1} << 15) / std::max<int64_t>(1, work) + 1;
}

// A tensor of no dimensions as one of one dimension, over the same memory.
inline Tensor as_vector(const Tensor& tensor) {
  return tensor.dim() > 0 ? tensor : tensor.with_layout({{1}, {1}, tensor.offset()});
}

// In the order of the tensor's memory.
inline Tensor as_dtype(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor result = empty_preserve(tensor, dtype, tensor.device());
  copy_into(result, tensor);
  return result;
}

// Bools whose bytes are 0 and 1: bytes that are viewed as bools may be others, which C++ may not
// read as such. Other tensors as they are.
inline Tensor plain_bools(const Tensor& tensor) {
  if (tensor.dtype() != DType::Bool) return tensor;
  return as_dtype(as_dtype(tensor, DType::U8), DType::Bool);
}

// Zero bytes, the zero of every dtype, in a new tensor, whose elements fill its memory.
inline void zero_memory(const Tensor& tensor, const char* op) {
  if (!tensor.on_cpu()) return fill(tensor, 0, op);
  const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.item_size();
  if (bytes > 0) std::memset(tensor.data(), 0, bytes);
}
inline Tensor zeros_of(IntList sizes, DType dtype, Device device, const char* op) {
  Tensor result = Tensor::empty(sizes, dtype, device, op);
  zero_memory(result, op);
  return result;
}

// Calls fn(std::type_identity<T>{}) with the one of these types that is the dtype's. Whether one
// is.
template <class... Types, class Fn>
[[nodiscard]] bool dispatch_among(DType dtype, Fn&& fn) {
  return ((dtype == dtype_of<Types>::value && (fn(std::type_identity<Types>{}), true)) || ...);
}

// With the T of a computing dtype, float32 or float64.
template <class Fn>
void dispatch_float(const char* op, DType dtype, Fn&& fn) {
  const bool known = dispatch_among<float, double>(dtype, fn);
  WEFT_CHECK_AS(NotImplemented, known, op, ": expected a floating dtype, got ", dtype);
}

template <class T>
T number_as(const Scalar& scalar) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return static_cast<T>(scalar.to_complex());
  } else if constexpr (std::is_same_v<T, bool>) {
    return scalar.to_bool();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(scalar.to_int());
  } else {
    return static_cast<T>(scalar.to_double());
  }
}

template <class T>
inline constexpr bool is_complex_number = requires(T value) { value.imag(); };

// A number computed in float64 as an element; beyond the integers of 64 bits 0, for a cast has no
// meaning there.
template <class T>
T cast_number(double value) {
  if constexpr (is_small_float<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (is_complex_number<T>) {
    return T(static_cast<typename T::value_type>(value));
  } else {
    if constexpr (std::is_integral_v<T>) {
      if (!(value >= -0x1p63 && value < 0x1p63)) return T(0);
      return static_cast<T>(static_cast<int64_t>(value));
    } else {
      return static_cast<T>(value);
    }
  }
}

// Calls fn(std::type_identity<T>{}) with an unsigned type as large as an element: for operators
// that only move elements. 16 bytes come as std::complex<double>.
template <class Fn>
decltype(auto) dispatch_size(DType dtype, Fn&& fn) {
  switch (item_size(dtype)) {
    case 1:
      return fn(std::type_identity<uint8_t>{});
    case 2:
      return fn(std::type_identity<uint16_t>{});
    case 4:
      return fn(std::type_identity<uint32_t>{});
    case 8:
      return fn(std::type_identity<uint64_t>{});
    default:
      return fn(std::type_identity<std::complex<double>>{});
  }
}

// Products of the sizes before, at and after a dimension: a tensor as [outer, size, inner].
struct Split3 {
  int64_t outer = 1, size = 1, inner = 1;
};
inline Split3 split_at(IntList sizes, int64_t dim) {
  Split3 result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    (at < dim ? result.outer : at == dim ? result.size : result.inner) *= sizes[i];
  }
  return result;
}

// Calls fn(std::type_identity<T>{}) with the type of a dtype that has an order.
template <class Fn>
void dispatch_ordered(const char* op, DType dtype, Fn&& fn) {
  WEFT_CHECK_AS(NotImplemented, !is_complex(dtype), op, ": expected a dtype with an order, got ",
                dtype);
  dispatch(dtype, [&]<class T>(std::type_identity<T> type) {
    if constexpr (!is_complex_number<T>) fn(type);
  });
}

}  // namespace weft::native
