// What generated gradient formulas and compose bodies call besides operators: small functions over
// sizes and numbers. The names are those of BUILTINS in src/weft/_ops/formulas.py.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/tensor.h"

namespace weft::formula {

inline int64_t product(IntList values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

// Python's indexing: -1 is the last entry.
template <class List>
auto at(const List& list, int64_t index) {
  const auto count = static_cast<int64_t>(list.size());
  WEFT_CHECK_INDEX(index >= -count && index < count, "index: expected an index in [", -count, ", ",
                   count - 1, "], got ", index);
  return list[static_cast<size_t>(index < 0 ? index + count : index)];
}

// Python's list[begin:end].
inline Dims slice_of(IntList list, std::optional<int64_t> begin, std::optional<int64_t> end) {
  const auto count = static_cast<int64_t>(list.size());
  auto place = [count](int64_t i) { return std::clamp(i < 0 ? i + count : i, int64_t{0}, count); };
  const int64_t first = place(begin.value_or(0));
  const int64_t last = std::max(first, place(end.value_or(count)));
  return Dims(list.subspan(static_cast<size_t>(first), static_cast<size_t>(last - first)));
}

inline Dims concat(IntList a, IntList b) {
  Dims result(a);
  for (int64_t value : b) result.push_back(value);
  return result;
}

inline Dims negated(IntList values) {
  Dims result(values);
  for (int64_t& value : result) value = -value;
  return result;
}

inline int64_t wrap_dim(int64_t dim, int64_t ndim) { return weft::wrap_dim("dim", dim, ndim); }

// The sizes a reduction over `dims` (none: all) gives with keepdim.
inline Dims kept_sizes(IntList sizes, std::optional<IntList> dims) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  if (!dims || dims->empty()) return Dims(sizes.size(), 1);
  Dims result(sizes);
  if (ndim == 0) return result;
  for (int64_t dim : *dims) result[static_cast<size_t>(wrap_dim(dim, ndim))] = 1;
  return result;
}

// How many elements a reduction over `dims` (none: all) folds into one.
inline int64_t reduced_count(IntList sizes, std::optional<IntList> dims) {
  if (!dims || dims->empty()) return product(sizes);
  int64_t count = 1;
  if (sizes.empty()) return count;
  for (int64_t dim : *dims) count *= at(sizes, dim);
  return count;
}

inline Dims inverse_permutation(IntList dims) {
  Dims result(dims.size());
  const auto ndim = static_cast<int64_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    result[static_cast<size_t>(wrap_dim(dims[i], ndim))] = static_cast<int64_t>(i);
  }
  return result;
}

// The last `count` dimensions: {-count, ..., -1}.
inline Dims last_dims(int64_t count) {
  Dims result(static_cast<size_t>(count));
  std::iota(result.begin(), result.end(), -count);
  return result;
}

inline Dims broadcast_sizes(IntList a, IntList b) { return weft::broadcast_sizes("expand", a, b); }

// Sizes of each tensor at `dim`, as cat sees them: an empty 1-d tensor counts as absent.
inline Dims sizes(const TensorList& tensors, int64_t dim) {
  Dims result(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool absent = tensors[i].dim() == 1 && tensors[i].numel() == 0;
    result[i] = absent ? 0 : tensors[i].size(dim);
  }
  return result;
}

inline int64_t floordiv(int64_t a, int64_t b) {
  WEFT_CHECK_VALUE(b != 0, "division: expected a divisor other than 0, got 0");
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t mod(int64_t a, int64_t b) { return a - floordiv(a, b) * b; }

// Arithmetic of numbers whose kind is known only when they come: the widest of both.
template <class Fn>
Scalar combine(const Scalar& a, const Scalar& b, Fn fn) {
  if (a.is_complex() || b.is_complex()) return Scalar(fn(a.to_complex(), b.to_complex()));
  if (a.is_integral() && b.is_integral())
    return Scalar(static_cast<int64_t>(fn(a.to_int(), b.to_int())));
  return Scalar(fn(a.to_double(), b.to_double()));
}
inline Scalar add(const Scalar& a, const Scalar& b) { return combine(a, b, std::plus<>()); }
inline Scalar sub(const Scalar& a, const Scalar& b) { return combine(a, b, std::minus<>()); }
inline Scalar mul(const Scalar& a, const Scalar& b) { return combine(a, b, std::multiplies<>()); }
inline Scalar div(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return Scalar(a.to_complex() / b.to_complex());
  return Scalar(a.to_double() / b.to_double());
}
inline bool lt(const Scalar& a, const Scalar& b) { return a.to_double() < b.to_double(); }
inline bool le(const Scalar& a, const Scalar& b) { return a.to_double() <= b.to_double(); }
inline bool gt(const Scalar& a, const Scalar& b) { return a.to_double() > b.to_double(); }
inline bool ge(const Scalar& a, const Scalar& b) { return a.to_double() >= b.to_double(); }
inline Scalar conj(const Scalar& a) {
  return a.is_complex() ? Scalar(std::conj(a.to_complex())) : a;
}

}  // namespace weft::formula
