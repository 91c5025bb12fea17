// Tensors over memory, of numbers, and of indices; what the table has no operator for.
#pragma once

#include <functional>

#include "tensor.h"

namespace at {
inline namespace over_weft {

// ---- members of Tensor ----

inline bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous) {
    int64_t expected = 1;
    for (int64_t i = dim() - 1; i >= 0; --i) {
      if (size(i) != 1 && stride(i) != expected) return numel() == 0;
      expected *= size(i);
    }
    return true;
  }
  const bool is_3d = format == MemoryFormat::ChannelsLast3d;
  return dim() == (is_3d ? 5 : 4) && movedim(1, -1).is_contiguous();
}
inline bool Tensor::is_non_overlapping_and_dense() const {
  std::vector<std::pair<int64_t, int64_t>> order;
  for (int64_t i = 0; i < dim(); ++i) {
    if (size(i) != 1) order.emplace_back(stride(i), size(i));
  }
  std::sort(order.begin(), order.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : order) {
    if (stride != expected) return numel() == 0;
    expected *= size;
  }
  return true;
}

inline Scalar Tensor::item() const {
  static const c10::detail::Operator op("aten::item");
  return op.call<Scalar>({c10::detail::box(*this)});
}
inline Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  static const c10::detail::Operator op("aten::contiguous");
  return op.call<Tensor>({c10::detail::box(*this), c10::detail::box(format)});
}
inline Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy,
                         std::optional<MemoryFormat> format) const {
  static const c10::detail::Operator op("aten::to.dtype_layout");
  using c10::detail::box;
  return op.call<Tensor>({box(*this), box(options.dtype_opt()), box(options.layout_opt()),
                          box(options.device_opt()), box(options.pinned_memory_opt()),
                          box(non_blocking), box(copy),
                          box(format ? format : options.memory_format_opt())});
}
inline Tensor Tensor::to(Device device, ScalarType dtype, bool non_blocking, bool copy,
                         std::optional<MemoryFormat> format) const {
  return to(TensorOptions(device).dtype(dtype), non_blocking, copy, format);
}
inline Tensor Tensor::to(ScalarType dtype, bool non_blocking, bool copy,
                         std::optional<MemoryFormat> format) const {
  return to(TensorOptions(dtype), non_blocking, copy, format);
}

#define WEFT_TORCH_SPECIAL(name)                        \
  template <class Other>                                \
  Tensor name(const Tensor& self, const Other& other) { \
    return self.name(other);                            \
  }
WEFT_TORCH_SPECIAL(__and__)
WEFT_TORCH_SPECIAL(__or__)
WEFT_TORCH_SPECIAL(__xor__)
WEFT_TORCH_SPECIAL(__lshift__)
WEFT_TORCH_SPECIAL(__rshift__)
#undef WEFT_TORCH_SPECIAL

// ---- indices ----

namespace indexing {

inline TensorIndex::TensorIndex(const Tensor& tensor)
    : type_(TensorIndexType::Tensor), tensor_(std::make_shared<const Tensor>(tensor)) {}

namespace detail {

// A view of what numbers, slices and None choose, and the tensors among the indices by the view's
// dims.
struct Chosen {
  Tensor view;
  c10::List<std::optional<Tensor>> indices;
  bool has_indices = false;

  void add(const Tensor& index) {
    while (indices.size() < static_cast<size_t>(dim)) indices.push_back(std::nullopt);
    indices.push_back(index);
    has_indices = true;
    dim += index.scalar_type() == kBool || index.scalar_type() == kByte ? index.dim() : 1;
  }
  void take(const TensorIndex& index, int64_t remaining) {
    switch (index.type()) {
      case TensorIndexType::None:
        view = view.unsqueeze(dim++);
        break;
      case TensorIndexType::Ellipsis:
        dim += remaining;
        break;
      case TensorIndexType::Integer:
        view = view.select(dim, index.integer());
        break;
      case TensorIndexType::Boolean:
        view = view.unsqueeze(dim);
        add(full({1}, index.integer() != 0, TensorOptions(kBool)));
        break;
      case TensorIndexType::Slice:
        view = view.slice(dim++, index.slice().start(), index.slice().stop(), index.slice().step());
        break;
      case TensorIndexType::Tensor:
        add(index.tensor());
        break;
    }
  }

