// What is said of values: their types, their texts, which are equal.
#pragma once

#include <cmath>

#include "value.h"

namespace c10 {
inline namespace over_weft {

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

inline intrusive_ptr<ivalue::Object> IValue::toObject() const {
  TORCH_CHECK_TYPE(isObject(), "toObject: expected an object, got ", *type());
  return make_intrusive<ivalue::Object>(*this);
}
inline ivalue::Object IValue::toObjectRef() const { return *toObject(); }
inline IValue::IValue(const intrusive_ptr<ivalue::Object>& object) : IValue(object->value()) {}
// Of containers: by what is in them, where they were not made for a type.
inline TypePtr IValue::type() const {
  if (declared_) return declared_;
  const std::string text = weft_value_type(value_.get());
  if (text.find('[') != std::string::npos) return Type::of(text);
  const auto common = [](const std::vector<IValue>& values) -> TypePtr {
    const TypePtr first = values.at(0).type();
    const bool same = std::all_of(values.begin(), values.end(), [&](const IValue& each) {
      return each.type()->annotation_str() == first->annotation_str();
    });
    return same ? first : TypePtr(AnyType::get());
  };
  if (isTuple()) {
    std::vector<TypePtr> types;
    for (const IValue& each : items()) types.push_back(each.type());
    return TupleType::create(types);
  }
  if ((isList() || isGenericDict()) && detail::length(value_) > 0) {
    if (isList()) return ListType::create(common(to<std::vector<IValue>>()));
    std::vector<IValue> keys, values;
    for (const auto& entry : to<impl::GenericDict>()) {
      keys.push_back(entry.key());
      values.push_back(entry.value());
    }
    return DictType::create(common(keys), common(values));
  }
  return Type::of(text);
}
template <class T>
TypePtr List<T>::elementType() const {
  if (element_) return element_;
  return empty() ? TypePtr(AnyType::get()) : IValue(items_->front()).type();
}
template <class Key, class Value>
TypePtr Dict<Key, Value>::keyType() const {
  if (key_) return key_;
  return empty() ? TypePtr(AnyType::get()) : IValue(entries_->front().key()).type();
}
template <class Key, class Value>
TypePtr Dict<Key, Value>::valueType() const {
  if (value_) return value_;
  return empty() ? TypePtr(AnyType::get()) : IValue(entries_->front().value()).type();
}
inline std::vector<IValue> IValue::items() const {
  TORCH_CHECK_TYPE(isTuple(), "toTuple: expected a tuple, got ", *type());
  return to<std::vector<IValue>>();
}
inline IValue::IValue(const ivalue::Tuple& tuple) : IValue(tuple.elements(), true) {}
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
    : items_(std::make_shared<const TupleElements>(std::make_move_iterator(items.begin()),
                                                   std::make_move_iterator(items.end()))) {}
inline intrusive_ptr<Tuple> Tuple::create(std::vector<IValue> items) {
  return make_intrusive<Tuple>(std::move(items));
}
template <class... Items>
intrusive_ptr<Tuple> Tuple::create(Items&&... items) {
  return create(std::vector<IValue>{IValue(std::forward<Items>(items))...});
}
inline const TupleElements& Tuple::elements() const { return *items_; }
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
