// Medians, k-th values and modes: read off sorted rows.
#include <cmath>

#include "native_scans.h"
#include "ops/support.h"
#include "ops_arithmetic.h"
#include "ops_clamp_where.h"
#include "ops_compare.h"
#include "ops_factories.h"
#include "ops_indexing.h"
#include "ops_reductions.h"
#include "ops_views.h"

namespace weft::native {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

// Values and indices at `place` (counted along dim) of sorted rows.
Pair pick(const Pair& sorted, int64_t dim, const Tensor& place, bool keepdim) {
  Tensor values = ops::gather(std::get<0>(sorted), dim, place, false);
  Tensor indices = ops::gather(std::get<1>(sorted), dim, place, false);
  if (keepdim || values.dim() == 0) return {values, indices};
  return {ops::squeeze(values, dim), ops::squeeze(indices, dim)};
}

int64_t length_along(const char* op, const Tensor& self, int64_t dim) {
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WEFT_CHECK_INDEX(length > 0, op, ": expected a non-empty row, got shape ", AsTuple{self.sizes()});
  return length;
}

// How many entries of each row are not NaN, with keepdim.
Tensor numbers_in(const Tensor& self, int64_t dim) {
  const int64_t dims[] = {dim};
  const Tensor real = ops::logical_not(ops::isnan(self));
  return ops::sum(real, std::optional<IntList>(IntList(dims)), true, std::optional<DType>());
}

// As in PyTorch, whose bools have no middle.
void check_numbers(const char* op, const Tensor& self) {
  WEFT_CHECK_AS(NotImplemented, self.dtype() != DType::Bool, op,
                ": expected a numeric dtype, got bool");
}

// What is picked from a number, of any dtype: itself, at 0.
Pair itself(const Tensor& number) { return {contiguous_copy(number), ops::zeros({}, DType::I64)}; }

// place = the middle of the first `count` entries, or the first NaN where there is one.
Pair middle(const char* op, const Tensor& self, int64_t dim, bool keepdim, bool skip_nan) {
  dim = wrap_dim(op, dim, self.dim());
  check_numbers(op, self);
  const int64_t length = length_along(op, self, dim);
  const Pair sorted = ops::sort(self, dim, false);
  const Tensor count = numbers_in(self, dim);
  const Tensor half = ops::floor_divide(
      ops::clamp_min(ops::sub(count, Scalar(1), Scalar(1)), Scalar(0)), Scalar(2));
  const Tensor place = skip_nan ? half : ops::where(ops::eq(count, Scalar(length)), half, count);
  return pick(sorted, dim, place, keepdim);
}

Tensor middle_of_all(const char* op, const Tensor& self, bool skip_nan) {
  if (self.numel() == 0 && is_floating(self.dtype()))
    return ops::full({}, Scalar(std::nan("")), self.dtype());
  WEFT_CHECK(self.numel() > 0, op, ": expected a non-empty row, got shape ", AsTuple{self.sizes()});
  const int64_t flat[] = {-1};
  return std::get<0>(middle(op, ops::reshape(self, flat), 0, false, skip_nan));
}

}  // namespace

Tensor median(const Tensor& self) { return middle_of_all("median", self, false); }
Tensor nanmedian(const Tensor& self) { return middle_of_all("nanmedian", self, true); }

Pair median(const Tensor& self, int64_t dim, bool keepdim) {
  return middle("median", self, dim, keepdim, false);
}

Pair nanmedian(const Tensor& self, int64_t dim, bool keepdim) {
  return middle("nanmedian", self, dim, keepdim, true);
}

Pair kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrap_dim("kthvalue", dim, self.dim());
  const int64_t length = length_along("kthvalue", self, dim);
  WEFT_CHECK(k >= 1 && k <= length, "kthvalue: expected k in [1, ", length, "], got ", k);
  if (self.dim() == 0) return itself(self);
  check_numbers("kthvalue", self);
  const auto [values, indices] = ops::sort(self, dim, false);
  const Tensor value = ops::narrow(values, dim, k - 1, 1);
  const Tensor index = ops::narrow(indices, dim, k - 1, 1);
  if (keepdim) return {contiguous_copy(value), contiguous_copy(index)};
  return {contiguous_copy(ops::squeeze(value, dim)), contiguous_copy(ops::squeeze(index, dim))};
}

Pair mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrap_dim("mode", dim, self.dim());
  const int64_t length = length_along("mode", self, dim);
  if (self.dim() == 0) return itself(self);
  const Pair sorted = ops::sort(self, true, dim, false);
  const Tensor rows = in_order(ops::movedim(std::get<0>(sorted), dim, self.dim() - 1));
  // Runs of equal neighbours: starts[i] says that entry i begins one.
  Dims sizes = rows.sizes();
  sizes.back() = 1;
  const Tensor place = Tensor::empty(sizes, DType::I64, self.device(), "mode");
  dispatch(rows.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* data = rows.data_as<const T>();
    const int64_t count = rows.numel() / length;
    auto same = [](const T& a, const T& b) {
      if constexpr (is_small_float<T>) {
        return static_cast<float>(a) == static_cast<float>(b);
      } else {
        return a == b;
      }
    };
    for (int64_t r = 0; r < count; ++r, data += length) {
      int64_t best = 0, end = 0, run = 0;
      for (int64_t i = 0; i < length; ++i) {
        run = i > 0 && same(data[i], data[i - 1]) ? run + 1 : 1;
        if (run > best) {
          best = run;
          end = i;
        }
      }
      place.data_as<int64_t>()[r] = end;
    }
  });
  return pick(sorted, dim, ops::movedim(place, self.dim() - 1, dim), keepdim);
}

}  // namespace weft::native
