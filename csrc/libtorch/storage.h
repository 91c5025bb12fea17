// at::Storage: the memory that tensors lie in, and allocators that give it; tensors that are given
// other memory or sizes.
#pragma once

#include "factories.h"

namespace c10 {
inline namespace over_weft {

using DeleterFnPtr = void (*)(void*);

// Memory with what releases it.
class DataPtr final {
 public:
  DataPtr() = default;
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  DataPtr(void* data, void* context, DeleterFnPtr deleter, Device device)
      : data_(data), context_(context, deleter ? deleter : [](void*) {}), device_(device) {}

  void* get() const { return data_; }
  void* mutable_get() { return data_; }
  void* operator->() const { return data_; }
  void* get_context() const { return context_.get(); }
  void* release_context() { return context_.release(); }
  DeleterFnPtr get_deleter() const { return context_.get_deleter(); }
  void clear() { *this = DataPtr(); }
  Device device() const { return device_; }
  explicit operator bool() const { return data_ || context_; }

 private:
  void* data_ = nullptr;
  std::unique_ptr<void, DeleterFnPtr> context_{nullptr, [](void*) {}};
  Device device_ = kCPU;
};

struct Allocator {
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t bytes) = 0;
  // Of blocks whose context is the block itself; null for others.
  virtual DeleterFnPtr raw_deleter() const { return nullptr; }
  virtual void copy_data(void* to, const void* from, size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
};

namespace detail {

// Blocks of a host's allocator, for weft_set_allocator.
inline void* allocate_block(size_t bytes, void* given) {
  DataPtr block = static_cast<Allocator*>(given)->allocate(bytes);
  void* const memory = block.get();
  block.release_context();
  return memory;
}
inline void release_block(void* block, size_t, void* given) {
  static_cast<Allocator*>(given)->raw_deleter()(block);
}

}  // namespace detail

// Memory for tensors made from now on; it has to be aligned to 64 bytes, and to have a raw deleter.
inline void SetCPUAllocator(Allocator* allocator, uint8_t = 0) {
  TORCH_CHECK_NOT_IMPLEMENTED(!allocator || allocator->raw_deleter(),
                              "SetCPUAllocator: expected an allocator with a raw_deleter, got one "
                              "without");
  detail::check(allocator
                    ? weft_set_allocator(detail::allocate_block, detail::release_block, allocator)
                    : weft_set_allocator(nullptr, nullptr, nullptr));
}
inline void* alloc_cpu(size_t bytes) {
  const size_t step = 64;
  void* const block = std::aligned_alloc(step, (bytes + step - 1) / step * step);
  if (!block && bytes > 0) throw OutOfMemoryError(detail::text_of("alloc_cpu: got no memory"));
  return block;
}
inline void free_cpu(void* block) { std::free(block); }
// Counts memory for profilers of libtorch: there is none here that asks.
struct ProfiledCPUMemoryReporter {
  void New(void*, size_t) {}
  void Delete(void*) {}
};
inline ProfiledCPUMemoryReporter& profiledCPUMemoryReporter() {
  static ProfiledCPUMemoryReporter reporter;
  return reporter;
}

class Storage {
 public:
  struct use_byte_size_t {};

  Storage() = default;
  // Of a tensor: all of the memory that it lies in.
  explicit Storage(const at::Tensor& tensor) {
    weft_tensor* bytes = nullptr;
    detail::check(weft_tensor_storage(tensor.get(), &bytes));
    owned_ = std::make_shared<Owned>();
    owned_->bytes = at::Tensor(bytes);
    owned_->start = DataPtr(owned_->bytes.data_ptr(), owned_->bytes.device());
  }
  // Of the host's own memory.
  Storage(use_byte_size_t, size_t bytes, DataPtr start, Allocator* = nullptr, bool = false) {
    owned_ = std::make_shared<Owned>();
    const auto kept = std::make_shared<DataPtr>(std::move(start));
    owned_->start = DataPtr(kept->get(), kept->device());
    owned_->bytes = at::from_blob(
        kept->get(), {static_cast<int64_t>(bytes)}, [kept](void*) {}, at::TensorOptions(kByte));
  }
  Storage(use_byte_size_t size, size_t bytes, Allocator* allocator, bool resizable = false)
      : Storage(size, bytes, allocator->allocate(bytes), allocator, resizable) {}

  explicit operator bool() const { return owned_ != nullptr; }
  size_t nbytes() const { return static_cast<size_t>(bytes().numel()); }
  const DataPtr& data_ptr() const { return expect().start; }
  DataPtr& mutable_data_ptr() const { return expect().start; }
  const void* data() const { return mutable_data(); }
  void* mutable_data() const { return bytes().data_ptr(); }
  template <class T>
  T* unsafe_data() const {
    return static_cast<T*>(mutable_data());
  }
  Device device() const { return bytes().device(); }
  DeviceType device_type() const { return device().type(); }
  size_t use_count() const { return static_cast<size_t>(owned_.use_count()); }
  bool is_alias_of(const Storage& other) const { return mutable_data() == other.mutable_data(); }
  void set_nbytes(size_t count) const {
    TORCH_CHECK_NOT_IMPLEMENTED(count == nbytes(), "set_nbytes: expected the size of the storage, ",
                                nbytes(), ", got ", count);
  }
  // As a tensor of bytes.
  const at::Tensor& bytes() const { return expect().bytes; }

 private:
  struct Owned {
    at::Tensor bytes;
    DataPtr start;
  };
  Owned& expect() const {
    TORCH_CHECK(owned_, "Storage: expected a storage, got an empty one");
    return *owned_;
  }

  std::shared_ptr<Owned> owned_;
};

}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

using c10::DataPtr;
using c10::Storage;

namespace detail {
inline std::vector<int64_t> defaultStrides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}
inline size_t computeStorageNbytes(IntArrayRef sizes, IntArrayRef strides, size_t item,
                                   size_t offset = 0) {
  size_t last = offset + 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    last += static_cast<size_t>(strides[i] * (sizes[i] - 1));
  }
  return last * item;
}
}  // namespace detail

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