  int64_t dim = 0;
};

// How many dims an index uses up.
inline int64_t dims_of(const TensorIndex& index) {
  switch (index.type()) {
    case TensorIndexType::Integer:
    case TensorIndexType::Slice:
      return 1;
    case TensorIndexType::Tensor: {
      const ScalarType type = index.tensor().scalar_type();
      return type == kBool || type == kByte ? index.tensor().dim() : 1;
    }
    default:
      return 0;
  }
}

inline Chosen choose(const Tensor& self, ArrayRef<TensorIndex> indices) {
  int64_t remaining = self.dim();
  for (const TensorIndex& index : indices) remaining -= dims_of(index);
  TORCH_CHECK_INDEX(remaining >= 0, "index: expected at most ", self.dim(), " indices, got ",
                    self.dim() - remaining);
  Chosen chosen{self, {}, false, 0};
  for (const TensorIndex& index : indices) chosen.take(index, remaining);
  return chosen;
}

}  // namespace detail
}  // namespace indexing

inline Tensor Tensor::index(ArrayRef<indexing::TensorIndex> indices) const {
  const auto chosen = indexing::detail::choose(*this, indices);
  return chosen.has_indices ? at::index(chosen.view, chosen.indices) : chosen.view.alias();
}
inline Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& value,
                                  bool accumulate) {
  auto chosen = indexing::detail::choose(*this, indices);
  if (chosen.has_indices) {
    at::index_put_(chosen.view, chosen.indices, value.to(scalar_type()), accumulate);
  } else if (accumulate) {
    chosen.view.add_(value);
  } else {
    chosen.view.copy_(value);
  }
  return *this;
}
inline Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& value) {
  return index_put_(indices, scalar_tensor(value, options()));
}
inline Tensor Tensor::operator[](const Tensor& index) const {
  TORCH_CHECK_INDEX(!isFloatingType(index.scalar_type()),
                    "operator[]: expected an index of integers, got ", index.scalar_type());
  return index.dim() == 0 && index.scalar_type() != kBool ? select(0, index.item<int64_t>())
                                                          : this->index({index});
}

// ---- factories ----

namespace detail {

inline void release_memory(void* context) {
  const std::unique_ptr<std::function<void()>> held(static_cast<std::function<void()>*>(context));
  (*held)();
}

}  // namespace detail

// A tensor over the caller's memory, which has to live as long.
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  TORCH_CHECK(options.device().is_cpu(), "from_blob: expected memory of the CPU, got ",
              options.device());
  std::unique_ptr<std::function<void()>> release;
  if (deleter) release = std::make_unique<std::function<void()>>([=] { deleter(data); });
  weft_tensor* made = nullptr;
  c10::detail::check(weft_tensor_wrap(
      data, c10::detail::dtype_of(options.dtype().toScalarType()), static_cast<int>(sizes.size()),
      sizes.data(), strides.size() == sizes.size() ? strides.data() : nullptr,
      release ? detail::release_memory : nullptr, release.get(), &made));
  release.release();
  return c10::detail::with_options(Tensor(made), options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, IntArrayRef(), deleter, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  return from_blob(data, sizes, strides, nullptr, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, IntArrayRef(), nullptr, options);
}

template <class T>
Tensor tensor(ArrayRef<T> items, const TensorOptions& options = {}) {
  Tensor made =
      empty({static_cast<int64_t>(items.size())}, TensorOptions(c10::detail::scalar_type<T>()));
  std::copy(items.begin(), items.end(), static_cast<T*>(made.data_ptr()));
  return c10::detail::with_options(made.to(options), options);
}

}  // namespace over_weft
}  // namespace at

