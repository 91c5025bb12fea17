// Builtins that ask tensors, devices and dtypes, and make tensors from lists and back.
#include <limits>

#include "autograd/mode.h"
#include "autograd/node.h"
#include "autograd/placement.h"
#include "builtin_bodies.h"
#include "core/error.h"
#include "core/layout.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops_copying.h"
#include "ops_unary.h"
#include "ops_views.h"
#include "runtime/boxed.h"
#include "runtime/builtins_support.h"
#include "runtime/list.h"
#include "runtime/nesting.h"
#include "runtime/print.h"

namespace weft::builtins {
namespace {

std::vector<int64_t> listed(IntList items) { return {items.begin(), items.end()}; }

}  // namespace

// ---- questions ----

Value tensor_size(const Tensor& tensor) { return Value(listed(tensor.sizes())); }
Value tensor_stride(const Tensor& tensor) { return Value(listed(tensor.strides())); }
bool tensor_lies_as(const Tensor& tensor, const Value& format) {
  return tensor.layout().has_format(static_cast<MemoryFormat>(format.to_int()));
}
Value tensor_layout(const Tensor&) { return Value(int64_t{0}); }
Value tensor_name(const Tensor&) { return Value(); }
int64_t tensor_len(const Tensor& tensor) {
  WEFT_CHECK_TYPE(tensor.dim() > 0, "len() of a 0-d tensor: expected a tensor with dimensions");
  return tensor.size(0);
}
Tensor tensor_requires_grad_(const Tensor& tensor, bool value) {
  autograd::set_requires_grad(tensor, value);
  return tensor;
}
Tensor tensor_detach_(const Tensor& tensor) {
  autograd::detach_(tensor);
  return tensor;
}
Tensor tensor_resize_(const Tensor& tensor, const Value& sizes, const Value& format) {
  WEFT_CHECK(format.is_none() || format.to_int() <= 1,
             "resize_: expected contiguous_format in a program, got channels_last");
  autograd::resize("resize_", tensor, Dims(sizes.to_ints()));
  return tensor;
}
Tensor tensor_resize_as_(const Tensor& tensor, const Tensor& other, const Value& format) {
  return tensor_resize_(tensor, tensor_size(other), format);
}
Tensor tensor_cpu(const Tensor& tensor) { return ops::to(tensor, Device{}, tensor.dtype()); }

Tensor tensor_reversed(const Tensor& tensor) {
  Dims dims;
  for (int64_t d = tensor.dim(); d-- > 0;) dims.push_back(d);
  return ops::permute(tensor, dims);
}
Tensor tensor_mT(const Tensor& tensor) {
  WEFT_CHECK(tensor.dim() >= 2, "mT: expected a tensor with at least 2 dims, got shape ",
             AsTuple{tensor.sizes()});
  return ops::transpose(tensor, -2, -1);
}
Tensor tensor_mH(const Tensor& tensor) {
  const Tensor view = tensor_mT(tensor);
  return is_complex(tensor.dtype()) ? ops::conj(view) : view;
}
Tensor tensor_H(const Tensor& tensor) {
  WEFT_CHECK(tensor.dim() == 0 || tensor.dim() == 2, "H: expected a tensor with 2 dims, got shape ",
             AsTuple{tensor.sizes()});
  return tensor.dim() == 0 ? tensor : tensor_mH(tensor);
}

std::string device_type(const Value& device) {
  Device kind = device.to_device();
  kind.index = -1;
  return kind.str();
}
Value device_index(const Value& device) {
  const int index = device.to_device().index;
  return index < 0 ? Value() : Value(int64_t{index});
}
Value device_parse(const std::string& text) { return Value(Device::parse(text)); }
Value device_make(const std::string& type, int64_t index) {
  return Value(Device::parse(type + ":" + std::to_string(index)));
}

Value promote_dtypes(const Value& a, const Value& b) {
  return Value(promote(boxed::dtype(a), boxed::dtype(b)));
}
bool can_cast_dtypes(const Value& from, const Value& to) {
  return can_cast(boxed::dtype(from), boxed::dtype(to));
}
Value shapes_broadcast(const Value& a, const Value& b) {
  return Value(listed(broadcast_sizes("broadcast_shapes", a.to_ints(), b.to_ints())));
}

// ---- from data ----

namespace {

constexpr size_t kMaxDepth = 64;

// The dtype of nested lists: what their numbers promote to.
void merge_dtype(const Value& data, std::optional<DType>& dtype) {
  const auto merge = [&](DType other) { dtype = dtype ? promote(*dtype, other) : other; };
  switch (data.tag()) {
    case ValueTag::Tensor:
      return merge(data.to_tensor().dtype());
    case ValueTag::Bool:
    case ValueTag::Int:
    case ValueTag::Double:
    case ValueTag::Complex:
      return merge(data.to_scalar().dtype());
    default:
      break;
  }
  WEFT_CHECK_TYPE(is_list(data.tag()), "tensor: expected numbers or lists of numbers, got ",
                  type_name(data));
  const Nesting nesting;
  const int64_t size = list_len(data);
  const bool one_type = data.tag() <= ValueTag::BoolList;
  for (int64_t i = 0; i < (one_type ? std::min<int64_t>(size, 1) : size); ++i) {
    merge_dtype(list_get(data, i), dtype);
  }
}

// The sizes follow the first item of every level; filling checks the others.
Dims shape_of(Value data) {
  Dims sizes;
  while (is_list(data.tag())) {
    sizes.push_back(list_len(data));
    WEFT_CHECK_VALUE(sizes.size() <= kMaxDepth, "tensor: expected at most ", kMaxDepth, " dims");
    if (sizes.back() == 0) return sizes;
    data = list_get(data, 0);
  }
  if (data.tag() == ValueTag::Tensor) {
    for (const int64_t size : data.to_tensor().sizes()) sizes.push_back(size);
  }
  return sizes;
}

class Filler {
 public:
  explicit Filler(const Tensor& out) : out_(out), at_(static_cast<char*>(out.data())) {}

