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
PyObject* tensor_detach_(PyObject* self, PyObject*);
PyObject* tensor_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* names);
PyObject* tensor_retain_grad(PyObject* self, PyObject*);
PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);

// tensor_to.cpp
PyObject* tensor_to(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* tensor_type_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                             PyObject* names);
PyObject* tensor_cpu(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* tensor_type_as(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* tensor_view_as(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* tensor_reshape_as(PyObject* self, PyObject* const* args, Py_ssize_t count,
                            PyObject* names);
// float(memory_format=...), half(...) and the like
template <DType dtype>
PyObject* tensor_to_dtype(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);

}  // namespace weft::py
