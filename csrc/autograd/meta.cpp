// What autograd keeps per tensor: requires_grad, the gradient, the history.
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/hooks.h"
#include "autograd/node.h"
#include "autograd/sparse.h"
#include "autograd/views.h"

namespace weft::autograd {
namespace {

AutogradMeta& ensure_slot(const Tensor& tensor) {
  AutogradMeta& meta = ensure_meta(tensor);
  if (!meta.slot) meta.slot = make_ref<GradSlot>();
  return meta;
}

AutogradMeta* current_meta(const Tensor& tensor) {
  AutogradMeta* meta = meta_of(tensor);
  if (meta && is_stale_view(*meta)) refresh_view(tensor);
  return meta;
}

// From here on writes through `tensor`, and what is made of it, have a count of their own.
void count_apart(const Tensor& tensor, uint32_t from) {
  if (tensor.impl()->inference) return;  // counts no writes that anybody could ask for
  ensure_meta(tensor).writes = make_ref<WriteCount>(from);
  tensor.impl()->counts_apart = true;
}

}  // namespace

AutogradMeta& ensure_meta(const Tensor& tensor) {
  if (!tensor.impl()->autograd) tensor.impl()->autograd = std::make_unique<AutogradMeta>();
  return *meta_of(tensor);
}

void set_requires_grad(const Tensor& tensor, bool value) {
  const AutogradMeta* current = current_meta(tensor);
  if (current && !current->leaf) {
    WEFT_CHECK(value, "requires_grad_: expected a leaf to turn gradients off, got a result of ",
               current->node->name(), "; use detach()");
    return;
  }
  WEFT_CHECK(!value || is_differentiable(tensor.dtype()),
             "requires_grad_: expected a floating or complex dtype, got ", tensor.dtype());
  WEFT_CHECK(
      !value || !tensor.impl()->inference || inference_enabled(),
      "requires_grad_: expected a tensor made outside of inference mode, got one made inside; "
      "clone it first");
  if (!value && !current) return;
  AutogradMeta& meta = ensure_slot(tensor);
  if (value && !meta.node) meta.node = make_ref<AccumulateGrad>(tensor, meta.slot);
  meta.requires_grad = value;
}

bool is_leaf(const Tensor& tensor) {
  const AutogradMeta* meta = current_meta(tensor);
  return !meta || meta->leaf;
}

Ref<Node> grad_fn(const Tensor& tensor) {
  const AutogradMeta* meta = current_meta(tensor);
  return !meta || meta->leaf ? Ref<Node>() : meta->node;
}

uint32_t result_index(const Tensor& tensor) {
  const AutogradMeta* meta = current_meta(tensor);
  return meta ? meta->index : 0;
}

Tensor grad(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta && meta->slot ? meta->slot->get() : Tensor();
}

void set_grad(const Tensor& tensor, const Tensor& grad) {
  if (!grad.defined()) {
    const AutogradMeta* meta = meta_of(tensor);
    if (meta && meta->slot) meta->slot->set({});
    return;
  }
  WEFT_CHECK(!grad.is_same(tensor), "grad: expected another tensor, got the tensor itself");
  const Dims sizes = sparse::sizes_of(grad);
  WEFT_CHECK(sizes == tensor.sizes(), "grad: expected a gradient of shape ",
             AsTuple{tensor.sizes()}, ", got ", AsTuple{sizes});
  WEFT_CHECK(grad.dtype() == tensor.dtype(), "grad: expected a gradient of dtype ", tensor.dtype(),
             ", got ", grad.dtype());
  WEFT_CHECK(grad.device() == tensor.device(), "grad: expected a gradient on ", tensor.device(),
             ", got ", grad.device());
  ensure_slot(tensor).slot->set(grad);
}

bool retains_grad(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta && meta->retains_grad;
}

void retain_grad(const Tensor& tensor) {
  const AutogradMeta* current = current_meta(tensor);
  WEFT_CHECK(current && requires_grad(tensor),
             "retain_grad: expected a tensor that requires grad, got one that does not");
  if (current->leaf || current->retains_grad) return;
  AutogradMeta& meta = ensure_slot(tensor);
  add_retained(*meta.node, meta.index, meta.slot);
  meta.retains_grad = true;
}

Edge gradient_edge(const Tensor& tensor) {
  const AutogradMeta* meta = current_meta(tensor);
  if (!meta || !meta->requires_grad) return {};
  return {meta->node, meta->index};
}

bool is_view(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta && meta->base.defined();
}

Tensor view_base(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta ? meta->base : Tensor();
}

Tensor detach(const Tensor& tensor) { return tensor.alias(tensor.layout(), tensor.dtype()); }

Tensor data(const Tensor& tensor) {
  Tensor result = detach(tensor);
  count_apart(result, 0);
  return result;
}

void set_data(const Tensor& tensor, const Tensor& source) {
  WEFT_CHECK(!requires_grad(tensor) || is_differentiable(source.dtype()),
             "data: expected a floating or complex dtype for a tensor that requires grad, got ",
             source.dtype());
  count_apart(tensor, tensor.version());
  TensorImpl* target = tensor.impl();
  target->storage = source.storage();
  target->layout = source.layout();
  target->dtype = source.dtype();
  data_changed(tensor);
}

void data_changed(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  if (meta && meta->leaf && meta->node) static_cast<AccumulateGrad&>(*meta->node).describe(tensor);
}

void detach_(const Tensor& tensor) {
  AutogradMeta* meta = meta_of(tensor);
  // What composites make, as reshape of a copy, is often a view of a base that nobody else has.
  if (is_view(tensor) && meta->base.impl()->use_count() == 1) meta->base = Tensor();
  WEFT_CHECK(!is_view(tensor),
             "detach_: expected a tensor that is no view, got a view; use detach()");
  if (!meta) return;
  if (!meta->leaf) meta->node = {};
  meta->index = 0;
  meta->leaf = true;
  meta->requires_grad = false;
  meta->retains_grad = false;
}

bool wants_grad(const TensorList& tensors) {
  for (const Tensor& tensor : tensors) {
    if (wants_grad(tensor)) return true;
  }
  return false;
}

void set_history(const Tensor& result, const Ref<Node>& node) {
  const auto index = static_cast<uint32_t>(node->results.size());
  node->add_result(result);
  if (!result.defined() || !is_differentiable(result.dtype())) return;
  if (anomaly_enabled()) [[unlikely]]
    note_origin(*node);
  AutogradMeta& meta = ensure_meta(result);
  meta.node = node;
  meta.index = index;
  meta.leaf = false;
  meta.requires_grad = true;
}

}  // namespace weft::autograd