  void level(const Value& data, size_t depth) {
    if (data.tag() == ValueTag::Tensor) return tensor(data.to_tensor(), depth);
    if (depth == out_.sizes().size()) {
      WEFT_CHECK_VALUE(!is_list(data.tag()), "tensor: expected a number at dim ", depth,
                       ", got a list");
      return number(data.to_scalar());
    }
    const int64_t wanted = out_.sizes()[depth];
    WEFT_CHECK_VALUE(is_list(data.tag()), "tensor: expected a list of length ", wanted, " at dim ",
                     depth, ", got ", type_name(data));
    const int64_t size = list_len(data);
    WEFT_CHECK_VALUE(size == wanted, "tensor: expected a list of length ", wanted, " at dim ",
                     depth, ", got ", size);
    for (int64_t i = 0; i < size; ++i) level(list_get(data, i), depth + 1);
  }

 private:
  void tensor(const Tensor& part, size_t depth) {
    const IntList rest = IntList(out_.sizes()).subspan(depth);
    WEFT_CHECK_VALUE(std::ranges::equal(part.sizes(), rest), "tensor: expected an item of shape ",
                     AsTuple{rest}, " at dim ", depth, ", got shape ", AsTuple{part.sizes()});
    Layout layout = Layout::contiguous(rest);
    layout.offset =
        (at_ - static_cast<char*>(out_.data())) / static_cast<int64_t>(out_.item_size());
    autograd::NoGradGuard no_grad;
    if (part.numel() > 0) ops::copy_(out_.with_layout(std::move(layout)), part);
    at_ += static_cast<size_t>(part.numel()) * out_.item_size();
  }

  void number(const Scalar& value) {
    const DType dtype = out_.dtype();
    WEFT_CHECK_TYPE(!value.is_complex() || is_complex(dtype), "tensor: expected real numbers for ",
                    dtype, ", got a complex one");
    if (is_integral(dtype)) check_range(value);
    value.store(dtype, at_);
    at_ += out_.item_size();
  }

