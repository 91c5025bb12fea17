// at::Tensor: a handle of weft's tensor. Operators are generated from weft's table.
#pragma once

#include "accessor.h"
#include "boxed.h"
#include "indexing.h"

namespace torch::autograd {
inline namespace over_weft {
struct Node;
}
}  // namespace torch::autograd

namespace c10 {
inline namespace over_weft {
class Storage;
class TensorImpl;
enum class QScheme : uint8_t;
}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

using c10::Storage;
class Dimname;
class GradReference;
using TensorList = ArrayRef<Tensor>;

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  explicit Tensor(weft_tensor* owned) : handle_(owned, weft_tensor_release) {}

  // A name becomes another tensor; the elements of what an expression gives (x[0] = y) are written.
  Tensor& operator=(const Tensor& other) & = default;
  Tensor& operator=(Tensor&& other) & noexcept = default;
  Tensor& operator=(const Tensor& other) && { return copy_(other), *this; }
  Tensor& operator=(Tensor&& other) && { return copy_(other), *this; }
  Tensor& operator=(const Scalar& value) && { return fill_(value), *this; }

  weft_tensor* get() const { return handle_.get(); }
  bool defined() const { return handle_ != nullptr; }
  void reset() { handle_.reset(); }
  bool is_same(const Tensor& other) const {
    return handle_ == other.handle_ || weft_tensor_is_same(get(), other.get()) != 0;
  }
  size_t use_count() const { return static_cast<size_t>(handle_.use_count()); }

  // ---- what it is ----

  int64_t dim() const { return weft_tensor_ndim(expect()); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return {weft_tensor_sizes(expect()), static_cast<size_t>(dim())}; }
  IntArrayRef strides() const {
    return {weft_tensor_strides(expect()), static_cast<size_t>(dim())};
  }
  int64_t size(int64_t index) const { return sizes()[wrapped(index)]; }
  int64_t stride(int64_t index) const { return strides()[wrapped(index)]; }
  int64_t numel() const { return weft_tensor_numel(expect()); }
  int64_t storage_offset() const { return weft_tensor_offset(expect()); }
  ScalarType scalar_type() const {
    return c10::detail::scalar_type_of(weft_tensor_dtype(expect()));
  }
  caffe2::TypeMeta dtype() const { return scalar_type(); }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  size_t itemsize() const { return elementSize(scalar_type()); }
  size_t nbytes() const { return itemsize() * static_cast<size_t>(numel()); }
  Device device() const { return is_cpu() ? Device(kCPU) : Device(weft_tensor_device(expect())); }
  int64_t get_device() const { return -1; }
  Layout layout() const { return kStrided; }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
  bool is_cpu() const { return weft_tensor_device(expect()) == std::string_view("cpu"); }
  bool is_cuda() const { return false; }
  bool is_mps() const { return false; }
  bool is_meta() const { return !is_cpu() && device().is_meta(); }
  bool is_sparse() const { return false; }
  bool is_quantized() const { return false; }
  bool is_mkldnn() const { return false; }
  bool is_hip() const { return false; }
  bool is_xla() const { return false; }
  bool is_xpu() const { return false; }
  bool is_vulkan() const { return false; }
  bool is_nested() const { return false; }
  bool has_storage() const { return true; }
  bool has_names() const { return false; }
  std::vector<Dimname> names() const;
  MemoryFormat suggest_memory_format() const {
    if (dim() == 4 && is_contiguous(MemoryFormat::ChannelsLast) && !is_contiguous()) {
      return MemoryFormat::ChannelsLast;
    }
    return dim() == 5 && is_contiguous(MemoryFormat::ChannelsLast3d) && !is_contiguous()
               ? MemoryFormat::ChannelsLast3d
               : MemoryFormat::Contiguous;
  }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_signed() const {
    const ScalarType type = scalar_type();
    return type != kByte && type != kBool && !(type >= kUInt16 && type <= kUInt64);
  }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_non_overlapping_and_dense() const;
  Storage storage() const;
  bool is_alias_of(const Tensor& other) const;

  // ---- elements ----

  void* data_ptr() const { return weft_tensor_data(expect()); }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  T* data_ptr() const {
    using Element = std::remove_const_t<T>;
    TORCH_CHECK(c10::detail::scalar_type<Element>() == scalar_type(),
                "data_ptr: expected elements of ", c10::detail::scalar_type<Element>(),
                ", got a tensor of ", scalar_type());
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    TORCH_CHECK(dim() == static_cast<int64_t>(N), "accessor: expected ", N, " dims, got ", dim());
    return {data_ptr<T>(), sizes().data(), strides().data()};
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }

