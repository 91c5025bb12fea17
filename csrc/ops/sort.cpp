// sort, argsort and topk: rows along one dimension, by unsigned keys (sort_keys.h).
#include "core/thread_pool.h"
#include "native.h"
#include "ops.h"
#include "ops/sort_keys.h"
#include "ops/views.h"

namespace weft::native {
namespace {

// The tensor with `dim` last, contiguous; and the way back.
Tensor rows_along(const Tensor& self, int64_t dim) {
  return in_order(self.with_layout(views::movedim(self.layout(), dim, self.dim() - 1)));
}
Tensor back_from_rows(const Tensor& rows, int64_t dim) {
  if (dim == rows.dim() - 1) return rows;
  return contiguous_copy(rows.with_layout(views::movedim(rows.layout(), rows.dim() - 1, dim)));
}

Tensor as_vector(const Tensor& tensor) {
  return tensor.dim() > 0 ? tensor : tensor.with_layout({{1}, {1}, tensor.offset()});
}
Tensor as_number(const Tensor& tensor) { return tensor.with_layout({{}, {}, tensor.offset()}); }

using Pair = std::tuple<Tensor, Tensor>;

// For every row: arrange(entries, spare) puts the entries wanted in front; `count` of them are
// kept.
template <class T, class Arrange>
void order_rows(const Tensor& rows, int64_t count, bool descending, const Pair& out,
                Arrange&& arrange) {
  using Key = typename KeyOf<T>::Key;
  const int64_t length = rows.sizes().back();
  const int64_t row_count = length == 0 ? 0 : rows.numel() / length;
  const T* data = rows.data_as<const T>();
  T* values = std::get<0>(out).template data_as<T>();
  auto* indices = std::get<1>(out).template data_as<int64_t>();
  parallel_for(row_count, (int64_t{1} << 12) / std::max<int64_t>(length, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 std::vector<Entry<Key>> entries, spare;
                 for (int64_t r = begin; r < end; ++r) {
                   const T* row = data + r * length;
                   entries.resize(static_cast<size_t>(length));
                   for (int64_t i = 0; i < length; ++i) {
                     const Key key = KeyOf<T>::make(row[i]);
                     entries[static_cast<size_t>(i)] = {static_cast<Key>(descending ? ~key : key),
                                                        static_cast<uint32_t>(i)};
                   }
                   arrange(entries, spare);
                   for (int64_t i = 0; i < count; ++i) {
                     const uint32_t index = entries[static_cast<size_t>(i)].index;
                     values[r * count + i] = row[index];
                     indices[r * count + i] = index;
                   }
                 }
               });
}

template <class Fn>
void dispatch_ordered(const char* op, DType dtype, Fn&& fn) {
  dispatch(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_complex_number<T>) {
      WEFT_CHECK(false, op, ": expected a dtype with an order, got ", dtype);
    } else {
      fn(type);
    }
  });
}

void check_length(const char* op, int64_t length) {
  WEFT_CHECK(length <= int64_t{UINT32_MAX}, op,
             ": expected at most 2^32 - 1 elements along dim, got ", length);
}

}  // namespace

Pair sort(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  dim = wrap_dim("sort", dim, self.dim());
  const Tensor rows = rows_along(as_vector(self), dim);
  check_length("sort", rows.sizes().back());
  const Pair out{Tensor::empty(rows.sizes(), self.dtype(), {}, "sort"),
                 Tensor::empty(rows.sizes(), DType::I64, {}, "sort")};
  dispatch_ordered("sort", self.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    order_rows<T>(rows, rows.sizes().back(), descending, out,
                  [](auto& entries, auto& spare) { sort_entries(entries, spare); });
  });
  const auto& [values, indices] = out;
  if (self.dim() == 0) return {as_number(values), as_number(indices)};
  return {back_from_rows(values, dim), back_from_rows(indices, dim)};
}

Pair sort(const Tensor& self, int64_t dim, bool descending) {
  return sort(self, std::nullopt, dim, descending);
}

Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(sort(self, std::nullopt, dim, descending));
}

Tensor argsort(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(sort(self, stable, dim, descending));
}

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrap_dim("topk", dim, self.dim());
  const Tensor rows = rows_along(as_vector(self), dim);
  const int64_t length = rows.sizes().back();
  check_length("topk", length);
  WEFT_CHECK(k >= 0 && k <= length, "topk: expected k in [0, ", length, "], got ", k);
  Dims sizes = rows.sizes();
  sizes.back() = k;
  const Pair out{Tensor::empty(sizes, self.dtype(), {}, "topk"),
                 Tensor::empty(sizes, DType::I64, {}, "topk")};
  dispatch_ordered("topk", self.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    order_rows<T>(rows, k, largest, out, [&](auto& entries, auto&) {
      const auto middle = entries.begin() + k;
      if (k < length) std::nth_element(entries.begin(), middle, entries.end());
      if (sorted) std::sort(entries.begin(), middle);
    });
  });
  const auto& [values, indices] = out;
  if (self.dim() == 0) {
    WEFT_CHECK(k == 1, "topk: expected k = 1 for a 0-d tensor, got ", k);
    return {as_number(values), as_number(indices)};
  }
  return {back_from_rows(values, dim), back_from_rows(indices, dim)};
}

}  // namespace weft::native
