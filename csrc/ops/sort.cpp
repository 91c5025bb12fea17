// sort, argsort and topk: rows along one dimension, by unsigned keys (sort_keys.h).
#include <algorithm>

#include "native_indexing.h"
#include "ops/radix_sort.h"
#include "ops/sorted_rows.h"

namespace weft::native {
namespace {

// What rows_along turned, as it was.
Tensor back_from_rows(const Tensor& rows, int64_t dim) {
  if (dim == rows.dim() - 1) return rows;
  return contiguous_copy(rows.with_layout(views::movedim(rows.layout(), rows.dim() - 1, dim)));
}
// The same in the order of memory of `like`.
Tensor back_in_order_of(const Tensor& like, const Tensor& rows, int64_t dim) {
  if (like.is_contiguous()) return back_from_rows(rows, dim);
  Tensor back = empty_preserve(like, rows.dtype(), like.device());
  copy_into(back, rows.with_layout(views::movedim(rows.layout(), rows.dim() - 1, dim)));
  return back;
}

Tensor as_number(const Tensor& tensor) { return tensor.with_layout({{}, {}, tensor.offset()}); }

// From this length on rows are sorted by digits.
template <class T>
constexpr int64_t kRadixFrom = 32 * sizeof(T);

// `scratch` is for the packed keys of a shorter row.
template <class T>
void sort_row(const RowKeys<T>& keys, int64_t length, Entry<T>* scratch, RowResult<T> to) {
  using Key = typename KeyOf<T>::Key;
  if (length >= kRadixFrom<T>) {
    return radix_sort<Key>(length, keys, [&](int64_t place, Key key, int64_t index) {
      to.values[place] = keys.value(key, index);
      to.indices[place] = index;
    });
  }
  pack_row(keys, length, scratch);
  std::sort(scratch, scratch + length);
  put(keys, scratch, length, to);
}

constexpr int64_t kFew = 64;

// The first k in order, by looking at each element once: most are not below the k-th best so far.
template <class T>
void few_first(const RowKeys<T>& keys, int64_t length, int64_t k, Entry<T>* best) {
  pack_row(keys, k, best);
  std::sort(best, best + k);
  for (int64_t i = k; i < length; ++i) {
    const Entry<T> entry = pack(keys(i), i);
    if (entry > best[k - 1]) continue;
    int64_t at = k - 1;
    for (; at > 0 && best[at - 1] > entry; --at) best[at] = best[at - 1];
    best[at] = entry;
  }
}

template <class T>
void top_of_row(const RowKeys<T>& keys, int64_t length, int64_t k, bool sorted, Entry<T>* scratch,
                RowResult<T> to) {
  if (k == 0) return;
  if (k <= kFew) {
    few_first(keys, length, k, scratch);
  } else {
    pack_row(keys, length, scratch);
    if (k < length) std::nth_element(scratch, scratch + k, scratch + length);
    if (sorted) std::sort(scratch, scratch + k);
  }
  put(keys, scratch, k, to);
}

}  // namespace

Pair sort(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  dim = wrap_dim("sort", dim, self.dim());
  const Tensor rows = rows_along(as_vector(plain_bools(self)), dim);
  check_length("sort", rows.sizes().back());
  const Pair out{Tensor::empty(rows.sizes(), self.dtype(), self.device(), "sort"),
                 Tensor::empty(rows.sizes(), DType::I64, self.device(), "sort")};
  dispatch_ordered("sort", self.dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t length = rows.sizes().back();
    const int64_t packed = length < kRadixFrom<T> ? length : 0;
    order_rows<T>(rows, length, packed, descending, out,
                  [&](const RowKeys<T>& keys, Entry<T>* scratch, RowResult<T> to) {
                    sort_row(keys, length, scratch, to);
                  });
  });
  const auto& [values, indices] = out;
  if (self.dim() == 0) return {as_number(values), as_number(indices)};
  return {back_in_order_of(self, values, dim), back_in_order_of(self, indices, dim)};
}

Pair sort(const Tensor& self, int64_t dim, bool descending) {
  return sort(self, std::nullopt, dim, descending);
}

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrap_dim("topk", dim, self.dim());
  WEFT_CHECK_AS(NotImplemented, self.dtype() != DType::Bool,
                "topk: expected a numeric dtype, got bool");
  const Tensor rows = rows_along(as_vector(self), dim);
  const int64_t length = rows.sizes().back();
  check_length("topk", length);
  WEFT_CHECK(k >= 0 && k <= length, "topk: expected k in [0, ", length, "], got ", k);
  Dims sizes = rows.sizes();
  sizes.back() = k;
  const Pair out{Tensor::empty(sizes, self.dtype(), self.device(), "topk"),
                 Tensor::empty(sizes, DType::I64, self.device(), "topk")};
  dispatch_ordered("topk", self.dtype(), [&]<class T>(std::type_identity<T>) {
    order_rows<T>(rows, k, k <= kFew ? k : length, largest, out,
                  [&](const RowKeys<T>& keys, Entry<T>* scratch, RowResult<T> to) {
                    top_of_row(keys, length, k, sorted, scratch, to);
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
