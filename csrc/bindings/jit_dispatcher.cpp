// A compiled function that has two programs: one for calls that may record gradients, one for those
// that do not. Python makes them, and says which program calls take before they are there.
#include "autograd/mode.h"
#include "autograd/node.h"
#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "runtime/gradient_search.h"
#include "runtime/object.h"

namespace weft::py {
namespace {

struct Dispatcher {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* choose;       // choose(records, is_large) -> (program's function, whether it stays)
  PyObject* programs[2];  // [0] without gradients, [1] with; null until one stays
};
Dispatcher& as_dispatcher(PyObject* object) { return *reinterpret_cast<Dispatcher*>(object); }

PyTypeObject* dispatcher_type = nullptr;

// The same in Python objects.
class Search : public GradientSearch {
 public:
  bool in_python(PyObject* object, int depth = 0) {
    if (!spend(depth)) return true;
    if (is_tensor(object)) return autograd::requires_grad(unwrap(object));
    if (object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) ||
        PyFloat_CheckExact(object) || PyUnicode_CheckExact(object) ||
        PyComplex_CheckExact(object)) {
      return false;
    }
    if (PyList_CheckExact(object) || PyTuple_Check(object)) return in_items(object, depth);
    if (PyDict_CheckExact(object)) return in_dict(object, depth);
    const Ref<ClassObject> instance = class_object(object);
    return !instance || in_value(Value(ValueTag::Object, instance), depth);
  }

 private:
  bool in_items(PyObject* sequence, int depth) {
    for (PyObject* const item : Items(sequence)) {
      if (in_python(item, depth + 1)) return true;
    }
    return false;
  }

  bool in_dict(PyObject* dict, int depth) {
    Py_ssize_t at = 0;
    PyObject *key = nullptr, *value = nullptr;
    const ObjectLock lock(dict);
    while (PyDict_Next(dict, &at, &key, &value)) {
      if (is_tensor(key)) return true;
      // What is asked of a value must not change the dict: only of tensors and numbers that is
      // sure.
      if (!is_tensor(value) && !PyLong_CheckExact(value) && !PyFloat_CheckExact(value) &&
          !PyUnicode_CheckExact(value)) {
        return true;
      }
      if (in_python(value, depth + 1)) return true;
    }
    return false;
  }
};

bool may_record(PyObject* const* args, Py_ssize_t count) {
  if (!autograd::grad_enabled()) return false;
  Search search;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (search.in_python(args[i])) return true;
  }
  return false;
}

// Whether a call has so much to do that the optimised program is worth waiting for.
bool has_large(PyObject* const* args, Py_ssize_t count) {
  constexpr int64_t kLarge = 1 << 16;
  int64_t elements = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (is_tensor(args[i])) elements += unwrap(args[i]).numel();
  }
  return elements >= kLarge;
}

// The program of this call: a new reference, or null with an error.
Object program_for(Dispatcher& self, PyObject* const* args, Py_ssize_t count) {
  const bool records = may_record(args, count);
  PyObject*& program = self.programs[records];
  if (PyObject* const known = load_acquire(program)) return Object::borrow(known);
  const Object chosen = Object::steal(
      PyObject_CallFunctionObjArgs(self.choose, records ? Py_True : Py_False,
                                   has_large(args, count) ? Py_True : Py_False, nullptr));
  PyObject* function = nullptr;
  int stays = 0;
  if (!chosen || !PyArg_ParseTuple(chosen.get(), "Op", &function, &stays)) return {};
  if (stays && set_once(program, function)) Py_INCREF(function);
  return Object::borrow(function);
}

PyObject* dispatcher_vectorcall(PyObject* object, PyObject* const* args, size_t flags,
                                PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  const Py_ssize_t count = PyVectorcall_NARGS(flags) + named;
  const Object program = program_for(as_dispatcher(object), args, count);
  return program ? PyObject_Vectorcall(program.get(), args, flags, names) : nullptr;
}

PyObject* dispatcher_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* choose = nullptr;
  if (!PyArg_ParseTuple(args, "O", &choose)) return nullptr;
  PyObject* made = type->tp_alloc(type, 0);
  if (!made) return nullptr;
  Dispatcher& self = as_dispatcher(made);
  self.vectorcall = dispatcher_vectorcall;
  self.choose = Py_NewRef(choose);
  return made;
}

int dispatcher_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Dispatcher& self = as_dispatcher(object);
  Py_VISIT(self.choose);
  for (PyObject* program : self.programs) Py_VISIT(program);
  return 0;
}

int dispatcher_clear(PyObject* object) {
  Dispatcher& self = as_dispatcher(object);
  Py_CLEAR(self.choose);
  for (PyObject*& program : self.programs) Py_CLEAR(program);
  return 0;
}

void dispatcher_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  dispatcher_clear(object);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

// (without gradients, with gradients): the programs made so far, None for those that are not.
PyObject* dispatcher_programs(PyObject* object, void*) {
  const Dispatcher& self = as_dispatcher(object);
  return PyTuple_Pack(2, self.programs[0] ? self.programs[0] : Py_None,
                      self.programs[1] ? self.programs[1] : Py_None);
}

PyGetSetDef dispatcher_getset[] = {
    {"programs", dispatcher_programs, nullptr,
     "(without gradients, with gradients); None: not made.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef dispatcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Dispatcher, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

void init_jit_dispatcher(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(dispatcher_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dispatcher_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(dispatcher_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(dispatcher_clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_getset, dispatcher_getset},
      {Py_tp_members, dispatcher_members},
      {0, nullptr},
  };
  constexpr unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC;
  PyType_Spec spec = {"weft._C.JitDispatcher", sizeof(Dispatcher), 0, flags, slots};
  dispatcher_type =
      reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
  add_object(module, "JitDispatcher", reinterpret_cast<PyObject*>(dispatcher_type));
}

}  // namespace weft::py
