// c10::IValue: what programs take and give, over a value of weft.h.
#pragma once

#include <cmath>
#include <unordered_map>

#include "print.h"

namespace torch::jit {
inline namespace over_weft {
class Module;
}
}  // namespace torch::jit

namespace c10 {
inline namespace over_weft {

class IValue;
template <class T>
using intrusive_ptr = std::shared_ptr<T>;
template <class T, class... Args>
intrusive_ptr<T> make_intrusive(Args&&... args) {
  return std::make_shared<T>(std::forward<Args>(args)...);
}

namespace ivalue {

// The items of a tuple.
class Tuple final {
 public:
  explicit Tuple(std::vector<IValue> items);
  static intrusive_ptr<Tuple> create(std::vector<IValue> items);
  template <class... Items>
  static intrusive_ptr<Tuple> create(Items&&... items);
  const std::vector<IValue>& elements() const;
  size_t size() const;

 private:
  std::shared_ptr<const std::vector<IValue>> items_;
};

struct ConstantString final {
  std::string text;
  const std::string& string() const { return text; }
  std::string_view string_view() const { return text; }
};

}  // namespace ivalue

namespace detail {
template <>
struct Unbox<IValue>;
Shared box(const IValue& value);
}  // namespace detail

namespace impl {
using GenericList = List<IValue>;
using GenericDict = Dict<IValue, IValue>;
template <class T>
List<T> toTypedList(const GenericList& list);
}  // namespace impl

enum class TypeKind {
  TensorType,
  TupleType,
  ListType,
  DictType,
  IntType,
  FloatType,
  ComplexType,
  BoolType,
  StringType,
  NumberType,
  NoneType,
  OptionalType,
  DeviceObjType,
  ClassType,
};

// The name of a value's type: "Tensor", "List[int]", "__torch__.Net".
class Type final {
 public:
  TypeKind kind() const {
    static const std::pair<const char*, TypeKind> known[] = {
        {"Tensor", TypeKind::TensorType},    {"Tuple", TypeKind::TupleType},
        {"List", TypeKind::ListType},        {"Dict", TypeKind::DictType},
        {"int", TypeKind::IntType},          {"float", TypeKind::FloatType},
        {"complex", TypeKind::ComplexType},  {"bool", TypeKind::BoolType},
        {"str", TypeKind::StringType},       {"Scalar", TypeKind::NumberType},
        {"NoneType", TypeKind::NoneType},    {"Optional", TypeKind::OptionalType},
        {"Device", TypeKind::DeviceObjType},
    };
    const std::string_view name = std::string_view(text_).substr(0, text_.find('['));
    for (const auto& [text, kind] : known) {
      if (name == text) return kind;
    }
    return TypeKind::ClassType;
  }
  explicit Type(std::string text) : text_(std::move(text)) {}
  const std::string& str() const { return text_; }
  const std::string& repr_str() const { return text_; }
  const std::string& annotation_str() const { return text_; }
  friend std::ostream& operator<<(std::ostream& out, const Type& type) { return out << type.text_; }
  friend bool operator==(const Type& a, const Type& b) { return a.text_ == b.text_; }

 private:
  std::string text_;
};
using TypePtr = std::shared_ptr<Type>;

class IValue final {
 public:
  IValue() : value_(detail::none()) {}
  IValue(std::nullopt_t) : IValue() {}
  explicit IValue(detail::Shared value) : value_(std::move(value)) {}
  IValue(const at::Tensor& tensor) : value_(detail::box(tensor)) {}
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  IValue(T number) : value_(detail::box(Scalar(number))) {}
  template <class T>
  IValue(std::complex<T> number) : value_(detail::box(std::complex<double>(number))) {}
  IValue(const Scalar& scalar) : value_(detail::box(scalar)) {}
  IValue(ScalarType type) : value_(detail::box(type)) {}
  IValue(const Device& device) : value_(detail::box(device)) {}
  IValue(std::string_view text) : value_(detail::box(text)) {}
  IValue(const std::string& text) : IValue(std::string_view(text)) {}
  IValue(const char* text) : IValue(std::string_view(text)) {}
  template <class T>
  IValue(const std::vector<T>& items) : value_(boxed_list(items)) {}
  template <class T>
  IValue(ArrayRef<T> items) : value_(detail::box(items)) {}
  template <class T>
  IValue(const List<T>& items) : value_(detail::box(items)) {}
  template <class Key, class Value>
  IValue(const Dict<Key, Value>& dict) : value_(detail::box(dict)) {}
  template <class Key, class Value>
  IValue(const std::unordered_map<Key, Value>& map) : value_(boxed_map(map)) {}
  template <class Key, class Value>
  IValue(const std::map<Key, Value>& map) : value_(boxed_map(map)) {}
  template <class T>
  IValue(const std::optional<T>& value) : value_(detail::box(value)) {}
  template <class... Parts>
  IValue(const std::tuple<Parts...>& parts)
      : IValue(std::apply([](const auto&... each) { return std::vector<IValue>{IValue(each)...}; },
                          parts),
               true) {}
  IValue(const ivalue::Tuple& tuple) : IValue(tuple.elements(), true) {}
  IValue(const intrusive_ptr<ivalue::Tuple>& tuple) : IValue(*tuple) {}
  IValue(const torch::jit::Module& module);

  const detail::Shared& shared() const { return value_; }
  weft_kind kind() const { return weft_value_kind(value_.get()); }
  TypePtr type() const { return std::make_shared<Type>(weft_value_type(value_.get())); }
  std::string tagKind() const;

  bool isNone() const { return kind() == WEFT_KIND_NONE; }
  bool isTensor() const { return kind() == WEFT_KIND_TENSOR; }
  bool isBool() const { return kind() == WEFT_KIND_BOOL; }
  bool isInt() const { return kind() == WEFT_KIND_INT; }
  bool isDouble() const { return kind() == WEFT_KIND_FLOAT; }
  bool isComplexDouble() const { return kind() == WEFT_KIND_COMPLEX; }
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble(); }
  bool isString() const { return kind() == WEFT_KIND_STRING; }
  bool isList() const { return kind() == WEFT_KIND_LIST; }
  bool isTuple() const { return kind() == WEFT_KIND_TUPLE; }
  bool isGenericDict() const { return kind() == WEFT_KIND_DICT; }
  bool isTensorList() const { return is_list_of("Tensor"); }
  bool isIntList() const { return is_list_of("int"); }
  bool isDoubleList() const { return is_list_of("float"); }
  bool isBoolList() const { return is_list_of("bool"); }
  // Objects alone say that they lack an attribute.
  bool isObject() const {
    weft_value* none = nullptr;
    return kind() == WEFT_KIND_OTHER &&
           weft_value_attribute(value_.get(), "", &none) == WEFT_KEY_ERROR;
  }
  bool isModule() const { return isObject(); }
  bool isDevice() const {
    const char* text = nullptr;
    return kind() == WEFT_KIND_OTHER && weft_value_get_device(value_.get(), &text) == WEFT_OK;
  }

  at::Tensor toTensor() const {
    TORCH_CHECK_TYPE(isTensor() || isNone(), "toTensor: expected a tensor, got ", *type());
    return to<at::Tensor>();
  }
  bool toBool() const { return to<bool>(); }
  int64_t toInt() const { return to<int64_t>(); }
  double toDouble() const { return to<double>(); }
  std::complex<double> toComplexDouble() const { return to<std::complex<double>>(); }
  Scalar toScalar() const { return to<Scalar>(); }
  ScalarType toScalarType() const { return to<ScalarType>(); }
  const std::string& toStringRef() const {
    text_ = std::make_shared<std::string>(to<std::string>());
    return *text_;
  }
  std::string_view toStringView() const { return toStringRef(); }
  intrusive_ptr<ivalue::ConstantString> toString() const {
    return make_intrusive<ivalue::ConstantString>(ivalue::ConstantString{to<std::string>()});
  }
  std::vector<at::Tensor> toTensorVector() const { return to<std::vector<at::Tensor>>(); }
  std::vector<int64_t> toIntVector() const { return to<std::vector<int64_t>>(); }
  std::vector<double> toDoubleVector() const { return to<std::vector<double>>(); }
  List<at::Tensor> toTensorList() const { return to<List<at::Tensor>>(); }
  List<int64_t> toIntList() const { return to<List<int64_t>>(); }
  List<double> toDoubleList() const { return to<List<double>>(); }
  List<bool> toBoolList() const { return to<List<bool>>(); }
  impl::GenericList toList() const { return to<impl::GenericList>(); }
  std::vector<IValue> toListRef() const { return to<std::vector<IValue>>(); }
  impl::GenericDict toGenericDict() const { return to<impl::GenericDict>(); }
  intrusive_ptr<ivalue::Tuple> toTuple() const { return make_intrusive<ivalue::Tuple>(items()); }
  ivalue::Tuple toTupleRef() const { return ivalue::Tuple(items()); }
  // Of an attribute that Module::attr gave.
  torch::jit::Module toModule() const;
  void set_module(std::shared_ptr<torch::jit::Module> module) { module_ = std::move(module); }
  template <class T>
  T to() const;
  template <class T>
  std::optional<T> toOptional() const {
    return to<std::optional<T>>();
  }

 private:
  IValue(const std::vector<IValue>& items, bool /*is a tuple*/);
  template <class T>
  static detail::Shared boxed_list(const std::vector<T>& items) {
    std::vector<detail::Shared> boxed;
    for (const auto& each : items) boxed.push_back(IValue(static_cast<T>(each)).value_);
    return detail::list_of(boxed);
  }
  template <class Map>
  static detail::Shared boxed_map(const Map& map) {
    std::vector<detail::Shared> keys, values;
    for (const auto& [key, value] : map) {
      keys.push_back(IValue(key).value_);
      values.push_back(IValue(value).value_);
    }
    return detail::dict_of(keys, values);
  }
  std::vector<IValue> items() const;
  // An empty list is one of any type.
  bool is_list_of(const char* element) const {
    if (!isList()) return false;
    if (detail::length(value_) == 0) return true;
    return IValue(detail::item(value_, 0)).type()->str() == element;
  }

  detail::Shared value_;
  mutable std::shared_ptr<std::string> text_;  // what references are given to
  std::shared_ptr<torch::jit::Module> module_;
};

std::ostream& operator<<(std::ostream& out, const IValue& value);
bool operator==(const IValue& a, const IValue& b);

namespace detail {

inline Shared box(const IValue& value) { return value.shared(); }
template <>
struct Unbox<IValue> {
  static IValue from(const Shared& value) { return IValue(value); }
};
template <>
struct Unbox<float> {
  static float from(const Shared& value) { return static_cast<float>(unbox<double>(value)); }
};
template <>
struct Unbox<int> {
  static int from(const Shared& value) { return static_cast<int>(unbox<int64_t>(value)); }
};

}  // namespace detail

template <class T>
T IValue::to() const {
  return detail::unbox<T>(value_);
}

inline std::vector<IValue> IValue::items() const {
  TORCH_CHECK_TYPE(isTuple(), "toTuple: expected a tuple, got ", *type());
  return to<std::vector<IValue>>();
}
inline IValue::IValue(const std::vector<IValue>& items, bool) {
  std::vector<const weft_value*> handles;
  for (const IValue& each : items) handles.push_back(each.value_.get());
  value_ = detail::made(
      [&](weft_value** out) { return weft_value_tuple(handles.data(), handles.size(), out); });
}
inline std::string IValue::tagKind() const {
  switch (kind()) {
    case WEFT_KIND_NONE:
      return "None";
    case WEFT_KIND_BOOL:
      return "Bool";
    case WEFT_KIND_INT:
      return "Int";
    case WEFT_KIND_FLOAT:
      return "Double";
    case WEFT_KIND_COMPLEX:
      return "ComplexDouble";
    case WEFT_KIND_STRING:
      return "String";
    case WEFT_KIND_TENSOR:
      return "Tensor";
    case WEFT_KIND_LIST:
      return "GenericList";
    case WEFT_KIND_TUPLE:
      return "Tuple";
    case WEFT_KIND_DICT:
      return "GenericDict";
    default:
      return "Object";
  }
}

namespace impl {
template <class T>
List<T> toTypedList(const GenericList& list) {
  List<T> typed;
  for (const IValue& each : list) typed.push_back(each.to<T>());
  return typed;
}
}  // namespace impl

namespace ivalue {
inline Tuple::Tuple(std::vector<IValue> items)
    : items_(std::make_shared<const std::vector<IValue>>(std::move(items))) {}
inline intrusive_ptr<Tuple> Tuple::create(std::vector<IValue> items) {
  return make_intrusive<Tuple>(std::move(items));
}
template <class... Items>
intrusive_ptr<Tuple> Tuple::create(Items&&... items) {
  return create(std::vector<IValue>{IValue(std::forward<Items>(items))...});
}
inline const std::vector<IValue>& Tuple::elements() const { return *items_; }
inline size_t Tuple::size() const { return items_->size(); }
}  // namespace ivalue

inline bool operator==(const IValue& a, const IValue& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case WEFT_KIND_NONE:
      return true;
    case WEFT_KIND_BOOL:
      return a.toBool() == b.toBool();
    case WEFT_KIND_INT:
      return a.toInt() == b.toInt();
    case WEFT_KIND_FLOAT:
      return a.toDouble() == b.toDouble();
    case WEFT_KIND_COMPLEX:
      return a.toComplexDouble() == b.toComplexDouble();
    case WEFT_KIND_STRING:
      return a.to<std::string>() == b.to<std::string>();
    case WEFT_KIND_TENSOR:
      return a.toTensor().is_same(b.toTensor());
    case WEFT_KIND_LIST:
    case WEFT_KIND_TUPLE:
      return a.to<std::vector<IValue>>() == b.to<std::vector<IValue>>();
    default:
      return a.shared() == b.shared();
  }
}