namespace torch {
inline namespace over_weft {
namespace detail {

// Numbers in braces, nested as deep as the tensor has dims: {{1, 2}, {3, 4}}.
class TensorData {
 public:
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  TensorData(T number) : type_(at::Scalar(number).type()), numbers_{number} {}
  template <class T>
  TensorData(std::complex<T> number)
      : type_(c10::detail::scalar_type<std::complex<T>>()), numbers_{number} {}
  TensorData(at::Half number) : type_(at::kHalf), numbers_{static_cast<float>(number)} {}
  TensorData(at::BFloat16 number) : type_(at::kBFloat16), numbers_{static_cast<float>(number)} {}
  TensorData(std::initializer_list<TensorData> items) {
    sizes_.push_back(static_cast<int64_t>(items.size()));
    if (items.size() == 0) return;
    const TensorData& first = *items.begin();
    type_ = first.type_;
    sizes_.insert(sizes_.end(), first.sizes_.begin(), first.sizes_.end());
    for (const TensorData& each : items) {
      TORCH_CHECK(each.sizes_ == first.sizes_, "tensor: expected items of equal sizes, got ",
                  at::IntArrayRef(first.sizes_), " and ", at::IntArrayRef(each.sizes_));
      TORCH_CHECK(each.type_ == first.type_, "tensor: expected numbers of one type, got ",
                  first.type_, " and ", each.type_);
      numbers_.insert(numbers_.end(), each.numbers_.begin(), each.numbers_.end());
    }
  }

  at::Tensor made(const at::TensorOptions& options) const {
    const at::ScalarType type = type_ == at::kDouble ? at::kFloat : type_;
    const at::TensorOptions all = options.has_dtype() ? options : options.dtype(type);
    at::Tensor flat = filled(at::isComplexType(type_)    ? at::kComplexDouble
                             : at::isFloatingType(type_) ? at::kDouble
                                                         : at::kLong);
    return c10::detail::with_options(flat.reshape(sizes_).to(all.requires_grad(false)), all);
  }

 private:
  at::Tensor filled(at::ScalarType type) const {
    at::Tensor flat = at::empty({static_cast<int64_t>(numbers_.size())}, at::TensorOptions(type));
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (type == at::kDouble) {
        static_cast<double*>(flat.data_ptr())[i] = numbers_[i].toDouble();
      } else if (type == at::kLong) {
        static_cast<int64_t*>(flat.data_ptr())[i] = numbers_[i].toLong();
      } else {
        static_cast<std::complex<double>*>(flat.data_ptr())[i] = numbers_[i].toComplexDouble();
      }
    }
    return flat;
  }

  at::ScalarType type_ = at::kDouble;  // long and double stand for any width
  std::vector<int64_t> sizes_;
  std::vector<at::Scalar> numbers_;
};

}  // namespace detail

inline at::Tensor tensor(detail::TensorData data, const at::TensorOptions& options = {}) {
  return data.made(options);
}
template <class T>
at::Tensor tensor(at::ArrayRef<T> items, const at::TensorOptions& options = {}) {
  const bool is_double = std::is_same_v<T, double>;  // as numbers in braces: of the default width
  return at::tensor(items, is_double && !options.has_dtype() ? options.dtype(at::kFloat) : options);
}
template <class T>
at::Tensor tensor(const std::vector<T>& items, const at::TensorOptions& options = {}) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<uint8_t> bytes(items.begin(), items.end());
    return at::tensor(at::ArrayRef<uint8_t>(bytes),
                      options.has_dtype() ? options : options.dtype(at::kBool));
  } else {
    return tensor(at::ArrayRef<T>(items), options);
  }
}

}  // namespace over_weft
}  // namespace torch

// ---- operators of C++ ----

namespace at {
inline namespace over_weft {

#define WEFT_TORCH_ARITHMETIC(symbol, function, reversed)                                    \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return function(a, b); } \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return reversed; }
WEFT_TORCH_ARITHMETIC(+, add, add(b, a))
WEFT_TORCH_ARITHMETIC(-, sub, rsub(b, a))
WEFT_TORCH_ARITHMETIC(*, mul, mul(b, a))
WEFT_TORCH_ARITHMETIC(/, div, reciprocal(b).mul(a))
WEFT_TORCH_ARITHMETIC(%, remainder, remainder(scalar_tensor(a, b.options()), b))
WEFT_TORCH_ARITHMETIC(&, bitwise_and, bitwise_and(b, a))
WEFT_TORCH_ARITHMETIC(|, bitwise_or, bitwise_or(b, a))
WEFT_TORCH_ARITHMETIC(^, bitwise_xor, bitwise_xor(b, a))
WEFT_TORCH_ARITHMETIC(==, eq, eq(b, a))
WEFT_TORCH_ARITHMETIC(!=, ne, ne(b, a))
WEFT_TORCH_ARITHMETIC(<, lt, gt(b, a))
WEFT_TORCH_ARITHMETIC(<=, le, ge(b, a))
WEFT_TORCH_ARITHMETIC(>, gt, lt(b, a))
WEFT_TORCH_ARITHMETIC(>=, ge, le(b, a))
#undef WEFT_TORCH_ARITHMETIC
inline Tensor operator!(const Tensor& tensor) { return logical_not(tensor); }

}  // namespace over_weft
}  // namespace at
