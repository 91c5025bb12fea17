// Python objects to values, by the declared types.
#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/nesting.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::py {
namespace {

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// A Python or NumPy integer; neither a bool nor a tensor.
bool to_plain_int(PyObject* object, Value& out) {
  int64_t value;
  if (is_tensor(object) || !to_int(object, &value)) return false;
  out = Value(value);
  return true;
}

// A dtype where an int is declared: programs of archives know dtypes by TorchScript's numbers.
bool to_dtype_number(PyObject* object, Value& out) {
  DType dtype;
  if (PyType_Check(object) || !to_dtype(object, &dtype)) return false;
  out = Value(int64_t{info_of(dtype).number});
  return true;
}

bool to_plain_double(PyObject* object, Value& out) {
  double value;
  if (PyBool_Check(object) || is_tensor(object) || !to_double(object, &value)) return false;
  out = Value(value);
  return true;
}

// A tensor of one element where a number is declared.
bool to_element(TypeKind kind, PyObject* object, Value& out) {
  if (!is_tensor(object) || unwrap(object).numel() != 1) return false;
  const Scalar element = unwrap(object).item();
  if (element.is_complex() && kind != TypeKind::Complex) return false;
  switch (kind) {
    case TypeKind::Int:
      out = Value(element.to_int());
      return true;
    case TypeKind::Float:
      out = Value(element.to_double());
      return true;
    case TypeKind::Bool:
      out = Value(element.to_bool());
      return true;
    default:
      out = Value(element.to_complex());
      return true;
  }
}

bool to_number(PyObject* object, Value& out) {
  Scalar scalar;
  if (!to_scalar(object, &scalar)) return false;
  out = Value(scalar);
  return true;
}

template <class T>
bool to_number_list(const Type& element, PyObject* object, Value& out) {
  const Items given(object);
  std::vector<T> items(given.size());
  Value item;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!to_value(element, given[i], item)) return false;
    if constexpr (std::is_same_v<T, Tensor>) {
      items[i] = item.take_tensor();
    } else if constexpr (std::is_same_v<T, double>) {
      items[i] = item.double_unchecked();
    } else {
      items[i] = static_cast<T>(item.int_unchecked());
    }
  }
  out = Value(std::move(items));
  return true;
}

bool to_list(const Type& element, PyObject* object, Value& out) {
  if (PyRange_Check(object)) {
    const Object items = Object::checked(PySequence_List(object));
    return to_list(element, items.get(), out);
  }
  if (!is_sequence(object)) return false;
  const Nesting nesting;
  switch (element.list_tag()) {
    case ValueTag::IntList:
      return to_number_list<int64_t>(element, object, out);
    case ValueTag::DoubleList:
      return to_number_list<double>(element, object, out);
    case ValueTag::BoolList:
      return to_number_list<bool>(element, object, out);
    case ValueTag::TensorList:
      return to_number_list<Tensor>(element, object, out);
    default:
      break;
  }
  const Items given(object);
  std::vector<Value> items(given.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!to_value(element, given[i], items[i])) return false;
  }
  out = make_list(element.list_tag(), items.data(), items.size());
  return true;
}

bool to_dict(const Type& type, PyObject* object, Value& out) {
  if (!PyDict_Check(object)) return false;
  const Nesting nesting;
  auto dict = make_ref<DictObject>();
  dict->value_list = type.children[1]->list_tag();
  Py_ssize_t at = 0;
  PyObject *key, *item;
  const ObjectLock lock(object);
  while (PyDict_Next(object, &at, &key, &item)) {
    Value key_value, item_value;
    if (!to_value(*type.children[0], key, key_value)) return false;
    if (!to_value(*type.children[1], item, item_value)) return false;
    dict->set(key_value, std::move(item_value));
  }
  out = make_dict(std::move(dict));
  return true;
}

bool to_tuple(const Type& type, PyObject* object, Value& out) {
  if (!is_sequence(object)) return false;
  const Items given(object);
  if (given.size() != type.children.size()) return false;
  const Nesting nesting;
  std::vector<Value> items(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    if (!to_value(*type.children[i], given[i], items[i])) return false;
  }
  out = make_tuple_value(std::move(items), type.tuple);
  return true;
}

// A list or dict that script() made: it is passed by reference.
bool to_shared(const Type& type, PyObject* object, Value& out) {
  const Value* shared = shared_container(object);
  if (!shared || !matches(type, *shared)) return false;
  out = *shared;
  return true;
}