// As TorchScript writes the value.
inline std::ostream& operator<<(std::ostream& out, const IValue& value) {
  const auto listed = [&](const char* open, const char* close) -> std::ostream& {
    out << open;
    const char* between = "";
    for (const IValue& each : value.to<std::vector<IValue>>()) {
      out << between << each;
      between = ", ";
    }
    return out << close;
  };
  switch (value.kind()) {
    case WEFT_KIND_NONE:
      return out << "None";
    case WEFT_KIND_BOOL:
      return out << (value.toBool() ? "True" : "False");
    case WEFT_KIND_INT:
      return out << value.toInt();
    case WEFT_KIND_COMPLEX:
      return out << value.toComplexDouble();
    case WEFT_KIND_STRING:
      return out << value.toStringRef();
    case WEFT_KIND_TENSOR:
      return out << value.toTensor();
    case WEFT_KIND_LIST:
      return listed("[", "]");
    case WEFT_KIND_TUPLE:
      return listed("(", detail::length(value.shared()) == 1 ? ",)" : ")");
    case WEFT_KIND_FLOAT: {
      const double number = value.toDouble();
      out << number;
      if (number == std::trunc(number) && std::abs(number) < 1e6) out << '.';
      return out;
    }
    case WEFT_KIND_DICT: {
      out << '{';
      const char* between = "";
      for (const auto& entry : value.toGenericDict()) {
        out << between << entry.key() << ": " << entry.value();
        between = ", ";
      }
      return out << '}';
    }
    default:
      return out << '<' << *value.type() << " object>";
  }
}

}  // namespace over_weft
}  // namespace c10

namespace torch {
namespace ivalue = c10::ivalue;
namespace jit {
using c10::IValue;
using Stack = std::vector<IValue>;
}  // namespace jit
}  // namespace torch
