// Values to Python objects, and the Python classes of named tuples and enums.
#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/nesting.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::py {
namespace {

PyObject* from_list(const Value& list) {
  const Nesting nesting;
  const int64_t count = list_len(list);
  Object result = Object::checked(PyList_New(count));
  for (int64_t i = 0; i < count; ++i) {
    PyList_SET_ITEM(result.get(), i, Object::checked(from_value(list_get(list, i))).release());
  }
  return result.release();
}

PyObject* from_dict(const DictObject& dict) {
  const Nesting nesting;
  Object result = Object::checked(PyDict_New());
  dict.for_each([&](const Value& key, const Value& value) {
    const Object name = Object::checked(from_value(Value(key)));
    const Object item = Object::checked(from_value(Value(value)));
    check_status(PyDict_SetItem(result.get(), name.get(), item.get()));
  });
  return result.release();
}

// The registered class of a named tuple, or one like it.
Object tuple_class(const NamedTupleDef& def) {
  if (PyObject* known = registered_type(def.name)) return Object::borrow(known);
  const Object fields = Object::checked(PyList_New(static_cast<Py_ssize_t>(def.fields.size())));
  for (size_t i = 0; i < def.fields.size(); ++i) {
    PyList_SET_ITEM(fields.get(), static_cast<Py_ssize_t>(i), from_text(def.fields[i]));
  }
  const Object module = Object::checked(PyImport_ImportModule("collections"));
  const std::string name(unqualified(def.name));
  Object made = Object::checked(
      PyObject_CallMethod(module.get(), "namedtuple", "sO", name.c_str(), fields.get()));
  check_status(PyDict_SetItemString(jit_types(), def.name.c_str(), made.get()));
  return made;
}

PyObject* from_tuple(const TupleObject& tuple) {
  const Nesting nesting;
  Object items = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(tuple.items.size())));
  for (size_t i = 0; i < tuple.items.size(); ++i) {
    PyTuple_SET_ITEM(items.get(), static_cast<Py_ssize_t>(i),
                     Object::checked(from_value(Value(tuple.items[i]))).release());
  }
  if (!tuple.def) return items.release();
  // Its fields are what they are: a __new__ of its own is not asked.
  const Object type = tuple_class(*tuple.def);
  const Object argument = Object::checked(PyTuple_Pack(1, items.get()));
  auto* cls = reinterpret_cast<PyTypeObject*>(type.get());
  return Object::checked(PyTuple_Type.tp_new(cls, argument.get(), nullptr)).release();
}

// The Python member if its class is known, else what it stands for.
PyObject* from_enum(const EnumObject& member) {
  PyObject* known = registered_type(member.def->name);
  if (!known) return from_value(Value(member.def->values[member.index]));
  return Object::checked(PyObject_GetAttrString(known, member.def->members[member.index].c_str()))
      .release();
}

}  // namespace

PyObject* from_value(Value&& value) {
  switch (value.tag()) {
    case ValueTag::Tensor:
      return wrap(value.take_tensor());
    case ValueTag::None:
      return new_ref(Py_None);
    case ValueTag::Bool:
      return PyBool_FromLong(value.to_bool());
    case ValueTag::Int:
      return Object::checked(PyLong_FromLongLong(value.to_int())).release();
    case ValueTag::Double:
      return Object::checked(PyFloat_FromDouble(value.to_double())).release();
    case ValueTag::Complex:
      return from_scalar(value.to_scalar());
    case ValueTag::String:
      return from_text(value.text());
    case ValueTag::Device:
      return wrap_device(value.to_device());
    case ValueTag::DType:
      return new_ref(dtype_object(value.to_dtype()));
    case ValueTag::IntList:
    case ValueTag::DoubleList:
    case ValueTag::BoolList:
    case ValueTag::TensorList:
    case ValueTag::OptionalTensorList:
    case ValueTag::List:
      return from_list(value);
    case ValueTag::Dict:
      return from_dict(*value.object<DictObject>());
    case ValueTag::Tuple:
      return from_tuple(*value.object<TupleObject>());
    case ValueTag::Enum:
      return from_enum(*value.object<EnumObject>());
    case ValueTag::Future:
      return wrap_future(std::move(value));
    case ValueTag::Object:
      return wrap_object(Ref<ClassObject>(value.object<ClassObject>()));
    default:
      break;
  }
  fail(ErrorKind::Type,
       weft::str("expected a value that Python can have, got ", weft::type_name(value)));
}

PyObject* from_text(const std::string& text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  // Surrogates alone, as of chr(0xd800), are characters of a Python string.
  if (PyObject* const found = PyUnicode_DecodeUTF8(text.data(), size, "surrogatepass"))
    return found;
  PyErr_Clear();
  return Object::checked(PyUnicode_DecodeUTF8(text.data(), size, "replace")).release();
}

PyObject* jit_types() {
  static PyObject* types = Object::checked(PyDict_New()).release();
  return types;
}

PyObject* registered_type(const std::string& name) {
  PyObject* const found = PyDict_GetItemString(jit_types(), name.c_str());
  if (found == nullptr || !PyWeakref_CheckRef(found)) return found;
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* type = nullptr;
  if (PyWeakref_GetRef(found, &type) != 1) return nullptr;
  Py_DECREF(type);  // borrowed from those who keep it alive
  return type;
#else
  PyObject* const type = PyWeakref_GET_OBJECT(found);
  return type == Py_None ? nullptr : type;
#endif
}

}  // namespace weft::py
