// The node of a custom autograd Function: its gradient is a Python function.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "autograd/function.h"
#include "bindings/autograd.h"
#include "bindings/bindings.h"
#include "bindings/caster.h"
#include "bindings/errors.h"
#include "core/mutex.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

using autograd::Node;

class FunctionNode;

// How the context of a call finds its node without owning it.
struct FunctionLink {
  explicit FunctionLink(FunctionNode* of) : node(of) {}
  Ref<FunctionNode> find();  // null: it is gone
  void forget();

 private:
  Mutex mutex;
  FunctionNode* node;
};

class FunctionNode final : public autograd::FunctionNode {
 public:
  FunctionNode(std::string name, PyObject* backward, PyObject* context)
      : name_(std::move(name)), backward_(share(backward)), context_(share(context)) {
    exclusive = false;  // what runs in Python is for the program to guard
  }
  ~FunctionNode() override {
    if (link) link->forget();
  }
  const char* name() const override { return name_.c_str(); }
  TensorList apply(TensorList grads) override;

  // The collector's view: what this node holds of Python.
  int visit(visitproc visit, void* arg, bool all) const {
    if (all || backward_.use_count() == 1) Py_VISIT(backward_.get());
    if (all || context_.use_count() == 1) Py_VISIT(context_.get());
    return 0;
  }
  void clear() { const Shared backward = std::move(backward_), context = std::move(context_); }
  PyObject* context() const { return context_.get(); }

  std::shared_ptr<FunctionLink> link;

 private:
  TensorList check(PyObject* result) const;

  std::string name_;
  Shared backward_;  // takes the gradients, gives a tuple or one gradient
  Shared context_;   // the FunctionCtx: what grad_fn shows as its own attributes
};

Ref<FunctionNode> FunctionLink::find() {
  const std::lock_guard lock(mutex);
  if (!node || !node->try_retain()) return {};
  Ref<FunctionNode> found(node);
  node->release();  // what try_retain took
  return found;
}
void FunctionLink::forget() {
  const std::lock_guard lock(mutex);
  node = nullptr;
}

TensorList FunctionNode::apply(TensorList grads) {
  fill(grads);
  TakeGil gil;
  WEFT_CHECK(backward_, name(), ": expected a graph that is alive, got one that was collected");
  const Object args = Object::steal(wrap_tuple(grads));
  const Object result = Object::checked(
      unless_ended([&] { return PyObject_Call(backward_.get(), args.get(), nullptr); }));
  return check(result.get());
}

TensorList FunctionNode::check(PyObject* result) const {
  const bool tuple = PyTuple_Check(result) || PyList_Check(result);
  const Object alone = tuple ? Object() : Object::checked(PyTuple_Pack(1, result));
  const Items items(tuple ? result : alone.get());
  TensorList grads;
  for (size_t i = 0; i < items.size(); ++i) {
    PyObject* const item = items[i];
    if (i >= edges.size() && item == Py_None) continue;  // more Nones than arguments are allowed
    grads.push_back(tensor_or_none(name(), "gradients", item));
  }
  return grads;
}

TensorList tensors_of(nb::handle tuple) {
  TensorList tensors;
  for (nb::handle item : nb::borrow<nb::tuple>(tuple)) {
    tensors.push_back(is_tensor(item.ptr()) ? unwrap(item.ptr()) : Tensor());
  }
  return tensors;
}
TensorList checked_tensors(const char* op, nb::handle tuple) {
  TensorList tensors;
  for (nb::handle item : nb::borrow<nb::tuple>(tuple)) {
    tensors.push_back(tensor_or_none(op, "arguments", item.ptr()));
  }
  return tensors;
}

// Records a call. All arguments but the first three are tuples of forward's inputs, outputs, and
// the tensors the context was told about. Returns the link for the context and the outputs.
nb::object record(const std::string& name, nb::handle backward, nb::handle context,
                  bool materialize, nb::tuple inputs, nb::tuple outputs, nb::tuple dirty,
                  nb::tuple constants, nb::tuple saved) {
  auto node = make_ref<FunctionNode>(name, backward.ptr(), context.ptr());
  node->fill_missing = materialize;
  const TensorList finished = autograd::record_function(
      node, {tensors_of(inputs), tensors_of(outputs), checked_tensors("mark_dirty", dirty),
             tensors_of(constants), checked_tensors("save_for_backward", saved)});
  node->allow_try_retain();
  node->link = std::make_shared<FunctionLink>(node.get());
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

nb::object saved_tensors(FunctionLink& link) {
  const Ref<FunctionNode> node = link.find();
  WEFT_CHECK(node,
             "saved_tensors: expected a context whose graph is alive, got one that was freed");
  return nb::steal(wrap_tuple(node->unpack_saved()));
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
