// weft.no_grad and weft.enable_grad: context managers that cost little, so they are C types.
#include "autograd/mode.h"
#include "bindings/args.h"
#include "bindings/bindings.h"
#include "bindings/errors.h"

namespace weft::py {
namespace {

struct GradMode {
  PyObject_HEAD bool enabled;
  bool old;
};
GradMode* as_mode(PyObject* object) { return reinterpret_cast<GradMode*>(object); }

PyTypeObject* no_grad_type = nullptr;
PyTypeObject* enable_grad_type = nullptr;

// Decorators are made in Python: weft.autograd.grad_mode._decorate(mode, function).
PyObject* decorate(PyObject* mode, PyObject* function) {
  return guarded([&]() -> PyObject* {
    const Object module = Object::checked(PyImport_ImportModule("weft.autograd.grad_mode"));
    return Object::checked(PyObject_CallMethod(module.get(), "_decorate", "OO", mode, function))
        .release();
  });
}

PyObject* make(PyTypeObject* type) {
  PyObject* object = type->tp_alloc(type, 0);
  if (!object) return nullptr;
  as_mode(object)->enabled = PyType_IsSubtype(type, enable_grad_type);
  as_mode(object)->old = false;
  return object;
}

// no_grad() makes one; no_grad(function) decorates.
PyObject* vectorcall(PyObject* type, PyObject* const* args, size_t flags, PyObject* names) {
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (count > 1 || (names && PyTuple_GET_SIZE(names) > 0)) {
    PyErr_Format(PyExc_TypeError, "%s: expected at most one function, got %zd arguments",
                 reinterpret_cast<PyTypeObject*>(type)->tp_name,
                 count + (names ? PyTuple_GET_SIZE(names) : 0));
    return nullptr;
  }
  PyObject* mode = make(reinterpret_cast<PyTypeObject*>(type));
  if (!mode || count == 0) return mode;
  PyObject* result = decorate(mode, args[0]);
  Py_DECREF(mode);
  return result;
}

PyObject* mode_new(PyTypeObject* type, PyObject*, PyObject*) { return make(type); }

// Subclasses may have an __init__ of their own, with arguments.
int mode_init(PyObject*, PyObject*, PyObject*) { return 0; }

void mode_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* mode_enter(PyObject* self, PyObject*) {
  as_mode(self)->old = autograd::set_grad_enabled(as_mode(self)->enabled);
  Py_RETURN_NONE;
}

PyObject* mode_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  autograd::set_grad_enabled(as_mode(self)->old);
  Py_RETURN_NONE;
}

PyObject* mode_clone(PyObject* self, PyObject*) {
  return PyObject_CallNoArgs(reinterpret_cast<PyObject*>(Py_TYPE(self)));
}

PyObject* mode_call(PyObject* self, PyObject* args, PyObject* names) {
  PyObject* function = nullptr;
  if (names && PyDict_GET_SIZE(names) > 0) {
    PyErr_SetString(PyExc_TypeError, "no_grad: expected one function, got named arguments");
    return nullptr;
  }
  if (!PyArg_UnpackTuple(args, "no_grad", 1, 1, &function)) return nullptr;
  return decorate(self, function);
}

PyMethodDef methods[] = {
    {"__enter__", mode_enter, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(mode_exit)), METH_FASTCALL,
     nullptr},
    {"clone", mode_clone, METH_NOARGS, "Another context manager for the same mode."},
    {nullptr, nullptr, 0, nullptr},
};

template <class Fn>
constexpr PyType_Slot slot(int id, Fn* function) {
  return {id, reinterpret_cast<void*>(function)};
}

PyTypeObject* make_type(const char* name, const char* doc) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>(doc)},
      slot(Py_tp_new, mode_new),
      slot(Py_tp_init, mode_init),
      slot(Py_tp_dealloc, mode_dealloc),
      slot(Py_tp_call, mode_call),
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {name, sizeof(GradMode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
  type->tp_vectorcall = vectorcall;  // not inherited by subclasses
  return type;
}

}  // namespace

void init_grad_mode(PyObject* module) {
  no_grad_type = make_type(
      "weft.autograd.grad_mode.no_grad",
      "Operators inside record no graph: results do not require grad.\n\nA context manager and a "
      "decorator. Example: `with weft.no_grad(): weight -= 0.1 * weight.grad`");
  enable_grad_type = make_type("weft.autograd.grad_mode.enable_grad",
                               "Operators inside record a graph, even within `no_grad`.");
  add_object(module, "no_grad", reinterpret_cast<PyObject*>(no_grad_type));
  add_object(module, "enable_grad", reinterpret_cast<PyObject*>(enable_grad_type));
}

}  // namespace weft::py
