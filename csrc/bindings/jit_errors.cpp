// Exceptions of programs as Python exceptions, and Python exceptions inside programs.
#include "bindings/errors.h"
#include "bindings/jit.h"

namespace weft::py {
namespace {

// The exception class a program names; null: there is none.
PyObject* named_class(const std::string& name) {
  if (name == "OutOfMemoryError") return out_of_memory_error;
  if (name == "LinAlgError") return linear_algebra_error;
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), name.c_str());
  if (!found) found = registered_type(name);
  return found && PyExceptionClass_Check(found) ? found : nullptr;
}

// KeyError shows its argument by repr(): there the lines go into a note.
bool shows_repr(PyObject* type) {
  return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type),
                          reinterpret_cast<PyTypeObject*>(PyExc_KeyError));
}

void add_note(PyObject* exception, PyObject* text) {
  Object done = Object::steal(PyObject_CallMethod(exception, "add_note", "O", text));
  if (!done) PyErr_Clear();  // before Python 3.11 there are none
}

}  // namespace

PythonFailure PythonFailure::fetch() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace && value) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  PythonFailure failure;
  failure.exception_ = std::shared_ptr<PyObject>(value, drop_reference);
  return failure;
}

void PythonFailure::restore() const {
  if (!frames_.empty()) {
    const std::string text = "Traceback of TorchScript (most recent call last):\n" + frames_;
    add_note(exception_.get(), Object::steal(from_text(text)).get());
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception_.get())), exception_.get());
}

void set_program_error(const ProgramError& error) {
  PyObject* type = named_class(error.name());
  const bool note = type && shows_repr(type);
  const Object text = Object::steal(from_text(note ? error.message() : error.what()));
  Object argument;
  if (error.argument()) argument = Object::steal(from_value(Value(*error.argument())));
  Object exception;
  if (type) {
    exception = Object::steal(PyObject_CallOneArg(type, (argument ? argument : text).get()));
  }
  if (exception && PyExceptionInstance_Check(exception.get())) {
    if (note) add_note(exception.get(), Object::steal(from_text(error.what())).get());
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
    return;
  }
  PyErr_Clear();
  PyErr_SetObject(PyExc_RuntimeError, text.get());
}

void translate_program_exception() noexcept {
  try {
    throw;
  } catch (const ProgramError& error) {
    set_program_error(error);
  } catch (const PythonFailure& failure) {
    failure.restore();
  } catch (...) {
    translate_exception();
    // A hook of the autograd engine may have raised on a thread whose exception went with it.
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_RuntimeError, "a Python function raised on another thread");
    }
  }
}

}  // namespace weft::py