  void check_range(const Scalar& value) const {
    const bool fits = dispatch(out_.dtype(), [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (value.is_floating()) {
          // Both ends are powers of two (or zero): exact as doubles.
          const double real = value.to_double();
          return real > static_cast<double>(std::numeric_limits<T>::min()) - 1 &&
                 real < std::ldexp(1.0, std::numeric_limits<T>::digits);
        }
        return std::in_range<T>(value.to_int());
      } else {
        return true;
      }
    });
    WEFT_CHECK(fits, "tensor: expected a number that fits ", out_.dtype(), ", got ", value);
  }

  const Tensor& out_;
  char* at_;
};

}  // namespace

Tensor tensor_of(const Value& data, const Value& dtype, const Value& device, bool requires_grad) {
  std::optional<DType> type = boxed::optional_dtype(dtype);
  if (!type) merge_dtype(data, type);
  const Device place = device.is_none() ? Device{} : check_available("tensor", device.to_device());
  const Tensor made = Tensor::empty(shape_of(data), type.value_or(default_dtype()), {}, "tensor");
  if (made.numel() > 0) Filler(made).level(data, 0);
  const Tensor result = on_device(made, place);
  if (requires_grad) autograd::set_requires_grad(result, true);
  return result;
}

Tensor tensor_like(const Value& data, const Value& dtype, const Value& device) {
  return tensor_of(data, dtype, device, false);
}

Tensor tensor_as(const Tensor& data, const Value& dtype, const Value& device) {
  return ops::to(data, device.is_none() ? data.device() : device.to_device(),
                 boxed::optional_dtype(dtype).value_or(data.dtype()));
}

// ---- to lists ----

namespace {

// The element types of tolist, by TorchScript's numbers.
constexpr int64_t kIntElements = 0, kFloatElements = 1, kComplexElements = 2, kBoolElements = 3;

Value element_value(const Scalar& item, int64_t type) {
  switch (type) {
    case kIntElements:
      return Value(item.to_int());
    case kFloatElements:
      return Value(item.to_double());
    case kBoolElements:
      return Value(item.to_bool());
    default:
      return Value(item.to_complex());
  }
}

ValueTag element_list(int64_t type) {
  constexpr ValueTag lists[] = {ValueTag::IntList, ValueTag::DoubleList, ValueTag::List,
                                ValueTag::BoolList};
  return lists[type];
}

bool holds(DType dtype, int64_t type) {
  switch (type) {
    case kIntElements:
      return is_integral(dtype);
    case kFloatElements:
      return is_floating(dtype);
    case kBoolElements:
      return dtype == DType::Bool;
    default:
      return is_complex(dtype);
  }
}

Value nested_list(const Tensor& tensor, int64_t type) {
  if (tensor.dim() == 0) return element_value(tensor.item(), type);
  const Value list = make_list(tensor.dim() == 1 ? element_list(type) : ValueTag::List);
  for (int64_t i = 0; i < tensor.size(0); ++i) {
    list_append(list, nested_list(ops::select(tensor, 0, i), type));
  }
  return list;
}

}  // namespace

Value tensor_to_list(const Tensor& tensor, int64_t dim, int64_t type) {
  WEFT_CHECK_VALUE(type >= kIntElements && type <= kBoolElements,
                   "tolist: expected an element type from 0 to 3, got ", type);
  WEFT_CHECK(tensor.dim() == dim, "tolist: expected a tensor of ", dim, " dims, got shape ",
             AsTuple{tensor.sizes()});
  WEFT_CHECK(holds(tensor.dtype(), type), "tolist: expected a tensor of ",
             type == kIntElements     ? "an integral dtype"
             : type == kFloatElements ? "a floating dtype"
             : type == kBoolElements  ? "dtype bool"
                                      : "a complex dtype",
             ", got ", tensor.dtype());
  return nested_list(ops::detach(tensor), type);
}

}  // namespace weft::builtins
