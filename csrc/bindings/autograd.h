// What autograd.cpp and autograd_function.cpp share.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "autograd/node.h"
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

// A GradientEdge: a tuple of a node, the number of one of its results, and more.
bool is_edge(PyObject* object);
// A tensor, None or a GradientEdge, else TypeError as above.
autograd::Target target_of(const char* op, const char* what, PyObject* object);

void bind_function_node(nanobind::module_& module);
void bind_anomaly_and_saved_hooks(nanobind::module_& module);

// For the garbage collector: the Python objects that a node keeps alive (hooks, metadata, the
// context of a Function), without those that others hold too unless it is to be `all`. A tensor
// that is the only owner of its node shows them as its own. Where the node has a Python object
// besides, that has references of its own, so each of the two may show what it has.
int visit_node(autograd::Node& node, visitproc visit, void* arg, bool all = false);
void clear_node(autograd::Node& node);
// The same two for the node of a Function; false and 0 for other nodes.
int visit_function(autograd::Node& node, visitproc visit, void* arg, bool all);
void clear_function(autograd::Node& node);
// Borrowed; null for nodes of other kinds.
PyObject* function_context(autograd::Node& node);

}  // namespace weft::py
