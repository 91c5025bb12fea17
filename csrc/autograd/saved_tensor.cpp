#include <utility>

#include "autograd/node.h"

namespace weft::autograd {

// Kept as a bare handle, with their history beside it: a result, which would own its own node; what
// an in-place operator writes to, which will own the node; a view, whose base may get the node.
void SavedTensor::save(const Tensor& tensor, bool is_result, const char* name,
                       uint32_t result_index) {
  saved_ = true;
  name_ = name;
  if (!tensor.defined()) return;
  WEFT_CHECK(
      !tensor.impl()->inference || is_result,
      "backward: expected saved tensors made outside of inference mode, got one made inside");
  version_ = tensor.storage()->version();
  result_index_ = result_index;
  is_result_ = is_result;
  const AutogradMeta* meta = meta_of(tensor);
  if (is_result || tensor.impl() == mode.inplace_target || (meta && meta->base.defined())) {
    detached_ = true;
    if (!is_result) edge_ = gradient_edge(tensor);
    tensor_ = detach(tensor);
  } else {
    tensor_ = tensor;
  }
}

Tensor SavedTensor::unpack(const Node* owner, Ref<Node> grad_fn_if_result) const {
  WEFT_CHECK(saved_, owner->name(),
             ": expected saved tensors, got freed ones (backward through the graph a second time); "
             "use retain_graph=True the first time");
  if (!tensor_.defined()) return {};
  const uint32_t now = tensor_.storage()->version();
  WEFT_CHECK(now == version_, owner->name(), ": expected saved tensor ", name_ ? "'" : "",
             name_ ? name_ : "", name_ ? "' " : "", "at version ", version_, ", got version ", now,
             "; it was changed in place after being saved");
  if (!detached_ || !grad_enabled()) return tensor_;
  Edge edge = is_result_ ? Edge{std::move(grad_fn_if_result), result_index_} : edge_;
  if (!edge) return tensor_;
  Tensor result = detach(tensor_);
  auto meta = std::make_unique<AutogradMeta>();
  meta->leaf = edge.node->is_accumulator;
  meta->node = std::move(edge.node);
  meta->index = edge.index;
  meta->requires_grad = true;
  result.impl()->autograd = std::move(meta);
  return result;
}

void SavedTensor::reset() {
  tensor_ = {};
  edge_ = {};
  saved_ = false;
}

}  // namespace weft::autograd
