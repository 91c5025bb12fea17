// Rows along one dimension by the order of their elements: what sorts and selections share.
#pragma once

#include "core/thread_pool.h"
#include "ops/copy.h"
#include "ops/scratch.h"
#include "ops/sort_keys.h"
#include "ops/views.h"

namespace weft::native {

// The tensor with `dim` last, contiguous.
inline Tensor rows_along(const Tensor& self, int64_t dim) {
  return in_order(self.with_layout(views::movedim(self.layout(), dim, self.dim() - 1)));
}

using Pair = std::tuple<Tensor, Tensor>;

// The elements of a row as keys whose order is the one wanted, and back.
template <class T>
struct RowKeys {
  using Key = typename KeyOf<T>::Key;
  const T* row;
  bool descending;

  Key turned(Key key) const { return static_cast<Key>(descending ? ~key : key); }
  Key operator()(int64_t i) const { return turned(KeyOf<T>::make(row[i])); }
  T value(Key key, int64_t index) const { return KeyOf<T>::value(turned(key), row[index]); }
};

// Where the result of a row goes.
template <class T>
struct RowResult {
  T* values;
  int64_t* indices;
};

template <class T>
using Entry = Packed<typename KeyOf<T>::Key>;

// The first `count` of packed keys.
template <class T>
void put(const RowKeys<T>& keys, const Entry<T>* packed, int64_t count, RowResult<T> to) {
  using Key = typename KeyOf<T>::Key;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = index_of<Key>(packed[i]);
    to.values[i] = keys.value(key_of<Key>(packed[i]), index);
    to.indices[i] = index;
  }
}

template <class T>
void pack_row(const RowKeys<T>& keys, int64_t length, Entry<T>* packed) {
  for (int64_t i = 0; i < length; ++i) packed[i] = pack(keys(i), i);
}

// order(keys, scratch, result) for every row: the first `count` elements. The scratch holds
// `packed` keys.
template <class T, class Order>
void order_rows(const Tensor& rows, int64_t count, int64_t packed, bool descending, const Pair& out,
                Order&& order) {
  const int64_t length = rows.sizes().back();
  const int64_t row_count = length == 0 ? 0 : rows.numel() / length;
  const T* data = rows.data_as<const T>();
  T* values = std::get<0>(out).template data_as<T>();
  auto* indices = std::get<1>(out).template data_as<int64_t>();
  parallel_for(row_count, (int64_t{1} << 12) / std::max<int64_t>(length, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 Scratch<Entry<T>> scratch(packed);
                 for (int64_t r = begin; r < end; ++r) {
                   order(RowKeys<T>{data + r * length, descending}, scratch.data(),
                         RowResult<T>{values + r * count, indices + r * count});
                 }
               });
}

inline void check_length(const char* op, int64_t length) {
  WEFT_CHECK(length <= int64_t{UINT32_MAX}, op,
             ": expected at most 2^32 - 1 elements along dim, got ", length);
}

}  // namespace weft::native
