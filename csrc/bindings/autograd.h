// What autograd.cpp and autograd_function.cpp share.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/python.h"
#include "core/tensor.h"

namespace weft::py {

// A Python object held by C++ code that may copy and drop it on any thread, without the GIL.
using Shared = std::shared_ptr<PyObject>;
Shared share(PyObject* object);

// A tensor, None (undefined), or TypeError "<op>: expected <what> of type Tensor or None, got int".
Tensor tensor_or_none(const char* op, const char* what, PyObject* object);
// A tuple or list of those.
TensorList tensors_or_none(const char* op, const char* what, PyObject* object);

void bind_function_node(nanobind::module_& module);

}  // namespace weft::py
