// __torch_function__: classes of others that answer for operators, and function modes.
//
// An exact Tensor costs one comparison of types, which is where binding arguments begins anyway; a
// mode is seen through the counter that traces have. Who is asked, and in which order, is decided
// in Python (weft/overrides.py): the extension only notices that somebody wants to be.
#pragma once

#include "bindings/arguments.h"
#include "bindings/tensor_object.h"

namespace weft::py {

// Whether the class of an object that is no exact Tensor has a __torch_function__ that is not
// disabled, by itself or in this thread.
bool overrides(PyObject* object) noexcept;
// Whether a mode of this thread is to be asked.
bool function_mode_asks() noexcept;

// overrides() for anything; a tuple stands for its items.
inline bool may_override(PyObject* object) noexcept {
  const PyTypeObject* type = Py_TYPE(object);
  if (type == tensor_type) [[likely]]
    return false;
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) return overrides(object);
  if (type != &PyTuple_Type) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    PyObject* item = PyTuple_GET_ITEM(object, i);
    if (Py_TYPE(item) != tensor_type && Py_TYPE(item)->tp_flags & Py_TPFLAGS_HEAPTYPE &&
        overrides(item))
      return true;
  }
  return false;
}

// A tensor that does not answer for itself.
inline bool is_plain_tensor(PyObject* object) noexcept {
  return is_exact_tensor(object) ||
         (PyType_IsSubtype(Py_TYPE(object), tensor_type) && !overrides(object));
}

// Whether an argument, or an item of a list among them, overrides.
bool any_overrides(const Arguments& given) noexcept;

// The answer to a call of `function`, an operator of the table. Null: an exception is set.
PyObject* ask_function(PyObject* function, const Arguments& given) noexcept;
// The same for a slot, method or attribute of Tensor: `role` is "method", "get", "set" or
// "function".
PyObject* ask_member(const char* name, const char* role, const Arguments& given) noexcept;

void init_torch_function(PyObject* module);

}  // namespace weft::py