bool to_enum(const Type& type, PyObject* object, Value& out) {
  PyObject* known = registered_type(type.name);
  if (!known || reinterpret_cast<PyObject*>(Py_TYPE(object)) != known) return false;
  const Object name = Object::checked(PyObject_GetAttrString(object, "name"));
  const std::string_view text = utf8(name.get());
  const std::vector<std::string>& members = type.enumeration->members;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] != text) continue;
    out = make_enum(type.enumeration, i);
    return true;
  }
  return false;
}

bool to_object(const Type& type, PyObject* object, Value& out) {
  Ref<ClassObject> instance = class_object(object);
  if (!instance) return false;
  Value value(ValueTag::Object, std::move(instance));
  if (!matches(type, value)) return false;
  out = std::move(value);
  return true;
}

template <class T>
bool to_plain(bool (*convert)(PyObject*, T*), PyObject* object, Value& out) {
  T value;
  if (!convert(object, &value)) return false;
  out = Value(value);
  return true;
}

bool to_future(PyObject* object, Value& out) {
  JitFuture* future = nullptr;
  if (!nanobind::try_cast(nanobind::handle(object), future) || !future) return false;
  out = future->future;
  return true;
}

bool is_number(TypeKind kind) {
  return kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool ||
         kind == TypeKind::Complex;
}

// A member that fits as it is; an int for a float only if no other does, a tensor for no number.
bool to_union(const Type& type, PyObject* object, Value& out) {
  const bool tensor = is_tensor(object);
  for (const Ref<Type>& member : type.children) {
    if (member->kind == TypeKind::Float && !PyFloat_Check(object)) continue;
    if (member->kind == TypeKind::Int && !tensor && !PyIndex_Check(object)) continue;  // a dtype
    if (tensor && is_number(member->kind)) continue;
    if (to_value(*member, object, out)) return true;
  }
  if (tensor) return false;
  for (const Ref<Type>& member : type.children) {
    if (member->kind == TypeKind::Float && to_value(*member, object, out)) return true;
  }
  return false;
}

// The elements' common kind decides how a list of unknown type is stored.
ValueTag common_tag(const std::vector<Value>& items) {
  if (items.empty()) return ValueTag::List;
  const ValueTag first = items[0].tag();
  for (const Value& item : items) {
    if (item.tag() != first) return ValueTag::List;
  }
  return list_tag_of(first);
}

bool is_enum_member(PyObject* object) {
  if (Py_TYPE(Py_TYPE(object)) == &PyType_Type) return false;
  const Object module = Object::checked(PyImport_ImportModule("enum"));
  const Object base = Object::checked(PyObject_GetAttrString(module.get(), "Enum"));
  return PyObject_IsInstance(object, base.get()) == 1;
}

// A member of an enumeration that the program may not know: defined as the compiler would.
bool to_any_enum(PyObject* object, Value& out) {
  const Object module = Object::checked(PyImport_ImportModule("weft.jit.frontend"));
  const Object known = Object::checked(PyObject_CallMethod(
      module.get(), "enum_type", "OO", reinterpret_cast<PyObject*>(Py_TYPE(object)), Py_None));
  const Object name = Object::checked(PyObject_GetAttrString(known.get(), "name"));
  const Object members = Object::checked(PyObject_GetAttrString(known.get(), "members"));
  auto type = make_ref<Type>();
  auto def = make_ref<EnumDef>();
  def->name = type->name = utf8(name.get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(members.get()); ++i) {
    PyObject* pair = PyTuple_GET_ITEM(members.get(), i);
    def->members.emplace_back(utf8(PyTuple_GET_ITEM(pair, 0)));
    if (!to_any_value(PyTuple_GET_ITEM(pair, 1), def->values.emplace_back())) return false;
  }
  type->enumeration = std::move(def);
  return to_enum(*type, object, out);
}

bool to_any_items(PyObject* object, std::vector<Value>& items) {
  const Nesting nesting;
  const Items given(object);
  items.resize(given.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!to_any_value(given[i], items[i])) return false;
  }
  return true;
}

bool to_any_dict(PyObject* object, Value& out) {
  const Nesting nesting;
  auto dict = make_ref<DictObject>();
  std::vector<Value> items;
  Py_ssize_t at = 0;
  PyObject *key, *item;
  const ObjectLock lock(object);
  while (PyDict_Next(object, &at, &key, &item)) {
    Value key_value, item_value;
    if (!to_any_value(key, key_value) || !to_any_value(item, item_value)) return false;
    items.push_back(item_value);
    dict->set(key_value, std::move(item_value));
  }
  dict->value_list = common_tag(items);
  out = make_dict(std::move(dict));
  return true;
}

}  // namespace

