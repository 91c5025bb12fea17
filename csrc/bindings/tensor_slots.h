// Slot functions of weft.Tensor that stand for operators and conversions of the language.
#pragma once

#include <span>

#include "bindings/hooked.h"

namespace weft::py {

template <class Fn>
constexpr PyType_Slot slot(int id, Fn* function) {
  return {id, reinterpret_cast<void*>(function)};
}
template <HookName name, auto fn>
constexpr PyType_Slot traced(int id) {
  return slot(id, Traced<name, fn>::call);
}

// Those of operators.
std::span<const PyType_Slot> operator_slots();

int tensor_bool(PyObject* self);
PyObject* tensor_int(PyObject* self);
PyObject* tensor_float(PyObject* self);
PyObject* tensor_index(PyObject* self);
Py_hash_t tensor_hash(PyObject* self);
Py_ssize_t tensor_length(PyObject* self);
PyObject* tensor_iter(PyObject* self);
int tensor_contains(PyObject* self, PyObject* value);

}  // namespace weft::py
