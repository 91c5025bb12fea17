// The node of a custom autograd Function: its gradient is a Python function.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "autograd/arith.h"
#include "autograd/node.h"
#include "bindings/autograd.h"
#include "bindings/bindings.h"
#include "bindings/caster.h"
#include "bindings/errors.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

using autograd::Edge;
using autograd::Node;
using autograd::SavedTensor;

class FunctionNode;

// How the context of a call finds its node without owning it. Read and written under the GIL.
struct FunctionLink {
  FunctionNode* node = nullptr;
};

class FunctionNode final : public Node {
 public:
  FunctionNode(std::string name, PyObject* backward, PyObject* context)
      : name_(std::move(name)), backward_(share(backward)), context_(share(context)) {
    exclusive = false;  // the GIL decides
  }
  ~FunctionNode() override {
    if (!interpreter_alive()) return;
    TakeGil gil;
    if (link) link->node = nullptr;
  }
  const char* name() const override { return name_.c_str(); }
  TensorList apply(TensorList grads) override;
  void release_saved() override {
    for (SavedTensor& tensor : saved) tensor.reset();
  }

  // The collector's view: what this node holds of Python.
  int visit(visitproc visit, void* arg, bool all) const {
    if (all || backward_.use_count() == 1) Py_VISIT(backward_.get());
    if (all || context_.use_count() == 1) Py_VISIT(context_.get());
    return 0;
  }
  void clear() { const Shared backward = std::move(backward_), context = std::move(context_); }
  PyObject* context() const { return context_.get(); }

  std::vector<SavedTensor> saved;
  std::vector<autograd::ResultInfo> infos;  // of all results, those without gradient as well
  std::shared_ptr<FunctionLink> link;

 private:
  TensorList check(PyObject* result) const;

  std::string name_;
  Shared backward_;  // takes the gradients, gives a tuple or one gradient
  Shared context_;   // the FunctionCtx: what grad_fn shows as its own attributes
};

TensorList FunctionNode::apply(TensorList grads) {
  if (fill_missing) {
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) grads[i] = autograd::arith::zeros(infos[i]);
    }
  }
  TakeGil gil;
  WEFT_CHECK(backward_, name(), ": expected a graph that is alive, got one that was collected");
  const Object args = Object::steal(wrap_tuple(grads));
  const Object result = Object::checked(
      unless_ended([&] { return PyObject_Call(backward_.get(), args.get(), nullptr); }));
  return check(result.get());
}

TensorList FunctionNode::check(PyObject* result) const {
  const bool tuple = PyTuple_Check(result) || PyList_Check(result);
  const auto count = tuple ? static_cast<size_t>(PySequence_Fast_GET_SIZE(result)) : 1;
  TensorList grads;
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = tuple ? PySequence_Fast_ITEMS(result)[i] : result;
    if (i >= edges.size() && item == Py_None) continue;  // more Nones than arguments are allowed
    grads.push_back(tensor_or_none(name(), "gradients", item));
  }
  return grads;
}

bool contains(PyObject* tuple, const Tensor& tensor) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (is_tensor(item) && unwrap(item).is_same(tensor)) return true;
  }
  return false;
}

int16_t position_of(PyObject* tuple, const Tensor& tensor) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (is_tensor(item) && unwrap(item).is_same(tensor)) return static_cast<int16_t>(i);
  }
  return -1;
}

autograd::ResultInfo describe(const Tensor& tensor) {
  return {tensor.sizes(), tensor.dtype(), tensor.device()};
}

// One result of the forward function gets its history. A result that is an input itself, a view, or
// has a history from inside forward is returned as a new tensor over the same elements.
Tensor finish_output(const Ref<FunctionNode>& node, const Tensor& output, PyObject* inputs,
                     PyObject* dirty, PyObject* constants) {
  node->infos.push_back(describe(output));
  if (contains(dirty, output)) {
    node->self_edge = position_of(inputs, output);
    autograd::rebase_history(output, node);
    return output;
  }
  const bool is_input = contains(inputs, output);
  if (contains(constants, output)) {
    const Tensor result =
        is_input || autograd::requires_grad(output) ? autograd::detach(output) : output;
    autograd::set_history({}, node);
    return result;
  }
  const bool fresh = !is_input && !autograd::is_view(output) && !autograd::requires_grad(output);
  const Tensor result = fresh ? output : autograd::detach(output);
  autograd::set_history(result, node);
  return result;
}

