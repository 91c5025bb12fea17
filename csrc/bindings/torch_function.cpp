// Who answers for an operator: the state of each thread, and the functions of Python that know the
// order. And functions written in Python that can be overridden as operators can.
#include "bindings/torch_function.h"

#include <algorithm>

#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/trace.h"

namespace weft::py {
namespace {

// What is off in this thread: classes' answers, or modes' as well.
enum Disabled : int { kNone = 0, kClasses = 1, kAll = 2 };
thread_local int disabled = kNone;
thread_local int modes = 0;

PyObject* hook_name = nullptr;  // "__torch_function__"
PyObject* disabled_impl =
    nullptr;  // the __torch_function__ of classes that do not want to be asked
PyObject* answer_function = nullptr;  // (function, args, kwargs)
PyObject* answer_member = nullptr;    // (name, role, args, kwargs)
PyObject* refused_kinds = nullptr;    // (function): names, and a byte for each
PyObject* refuse_argument = nullptr;  // (function, name, value): raises

// The class that was found last not to override. Its tag changes when it does, and is no other's.
// Without a GIL each thread remembers one.
#if WEFT_FREE_THREADED
#define WEFT_EACH_THREAD thread_local
#else
#define WEFT_EACH_THREAD
#endif
WEFT_EACH_THREAD PyTypeObject* plain_type = nullptr;
WEFT_EACH_THREAD unsigned plain_tag = 0;
#undef WEFT_EACH_THREAD

bool class_overrides(PyTypeObject* type) {
  PyObject* found = _PyType_Lookup(type, hook_name);
  if (found && found != disabled_impl) return true;
  if (type->tp_version_tag != 0) {
    plain_type = type;
    plain_tag = type->tp_version_tag;
  }
  return false;
}

PyObject* disabled_torch_function(PyObject*, PyObject* const* args, Py_ssize_t count,
                                  PyObject* names) {
  if (count < 2 || count > 4 || names) {
    PyErr_SetString(PyExc_TypeError,
                    "_disabled_torch_function_impl: expected (func, types, args=(), kwargs=None)");
    return nullptr;
  }
  const int before = std::exchange(disabled, std::max<int>(disabled, kClasses));
  PyObject* result = guarded([&] {
    const Object none = Object::checked(PyTuple_New(0));
    PyObject* named = count > 3 && args[3] != Py_None ? args[3] : nullptr;
    return PyObject_Call(args[0], count > 2 ? args[2] : none.get(), named);
  });
  disabled = before;
  return result;
}

PyObject* set_hooks(PyObject*, PyObject* args) {
  PyObject *function, *member, *kinds, *refuse;
  if (!PyArg_UnpackTuple(args, "_set_torch_function_hooks", 4, 4, &function, &member, &kinds,
                         &refuse))
    return nullptr;
  Py_XSETREF(answer_function, new_ref(function));
  Py_XSETREF(answer_member, new_ref(member));
  Py_XSETREF(refused_kinds, new_ref(kinds));
  Py_XSETREF(refuse_argument, new_ref(refuse));
  Py_RETURN_NONE;
}

PyObject* set_disabled(PyObject*, PyObject* level) {
  const long next = PyLong_AsLong(level);
  if (next == -1 && PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(std::exchange(disabled, std::clamp<int>(next, kNone, kAll)));
}

PyObject* set_modes(PyObject*, PyObject* count) {
  const long next = PyLong_AsLong(count);
  if (next == -1 && PyErr_Occurred()) return nullptr;
  watch_count += static_cast<int>(next) - modes;
  modes = static_cast<int>(next);
  Py_RETURN_NONE;
}

PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(disabled == kNone); }
PyObject* is_all_disabled(PyObject*, PyObject*) { return PyBool_FromLong(disabled == kAll); }
PyObject* stack_length(PyObject*, PyObject*) {
  return PyLong_FromLong(disabled == kAll ? 0 : modes);
}

PyObject* has_any(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (function_mode_asks()) Py_RETURN_TRUE;
  return PyBool_FromLong(std::any_of(args, args + count, may_override));
}
PyObject* has_in(PyObject*, PyObject* items) {
  const Object list =
      Object::steal(PySequence_Fast(items, "has_torch_function: expected a sequence of arguments"));
  if (!list) return nullptr;
  return guarded([&] {
    const Items held(list.get());
    return has_any(nullptr, held.data(), static_cast<Py_ssize_t>(held.size()));
  });
}
PyObject* class_of_object_overrides(PyObject*, PyObject* object) {
  return PyBool_FromLong(Py_TYPE(object) != tensor_type && overrides(object));
}

// ---- functions of Python ----

struct OverridableObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* names;  // of its parameters, and what they may not be; null before the first call
  PyObject* refused;
  PyObject* weakrefs;
};
PyTypeObject* overridable_type = nullptr;
PyTypeObject* bound_type = nullptr;  // of those that a class takes for methods

PyObject* function_of(PyObject* self) {
  return reinterpret_cast<OverridableObject*>(self)->function;
}

// Classes of Python that an argument is of, a bit each; no bit for any other class. What an
// argument may not be has kElements too where the items of a sequence are no floats and bools
// either.
enum Kind : unsigned {
  kBool = 1,
  kInt = 2,
  kFloat = 4,
  kComplex = 8,
  kText = 16,
  kNil = 32,
  kSequence = 64,
  kElements = 128
};

unsigned kind_of(PyObject* value) noexcept {
  const PyTypeObject* type = Py_TYPE(value);
  if (type == tensor_type) return 0;
  if (type == &PyLong_Type) return kInt;
  if (type == &PyBool_Type) return kBool;
  if (type == &PyFloat_Type) return kFloat;
  if (type == &PyTuple_Type || type == &PyList_Type) return kSequence;
  if (value == Py_None) return kNil;
  if (type == &PyUnicode_Type) return kText;
  if (type == &PyComplex_Type) return kComplex;
  return 0;
}

bool is_refused(PyObject* value, unsigned refused) {
  const unsigned kind = kind_of(value);
  if (kind != kSequence || !(refused & kElements)) return (kind & refused) != 0;
  const Items items(value);
  return std::any_of(items.begin(), items.end(), [](PyObject* item) {
    return (kind_of(item) & (kBool | kFloat | kComplex | kText | kSequence)) != 0;
  });
}

void learn_kinds(OverridableObject* object) {
  const Object told = Object::checked(PyObject_CallOneArg(refused_kinds, object->function));
  for (const auto& [word, at] : {std::pair{&object->refused, 1}, std::pair{&object->names, 0}}) {
    PyObject* const made = PyTuple_GetItem(told.get(), at);
    if (set_once(*word, made)) Py_INCREF(made);
  }
}

// Refuses arguments that no operator of this function's annotations takes.
void check_kinds(PyObject* self, const Arguments& given) {
  auto* object = reinterpret_cast<OverridableObject*>(self);
  if (!load_acquire(object->names)) learn_kinds(object);
  const auto* refused = reinterpret_cast<const unsigned char*>(PyBytes_AsString(object->refused));
  const auto known = static_cast<size_t>(PyTuple_Size(object->names));
  const auto check = [&](size_t place, PyObject* value) {
    if (!is_refused(value, refused[place])) return;
    Object::checked(PyObject_CallFunctionObjArgs(
        refuse_argument, object->function,
        PyTuple_GetItem(object->names, static_cast<Py_ssize_t>(place)), value, nullptr));
  };
  for (size_t i = 0; i < std::min(known, given.count); ++i) check(i, given.rest[i]);
  for (size_t i = given.count; i < given.all(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(given.names, static_cast<Py_ssize_t>(i - given.count));
    for (size_t place = 0; place < known; ++place) {  // names that code spells are single objects
      if (PyTuple_GetItem(object->names, static_cast<Py_ssize_t>(place)) == name)
        check(place, given.rest[i]);
    }
  }
}

PyObject* overridable_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  const Arguments given{nullptr, args, count, names};
  const bool mode = watch_count.load(std::memory_order_relaxed) != 0 && function_mode_asks();
  if (mode || any_overrides(given)) [[unlikely]]
    return ask_function(self, given);
  return guarded([&] {
    check_kinds(self, given);
    return PyObject_Vectorcall(function_of(self), args, flags, names);
  });
}

PyObject* overridable_bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance ? PyMethod_New(self, instance) : new_ref(self);
}
// Name, module, documentation, signature: all that is asked of it is its function's.
PyObject* overridable_get(PyObject* self, PyObject* name) {
  static PyObject* const own[] = {
      PyUnicode_InternFromString("__class__"),     PyUnicode_InternFromString("__call__"),
      PyUnicode_InternFromString("__get__"),       PyUnicode_InternFromString("__wrapped__"),
      PyUnicode_InternFromString("__reduce_ex__"), PyUnicode_InternFromString("__reduce__")};
  // By their letters: CPython has strings of its own for some of these names.
  const auto is_name = [name](PyObject* each) { return PyUnicode_Compare(each, name) == 0; };
  if (std::any_of(std::begin(own), std::end(own), is_name))
    return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(function_of(self), name);
}
int overridable_set(PyObject* self, PyObject* name, PyObject* value) {
  return PyObject_SetAttr(function_of(self), name, value);
}
PyObject* overridable_repr(PyObject* self) { return PyObject_Repr(function_of(self)); }
PyObject* overridable_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(function_of(self), "__qualname__");
}
int overridable_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(function_of(self));
  return 0;
}
int overridable_clear(PyObject* self) {
  auto* object = reinterpret_cast<OverridableObject*>(self);
  Py_CLEAR(object->function);
  Py_CLEAR(object->names);
  Py_CLEAR(object->refused);
  return 0;
}
void overridable_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<OverridableObject*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  overridable_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* overridable(PyObject*, PyObject* args) {
  PyObject* function;
  int is_operator;
  if (!PyArg_ParseTuple(args, "O!p:_overridable", &PyFunction_Type, &function, &is_operator))
    return nullptr;
  PyTypeObject* type = is_operator ? overridable_type : bound_type;
  PyObject* made = type->tp_alloc(type, 0);
  if (!made) return nullptr;
  auto* object = reinterpret_cast<OverridableObject*>(made);
  object->vectorcall = overridable_call;
  object->function = new_ref(function);
#if WEFT_FREE_THREADED
  PyUnstable_Object_EnableDeferredRefcount(made);
#endif
  return made;
}

