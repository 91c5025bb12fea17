// Elements of tensors by numbers.
#pragma once

#include "array_ref.h"

namespace at {
inline namespace over_weft {

template <class T, size_t N, template <class> class = std::add_pointer_t, class = int64_t>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  decltype(auto) operator[](int64_t index) const {
    T* const place = data_ + strides_[0] * index;
    if constexpr (N == 1) {
      return *place;
    } else {
      return TensorAccessor<T, N - 1>(place, sizes_ + 1, strides_ + 1);
    }
  }
  int64_t size(int64_t dim) const { return sizes_[dim]; }
  int64_t stride(int64_t dim) const { return strides_[dim]; }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

}  // namespace over_weft
}  // namespace at