  // ---- its memory, in place ----

  const Tensor& set_(const Storage& source) const;
  const Tensor& set_(const Storage& source, int64_t offset, IntArrayRef size,
                     IntArrayRef stride = {}) const;
  const Tensor& set_(const Tensor& source) const;
  const Tensor& set_() const;

  // ---- conversions ----

  Tensor to(const TensorOptions& options = {}, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(caffe2::TypeMeta dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return to(dtype.toScalarType(), non_blocking, copy, format);
  }
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return to(other.scalar_type(), non_blocking, copy, format);
  }
  Tensor toType(ScalarType dtype) const { return to(dtype); }
  Tensor cpu() const { return to(TensorOptions(kCPU)); }
  Tensor cuda() const { return to(TensorOptions(kCUDA)); }
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor pin_memory() const { return *this; }
  Tensor dequantize() const;

  // ---- gradients ----

  const Tensor& set_requires_grad(bool value) const {
    c10::detail::check(weft_tensor_set_requires_grad(expect(), value));
    return *this;
  }
  const Tensor& requires_grad_(bool value = true) const { return set_requires_grad(value); }
  bool requires_grad() const { return weft_tensor_requires_grad(expect()) != 0; }
  bool is_leaf() const { return weft_tensor_is_leaf(expect()) != 0; }
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false, std::optional<TensorList> inputs = std::nullopt) const;
  void _backward(TensorList inputs, const std::optional<Tensor>& gradient = std::nullopt,
                 std::optional<bool> retain_graph = std::nullopt, bool create_graph = false) const {
    backward(gradient.value_or(Tensor()), retain_graph, create_graph,
             inputs.empty() ? std::nullopt : std::optional<TensorList>(inputs));
  }
  const Tensor& grad() const {
    weft_tensor* found = nullptr;
    c10::detail::check(weft_tensor_grad(expect(), &found));
    // The tensor keeps its gradient, so that a reference to it can be given.
    if (!grad_) grad_ = std::make_shared<Tensor>();
    *grad_ = found ? Tensor(found) : Tensor();
    return *grad_;
  }
  // The gradient, which gets another by an assignment.
  GradReference mutable_grad() const;
  void set_data(const Tensor& source) const {
    c10::detail::check(weft_tensor_set_data(expect(), source.expect()));
  }
  std::shared_ptr<torch::autograd::Node> grad_fn() const;
  int64_t output_nr() const { return 0; }
  template <class Hook>
  unsigned register_hook(Hook&&) const {
    TORCH_CHECK_NOT_IMPLEMENTED(false,
                                "register_hook: expected a function of autograd, as weft.h "
                                "has no hooks");
  }
  void remove_hook(unsigned) const {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "remove_hook: expected a hook, got none");
  }
  c10::TensorImpl* unsafeGetTensorImpl() const;
  void retain_grad() const { c10::detail::check(weft_tensor_retain_grad(expect())); }
  Tensor tensor_data() const { return detach(); }
  Tensor variable_data() const { return detach(); }
  Tensor data() const { return detach(); }

  // ---- indices ----

  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Scalar& index) const { return select(0, index.toLong()); }
  Tensor operator[](const Tensor& index) const;
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const {
    return index(ArrayRef<indexing::TensorIndex>(indices));
  }
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& value,
                     bool accumulate = false);
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& value);
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& value,
                     bool accumulate = false) {
    return index_put_(ArrayRef<indexing::TensorIndex>(indices), value, accumulate);
  }
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) {
    return index_put_(ArrayRef<indexing::TensorIndex>(indices), value);
  }

  // ---- arithmetic ----

