// Slot functions of weft.Tensor that stand for operators and conversions of the language.
#pragma once

#include "bindings/python.h"

namespace weft::py {

PyObject* tensor_add(PyObject* a, PyObject* b);
PyObject* tensor_subtract(PyObject* a, PyObject* b);
PyObject* tensor_multiply(PyObject* a, PyObject* b);
PyObject* tensor_true_divide(PyObject* a, PyObject* b);
PyObject* tensor_floor_divide(PyObject* a, PyObject* b);
PyObject* tensor_remainder(PyObject* a, PyObject* b);
PyObject* tensor_power(PyObject* a, PyObject* b, PyObject* modulus);
PyObject* tensor_matrix_multiply(PyObject* a, PyObject* b);
PyObject* tensor_and(PyObject* a, PyObject* b);
PyObject* tensor_or(PyObject* a, PyObject* b);
PyObject* tensor_xor(PyObject* a, PyObject* b);
PyObject* tensor_lshift(PyObject* a, PyObject* b);
PyObject* tensor_rshift(PyObject* a, PyObject* b);
PyObject* tensor_inplace_add(PyObject* a, PyObject* b);
PyObject* tensor_inplace_subtract(PyObject* a, PyObject* b);
PyObject* tensor_inplace_multiply(PyObject* a, PyObject* b);
PyObject* tensor_inplace_true_divide(PyObject* a, PyObject* b);
PyObject* tensor_inplace_floor_divide(PyObject* a, PyObject* b);
PyObject* tensor_inplace_remainder(PyObject* a, PyObject* b);
PyObject* tensor_inplace_power(PyObject* a, PyObject* b, PyObject* modulus);
PyObject* tensor_inplace_and(PyObject* a, PyObject* b);
PyObject* tensor_inplace_or(PyObject* a, PyObject* b);
PyObject* tensor_inplace_xor(PyObject* a, PyObject* b);
PyObject* tensor_inplace_lshift(PyObject* a, PyObject* b);
PyObject* tensor_inplace_rshift(PyObject* a, PyObject* b);
PyObject* tensor_negative(PyObject* self);
PyObject* tensor_positive(PyObject* self);
PyObject* tensor_absolute(PyObject* self);
PyObject* tensor_invert(PyObject* self);
PyObject* tensor_richcompare(PyObject* a, PyObject* b, int op);

int tensor_bool(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_float(PyObject* self);
PyObject* tensor_index(PyObject* self);
Py_hash_t tensor_hash(PyObject* self);
Py_ssize_t tensor_length(PyObject* self);
PyObject* tensor_iter(PyObject* self);
int tensor_contains(PyObject* self, PyObject* value);

}  // namespace weft::py
