// Searching sorted values and counting: searchsorted, bucketize, bincount, histc, isin.
#include <algorithm>
#include <cmath>

#include "core/thread_pool.h"
#include "native_counting.h"
#include "ops/sort_keys.h"
#include "ops/support.h"
#include "ops_compare.h"
#include "ops_indexing.h"
#include "ops_reductions.h"
#include "ops_views.h"

namespace weft::native {
namespace {

bool from_right(bool right, const std::optional<std::string>& side) {
  if (!side) return right;
  WEFT_CHECK(*side == "left" || *side == "right",
             "searchsorted: expected side \"left\" or \"right\", got \"", *side, "\"");
  WEFT_CHECK(!(right && *side == "left"),
             "searchsorted: expected side and right to agree, got side \"left\" and right=True");
  return *side == "right";
}

// For each value (contiguous, `per_row` for each row of the sorted sequence) where it would go.
Tensor search(const char* op, const Tensor& sequence, const Tensor& values, int64_t per_row,
              bool shared, bool right) {
  const Tensor out = Tensor::empty(values.sizes(), DType::I64, values.device(), op);
  const int64_t length = sequence.sizes().back();
  dispatch_ordered(op, values.dtype(), [&]<class T>(std::type_identity<T>) {
    using Key = typename KeyOf<T>::Key;
    const T* sorted = sequence.data_as<const T>();
    const T* from = values.data_as<const T>();
    auto* to = out.data_as<int64_t>();
    parallel_for(values.numel(), 1 << 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = shared ? sorted : sorted + i / per_row * length;
        const Key key = KeyOf<T>::make(from[i]);
        const T* found = std::partition_point(row, row + length, [&](const T& entry) {
          const Key other = KeyOf<T>::make(entry);
          return right ? other <= key : other < key;
        });
        to[i] = found - row;
      }
    });
  });
  return out;
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string> side, const Tensor& sorter) {
  const char* op = "searchsorted";
  WEFT_CHECK(sorted_sequence.dim() >= 1, op,
             ": expected a sorted sequence of at least 1 dim, got 0");
  const bool shared = sorted_sequence.dim() == 1;
  bool fits = shared || sorted_sequence.dim() == self.dim();
  for (int64_t d = 0; fits && !shared && d + 1 < self.dim(); ++d) {
    fits = self.size(d) == sorted_sequence.size(d);
  }
  WEFT_CHECK(fits, op, ": expected values with the leading sizes of ",
             AsTuple{sorted_sequence.sizes()}, ", got shape ", AsTuple{self.sizes()});
  Tensor sequence = sorted_sequence;
  if (sorter.defined()) {
    WEFT_CHECK(sorter.sizes() == sorted_sequence.sizes() && sorter.dtype() == DType::I64, op,
               ": expected an int64 sorter of shape ", AsTuple{sorted_sequence.sizes()}, ", got ",
               sorter.dtype(), " of shape ", AsTuple{sorter.sizes()});
    sequence = ops::gather(sequence, -1, sorter, false);
  }
  const DType common = promote(sequence.dtype(), self.dtype());
  WEFT_CHECK_AS(NotImplemented, common != DType::Bool, op, ": expected a numeric dtype, got bool");
  const int64_t per_row = self.dim() == 0 ? 1 : self.sizes().back();
  const Tensor out =
      search(op, in_order(as_dtype(sequence, common)), in_order(as_dtype(self, common)), per_row,
             shared, from_right(right, side));
  return out_int32 ? as_dtype(out, DType::I32) : out;
}

Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string> side, const Tensor& sorter) {
  WEFT_CHECK(sorted_sequence.dim() == 1,
             "searchsorted: expected a sorted vector for one number, got shape ",
             AsTuple{sorted_sequence.sizes()});
  const bool whole = is_integral(sorted_sequence.dtype()) && !self.is_integral();
  const Tensor value = Tensor::scalar(self, whole ? DType::F64 : sorted_sequence.dtype());
  return searchsorted(sorted_sequence, value, out_int32, right, side, sorter);
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  WEFT_CHECK(boundaries.dim() == 1, "bucketize: expected a vector of boundaries, got shape ",
             AsTuple{boundaries.sizes()});
  return searchsorted(boundaries, self, out_int32, right, std::nullopt, Tensor());
}

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  const char* op = "bincount";
  WEFT_CHECK_AS(NotImplemented, self.dim() == 1 && is_integral(self.dtype()), op,
                ": expected an integer vector, got ", self.dtype(), " of shape ",
                AsTuple{self.sizes()});
  WEFT_CHECK(minlength >= 0, op, ": expected minlength >= 0, got ", minlength);
  WEFT_CHECK(!weights.defined() || weights.sizes() == self.sizes(), op,
             ": expected weights of shape ", AsTuple{self.sizes()}, ", got ",
             AsTuple{weights.defined() ? weights.sizes() : Dims()});
  int64_t least = 0, length = minlength;
  if (self.numel() > 0) {
    least = ops::amin(self, IntList{}, false).item().to_int();
    length = std::max(length, ops::amax(self, IntList{}, false).item().to_int() + 1);
  }
  WEFT_CHECK(least >= 0, op, ": expected entries >= 0, got ", least);
  const int64_t sizes[] = {length};
  if (!weights.defined()) {
    const Tensor out = zeros_of(sizes, DType::I64, self.device(), op), bins = in_order(self);
    auto* counts = out.data_as<int64_t>();
    dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_integral_v<T>) {
        const T* at = bins.data_as<const T>();
        for (int64_t i = 0; i < bins.numel(); ++i) ++counts[static_cast<int64_t>(at[i])];
      }
    });
    return out;
  }
  const Tensor bins = in_order(as_dtype(self, DType::I64));
  const int64_t* at = bins.data_as<const int64_t>();
  const bool single = weights.dtype() == DType::F32;
  const Tensor values = in_order(as_dtype(weights, DType::F64));
  Tensor out = zeros_of(sizes, DType::F64, bins.device(), op);
  for (int64_t i = 0; i < bins.numel(); ++i) {
    out.data_as<double>()[at[i]] += values.data_as<const double>()[i];
  }
  return single ? as_dtype(out, DType::F32) : out;
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const char* op = "histc";
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()), op, ": expected a floating tensor, got ",
                self.dtype());
  WEFT_CHECK(bins > 0, op, ": expected bins > 0, got ", bins);
  const Tensor x = in_order(as_dtype(self, DType::F64));
  const double* values = x.data_as<const double>();
  double low = min.to_double(), high = max.to_double();
  if (low == high && x.numel() > 0) {
    const auto [least, greatest] = std::minmax_element(values, values + x.numel());
    low = *least;
    high = *greatest;
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  WEFT_CHECK(std::isfinite(low) && std::isfinite(high) && low < high, op,
             ": expected a finite range from min to max, got ", low, " and ", high);
  const int64_t sizes[] = {bins};
  Tensor out = zeros_of(sizes, DType::F64, x.device(), op);
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (!(values[i] >= low && values[i] <= high)) continue;
    const auto bin =
        static_cast<int64_t>((values[i] - low) / (high - low) * static_cast<double>(bins));
    out.data_as<double>()[std::min(bin, bins - 1)] += 1;
  }
  return as_dtype(out, self.dtype());
}

