#include "runtime/value.h"

#include <utility>

#include "core/error.h"
#include "runtime/print.h"

namespace weft {

Value::Value(const Scalar& v) {
  switch (v.category()) {
    case DTypeCategory::Bool:
      *this = Value(v.to_bool());
      return;
    case DTypeCategory::Integral:
      *this = Value(v.to_int());
      return;
    case DTypeCategory::Floating:
      *this = Value(v.to_double());
      return;
    case DTypeCategory::Complex:
      *this = Value(ValueTag::Complex, make_ref<ComplexObject>(v.to_complex()));
      return;
  }
}

Value Value::borrow(IntList v) {
  Value value;
  value.tag_ = ValueTag::IntSpan;
  value.length_ = static_cast<uint32_t>(v.size());
  value.data_.span = v.data();
  return value;
}

Value Value::borrow(std::span<const double> v) {
  Value value;
  value.tag_ = ValueTag::DoubleSpan;
  value.length_ = static_cast<uint32_t>(v.size());
  value.data_.span = v.data();
  return value;
}

Value Value::borrow(std::span<const Tensor> v) {
  Value value;
  value.tag_ = ValueTag::TensorSpan;
  value.length_ = static_cast<uint32_t>(v.size());
  value.data_.span = v.data();
  return value;
}

Value::Value(std::vector<Value> v)
    : Value(ValueTag::List, make_ref<ListObject<Value>>(std::move(v))) {}

void ValueObject::destroy(ValueObject* object) {
  constexpr int kDeepest = 64;
  static thread_local int depth = 0;
  static thread_local std::vector<ValueObject*> waiting;
  if (depth >= kDeepest) {
    waiting.push_back(object);
    return;
  }
  ++depth;
  delete object;
  if (depth == 1) {
    while (!waiting.empty()) {
      ValueObject* next = waiting.back();
      waiting.pop_back();
      delete next;
    }
  }
  --depth;
}

void Value::retain() const noexcept {
  if (tag_ == ValueTag::Tensor) {
    data_.tensor.impl()->retain();
  } else {
    data_.object->retain();
  }
}

void Value::release() noexcept {
  if (tag_ == ValueTag::Tensor) {
    data_.tensor.~Tensor();
  } else {
    Ref<ValueObject>::adopt(data_.object).reset();
  }
}

void Value::fail_tag(const char* wanted) const {
  fail(ErrorKind::Type, {"expected ", wanted, ", got ", type_name(*this)});
}

const Tensor& Value::undefined_tensor() const {
  if (tag_ != ValueTag::None) fail_tag("a tensor or None");
  static const Tensor undefined;
  return undefined;
}

bool Value::to_bool() const {
  if (tag_ != ValueTag::Bool && tag_ != ValueTag::Int) fail_tag("a bool");
  return data_.integer != 0;
}

int64_t Value::to_int() const {
  if (tag_ != ValueTag::Int && tag_ != ValueTag::Bool) fail_tag("an int");
  return data_.integer;
}

double Value::to_double() const {
  if (tag_ == ValueTag::Double) return data_.real;
  return static_cast<double>(to_int());
}

Scalar Value::to_scalar() const {
  switch (tag_) {
    case ValueTag::Bool:
      return Scalar(data_.integer != 0);
    case ValueTag::Int:
      return Scalar(data_.integer);
    case ValueTag::Double:
      return Scalar(data_.real);
    case ValueTag::Complex:
      return Scalar(object<ComplexObject>()->value);
    case ValueTag::Tensor:
      return to_tensor().item();
    default:
      fail_tag("a number");
  }
}

DType Value::to_dtype() const {
  if (tag_ != ValueTag::DType && tag_ != ValueTag::Int) fail_tag("a dtype");
  return static_cast<DType>(data_.integer);
}

Device Value::to_device() const {
  if (tag_ != ValueTag::Device) fail_tag("a device");
  Device device;
  device.type = static_cast<decltype(device.type)>(data_.integer & 0xff);
  device.index = static_cast<decltype(device.index)>(data_.integer >> 8);
  return device;
}

const std::string& Value::text() const {
  if (tag_ != ValueTag::String) fail_tag("a str");
  return object<StringObject>()->text;
}

IntList Value::to_ints() const {
  if (tag_ == ValueTag::IntSpan) return {static_cast<const int64_t*>(data_.span), length_};
  if (tag_ != ValueTag::IntList) fail_tag("a list of ints");
  return object<ListObject<int64_t>>()->items;
}

std::span<const double> Value::to_doubles() const {
  if (tag_ == ValueTag::DoubleSpan) return {static_cast<const double*>(data_.span), length_};
  if (tag_ != ValueTag::DoubleList) fail_tag("a list of floats");
  return object<ListObject<double>>()->items;
}

TensorList Value::to_tensors() const {
  if (tag_ == ValueTag::TensorSpan) {
    const auto* first = static_cast<const Tensor*>(data_.span);
    return {first, first + length_};
  }
  if (tag_ != ValueTag::TensorList && tag_ != ValueTag::OptionalTensorList)
    fail_tag("a list of tensors");
  return object<ListObject<Tensor>>()->items;
}

}  // namespace weft
