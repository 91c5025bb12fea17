// Tensors: making them, views, the checks before a write.
#include "core/tensor.h"

#include <cstring>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/inference.h"
#include "core/meta.h"
#include "core/thread_cache.h"

namespace weft {

void (*release_wrapper)(void* object) = nullptr;
constinit thread_local bool inference_results = false;

TensorImpl* TensorImpl::create() {
  auto* made = new (detail::take_object(detail::kTensorBin, sizeof(TensorImpl))) TensorImpl;
  made->inference = inference_results;
  return made;
}

void TensorImpl::destroy(TensorImpl* tensor) {
  if (tensor->wrapper.owned && release_wrapper != nullptr) [[unlikely]] {
    tensor->wrapper.owned = false;
    release_wrapper(std::exchange(tensor->wrapper.object, nullptr));
  }
  tensor->~TensorImpl();
  detail::give_object(detail::kTensorBin, tensor, sizeof(TensorImpl));
}

Tensor::Tensor(Ref<Storage> storage, Layout layout, DType dtype) : impl_(TensorImpl::create()) {
  impl_->storage = std::move(storage);
  impl_->layout = std::move(layout);
  impl_->dtype = dtype;
}

Tensor Tensor::empty(IntList sizes, DType dtype, Device device, const char* op) {
  device = check_available(op, device);
  const int64_t numel = checked_numel(op, sizes);
  int64_t nbytes = 0;
  const auto item = static_cast<int64_t>(weft::item_size(dtype));
  WEFT_CHECK(!__builtin_mul_overflow(numel, item, &nbytes), op,
             ": expected fewer than 2**63 bytes, got sizes ", AsTuple{sizes}, " of ", dtype);
  Ref<Storage> storage = Storage::allocate(static_cast<size_t>(nbytes), device);
  Tensor result(Ref<TensorImpl>(TensorImpl::create()));
  TensorImpl& impl = *result.impl_;
  impl.storage = std::move(storage);
  impl.layout.sizes.assign(sizes);
  impl.layout.strides = contiguous_strides(sizes);
  impl.dtype = dtype;
  return result;
}

Tensor Tensor::scalar(const Scalar& value, DType dtype) {
  Tensor result = empty({}, dtype);
  value.store(dtype, result.data());
  return result;
}

int64_t Tensor::size(int64_t dim) const {
  WEFT_CHECK_INDEX(this->dim() > 0, "size: expected a tensor with dims, got a 0-d one");
  return sizes()[static_cast<size_t>(wrap_dim("size", dim, this->dim()))];
}

int64_t Tensor::stride(int64_t dim) const {
  WEFT_CHECK_INDEX(this->dim() > 0, "stride: expected a tensor with dims, got a 0-d one");
  return strides()[static_cast<size_t>(wrap_dim("stride", dim, this->dim()))];
}

Tensor Tensor::alias(Layout layout, DType dtype) const {
  Tensor result(storage(), std::move(layout), dtype);
  TensorImpl& impl = *result.impl_;
  impl.inference = impl_->inference;
  if (impl_->counts_apart) [[unlikely]] {
    impl.autograd = impl_->autograd->sharing_writes();
    impl.counts_apart = true;
  }
  return result;
}

Tensor Tensor::with_layout(Layout layout, const char* op) const {
  const Layout::Extent extent = layout.extent();
  const auto capacity = static_cast<int64_t>(storage()->nbytes() / item_size());
  WEFT_CHECK(extent.begin >= 0 && extent.end <= capacity, op,
             ": expected a view inside the storage of ", capacity, " elements, got sizes ",
             AsTuple{layout.sizes}, ", strides ", AsTuple{layout.strides}, ", offset ",
             layout.offset);
  return alias(std::move(layout), dtype());
}

void Tensor::check_writable(const char* op) const {
  WEFT_CHECK(!storage()->has(kReadOnly), op,
             ": expected a writable tensor, got a read-only one; write to a clone() of it");
  WEFT_CHECK(!impl_->inference || inference_results, op,
             ": expected a tensor made outside of inference mode, got one made inside: in-place "
             "update to it outside of inference mode is not allowed; write to a clone() of it");
  bump_version();
}

Scalar Tensor::item() const {
  WEFT_CHECK(numel() == 1, "item: expected a tensor with one element, got ", numel());
  alignas(16) char element[16];
  if (Backend* backend = find_backend(device())) {
    if (device().type == DeviceType::Meta) meta::refuse_item();
    backend->copy(element, {}, address(), device(), item_size());
  } else {
    std::memcpy(element, data(), item_size());
  }
  return dispatch(dtype(), [&]<class T>(std::type_identity<T>) {
    T value;
    std::memcpy(&value, element, sizeof(T));
    if constexpr (is_small_float<T>) {
      return Scalar(static_cast<double>(static_cast<float>(value)));
    } else if constexpr (std::is_same_v<T, bool>) {
      return Scalar(value);
    } else if constexpr (std::is_integral_v<T>) {
      return Scalar(static_cast<int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      return Scalar(static_cast<double>(value));
    } else {
      return Scalar(std::complex<double>(value.real(), value.imag()));
    }
  });
}

}  // namespace weft
