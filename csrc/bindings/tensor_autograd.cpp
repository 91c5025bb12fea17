// Tensor methods about the recorded graph. Hooks need Python callables and live in autograd.cpp.
#include "bindings/args.h"
#include "bindings/autograd.h"
#include "bindings/errors.h"
#include "bindings/tensor_methods.h"
#include "bindings/tensor_object.h"

namespace weft::py {
namespace {

// None, one tensor, or anything that gives some.
autograd::Targets targets_arg(const char* op, const char* name, PyObject* object) {
  if (absent(object)) return {};
  if (is_tensor(object) || is_edge(object)) return {target_of(op, name, object)};
  Object iterator = Object::steal(PyObject_GetIter(object));
  if (!iterator) PyErr_Clear();
  WEFT_CHECK_TYPE(iterator, op, ": expected argument '", name,
                  "' of type Tensor or tuple of Tensors, got ", short_type_name(object));
  Object items = Object::checked(PySequence_List(iterator.get()));
  autograd::Targets targets;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(items.get(), i);
    WEFT_CHECK_TYPE(is_tensor(item) || is_edge(item), op, ": expected argument '", name,
                    "' of type Tensor or tuple of Tensors, got ", short_type_name(object), " with ",
                    short_type_name(item));
    targets.push_back(target_of(op, name, item));
  }
  return targets;
}

}  // namespace

PyObject* tensor_detach_(PyObject* self, PyObject*) {
  return guarded([&] {
    autograd::detach_(unwrap(self));
    return new_ref(self);
  });
}

PyObject* tensor_requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* names) {
  return guarded([&] {
    auto [flag] = parse_args("requires_grad_", {"requires_grad"}, 0, args, count, names);
    autograd::set_requires_grad(unwrap(self),
                                bool_arg("requires_grad_", "requires_grad", flag, true));
    return new_ref(self);
  });
}

PyObject* tensor_retain_grad(PyObject* self, PyObject*) {
  return guarded([&] {
    autograd::retain_grad(unwrap(self));
    return new_ref(Py_None);
  });
}

PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t count,
                          PyObject* names) {
  return guarded([&] {
    auto [gradient, retain, create, inputs] = parse_args(
        "backward", {"gradient", "retain_graph", "create_graph", "inputs"}, 0, args, count, names);
    WEFT_CHECK_TYPE(absent(gradient) || is_tensor(gradient),
                    "backward: expected argument 'gradient' of type Tensor, got ",
                    short_type_name(gradient));
    autograd::BackwardOptions options;
    options.create_graph = bool_arg("backward", "create_graph", create, false);
    options.retain_graph = bool_arg("backward", "retain_graph", retain, options.create_graph);
    autograd::Targets targets = targets_arg("backward", "inputs", inputs);
    WEFT_CHECK(absent(inputs) || !targets.empty(),
               "backward: expected at least one of inputs, got none");
    autograd::Targets roots{unwrap(self)};
    const TensorList grads{absent(gradient) ? Tensor() : unwrap(gradient)};
    {
      ReleaseGil release;
      autograd::backward_of(std::move(roots), grads, std::move(targets), options);
    }
    return new_ref(Py_None);
  });
}

}  // namespace weft::py
