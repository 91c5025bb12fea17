// Value: what boxed operators take and give. A tagged union of 16 bytes.
//
// Spans are borrowed: they are only good for the duration of one call (the Python binder builds its
// arguments on the stack). Lists that live longer are owned objects.
//
// Lists, dicts and class instances are shared by reference, as in Python: a copied Value is the
// same list. They are counted, never traced: objects that refer to themselves through each other
// are not freed. Two threads may read one container, but not while a third changes it.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"

namespace weft {

enum class ValueTag : uint8_t {
  None,
  Bool,
  Int,
  Double,
  Complex,
  Tensor,
  String,
  Device,
  DType,
  IntSpan,     // borrowed const int64_t*
  DoubleSpan,  // borrowed const double*
  TensorSpan,  // borrowed const Tensor*
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
  List,    // of anything else: Value by Value (list.h)
  Dict,    // dict.h
  Tuple,   // tuple.h
  Enum,    // a member of an enumeration (object.h)
  Future,  // future.h
  Generator,
  Object,  // an instance of a class (object.h)
};

// An owned list or object inside a Value.
struct ValueObject : RefCounted {
  virtual ~ValueObject() = default;
  // Frees a chain of any length in bounded stack: what lies deep is freed after what holds it.
  static void destroy(ValueObject* object);
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
struct GeneratorValue final : ValueObject {
  Ref<Generator> generator;
  explicit GeneratorValue(Ref<Generator> value) : generator(std::move(value)) {}
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
  Value(Tensor v) noexcept {
    if (!v.defined()) return;
    tag_ = ValueTag::Tensor;
    new (&data_.tensor) Tensor(std::move(v));
  }
  Value(const Scalar& v);
  Value(std::string v) : Value(ValueTag::String, make_ref<StringObject>(std::move(v))) {}
  Value(std::vector<int64_t> v)
      : Value(ValueTag::IntList, make_ref<ListObject<int64_t>>(std::move(v))) {}
  Value(std::vector<double> v)
      : Value(ValueTag::DoubleList, make_ref<ListObject<double>>(std::move(v))) {}
  Value(std::complex<double> v) : Value(ValueTag::Complex, make_ref<ComplexObject>(v)) {}
  Value(std::vector<bool> v)
      : Value(ValueTag::BoolList, make_ref<ListObject<bool>>(std::move(v))) {}
  Value(TensorList v) : Value(ValueTag::TensorList, make_ref<ListObject<Tensor>>(std::move(v))) {}
  Value(Ref<Generator> v) : tag_(v ? ValueTag::Generator : ValueTag::None) {
    if (v) data_.object = Ref<ValueObject>(make_ref<GeneratorValue>(std::move(v))).detach();
  }
  static Value borrow(IntList v);
  static Value borrow(std::span<const double> v);
  static Value borrow(std::span<const Tensor> v);
  Value(std::vector<Value> v);  // a List
  Value(ValueTag tag, Ref<ValueObject> object) : tag_(tag) { data_.object = object.detach(); }

  Value(const Value& other) noexcept : tag_(other.tag_), length_(other.length_) {
    std::memcpy(static_cast<void*>(&data_), &other.data_, sizeof(data_));
    if (owns()) retain();
  }
  Value(Value&& other) noexcept { take(other); }
  Value& operator=(Value&& other) noexcept {
    if (this == &other) return *this;
    if (owns()) release();
    take(other);
    return *this;
  }
  Value& operator=(const Value& other) noexcept { return *this = Value(other); }
  ~Value() {
    if (owns()) release();
  }

  ValueTag tag() const noexcept { return tag_; }
  bool is_none() const noexcept { return tag_ == ValueTag::None; }

  // For code that knows the tag from the program's types: no check at all.
  int64_t int_unchecked() const noexcept { return data_.integer; }
  double double_unchecked() const noexcept { return data_.real; }
  bool bool_unchecked() const noexcept { return data_.integer != 0; }

  // TypeError for another tag: the types of a program promise tags, but its code may lie.
  bool to_bool() const;
  int64_t to_int() const;    // Bool and Int
  double to_double() const;  // Bool, Int, Double
  Scalar to_scalar() const;  // Bool, Int, Double, Complex, or a one-element Tensor
  // None gives an undefined handle. Valid while *this lives and is not assigned to.
  const Tensor& to_tensor() const {
    return tag_ == ValueTag::Tensor ? data_.tensor : undefined_tensor();
  }
  // Moves the tensor out; None is left.
  Tensor take_tensor() noexcept {
    if (tag_ != ValueTag::Tensor) return {};
    tag_ = ValueTag::None;
    Tensor tensor = std::move(data_.tensor);
    return tensor;
  }
  DType to_dtype() const;
  Device to_device() const;
  std::string to_string() const { return text(); }
  const std::string& text() const;       // valid while *this lives
  Ref<Generator> to_generator() const {  // None gives null
    return is_none() ? Ref<Generator>() : object<GeneratorValue>()->generator;
  }
  IntList to_ints() const;  // IntSpan or IntList; valid while *this lives
  std::span<const double> to_doubles() const;
  TensorList to_tensors() const;  // TensorSpan, TensorList, OptionalTensorList (undefined = None)
  [[noreturn]] void fail_tag(const char* wanted) const;
  template <class T>
  T* object() const {
    return static_cast<T*>(data_.object);
  }

 private:
  // Whether the value is counted: a tensor, or a ValueObject.
  bool owns() const noexcept {
    constexpr auto bit = [](ValueTag tag) { return uint32_t{1} << static_cast<uint32_t>(tag); };
    constexpr uint32_t owning = bit(ValueTag::Tensor) | bit(ValueTag::String) |
                                bit(ValueTag::Complex) | ~(bit(ValueTag::IntList) - 1);
    return (owning >> static_cast<uint32_t>(tag_)) & 1;
  }
  void retain() const noexcept;
  void release() noexcept;  // leaves the tag as it is
  // Handles move bit by bit; `other` is None afterwards.
  void take(Value& other) noexcept {
    tag_ = std::exchange(other.tag_, ValueTag::None);
    length_ = other.length_;
    std::memcpy(static_cast<void*>(&data_), &other.data_, sizeof(data_));
  }
  const Tensor& undefined_tensor() const;  // TypeError unless *this is None

  ValueTag tag_ = ValueTag::None;
  uint32_t length_ = 0;  // of a span
  union Data {
    Data() : integer(0) {}
    ~Data() {}
    int64_t integer;
    double real;
    Tensor tensor;
    ValueObject* object;
    const void* span;
  } data_;
};
static_assert(sizeof(Value) == 16);

}  // namespace weft
