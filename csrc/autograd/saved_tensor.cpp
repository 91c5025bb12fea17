#include <utility>

#include "autograd/node.h"
#include "autograd/saved_hooks.h"
#include "autograd/views.h"

namespace weft::autograd {

std::unique_ptr<PackedValue> (*pack_saved)(const Tensor& tensor) = nullptr;
constinit thread_local bool saved_hooks_active WEFT_FAST_TLS = false;

namespace {

// `tensor` as a tensor of its own, with `edge` as its history.
Tensor with_edge(const Tensor& tensor, Edge edge) {
  Tensor result = detach(tensor);
  AutogradMeta& meta = ensure_meta(result);
  meta.leaf = edge.node->is_accumulator;
  meta.node = std::move(edge.node);
  meta.index = edge.index;
  meta.requires_grad = true;
  return result;
}

// The edge that a SavedTensor keeps in place of a tensor that a hook packed. The hook gets the
// tensor itself; of a result, which would own its own node, another one over its elements.
Edge pack(const Tensor& tensor, bool is_result) {
  NoGradGuard guard;
  const uint32_t before = tensor.version();
  std::unique_ptr<PackedValue> packed = pack_saved(is_result ? detach(tensor) : tensor);
  WEFT_CHECK(tensor.version() == before,
             "saved_tensors_hooks: expected a pack hook that leaves its input as it is, got one "
             "that changes it in place");
  Edge history = is_result ? Edge{} : gradient_edge(tensor);
  return {make_ref<PackedNode>(std::move(packed), std::move(history)), 0};
}

}  // namespace

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
  if (saved_hooks_active) [[unlikely]] {
    is_result_ = is_result;
    result_index_ = result_index;
    edge_ = pack(tensor, is_result);
    return;
  }
  version_ = tensor.version();
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
  return unpack(owner, std::move(grad_fn_if_result), grad_enabled());
}

Tensor SavedTensor::unpack(const Node* owner, Ref<Node> grad_fn_if_result,
                           bool differentiable) const {
  WEFT_CHECK(saved_, owner->name(),
             ": expected saved tensors, got freed ones (backward through the graph a second time); "
             "use retain_graph=True the first time");
  if (!tensor_.defined()) {
    if (!edge_) return {};
    auto& packed = static_cast<PackedNode&>(*edge_.node);
    Tensor tensor = packed.value->unpack();
    Edge edge = is_result_ ? Edge{std::move(grad_fn_if_result), result_index_} : packed.edges[0];
    if (edge && differentiable) return with_edge(tensor, std::move(edge));
    return requires_grad(tensor) ? detach(tensor) : tensor;  // not the history that a hook made
  }
  const uint32_t now = tensor_.version();
  WEFT_CHECK(now == version_, owner->name(), ": expected saved tensor ", name_ ? "'" : "",
             name_ ? name_ : "", name_ ? "' " : "", "at version ", version_, ", got version ", now,
             "; it was changed in place after being saved");
  if (!detached_ || !differentiable) return tensor_;
  Edge edge = is_result_ ? Edge{std::move(grad_fn_if_result), result_index_} : edge_;
  if (!edge) return tensor_;
  return with_edge(tensor_, std::move(edge));
}

void SavedTensor::reset() {
  tensor_ = {};
  edge_ = {};
  saved_ = false;
}

}  // namespace weft::autograd
