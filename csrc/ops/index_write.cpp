// Writing at indices: index_fill by a tensor, scatter_reduce.
#include <cmath>

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

struct Reduce {
  Fold fold;
  bool mean = false;
};

Reduce reduction_of(const std::string& reduce) {
  if (reduce == "sum") return {Fold::Sum};
  if (reduce == "prod") return {Fold::Prod};
  if (reduce == "mean") return {Fold::Sum, true};
  if (reduce == "amax" || reduce == "max") return {Fold::Amax};
  WEFT_CHECK(reduce == "amin" || reduce == "min",
             "scatter_reduce: expected reduce to be sum, prod, mean, amax or amin, got ", reduce);
  return {Fold::Amin};
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

// Sums become means of the values that were added, and of what was there if that counts.
void divide_by_uses(const Tensor& sums, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor uses = zeros_of(sums.sizes(), DType::I64, sums.device(), "scatter_reduce");
  scatter_into("scatter_reduce", uses, dim, index, ops::ones_like(index), Fold::Sum);
  const auto* counts = uses.data_as<const int64_t>();
  dispatch(sums.dtype(), [&]<class T>(std::type_identity<T>) {
    T* const to = sums.data_as<T>();
    for (int64_t i = 0; i < sums.numel(); ++i) {
      if (counts[i] > 0) to[i] = mean_of(to[i], counts[i] + (include_self ? 1 : 0));
    }
  });
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
  const auto [fold, mean] = reduction_of(reduce);
  const bool extreme = fold == Fold::Amax || fold == Fold::Amin;
  dim = wrap_dim(op, dim, self.dim());
  const Tensor out = contiguous_copy(self);
  const Tensor target = as_vector(out), from = as_vector(src);
  if (index.numel() == 0) return out;
  check_reduce(op, target, dim, as_vector(index), from);
  WEFT_CHECK_AS(NotImplemented, !is_complex(self.dtype()) || !extreme, op,
                ": expected a dtype with an order, got ", self.dtype());
  WEFT_CHECK_AS(NotImplemented, self.dtype() != DType::Bool || !mean, op,
                ": expected a dtype that has means, got bool");
  const Tensor places = in_order(as_dtype(as_vector(index), DType::I64));
  if (!include_self) {  // what is written to starts with one of its values, or with what adds none
    const Tensor start = ops::full_like(places, Scalar(fold == Fold::Prod ? 1 : 0), self.dtype());
    scatter_into(op, target, dim, places, extreme ? from : start, Fold::Set);
  }
  scatter_into(op, target, dim, places, from, fold);
  if (mean) divide_by_uses(target, dim, places, include_self);
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
  const auto [fold, mean] = reduction_of(reduce);
  switch (fold) {
    case Fold::Sum:
      to_self = grad;
      if (mean) {
        const Tensor start = include_self ? ops::ones_like(grad) : ops::zeros_like(grad);
        const Tensor count = ops::scatter_add(start, dim, index, ops::ones_like(src));
        to_self = ops::div(grad, ops::clamp_min(count, Scalar(1)));
      }
      to_src = picked(to_self);
      break;
    case Fold::Prod: {
      // The only 0 at a place gets the product of the others, what is not 0 the result without it.
      auto product = [&](const Tensor& start, const Tensor& from) {
        return ops::mul(grad, ops::scatter_reduce(start, dim, index, from, reduce, include_self));
      };
      const Tensor zero = ops::eq(src, Scalar(0));
      const Tensor count =
          picked(ops::scatter_add(ops::zeros_like(grad), dim, index, number(zero)));
      const Tensor lone = ops::logical_and(zero, ops::eq(count, Scalar(1)));
      const Tensor full = ops::masked_fill(self, ops::eq(self, Scalar(0)), Scalar(1));
      to_self = ops::div(product(full, src), full);
      to_src = ops::where(
          lone, picked(product(self, ops::masked_fill(src, lone, Scalar(1)))),
          ops::div(picked(ops::mul(grad, result)), ops::masked_fill(src, zero, Scalar(1))));
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
