// Value: what boxed operators take and give. A tagged union of 16 bytes.
//
// Spans are borrowed: they are only good for the duration of one call (the Python binder builds its
// arguments on the stack). Lists that live longer are owned objects.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft {

enum class ValueTag : uint8_t {
  None, Bool, Int, Double, Complex, Tensor, String, Device, DType,
  IntSpan,      // borrowed const int64_t*
  DoubleSpan,   // borrowed const double*
  TensorSpan,   // borrowed const Tensor*
  IntList, DoubleList, BoolList, TensorList, OptionalTensorList, ScalarList, Generator, Object,
};

// An owned list or object inside a Value.
struct ValueObject : RefCounted {
  virtual ~ValueObject() = default;
};
template <class T>
struct ListObject final : ValueObject {
  std::vector<T> items;
  explicit ListObject(std::vector<T> values) : items(std::move(values)) {}
};
struct StringObject final : ValueObject {
  std::string text;
  explicit StringObject(std::string value) : text(std::move(value)) {}
};
struct ComplexObject final : ValueObject {
  std::complex<double> value;
  explicit ComplexObject(std::complex<double> v) : value(v) {}
};

class Value {
 public:
  Value() = default;  // None
  Value(bool v) : tag_(ValueTag::Bool) { data_.integer = v; }
  Value(int64_t v) : tag_(ValueTag::Int) { data_.integer = v; }
  Value(double v) : tag_(ValueTag::Double) { data_.real = v; }
  Value(DType v) : tag_(ValueTag::DType) { data_.integer = static_cast<int64_t>(v); }
  Value(Device v) : tag_(ValueTag::Device) {
    data_.integer = static_cast<int64_t>(v.type) | (static_cast<int64_t>(v.index) << 8);
  }
  Value(Tensor v) : tag_(v.defined() ? ValueTag::Tensor : ValueTag::None) {
    data_.tensor = Ref<TensorImpl>(v.ref()).detach();
  }
  Value(const Scalar& v);
  Value(std::string v) : Value(ValueTag::String, make_ref<StringObject>(std::move(v))) {}
  Value(std::vector<int64_t> v) : Value(ValueTag::IntList, make_ref<ListObject<int64_t>>(std::move(v))) {}
  Value(std::vector<double> v) : Value(ValueTag::DoubleList, make_ref<ListObject<double>>(std::move(v))) {}
  Value(std::vector<bool> v) : Value(ValueTag::BoolList, make_ref<ListObject<bool>>(std::move(v))) {}
  Value(TensorList v) : Value(ValueTag::TensorList, make_ref<ListObject<Tensor>>(std::move(v))) {}
  static Value borrow(IntList v);
  static Value borrow(std::span<const double> v);
  static Value borrow(std::span<const Tensor> v);
  Value(ValueTag tag, Ref<ValueObject> object) : tag_(tag) { data_.object = object.detach(); }

  Value(const Value& other) noexcept;
  Value(Value&& other) noexcept : tag_(other.tag_), length_(other.length_), data_(other.data_) {
    other.tag_ = ValueTag::None;
  }
  Value& operator=(Value other) noexcept;
  ~Value() { clear(); }

  ValueTag tag() const noexcept { return tag_; }
  bool is_none() const noexcept { return tag_ == ValueTag::None; }

  // Unchecked in release of the tag the schema promised; a wrong tag is an internal error.
  bool to_bool() const;
  int64_t to_int() const;       // Bool and Int
  double to_double() const;     // Bool, Int, Double
  Scalar to_scalar() const;     // Bool, Int, Double, Complex, or a one-element Tensor
  Tensor to_tensor() const;     // None gives an undefined handle
  DType to_dtype() const;
  Device to_device() const;
  std::string to_string() const;
  IntList to_ints() const;                    // IntSpan or IntList; valid while *this lives
  std::span<const double> to_doubles() const;
  TensorList to_tensors() const;              // TensorSpan, TensorList, OptionalTensorList (undefined = None)
  template <class T>
  T* object() const {
    return static_cast<T*>(data_.object);
  }

 private:
  bool owns_object() const noexcept { return tag_ == ValueTag::String || tag_ == ValueTag::Complex || tag_ >= ValueTag::IntList; }
  void clear() noexcept;

  ValueTag tag_ = ValueTag::None;
  uint32_t length_ = 0;  // of a span
  union {
    int64_t integer = 0;
    double real;
    TensorImpl* tensor;
    ValueObject* object;
    const void* span;
  } data_;
};
static_assert(sizeof(Value) == 16);

// The boxed call of an operator: args as the schema lists them, defaults filled in; results in order.
using BoxedFn = void (*)(const Value* args, Value* results);

// One row of the operator table as the runtime sees it (generated).
struct OpRecord {
  const char* name;      // "add"
  const char* overload;  // "Tensor"
  const char* schema;    // "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  const char* doc;
  BoxedFn call;
  uint8_t arg_count, result_count;
  uint8_t variants;      // bit 0: module function, bit 1: Tensor method, bit 2: nn.functional function (module-private name)
};
std::span<const OpRecord> op_records();

}  // namespace weft
