// Writing at indices: index_fill by a tensor, scatter_reduce.
#include <cmath>
#include <span>

#include "native_indexing.h"
#include "native_layout.h"
#include "ops/accumulate.h"
#include "ops/index_plan.h"
#include "ops_arithmetic.h"
#include "ops_clamp_where.h"
#include "ops_compare.h"
#include "ops_factories.h"
#include "ops_indexing.h"
#include "ops_layout.h"
#include "ops_views.h"

namespace weft::native {
namespace {

enum class Fold { Sum, Prod, Mean, Amax, Amin };

Fold fold_of(const std::string& reduce) {
  if (reduce == "sum") return Fold::Sum;
  if (reduce == "prod") return Fold::Prod;
  if (reduce == "mean") return Fold::Mean;
  if (reduce == "amax" || reduce == "max") return Fold::Amax;
  WEFT_CHECK(reduce == "amin" || reduce == "min",
             "scatter_reduce: expected reduce to be sum, prod, mean, amax or amin, got ", reduce);
  return Fold::Amin;
}

// a folded with b, in the type arithmetic is done in.
template <class T>
T folded(Fold fold, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return fold == Fold::Prod || fold == Fold::Amin ? a && b : a || b;
  } else if constexpr (!is_computed<T>) {
    using Compute = ComputeType<T>;
    return T(folded(fold, static_cast<Compute>(a), static_cast<Compute>(b)));
  } else {
    switch (fold) {
      case Fold::Prod:
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        } else {
          return a * b;
        }
      case Fold::Amax:
      case Fold::Amin:
        if constexpr (is_complex_number<T>) {
          return a;
        } else {
          if constexpr (std::is_floating_point_v<T>) {
            if (std::isnan(a)) return a;
            if (std::isnan(b)) return b;
          }
          return (fold == Fold::Amax) == (a < b) ? b : a;
        }
      default:
        accumulate(a, b);
        return a;
    }
  }
}

template <class T>
T mean_of(T sum, int64_t count) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const auto n = static_cast<T>(count);
    const T quotient = static_cast<T>(sum / n);
    return static_cast<T>(quotient - ((sum % n != 0) && ((sum < 0) != (n < 0))));
  } else {
    return divide(sum, count);
  }
}

// Folds src into self, line by line of the last dimension. A place that is first met starts anew
// where self is left out; only then, and for means, places are counted.
template <class T, Fold kFold>
void fold_into(const Tensor& self, const Tensor& src, const Tensor& index, int64_t dim,
               bool include_self) {
  const auto last = static_cast<size_t>(index.dim() - 1), along = static_cast<size_t>(dim);
  const int64_t size = index.sizes()[last], scale = self.strides()[along];
  const int64_t step_to = along == last ? 0 : self.strides()[last], step = src.strides()[last];
  T* const to = self.data_as<T>();
  const T* const from = src.data_as<const T>();
  const int64_t* at = index.data_as<const int64_t>();
  const bool counted = !include_self || kFold == Fold::Mean;
  std::vector<int64_t> counts(counted ? static_cast<size_t>(self.numel()) : 0);
  std::vector<int64_t> place(last, 0);
  for (int64_t line = index.numel() / size; line > 0; --line, at += size) {
    int64_t target = 0, source = 0;
    for (size_t d = 0; d < last; ++d) {
      if (d != along) target += place[d] * self.strides()[d];
      source += place[d] * src.strides()[d];
    }
    for (int64_t i = 0; i < size; ++i) {
      const int64_t where = target + i * step_to + at[i] * scale;
      const T value = from[source + i * step];
      const bool met = !counted || counts[static_cast<size_t>(where)]++ > 0;
      to[where] = met || include_self ? folded(kFold, to[where], value) : value;
    }
    for (size_t d = last; d-- > 0;) {
      if (++place[d] < index.sizes()[d]) break;
      place[d] = 0;
    }
  }
  if (kFold != Fold::Mean) return;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) to[i] = mean_of(to[i], counts[i] + (include_self ? 1 : 0));
  }
}

template <class T>
void fold_into(Fold fold, const Tensor& self, const Tensor& src, const Tensor& index, int64_t dim,
               bool include_self) {
  switch (fold) {
    case Fold::Sum:
      return fold_into<T, Fold::Sum>(self, src, index, dim, include_self);
    case Fold::Prod:
      return fold_into<T, Fold::Prod>(self, src, index, dim, include_self);
    case Fold::Mean:
      return fold_into<T, Fold::Mean>(self, src, index, dim, include_self);
    case Fold::Amax:
      return fold_into<T, Fold::Amax>(self, src, index, dim, include_self);
    case Fold::Amin:
      return fold_into<T, Fold::Amin>(self, src, index, dim, include_self);
  }
}

void check_reduce(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src) {
  WEFT_CHECK(self.dtype() == src.dtype(), op, ": expected tensors of one dtype, got ", self.dtype(),
             " and ", src.dtype());
  WEFT_CHECK(index.dtype() == DType::I64 || index.dtype() == DType::I32, op,
             ": expected an int64 or int32 index, got ", index.dtype());
  bool fits = index.dim() == self.dim() && index.dim() == src.dim();
  for (int64_t d = 0; fits && d < index.dim(); ++d) {
    fits = index.size(d) <= src.size(d) && (d == dim || index.size(d) <= self.size(d));
  }
  WEFT_CHECK(fits, op, ": expected an index no larger than src ", AsTuple{src.sizes()},
             " and self ", AsTuple{self.sizes()}, ", got shape ", AsTuple{index.sizes()});
}

}  // namespace

