// Which Python class each kind of failure becomes.
#include "bindings/errors.h"

#include <nanobind/nanobind.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "bindings/bindings.h"
#include "core/error.h"
#include "core/warning.h"

namespace weft::py {

PyObject* out_of_memory_error = nullptr;
PyObject* linear_algebra_error = nullptr;

namespace {

PyObject* exception_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Assertion:
      return PyExc_AssertionError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Key:
      return PyExc_KeyError;
    case ErrorKind::ZeroDivision:
      return PyExc_ZeroDivisionError;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_error;
    case ErrorKind::LinearAlgebra:
      return linear_algebra_error;
    case ErrorKind::Runtime:
    case ErrorKind::Internal:
      break;
  }
  return PyExc_RuntimeError;
}

// Bytes that are no UTF-8, as texts of damaged files may have, show as escapes.
Object told(std::string_view text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  return Object::checked(PyUnicode_DecodeUTF8(text.data(), size, "backslashreplace"));
}

void set_error(PyObject* type, const char* text) noexcept {
  guarded([&] { return PyErr_SetObject(type, told(text).get()), 0; });
}

// A warning that the program turns into an error is thrown.
void warn_in_python(const std::string& message) {
  if (!interpreter_alive()) return;
  TakeGil gil;
  check_status(PyErr_WarnFormat(PyExc_UserWarning, 1, "%U", told(message).get()));
}

}  // namespace

void translate_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    // The exception is set already.
  } catch (const Error& error) {
    set_error(exception_class(error.kind()), error.what());
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_SetString(out_of_memory_error, "expected memory for a small object, got none");
  } catch (const std::exception& error) {
    set_error(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "unknown C++ exception");
  }
}

bool interpreter_alive() noexcept {
  if (!Py_IsInitialized()) return false;
#if PY_VERSION_HEX >= 0x030d0000
  bool finalizing = Py_IsFinalizing();
#else
  bool finalizing = _Py_IsFinalizing();
#endif
  // While it goes down only the thread that takes it down may still call it.
  return !finalizing || PyGILState_Check();
}

void drop_reference(void* object) noexcept {
  if (!interpreter_alive()) return;
  TakeGil gil;
  KeepException keep;
  Py_DECREF(static_cast<PyObject*>(object));
}

void add_object(PyObject* module, const char* name, PyObject* object) {
  check_status(PyModule_AddObjectRef(module, name, object));
}

// A RuntimeError of its own, under the last part of its name in `module`.
static PyObject* new_error(PyObject* module, const char* name, const char* doc) {
  PyObject* error = PyErr_NewExceptionWithDoc(name, doc, PyExc_RuntimeError, nullptr);
  if (!error) throw PythonError{};
  add_object(module, std::strrchr(name, '.') + 1, error);
  return error;
}

void init_errors(PyObject* module) {
  out_of_memory_error = new_error(module, "weft.OutOfMemoryError",
                                  "Memory ran out, or the limit set on the allocator was reached.");
  linear_algebra_error =
      new_error(module, "weft.linalg.LinAlgError",
                "A matrix has no inverse or no such factor, or an iteration did not converge.");
  warning_handler = warn_in_python;
  nanobind::register_exception_translator([](const std::exception_ptr& failure, void*) {
    try {
      std::rethrow_exception(failure);
    } catch (const PythonError&) {
    } catch (const Error& error) {
      set_error(exception_class(error.kind()), error.what());
    }
  });
}

}  // namespace weft::py
