// Functions of doubles mapped over tensors: special functions compute in double for every dtype.
#pragma once

#include <limits>
#include <tuple>

#include "core/thread_pool.h"
#include "ops/factory.h"
#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The dtype of special functions' results: floating as it is, default_dtype() of the others.
inline DType special_dtype(const char* op, DType dtype) {
  WEFT_CHECK_AS(NotImplemented, !is_complex(dtype), op, ": expected a real dtype, got ", dtype);
  return is_floating(dtype) ? dtype : default_dtype();
}

// The same for functions that 16 bits have not.
inline DType full_special_dtype(const char* op, DType dtype) {
  WEFT_CHECK_AS(NotImplemented, dtype != DType::F16 && dtype != DType::BF16, op,
                ": expected float32 or float64, got ", dtype);
  return special_dtype(op, dtype);
}

double digamma_of(double x);

// What two tensors promote to: a 0-d tensor counts by its category alone.
inline DType common_dtype(const Tensor& a, const Tensor& b) {
  const bool number_a = a.dim() == 0 && b.dim() > 0, number_b = b.dim() == 0 && a.dim() > 0;
  if (number_a && category(a.dtype()) <= category(b.dtype())) return b.dtype();
  if (number_b && category(b.dtype()) <= category(a.dtype())) return a.dtype();
  return promote(a.dtype(), b.dtype());
}

// A tensor in elements of type T, as dense as its `sizes` are.
template <class T>
Tensor spread_as(const Tensor& tensor, const Dims& sizes) {
  const Tensor wide = as_dtype(tensor, dtype_of<T>::value);
  return in_order(wide.with_layout(views::expand(wide.layout(), sizes)));
}

// fn over the elements of all operands, broadcast, as elements of type T; the result as `kind`.
template <class T, class Fn, class... Operands>
Tensor mapped_as(const char* op, DType kind, Fn&& fn, const Operands&... given) {
  const Tensor& first = std::get<0>(std::tie(given...));
  Dims sizes = first.sizes();
  ((sizes = broadcast_sizes(op, sizes, given.sizes())), ...);
  const Tensor out = Tensor::empty(sizes, dtype_of<T>::value, first.device(), op);
  const auto run = [&](const auto&... dense) {
    parallel_for(out.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
      const auto from = std::make_tuple(dense.template data_as<const T>()...);
      T* const to = out.template data_as<T>();
      std::apply(
          [&](const auto*... at) {
            for (int64_t i = begin; i < end; ++i) to[i] = fn(at[i]...);
          },
          from);
    });
  };
  run(spread_as<T>(given, sizes)...);
  return as_dtype(out, kind);
}
template <class Fn>
Tensor mapped(const char* op, const Tensor& self, Fn&& fn) {
  return mapped_as<double>(op, special_dtype(op, self.dtype()), fn, self);
}
template <class T, class Fn>
Tensor mapped_pairs(const char* op, const Tensor& a, const Tensor& b, DType kind, Fn&& fn) {
  return mapped_as<T>(op, kind, fn, a, b);
}

}  // namespace weft::native
