// Gradients inside programs. The rules for arguments left out are those of weft/autograd/_run.py.
#include "autograd/node.h"
#include "builtin_bodies.h"
#include "core/error.h"
#include "runtime/builtins.h"

namespace weft::builtins {
namespace {

// None stands for no gradient given, for every root.
TensorList gradients_for(const char* op, const TensorList& roots, const Value& given) {
  TensorList gradients = given.is_none() ? TensorList(roots.size()) : given.to_tensors();
  WEFT_CHECK(gradients.size() == roots.size(), op, ": expected ", roots.size(),
             " gradients, one for each output, got ", gradients.size());
  return gradients;
}

bool retains(const Value& retain_graph, bool create_graph) {
  return retain_graph.is_none() ? create_graph : retain_graph.to_bool();
}

void run_backward(const TensorList& roots, const Value& gradients, const TensorList& inputs,
                  const Value& retain_graph, bool create_graph) {
  autograd::backward(roots, gradients_for("backward", roots, gradients), inputs,
                     {retains(retain_graph, create_graph), create_graph, true, true});
}

}  // namespace

Value autograd_grad(const Value& outputs, const Value& inputs, const Value& grad_outputs,
                    const Value& retain_graph, bool create_graph, bool allow_unused) {
  const TensorList roots = outputs.to_tensors();
  TensorList result =
      autograd::backward(roots, gradients_for("grad", roots, grad_outputs), inputs.to_tensors(),
                         {retains(retain_graph, create_graph), create_graph, false, allow_unused});
  return Value(ValueTag::OptionalTensorList, make_ref<ListObject<Tensor>>(std::move(result)));
}

void autograd_backward(const Tensor& self, const Value& gradient, const Value& retain_graph,
                       bool create_graph, const Value& inputs) {
  const bool all = inputs.is_none();
  WEFT_CHECK(all || !inputs.to_tensors().empty(),
             "backward: expected at least one of inputs, got none");
  run_backward({self}, Value(TensorList{gradient.to_tensor()}),
               all ? TensorList() : inputs.to_tensors(), retain_graph, create_graph);
}

void autograd_backward_all(const Value& tensors, const Value& gradients, const Value& retain_graph,
                           bool create_graph) {
  run_backward(tensors.to_tensors(), gradients, {}, retain_graph, create_graph);
}

}  // namespace weft::builtins