namespace {

void check_isin(DType dtype) {
  WEFT_CHECK_AS(NotImplemented, dtype != DType::Bool && !is_complex(dtype),
                "isin: expected a real dtype other than bool, got ", dtype);
}

}  // namespace

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  check_isin(elements.dtype());
  check_isin(test_elements.dtype());
  const DType common = promote(elements.dtype(), test_elements.dtype());
  const int64_t flat[] = {-1};
  const Tensor tests =
      std::get<0>(ops::sort(ops::reshape(as_dtype(test_elements, common), flat), 0, false));
  const Tensor x = in_order(as_dtype(elements, common));
  Tensor out = zeros_of(elements.sizes(), DType::Bool, elements.device(), "isin");
  dispatch_ordered("isin", common, [&]<class T>(std::type_identity<T>) {
    using Key = typename KeyOf<T>::Key;
    const T* first = tests.data_as<const T>();
    const T* last = first + tests.numel();
    constexpr bool has_nan = std::is_floating_point_v<T> || is_small_float<T>;
    for (int64_t i = 0; i < x.numel(); ++i) {
      const T value = x.data_as<const T>()[i];
      const Key key = KeyOf<T>::make(value);
      const bool nan = has_nan && key == static_cast<Key>(~Key(0));
      const T* found = std::partition_point(
          first, last, [&](const T& entry) { return KeyOf<T>::make(entry) < key; });
      const bool hit = !nan && found != last && KeyOf<T>::make(*found) == key;
      out.data_as<bool>()[i] = hit != invert;
    }
  });
  return out;
}

Tensor isin(const Tensor& elements, const Scalar& test_element, bool, bool invert) {
  check_isin(elements.dtype());
  return invert ? ops::ne(elements, test_element) : ops::eq(elements, test_element);
}

Tensor isin(const Scalar& element, const Tensor& test_elements, bool, bool invert) {
  check_isin(test_elements.dtype());
  const Tensor hit = ops::any(ops::eq(test_elements, element));
  return invert ? ops::logical_not(hit) : hit;
}

}  // namespace weft::native
