// c10::IValue: what programs take and give, over a value of weft.h.
#pragma once

#include <unordered_map>

#include "print.h"

namespace torch::jit {
inline namespace over_weft {
class Module;
struct CompilationUnit;
}  // namespace over_weft
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

struct TupleElements;
// The items of a tuple.
class Tuple final {
 public:
  explicit Tuple(std::vector<IValue> items);
  static intrusive_ptr<Tuple> create(std::vector<IValue> items);
  template <class... Items>
  static intrusive_ptr<Tuple> create(Items&&... items);
  const TupleElements& elements() const;
  size_t size() const;

 private:
  std::shared_ptr<const TupleElements> items_;
};

class Object;
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

class IValue final {
 public:
  IValue() : value_(detail::none()) {}
  IValue(std::nullopt_t) : IValue() {}
  explicit IValue(detail::Shared value) : value_(std::move(value)) {
    if (isTensor()) tensor_ = to<at::Tensor>();
  }
  IValue(const at::Tensor& tensor) : value_(detail::box(tensor)), tensor_(tensor) {}
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
  IValue(const List<T>& items) : value_(detail::box(items)) {
    if (items.declared_type()) declared_ = ListType::create(items.declared_type());
  }
  template <class Key, class Value>
  IValue(const Dict<Key, Value>& dict) : value_(detail::box(dict)) {
    if (dict.declared_key_type() && dict.declared_value_type()) {
      declared_ = DictType::create(dict.declared_key_type(), dict.declared_value_type());
    }
  }
  IValue(const intrusive_ptr<ivalue::ConstantString>& text) : IValue(text->text) {}
  IValue(const Generator& generator) : value_(detail::box(generator)) {}
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
  IValue(const ivalue::Tuple& tuple);
  IValue(const intrusive_ptr<ivalue::Tuple>& tuple) : IValue(*tuple) {}
  IValue(const torch::jit::Module& module);
  IValue(const intrusive_ptr<ivalue::Object>& object);

  const detail::Shared& shared() const { return value_; }
  weft_kind kind() const { return weft_value_kind(value_.get()); }
  TypePtr type() const;
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
  bool isComplexDoubleList() const { return is_list_of("complex"); }
  bool isPtrType() const {
    return isTensor() || isString() || isList() || isTuple() || isGenericDict() || isObject();
  }
#define WEFT_TORCH_NEVER(name) \
  bool name() const { return false; }
  WEFT_TORCH_NEVER(isBlob)
  WEFT_TORCH_NEVER(isCapsule)
  WEFT_TORCH_NEVER(isCustomClass)
  WEFT_TORCH_NEVER(isEnum)
  WEFT_TORCH_NEVER(isFuture)
  WEFT_TORCH_NEVER(isGenerator)
  WEFT_TORCH_NEVER(isPyObject)
  WEFT_TORCH_NEVER(isQuantizer)
  WEFT_TORCH_NEVER(isRRef)
  WEFT_TORCH_NEVER(isStorage)
  WEFT_TORCH_NEVER(isStream)
#undef WEFT_TORCH_NEVER
  bool isDevice() const {
    const char* text = nullptr;
    return kind() == WEFT_KIND_OTHER && weft_value_get_device(value_.get(), &text) == WEFT_OK;
  }

  const at::Tensor& toTensor() const& {
    TORCH_CHECK_TYPE(isTensor() || isNone(), "toTensor: expected a tensor, got ", *type());
    return tensor_;
  }
  at::Tensor toTensor() && { return std::as_const(*this).toTensor(); }
  bool toBool() const { return to<bool>(); }
  int64_t toInt() const { return to<int64_t>(); }
  double toDouble() const { return to<double>(); }
  std::complex<double> toComplexDouble() const { return to<std::complex<double>>(); }
  Scalar toScalar() const { return to<Scalar>(); }
  ScalarType toScalarType() const { return to<ScalarType>(); }
  Device toDevice() const {
    const char* text = nullptr;
    detail::check(weft_value_get_device(value_.get(), &text));
    return std::string(text);
  }
  // References are good for as long as the value.
  const std::string& toStringRef() const {
    return kept_->once(kept_->text,
                       [&] { return std::make_shared<std::string>(to<std::string>()); });
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
  impl::GenericList toList() const {
    const auto type = this->type()->cast<ListType>();
    const auto inner = type ? type->containedTypes() : std::vector<TypePtr>();
    impl::GenericList list(inner.empty() ? nullptr : inner[0]);
    for (const IValue& each : to<std::vector<IValue>>()) list.push_back(each);
    return list;
  }
  std::vector<IValue> toListRef() const { return to<std::vector<IValue>>(); }
  impl::GenericDict toGenericDict() const {
    const auto type = this->type()->cast<DictType>();
    const auto inner = type ? type->containedTypes() : std::vector<TypePtr>();
    const bool known = inner.size() == 2;
    impl::GenericDict dict(known ? inner[0] : nullptr, known ? inner[1] : nullptr);
    for (const auto& entry : to<impl::GenericDict>()) dict.insert(entry.key(), entry.value());
    return dict;
  }
  intrusive_ptr<ivalue::Tuple> toTuple() const {
    toTupleRef();
    return kept_->tuple;
  }
  const ivalue::Tuple& toTupleRef() const {
    return kept_->once(kept_->tuple, [&] { return make_intrusive<ivalue::Tuple>(items()); });
  }
  Generator toGenerator() const {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "toGenerator: expected a value of weft, got ", *type());
  }
  intrusive_ptr<ivalue::Object> toObject() const;
  ivalue::Object toObjectRef() const;
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
  // An empty list is one of any type, unless it was made as one of some type.
  bool is_list_of(const char* element) const {
    if (!isList()) return false;
    if (declared_) return declared_->containedType(0)->annotation_str() == element;
    if (detail::length(value_) == 0) return true;
    return IValue(detail::item(value_, 0)).type()->str() == element;
  }

  // What references are given to, made when one is asked for.
  struct Kept {
    std::mutex mutex;
    std::shared_ptr<std::string> text;
    intrusive_ptr<ivalue::Tuple> tuple;

    template <class T, class Make>
    const T& once(std::shared_ptr<T>& place, Make&& make) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!place) place = make();
      return *place;
    }
  };

  detail::Shared value_;
  at::Tensor tensor_;
  TypePtr declared_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  std::shared_ptr<torch::jit::Module> module_;
};

namespace ivalue {

struct TupleElements final : std::vector<IValue> {
  using vector::vector;
  const std::vector<IValue>& vec() const& { return *this; }
  std::vector<IValue> vec() && { return std::move(*this); }
};

// An object of a class of the program, or a module: its type and its attributes.
class Object final {
 public:
  explicit Object(IValue value) : value_(std::move(value)) {}
  TypePtr type() const { return value_.type(); }
  std::string name() const { return type()->str(); }
  IValue getAttr(const std::string& name) const {
    return IValue(detail::made([&](weft_value** out) {
      return weft_value_attribute(value_.shared().get(), name.c_str(), out);
    }));
  }
  void setAttr(const std::string& name, const IValue&) const {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "setAttr: expected an object of the host's own to set '",
                                name, "' of, got one of a program");
  }
  std::shared_ptr<torch::jit::CompilationUnit> compilation_unit() const;
  const IValue& value() const { return value_; }

 private:
  IValue value_;
};

}  // namespace ivalue

}  // namespace over_weft
}  // namespace c10
