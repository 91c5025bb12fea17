// Runs of a tensor's elements in the dtype that a loop computes in: the memory itself, or a copy of
// the size of a cache where the tensor has another dtype. A whole converted tensor would pass
// through memory twice more.
//
// The tensor's elements lie beside each other.
#pragma once

#include "core/tensor.h"
#include "ops/convert.h"
#include "ops/scratch.h"

namespace weft::native {

namespace detail {
inline void* element(const Tensor& tensor, int64_t at) {
  return static_cast<char*>(tensor.data()) + at * static_cast<int64_t>(item_size(tensor.dtype()));
}
}  // namespace detail

template <class T>
class ReadAs {
 public:
  ReadAs(const Tensor& tensor, int64_t first, int64_t count)
      : room_(tensor.dtype() == dtype_of<T>::value ? 0 : count) {
    void* const memory = detail::element(tensor, first);
    if (tensor.dtype() == dtype_of<T>::value) {
      data_ = static_cast<const T*>(memory);
      return;
    }
    void* const operands[] = {room_.data(), memory};
    tile::convert_kernel(dtype_of<T>::value, tensor.dtype())(operands, count, nullptr);
    data_ = room_.data();
  }
  operator const T*() const { return data_; }

 private:
  Scratch<T> room_;
  const T* data_;
};

// Reaches the tensor when it goes out of scope.
template <class T>
class WriteAs {
 public:
  WriteAs(const Tensor& tensor, int64_t first, int64_t count)
      : dtype_(tensor.dtype()),
        memory_(detail::element(tensor, first)),
        count_(dtype_ == dtype_of<T>::value ? 0 : count),
        room_(count_) {}
  ~WriteAs() {
    if (count_ == 0) return;
    void* const operands[] = {memory_, room_.data()};
    tile::convert_kernel(dtype_, dtype_of<T>::value)(operands, count_, nullptr);
  }
  operator T*() { return count_ == 0 ? static_cast<T*>(memory_) : room_.data(); }

 private:
  DType dtype_;
  void* memory_;
  int64_t count_;  // to be converted
  Scratch<T> room_;
};

}  // namespace weft::native
