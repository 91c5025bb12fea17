// Python numbers, NumPy scalars and one-element tensors as C++ numbers, and back.
#include <cmath>

#include "autograd/node.h"
#include "bindings/bindings.h"
#include "bindings/tensor_object.h"
#include "bindings/trace.h"
#include "core/error.h"
#include "ops/copy.h"

namespace weft::py {
namespace {

int64_t long_value(PyObject* number, ErrorKind beyond = ErrorKind::Overflow) {
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0) {
    Object text = Object::checked(PyObject_Str(number));
    fail(beyond, str("int: expected a number in [-2**63, 2**63 - 1], got ", utf8(text.get())));
  }
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return value;
}

bool int_value(PyObject* object, int64_t* value, ErrorKind beyond) {
  if (PyBool_Check(object)) return false;
  if (PyLong_Check(object)) {
    *value = long_value(object, beyond);
    return true;
  }
  if (!PyIndex_Check(object)) return false;
  if (is_tensor(object) && (unwrap(object).numel() != 1 || !is_integral(unwrap(object).dtype())))
    return false;
  Object index = Object::steal(PyNumber_Index(object));
  if (!index) {
    PyErr_Clear();
    return false;
  }
  *value = long_value(index.get(), beyond);
  return true;
}

// A bool, an integer, a float or a complex number of NumPy's; false for its other scalars.
bool numpy_scalar_value(PyObject* object, Scalar* scalar) {
  const NumpyTypes& numpy = *numpy_if_loaded();
  if (PyObject_TypeCheck(object, numpy.bool_)) {
    *scalar = Scalar(PyObject_IsTrue(object) == 1 ? 1.0 : 0.0);  // no bool of Python's: a number
  } else if (PyObject_TypeCheck(object, numpy.integer)) {
    *scalar = Scalar(long_value(Object::checked(PyNumber_Index(object)).get()));
  } else if (PyObject_TypeCheck(object, numpy.floating)) {
    *scalar = Scalar(PyFloat_AsDouble(Object::checked(PyNumber_Float(object)).get()));
  } else if (PyObject_TypeCheck(object, numpy.complexfloating)) {
    Object item = Object::checked(PyObject_CallMethod(object, "item", nullptr));
    Py_complex value = PyComplex_AsCComplex(item.get());
    *scalar = Scalar(std::complex<double>(value.real, value.imag));
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool to_scalar(PyObject* object, Scalar* scalar) {
  if (PyFloat_Check(object)) {
    *scalar = Scalar(PyFloat_AS_DOUBLE(object));
  } else if (PyLong_Check(object)) {
    *scalar = PyBool_Check(object) ? Scalar(object == Py_True) : Scalar(long_value(object));
  } else if (PyComplex_Check(object)) {
    Py_complex value = PyComplex_AsCComplex(object);
    *scalar = Scalar(std::complex<double>(value.real, value.imag));
  } else if (is_traced_number(object)) {
    return to_scalar(plain_number(object).get(), scalar);
  } else {
    return is_numpy_scalar(object) && numpy_scalar_value(object, scalar);
  }
  return true;
}

// A bool stays one: some operators refuse it beside anything.
Tensor number_beside(const char* op, const Scalar& number, const Tensor& other) {
  DType dtype = number.dtype();
  const bool counts = number.category() > category(other.dtype());
  if (number.category() != DTypeCategory::Bool) {
    dtype = counts ? promote(dtype, other.dtype()) : other.dtype();
  }
  if (is_integral(dtype)) check_range(number, dtype, op);
  return Tensor::scalar(number, dtype);
}

bool is_number(PyObject* object) {
  return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object) ||
         is_numpy_scalar(object) || is_traced_number(object);
}

bool to_int(PyObject* object, int64_t* value) { return int_value(object, value, ErrorKind::Value); }

bool to_size(PyObject* object, int64_t* value) { return int_value(object, value, ErrorKind::Type); }

bool to_bool(PyObject* object, bool* value) {
  if (PyBool_Check(object)) {
    *value = object == Py_True;
    return true;
  }
  if (!is_numpy_scalar(object) || !PyObject_TypeCheck(object, numpy_if_loaded()->bool_))
    return false;
  *value = PyObject_IsTrue(object) == 1;
  return true;
}

bool to_double(PyObject* object, double* value) {
  if (PyFloat_Check(object)) {
    *value = PyFloat_AS_DOUBLE(object);
    return true;
  }
  Scalar scalar;
  if (is_tensor(object)) {
    if (unwrap(object).dim() != 0 || autograd::requires_grad(unwrap(object))) return false;
    scalar = unwrap(object).item();
  } else if (!to_scalar(object, &scalar)) {
    return false;
  }
  if (scalar.is_complex()) return false;
  *value = scalar.to_double();
  return true;
}

PyObject* from_scalar(const Scalar& scalar) {
  switch (scalar.category()) {
    case DTypeCategory::Bool:
      return PyBool_FromLong(scalar.to_bool());
    case DTypeCategory::Integral:
      return PyLong_FromLongLong(scalar.to_int());
    case DTypeCategory::Floating:
      return PyFloat_FromDouble(scalar.to_double());
    case DTypeCategory::Complex:
      break;
  }
  std::complex<double> value = scalar.to_complex();
  return PyComplex_FromDoubles(value.real(), value.imag());
}

PyObject* element_to_python(DType dtype, const void* element) {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) -> PyObject* {
    const T value = *static_cast<const T*>(element);
    if constexpr (std::is_same_v<T, bool>) {
      return PyBool_FromLong(value);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return PyLong_FromUnsignedLongLong(value);
    } else if constexpr (std::is_integral_v<T>) {
      return PyLong_FromLongLong(value);
    } else if constexpr (is_small_float<T>) {
      return PyFloat_FromDouble(static_cast<float>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      return PyFloat_FromDouble(value);
    } else {
      return PyComplex_FromDoubles(value.real(), value.imag());
    }
  });
}

}  // namespace weft::py