PyMemberDef overridable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OverridableObject, vectorcall), READONLY,
     nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OverridableObject, weakrefs), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(OverridableObject, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyMethodDef overridable_methods[] = {
    {"__reduce__", overridable_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// With a base: those that bind.
PyTypeObject* make_overridable_type(const char* name, PyTypeObject* base) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(overridable_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(overridable_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(overridable_clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_getattro, reinterpret_cast<void*>(overridable_get)},
      {Py_tp_setattro, reinterpret_cast<void*>(overridable_set)},
      {Py_tp_repr, reinterpret_cast<void*>(overridable_repr)},
      {Py_tp_members, overridable_members},
      {Py_tp_methods, overridable_methods},
      {base ? Py_tp_descr_get : 0, reinterpret_cast<void*>(overridable_bind)},
      {0, nullptr},
  };
  constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                              Py_TPFLAGS_DISALLOW_INSTANTIATION;
  const unsigned kind = base ? Py_TPFLAGS_METHOD_DESCRIPTOR : Py_TPFLAGS_BASETYPE;
  PyType_Spec spec = {name, sizeof(OverridableObject), 0, kFlags | kind, slots};
  const Object bases = base ? Object::checked(PyTuple_Pack(1, base)) : Object();
  PyObject* made = PyType_FromSpecWithBases(&spec, bases.get());
  return reinterpret_cast<PyTypeObject*>(Object::checked(made).release());
}

PyMethodDef torch_function_functions[] = {
    {"_set_torch_function_hooks", set_hooks, METH_VARARGS, nullptr},
    {"_set_torch_function_disabled", set_disabled, METH_O,
     "0: nothing, 1: classes, 2: modes as well. Gives the level before."},
    {"_set_torch_function_modes", set_modes, METH_O, "How many modes this thread has."},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_is_torch_function_all_disabled", is_all_disabled, METH_NOARGS, nullptr},
    {"_len_torch_function_stack", stack_length, METH_NOARGS, nullptr},
    {"_has_torch_function", has_in, METH_O, nullptr},
    {"_has_torch_function_variadic",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(has_any)), METH_FASTCALL, nullptr},
    {"_overrides", class_of_object_overrides, METH_O,
     "Whether the object's class answers for operators."},
    {"_overridable", overridable, METH_VARARGS,
     "The function, asking classes of its arguments and modes first. As an attribute of a class it "
     "becomes a method, unless it is an operator."},
    {"_disabled_torch_function_impl", fast(disabled_torch_function), kFast,
     "The __torch_function__ of classes whose operators give plain tensors."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool overrides(PyObject* object) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  if (type == plain_type && type->tp_version_tag == plain_tag) [[likely]]
    return false;
  return disabled == kNone && class_overrides(type);
}

bool function_mode_asks() noexcept { return modes > 0 && disabled != kAll; }

bool any_overrides(const Arguments& given) noexcept {
  const auto asks = [](PyObject* object) {
    if (!PyList_CheckExact(object)) return may_override(object);
    const ObjectLock lock(object);
    PyObject** items = PySequence_Fast_ITEMS(object);
    return std::any_of(items, items + PyList_GET_SIZE(object), may_override);
  };
  return (given.first && asks(given.first)) ||
         std::any_of(given.rest, given.rest + given.all(), asks);
}

Object Arguments::tuple() const {
  const size_t self = first ? 1 : 0;
  Object made = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(self + count)));
  if (first) PyTuple_SET_ITEM(made.get(), 0, new_ref(first));
  for (size_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(self + i), new_ref(rest[i]));
  }
  return made;
}

