// at::Storage: the memory that tensors lie in; and tensors that are given other memory or sizes.
#pragma once

#include "tensor.h"

namespace c10 {
inline namespace over_weft {

// The start of memory that a storage owns.
class DataPtr {
 public:
  DataPtr() = default;
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  void* get() const { return data_; }
  void* mutable_get() const { return data_; }
  void* operator->() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }
  Device device() const { return device_; }

 private:
  void* data_ = nullptr;
  Device device_ = kCPU;
};

class Storage {
 public:
  Storage() = default;
  // Of a tensor: all of the memory that it lies in.
  explicit Storage(const at::Tensor& tensor) {
    weft_tensor* bytes = nullptr;
    detail::check(weft_tensor_storage(tensor.get(), &bytes));
    bytes_ = at::Tensor(bytes);
  }

  explicit operator bool() const { return bytes_.defined(); }
  size_t nbytes() const { return static_cast<size_t>(bytes_.numel()); }
  DataPtr data_ptr() const { return {mutable_data(), device()}; }
  const void* data() const { return mutable_data(); }
  void* mutable_data() const { return bytes_.data_ptr(); }
  template <class T>
  T* unsafe_data() const {
    return static_cast<T*>(mutable_data());
  }
  Device device() const { return bytes_.device(); }
  DeviceType device_type() const { return device().type(); }
  bool is_alias_of(const Storage& other) const { return mutable_data() == other.mutable_data(); }
  // As a tensor of bytes.
  const at::Tensor& bytes() const { return bytes_; }

 private:
  at::Tensor bytes_;
};

}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

using c10::DataPtr;
using c10::Storage;

inline Storage Tensor::storage() const {
  expect();
  return Storage(*this);
}
inline bool Tensor::is_alias_of(const Tensor& other) const {
  return storage().is_alias_of(other.storage());
}

// In another place: at the start of a storage in one dim, or where it is said.
inline const Tensor& Tensor::set_(const Storage& source, int64_t offset, IntArrayRef size,
                                  IntArrayRef stride) const {
  TORCH_CHECK(stride.empty() || stride.size() == size.size(),
              "set_: expected as many strides as sizes, got ", stride.size(), " and ", size.size());
  c10::detail::check(weft_tensor_set_storage(expect(), source.bytes().get(), offset,
                                             static_cast<int>(size.size()), size.data(),
                                             stride.empty() ? nullptr : stride.data()));
  return *this;
}
inline const Tensor& Tensor::set_(const Storage& source) const {
  const auto count = static_cast<int64_t>(source.nbytes() / element_size());
  return set_(source, 0, {count}, {});
}
inline const Tensor& Tensor::set_(const Tensor& source) const {
  TORCH_CHECK(source.scalar_type() == scalar_type(), "set_: expected a source of ", scalar_type(),
              ", got ", source.scalar_type());
  return set_(source.storage(), source.storage_offset(), source.sizes(), source.strides());
}
inline const Tensor& Tensor::set_() const {
  return set_(Storage(at::empty({0}, options())), 0, {0}, {});
}
}  // namespace over_weft
}  // namespace at

namespace torch {
using at::Storage;
}