void refuse_class(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("_refused_in_programs");
  PyObject* const why = _PyType_Lookup(Py_TYPE(object), name);  // borrowed
  const char* const text = why && PyUnicode_Check(why) ? PyUnicode_AsUTF8(why) : nullptr;
  WEFT_CHECK_AS(NotImplemented, !text, "expected a plain tensor in a program, got ", text);
}

bool to_any_value(PyObject* object, Value& out) {
  if (object == Py_None) {
    out = Value();
    return true;
  }
  if (is_enum_member(object)) return to_any_enum(object, out);
  if (is_tensor(object)) {
    out = Value(program_tensor(object));
    return true;
  }
  if (PyUnicode_Check(object)) {
    out = Value(program_text(object));
    return true;
  }
  if (is_sequence(object)) {
    std::vector<Value> items;
    if (!to_any_items(object, items)) return false;
    out = PyTuple_Check(object) ? make_tuple_value(std::move(items))
                                : make_list(common_tag(items), items.data(), items.size());
    return true;
  }
  if (PyDict_Check(object)) return to_any_dict(object, out);
  if (Ref<ClassObject> instance = class_object(object)) {
    out = Value(ValueTag::Object, std::move(instance));
    return true;
  }
  if (const Value* shared = shared_container(object)) {
    out = *shared;
    return true;
  }
  if (to_number(object, out)) return true;
  DType dtype;
  if (!PyType_Check(object) && to_dtype(object, &dtype)) {
    out = Value(dtype);
    return true;
  }
  return to_plain<Device>(to_device, object, out) || to_future(object, out);
}

bool to_value(const Type& type, PyObject* object, Value& out) {
  switch (type.kind) {
    case TypeKind::Tensor:
      if (!is_tensor(object)) return false;
      out = Value(program_tensor(object));
      return true;
    case TypeKind::Int:
      return to_plain_int(object, out) || to_element(type.kind, object, out) ||
             to_dtype_number(object, out);
    case TypeKind::Float:
      return to_plain_double(object, out) || to_element(type.kind, object, out);
    case TypeKind::Bool:
      return to_plain<bool>(to_bool, object, out) || to_element(type.kind, object, out);
    case TypeKind::Complex: {
      Scalar scalar;
      if (PyBool_Check(object)) return false;
      if (!to_scalar(object, &scalar)) return to_element(type.kind, object, out);
      out = Value(scalar.to_complex());
      return true;
    }
    case TypeKind::Number:
      return to_number(object, out);
    case TypeKind::Str:
      if (!PyUnicode_Check(object)) return false;
      out = Value(program_text(object));
      return true;
    case TypeKind::None:
      out = Value();
      return object == Py_None;
    case TypeKind::Device:
      return to_plain<Device>(to_device, object, out);
    case TypeKind::DType:
      return to_plain<DType>(to_dtype, object, out);
    case TypeKind::Layout:
      return to_plain<int64_t>(to_layout, object, out);
    case TypeKind::MemoryFormat:
      return to_plain<int64_t>(to_memory_format, object, out);
    case TypeKind::Generator: {
      Ref<Generator> generator;
      if (!to_generator(object, &generator)) return false;
      out = Value(std::move(generator));
      return true;
    }
    case TypeKind::Any:
      return to_any_value(object, out);
    case TypeKind::AnyList:
    case TypeKind::AnyTuple:
    case TypeKind::AnyDict:
      return false;  // only isinstance asks for them
    case TypeKind::List:
      return to_list(*type.children[0], object, out) || to_shared(type, object, out);
    case TypeKind::Dict:
      return to_dict(type, object, out) || to_shared(type, object, out);
    case TypeKind::Tuple:
      return to_tuple(type, object, out);
    case TypeKind::Optional:
      if (object != Py_None) return to_value(*type.children[0], object, out);
      out = Value();
      return true;
    case TypeKind::Union:
      return to_union(type, object, out);
    case TypeKind::Future:
      return to_future(object, out);
    case TypeKind::Class:
    case TypeKind::Interface:
      return to_object(type, object, out);
    case TypeKind::Enum:
      return to_enum(type, object, out);
  }
  return false;
}

std::string describe_object(PyObject* object) {
  if (object == Py_None) return "None";
  Value value;
  if (is_sequence(object) && to_any_value(object, value)) return weft::type_name(value);
  return std::string(short_type_name(object));
}

}  // namespace weft::py