Object Arguments::dict() const {
  Object made = Object::checked(PyDict_New());
  for (size_t i = count; i < all(); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i - count));
    check_status(PyDict_SetItem(made.get(), name, rest[i]));
  }
  return made;
}

PyObject* ask_function(PyObject* function, const Arguments& given) noexcept {
  return guarded([&] {
    return Object::checked(PyObject_CallFunctionObjArgs(answer_function, function,
                                                        given.tuple().get(), given.dict().get(),
                                                        nullptr))
        .release();
  });
}

PyObject* ask_member(const char* name, const char* role, const Arguments& given) noexcept {
  return guarded([&] {
    return Object::checked(PyObject_CallFunction(answer_member, "ssOO", name, role,
                                                 given.tuple().get(), given.dict().get()))
        .release();
  });
}

void init_torch_function(PyObject* module) {
  hook_name = Object::checked(PyUnicode_InternFromString("__torch_function__")).release();
  overridable_type = make_overridable_type("weft._C.Overridable", nullptr);
  bound_type = make_overridable_type("weft._C.OverridableFunction", overridable_type);
  add_object(module, "_Overridable", reinterpret_cast<PyObject*>(overridable_type));
  check_status(PyModule_AddFunctions(module, torch_function_functions));
  disabled_impl =
      Object::checked(PyObject_GetAttrString(module, "_disabled_torch_function_impl")).release();
}

}  // namespace weft::py