void save(FunctionNode& node, PyObject* saved, PyObject* outputs, const TensorList& finished) {
  node.saved.resize(static_cast<size_t>(PyTuple_GET_SIZE(saved)));
  for (size_t i = 0; i < node.saved.size(); ++i) {
    const Tensor tensor = tensor_or_none("save_for_backward", "arguments",
                                         PyTuple_GET_ITEM(saved, static_cast<Py_ssize_t>(i)));
    const int16_t output = tensor.defined() ? position_of(outputs, tensor) : -1;
    if (output >= 0) {
      const auto index = static_cast<uint32_t>(output);
      const bool constant = !autograd::requires_grad(finished[index]);
      node.saved[i].save(constant ? autograd::detach(tensor) : finished[index], !constant, nullptr,
                         index);
    } else {
      node.saved[i].save(tensor);
    }
  }
}

// Records a call. All arguments but the first three are tuples of forward's inputs, outputs, and
// the tensors the context was told about. Returns the link for the context and the outputs.
nb::object record(const std::string& name, nb::handle backward, nb::handle context,
                  bool materialize, nb::tuple inputs, nb::tuple outputs, nb::tuple dirty,
                  nb::tuple constants, nb::tuple saved) {
  auto node = make_ref<FunctionNode>(name, backward.ptr(), context.ptr());
  node->fill_missing = materialize;
  for (nb::handle input : inputs) {
    if (is_tensor(input.ptr())) {
      node->add_input(unwrap(input.ptr()));
    } else {
      node->edges.push_back({});
    }
  }
  for (nb::handle changed : dirty) {
    const Tensor tensor = tensor_or_none(name.c_str(), "arguments of mark_dirty", changed.ptr());
    WEFT_CHECK(
        contains(inputs.ptr(), tensor) && contains(outputs.ptr(), tensor), name,
        ": expected tensors given to mark_dirty to be inputs and outputs of forward, got another");
    autograd::check_inplace(name.c_str(), tensor);
  }
  TensorList finished;
  for (nb::handle output : outputs) {
    finished.push_back(
        is_tensor(output.ptr())
            ? finish_output(node, unwrap(output.ptr()), inputs.ptr(), dirty.ptr(), constants.ptr())
            : Tensor());
    if (!is_tensor(output.ptr())) {
      autograd::set_history({}, node);
      node->infos.emplace_back();
    }
  }
  save(*node, saved.ptr(), outputs.ptr(), finished);
  node->link = std::make_shared<FunctionLink>();
  node->link->node = node.get();
  nb::list result;
  for (size_t i = 0; i < finished.size(); ++i) {
    nb::object output =
        finished[i].defined() ? nb::steal(wrap(finished[i])) : nb::borrow(outputs[i]);
    // The context may refer to the output: the collector must come by.
    if (finished[i].defined() && !PyObject_GC_IsTracked(output.ptr())) {
      PyObject_GC_Track(output.ptr());
    }
    result.append(std::move(output));
  }
  return nb::make_tuple(node->link, nb::tuple(result));
}

nb::object saved_tensors(const FunctionLink& link) {
  WEFT_CHECK(link.node,
             "saved_tensors: expected a context whose graph is alive, got one that was freed");
  TensorList tensors;
  for (const SavedTensor& saved : link.node->saved) {
    tensors.push_back(saved.unpack(link.node, Ref<Node>(link.node), true));
  }
  return nb::steal(wrap_tuple(tensors));
}

}  // namespace

int visit_function(Node& node, visitproc visit, void* arg, bool all) {
  const auto* function = dynamic_cast<const FunctionNode*>(&node);
  return function ? function->visit(visit, arg, all) : 0;
}

void clear_function(Node& node) {
  if (auto* function = dynamic_cast<FunctionNode*>(&node)) function->clear();
}

PyObject* function_context(Node& node) {
  const auto* function = dynamic_cast<const FunctionNode*>(&node);
  return function ? function->context() : nullptr;
}

void bind_function_node(nb::module_& module) {
  nb::class_<FunctionLink>(module, "FunctionLink",
                           "Leads from the context of a Function to its node.")
      .def("saved_tensors", saved_tensors);
  module.def("record_function", record);
  // Results of a double backward that nobody may differentiate again.
  module.def("once_differentiable", [](nb::tuple inputs, nb::tuple outputs) {
    const Ref<Node> node = autograd::not_differentiable("once_differentiable");
    for (nb::handle input : inputs) {
      if (is_tensor(input.ptr())) node->add_input(unwrap(input.ptr()));
    }
    nb::list result;
    for (nb::handle output : outputs) {
      if (!is_tensor(output.ptr())) {
        result.append(output);
        continue;
      }
      const Tensor fresh = autograd::detach(unwrap(output.ptr()));
      autograd::set_history(fresh, node);
      result.append(nb::steal(wrap(fresh)));
    }
    return nb::tuple(result);
  });
}

}  // namespace weft::py
