// Tensor: a layout and a dtype over a storage, plus what autograd and Python hang on it.
//
// `Tensor` is a handle (one pointer); copying it shares the tensor, it never copies elements.
// A default-constructed handle is undefined: it stands for "no tensor" (an absent optional
// argument, a gradient that is zero).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/dtype.h"
#include "core/layout.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace weft {

// A count of writes that some of the tensors over a storage share.
class WriteCount final : public RefCounted {
 public:
  explicit WriteCount(uint32_t count) : count_(count) {}
  uint32_t get() const noexcept { return count_.load(std::memory_order_relaxed); }
  void bump() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> count_;
};

// What the autograd layer attaches. Core owns it, and counts by it the writes of `counts_apart`.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
  // A new state, for a tensor whose writes are counted with those of this one.
  virtual std::unique_ptr<AutogradMetaBase> sharing_writes() const = 0;
  // Whether operators on the tensor record a history now.
  virtual bool records() const = 0;

  Ref<WriteCount> writes;  // of a tensor that `counts_apart`
};

// What a Python wrapper needs from the object it wraps; filled in by the bindings.
struct WrapperSlot {
  void* object = nullptr;  // the PyObject, borrowed unless `owned`
  bool owned = false;      // the wrapper outlived its last Python reference: the tensor keeps it
};
// Releases a wrapper that a dying tensor owns (takes the GIL). Set once by the bindings.
extern void (*release_wrapper)(void* object);

class TensorImpl final : public RefCounted {
 public:
  Ref<Storage> storage;
  Layout layout;
  DType dtype = DType::F32;
  bool inference = false;     // made under inference_mode
  bool counts_apart = false;  // autograd->writes counts its writes, not the storage
  std::unique_ptr<AutogradMetaBase> autograd;
  WrapperSlot wrapper;

  static TensorImpl* create();              // from the free list
  static void destroy(TensorImpl* tensor);  // back to it

 private:
  TensorImpl() = default;
  ~TensorImpl() = default;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(Ref<Storage> storage, Layout layout, DType dtype);

  // Uninitialised, contiguous. Raises as checked_numel does, naming `op`.
  static Tensor empty(IntList sizes, DType dtype, Device device = {}, const char* op = "empty");
  // A 0-d tensor holding the value.
  static Tensor scalar(const Scalar& value, DType dtype);

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  TensorImpl* impl() const noexcept { return impl_.get(); }
  const Ref<TensorImpl>& ref() const noexcept { return impl_; }
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }

  const Layout& layout() const noexcept { return impl_->layout; }
  const Dims& sizes() const noexcept { return impl_->layout.sizes; }
  const Dims& strides() const noexcept { return impl_->layout.strides; }
  int64_t offset() const noexcept { return impl_->layout.offset; }
  int64_t dim() const noexcept { return impl_->layout.dim(); }
  int64_t numel() const noexcept { return impl_->layout.numel(); }
  // Accepts negative dims; raises IndexError.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  bool is_contiguous() const noexcept { return impl_->layout.is_contiguous(); }

  DType dtype() const noexcept { return impl_->dtype; }
  Device device() const noexcept { return impl_->storage->device(); }
  bool on_cpu() const noexcept { return impl_->storage->on_cpu(); }
  const Ref<Storage>& storage() const noexcept { return impl_->storage; }
  size_t item_size() const noexcept { return weft::item_size(impl_->dtype); }

  // First element (storage plus offset), for the host: see Storage::data.
  void* data() const { return first(impl_->storage->data()); }
  // The same as a number: see Storage::address.
  void* address() const noexcept { return first(impl_->storage->address()); }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }

  // A new tensor over the same storage, which counts writes with this one. The layout is trusted.
  Tensor alias(Layout layout, DType dtype) const;
  // The same, checked: a view. Raises RuntimeError naming `op` when the layout
  // reaches outside the storage.
  Tensor with_layout(Layout layout, const char* op = "as_strided") const;

  // Every write goes through here first: raises RuntimeError "<op>: expected a writable tensor, got
  // a read-only one" and bumps the version.
  void check_writable(const char* op) const;
  void bump_version() const {
    if (impl_->counts_apart) [[unlikely]] {
      impl_->autograd->writes->bump();
      impl_->storage->note_change();
    } else {
      impl_->storage->bump_version();
    }
  }
  // The same tensor, which nobody has written to yet: what filled it was part of making it.
  Tensor as_new() && {
    impl_->storage->forget_writes();
    return std::move(*this);
  }
  // Writes so far through the tensors that count with this one: all over the storage, but for
  // x.data and its views, which count among themselves.
  uint32_t version() const noexcept {
    if (impl_->counts_apart) [[unlikely]]
      return impl_->autograd->writes->get();
    return impl_->storage->version();
  }

  // The one element as a number; RuntimeError unless numel() == 1.
  Scalar item() const;

 private:
  void* first(void* base) const noexcept {
    return static_cast<char*>(base) + impl_->layout.offset * static_cast<int64_t>(item_size());
  }

  Ref<TensorImpl> impl_;
};

using TensorList = std::vector<Tensor>;

}  // namespace weft