Tensor index_fill_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  const char* op = "index_fill";
  WEFT_CHECK(value.dim() == 0, op, ": expected a number or a 0-d tensor, got shape ",
             AsTuple{value.sizes()});
  return index_fill_(self, dim, index, value.item());
}

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      const std::string& reduce, bool include_self) {
  const char* op = "scatter_reduce";
  const Fold fold = fold_of(reduce);
  dim = wrap_dim(op, dim, self.dim());
  const Tensor out = contiguous_copy(self);
  const Tensor target = as_vector(out), from = as_vector(src);
  if (index.numel() == 0) return out;
  check_reduce(op, target, dim, as_vector(index), from);
  const Tensor places = in_order(as_dtype(as_vector(index), DType::I64));
  const int64_t size = target.size(dim);
  for (const int64_t at :
       std::span(places.data_as<const int64_t>(), static_cast<size_t>(places.numel()))) {
    WEFT_CHECK(at >= 0 && at < size, op, ": expected index in [0, ", size - 1, "] for dim ", dim,
               ", got ", at);
  }
  dispatch(self.dtype(), [&]<class T>(std::type_identity<T>) {
    WEFT_CHECK_AS(NotImplemented,
                  !is_complex_number<T> || (fold != Fold::Amax && fold != Fold::Amin), op,
                  ": expected a dtype with an order, got ", self.dtype());
    WEFT_CHECK_AS(NotImplemented, self.dtype() != DType::Bool || fold != Fold::Mean, op,
                  ": expected a dtype that has means, got bool");
    fold_into<T>(fold, target, from, places, dim, include_self);
  });
  return out;
}

Tensor scatter_reduce_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       const std::string& reduce, bool include_self) {
  self.check_writable("scatter_reduce_");
  check_no_overlap("scatter_reduce_", self);
  copy_into(self, scatter_reduce(self, dim, index, src, reduce, include_self));
  return self;
}

std::tuple<Tensor, Tensor> _scatter_reduce_backward(const Tensor& grad, const Tensor& self,
                                                    int64_t dim, const Tensor& index,
                                                    const Tensor& src, const std::string& reduce,
                                                    bool include_self, const Tensor& result) {
  auto picked = [&](const Tensor& tensor) { return ops::gather(tensor, dim, index, false); };
  auto number = [&](const Tensor& tensor) { return as_dtype(tensor, grad.dtype()); };
  Tensor to_self, to_src;
  switch (fold_of(reduce)) {
    case Fold::Sum:
      to_self = grad;
      to_src = picked(grad);
      break;
    case Fold::Mean: {
      const Tensor start = include_self ? ops::ones_like(grad) : ops::zeros_like(grad);
      const Tensor count =
          ops::clamp_min(ops::scatter_add(start, dim, index, ops::ones_like(src)), Scalar(1));
      to_self = ops::div(grad, count);
      to_src = picked(to_self);
      break;
    }
    case Fold::Prod: {
      // Where an element is 0 the product of the others is made without it.
      const Tensor zero_self = ops::eq(self, Scalar(0)), zero_src = ops::eq(src, Scalar(0));
      const Tensor full_self = ops::masked_fill(self, zero_self, Scalar(1));
      const Tensor full_src = ops::masked_fill(src, zero_src, Scalar(1));
      const Tensor others =
          ops::scatter_reduce(full_self, dim, index, full_src, reduce, include_self);
      const Tensor own = include_self ? number(zero_self) : ops::zeros_like(grad);
      const Tensor zeros = ops::scatter_add(own, dim, index, number(zero_src));
      const Tensor upstream = ops::mul(grad, others);
      auto share = [&](const Tensor& up, const Tensor& count, const Tensor& zero,
                       const Tensor& full) {
        const Tensor counted = ops::sub(count, number(zero), Scalar(1));
        return ops::masked_fill(ops::div(up, full), ops::ne(counted, Scalar(0)), Scalar(0));
      };
      to_self = share(upstream, zeros, zero_self, full_self);
      to_src = share(picked(upstream), picked(zeros), zero_src, full_src);
      break;
    }
    default: {
      const Tensor hit_self = number(ops::eq(self, result));
      const Tensor hit_src = number(ops::eq(src, picked(result)));
      const Tensor start = include_self ? hit_self : ops::zeros_like(hit_self);
      const Tensor count = ops::clamp_min(ops::scatter_add(start, dim, index, hit_src), Scalar(1));
      // No element is equal to an extremum that is NaN: as in PyTorch, all get NaN.
      const Tensor share =
          ops::masked_fill(ops::div(grad, count), ops::isnan(result), Scalar(std::nan("")));
      to_self = ops::mul(hit_self, share);
      to_src = ops::mul(hit_src, picked(share));
    }
  }
  if (!include_self) to_self = ops::scatter(to_self, dim, index, Scalar(0));
  return {to_self, to_src};
}

}  // namespace weft::native