#define WEFT_TORCH_SPECIAL(name, in_place, method)                         \
  Tensor name(const Tensor& other) const { return method(other); }         \
  Tensor name(const Scalar& other) const { return method(other); }         \
  Tensor& in_place(const Tensor& other) const { return method##_(other); } \
  Tensor& in_place(const Scalar& other) const { return method##_(other); }
  WEFT_TORCH_SPECIAL(__and__, __iand__, bitwise_and)
  WEFT_TORCH_SPECIAL(__or__, __ior__, bitwise_or)
  WEFT_TORCH_SPECIAL(__xor__, __ixor__, bitwise_xor)
  WEFT_TORCH_SPECIAL(__lshift__, __ilshift__, bitwise_left_shift)
  WEFT_TORCH_SPECIAL(__rshift__, __irshift__, bitwise_right_shift)
#undef WEFT_TORCH_SPECIAL
  bool is_set_to(const Tensor& other) const {
    return data_ptr() == other.data_ptr() && sizes() == other.sizes() &&
           strides() == other.strides() && scalar_type() == other.scalar_type();
  }

  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }
#define WEFT_TORCH_IN_PLACE(symbol, method)                              \
  Tensor& operator symbol(const Tensor& other) { return method(other); } \
  Tensor& operator symbol(const Scalar& other) { return method(other); }
  WEFT_TORCH_IN_PLACE(+=, add_)
  WEFT_TORCH_IN_PLACE(-=, sub_)
  WEFT_TORCH_IN_PLACE(*=, mul_)
  WEFT_TORCH_IN_PLACE(/=, div_)
  WEFT_TORCH_IN_PLACE(&=, bitwise_and_)
  WEFT_TORCH_IN_PLACE(|=, bitwise_or_)
  WEFT_TORCH_IN_PLACE(^=, bitwise_xor_)
#undef WEFT_TORCH_IN_PLACE

  void print() const;
  std::string toString() const {
    return std::string("CPU") + c10::toString(scalar_type()) + "Type";
  }

#include "tensor_methods.h"

// Those that libtorch alone has: calls compile and raise.
#define WEFT_ABSENT(result, name)     \
  template <class... Args>            \
  result name(const Args&...) const { \
    c10::detail::refuse(#name);       \
  }
#include "absent_methods.h"
  WEFT_ABSENT(c10::QScheme, qscheme)
  WEFT_ABSENT(int64_t, _version)
#undef WEFT_ABSENT

 private:
  weft_tensor* expect() const {
    TORCH_CHECK(defined(), "expected a tensor, got an undefined one");
    return get();
  }
  size_t wrapped(int64_t index) const {
    const int64_t count = dim(), place = index < 0 ? index + count : index;
    TORCH_CHECK_INDEX(place >= 0 && place < count, "expected a dim from ", -count, " to ",
                      count - 1, ", got ", index);
    return static_cast<size_t>(place);
  }

  std::shared_ptr<weft_tensor> handle_;
  mutable std::shared_ptr<Tensor> grad_;
};

class GradReference final : public Tensor {
 public:
  explicit GradReference(const Tensor& owner) : Tensor(owner.grad()), owner_(owner) {}
  GradReference& operator=(const Tensor& grad) {
    c10::detail::check(weft_tensor_set_grad(owner_.get(), grad.get()));
    Tensor::operator=(grad);
    return *this;
  }
  void reset() { *this = Tensor(); }

 private:
  Tensor owner_;
};
inline GradReference Tensor::mutable_grad() const { return GradReference(*this); }

}  // namespace over_weft
}  // namespace at

namespace c10 {
inline namespace over_weft {
namespace detail {

inline Shared box(const at::Tensor& tensor) {
  if (!tensor.defined()) return none();
  return made([&](weft_value** out) { return weft_value_tensor(tensor.get(), out); });
}
template <>
struct Unbox<at::Tensor> {
  static at::Tensor from(const Shared& value) {
    if (weft_value_kind(value.get()) == WEFT_KIND_NONE) return {};
    weft_tensor* out = nullptr;
    check(weft_value_get_tensor(value.get(), &out));
    return at::Tensor(out);
  }
};

// Results that the caller's tensors take.
inline at::Tensor& write_out(at::Tensor& out, const at::Tensor& made) {
  check(weft_tensor_write(made.get(), out.get()));
  return out;
}
template <class Outs, class Made, size_t... I>
void write_each(const Outs& outs, const Made& made, std::index_sequence<I...>) {
  (write_out(std::get<I>(outs), std::get<I>(made)), ...);
}
template <class... Tensors>
std::tuple<Tensors&...> write_out(std::tuple<Tensors&...> outs,
                                  const std::tuple<Tensors...>& made) {
  write_each(outs, made, std::index_sequence_for<Tensors...>());
  return outs;
}

// A factory's result: options may ask for gradients, which no operator does.
inline at::Tensor with_options(at::Tensor made, const TensorOptions& options) {
  if (options.requires_grad()) made.set_requires_grad(true);
  return made;
}

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

#include "containers.h"
#include "operator_variants.h"
