// Methods of weft.Tensor written by hand, by file.
#pragma once

#include "autograd/node.h"
#include "bindings/python.h"

namespace weft::py {

// tensor_convert.cpp
PyObject* tensor_item(PyObject* self, PyObject*);
PyObject* tensor_tolist(PyObject* self, PyObject*);
PyObject* tensor_complex(PyObject* self, PyObject*);

// tensor_autograd.cpp
PyObject* tensor_detach(PyObject* self, PyObject*);
PyObject* tensor_is_inference(PyObject* self, PyObject*);
PyObject* tensor_detach_(PyObject* self, PyObject*);
PyObject* tensor_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* names);
PyObject* tensor_retain_grad(PyObject* self, PyObject*);
PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);

// tensor_to.cpp
PyObject* tensor_to(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* tensor_type_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                             PyObject* names);
PyObject* tensor_cpu(PyObject* self, PyObject*);
PyObject* tensor_type_as(PyObject* self, PyObject* other);
PyObject* tensor_view_as(PyObject* self, PyObject* other);
PyObject* tensor_reshape_as(PyObject* self, PyObject* other);
PyObject* tensor_to_float(PyObject* self, PyObject*);
PyObject* tensor_to_double(PyObject* self, PyObject*);
PyObject* tensor_to_half(PyObject* self, PyObject*);
PyObject* tensor_to_bfloat16(PyObject* self, PyObject*);
PyObject* tensor_to_long(PyObject* self, PyObject*);
PyObject* tensor_to_int(PyObject* self, PyObject*);
PyObject* tensor_to_short(PyObject* self, PyObject*);
PyObject* tensor_to_char(PyObject* self, PyObject*);
PyObject* tensor_to_byte(PyObject* self, PyObject*);
PyObject* tensor_to_bool(PyObject* self, PyObject*);
PyObject* tensor_to_cfloat(PyObject* self, PyObject*);
PyObject* tensor_to_cdouble(PyObject* self, PyObject*);

}  // namespace weft::py
