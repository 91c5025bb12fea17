// Medians, k-th values and modes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "native_scans.h"
#include "ops/sorted_rows.h"
#include "ops_arithmetic.h"
#include "ops_clamp_where.h"
#include "ops_compare.h"
#include "ops_factories.h"
#include "ops_indexing.h"
#include "ops_reductions.h"
#include "ops_views.h"

namespace weft::native {
namespace {

// Entries at `place` (counted along dim) of sorted rows; no view, which nobody could write to.
Tensor pick(const Tensor& sorted, int64_t dim, const Tensor& place, bool keepdim) {
  const Tensor found = ops::gather(sorted, dim, place, false);
  return keepdim ? found : found.with_layout(views::squeeze(found.layout(), dim), "mode");
}

int64_t length_along(const char* op, const Tensor& self, int64_t dim) {
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WEFT_CHECK_INDEX(length > 0, op, ": expected a non-empty row, got shape ", AsTuple{self.sizes()});
  return length;
}

// As in PyTorch, whose bools have no middle.
void check_numbers(const char* op, const Tensor& self) {
  WEFT_CHECK_AS(NotImplemented, self.dtype() != DType::Bool, op,
                ": expected a numeric dtype, got bool");
}

// What is picked from a number, of any dtype: itself, at 0.
Pair itself(const Tensor& number) { return {contiguous_copy(number), ops::zeros({}, DType::I64)}; }

// The entry at `place` of the sorted row.
template <class T>
Entry<T> entry_at(const RowKeys<T>& keys, int64_t length, int64_t place, Entry<T>* scratch) {
  using Key = typename KeyOf<T>::Key;
  constexpr int kBits = std::min<int>(11, 8 * sizeof(Key)), kRest = 8 * sizeof(Key) - kBits;
  int64_t count = length;
  if (length < int64_t{1} << kBits) {
    pack_row(keys, length, scratch);
  } else {
    // Only the entries that have its first digit are ordered.
    std::array<uint32_t, 1 << kBits> with_digit{};
    for (int64_t i = 0; i < length; ++i) ++with_digit[keys(i) >> kRest];
    size_t digit = 0;
    while (place >= with_digit[digit]) place -= with_digit[digit++];
    count = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (const Key key = keys(i); key >> kRest == digit) scratch[count++] = pack(key, i);
    }
  }
  std::nth_element(scratch, scratch + place, scratch + count);
  return scratch[place];
}

// The place of the median in a sorted row, whose NaNs are last: with skip_nan that of the numbers,
// else the first NaN where there is one.
template <class T>
int64_t middle_place(const RowKeys<T>& keys, int64_t length, bool skip_nan) {
  int64_t numbers = length;
  if constexpr (!std::is_integral_v<T>) {
    const auto nan = KeyOf<T>::make(T(std::numeric_limits<float>::quiet_NaN()));
    for (int64_t i = 0; i < length; ++i) numbers -= keys(i) == nan;
  }
  return skip_nan || numbers == length ? std::max<int64_t>(numbers - 1, 0) / 2 : numbers;
}

// Of each row along dim the entry at place(keys, length) of the sorted row.
template <class Place>
Pair select(const char* op, const Tensor& self, int64_t dim, bool keepdim, Place&& place) {
  check_numbers(op, self);
  const Tensor rows = rows_along(as_vector(self), dim);
  const int64_t length = rows.sizes().back();
  check_length(op, length);
  Dims sizes = as_vector(self).sizes();
  sizes[dim] = 1;
  if (!keepdim || self.dim() == 0) sizes = views::squeeze({sizes, sizes, 0}, dim).sizes;
  const Pair out{Tensor::empty(sizes, self.dtype(), self.device(), op),
                 Tensor::empty(sizes, DType::I64, self.device(), op)};
  dispatch_ordered(op, self.dtype(), [&]<class T>(std::type_identity<T>) {
    order_rows<T>(rows, 1, length, false, out,
                  [&](const RowKeys<T>& keys, Entry<T>* scratch, RowResult<T> to) {
                    const Entry<T> entry = entry_at(keys, length, place(keys, length), scratch);
                    put(keys, &entry, 1, to);
                  });
  });
  return out;
}

Pair middle(const char* op, const Tensor& self, int64_t dim, bool keepdim, bool skip_nan) {
  dim = wrap_dim(op, dim, self.dim());
  length_along(op, self, dim);
  return select(op, self, dim, keepdim, [&](const auto& keys, int64_t length) {
    return middle_place(keys, length, skip_nan);
  });
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
  return select("kthvalue", self, dim, keepdim, [&](const auto&, int64_t) { return k - 1; });
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
  const Tensor places = ops::movedim(place, self.dim() - 1, dim);
  return {pick(std::get<0>(sorted), dim, places, keepdim),
          pick(std::get<1>(sorted), dim, places, keepdim)};
}

}  // namespace weft::native
