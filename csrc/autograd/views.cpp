#include "autograd/views.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/anomaly.h"
#include "autograd/arith.h"
#include "autograd/hooks.h"
#include "core/fork.h"
#include "core/transforms.h"
#include "ops/view_dtype.h"

namespace weft::autograd {
namespace {

// Views are refreshed rarely: one lock for all.
GlobalMutex refresh_mutex(ForkRank::Views);

// Adds the gradient of a view into the elements of a flat buffer that the view covers.
void add_view_gradient(const Tensor& flat, const Layout& view, Tensor grad) {
  Layout layout = view;
  // Broadcast dimensions (stride 0): every copy counts.
  Dims once = view.sizes;
  for (size_t i = 0; i < once.size(); ++i) {
    if (view.strides[i] == 0 && once[i] > 1) once[i] = 1;
  }
  grad = arith::sum_to(grad, once);
  layout.sizes = once;
  if (layout.is_non_overlapping()) {
    arith::copy_into(arith::as_strided(flat, layout), grad);
    return;
  }
  const int64_t count[] = {layout.numel()};
  const Tensor positions = arith::as_strided(arith::arange(flat.numel(), flat.device()), layout);
  arith::scatter_add_into(flat, arith::reshape(positions, count), arith::reshape(grad, count));
}

// The history of a view as a part of its base.
class AsStridedBackward final : public Node {
 public:
  AsStridedBackward(const Tensor& base, const Tensor& view)
      : geometry_(base, view), device_(base.device()) {}
  const char* name() const override { return "AsStridedBackward0"; }

  TensorList apply(TensorList grads) override {
    const Tensor flat = arith::flat_zeros(geometry_.length, geometry_.dtype, device_);
    add_view_gradient(flat, geometry_.view, geometry_.unfold_view(grads[0]));
    return {geometry_.fold_base(arith::as_strided(flat, geometry_.base))};
  }

 private:
  ViewGeometry geometry_;
  Device device_;
};

// The history of a base after an in-place operator wrote into one of its views: the gradient of the
// part goes through the operator's own node, that of the rest passes unchanged.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> inner)
      : geometry_(base, view), inner_(std::move(inner)) {
    exclusive = inner_->exclusive;
    edges.push_back(gradient_edge(base));
    for (size_t i = 0; i < inner_->edges.size(); ++i) {
      if (static_cast<int>(i) != inner_->self_edge) edges.push_back(inner_->edges[i]);
    }
  }
  const char* name() const override { return "CopySlices"; }
  void release_saved() override { inner_->release_saved(); }

  TensorList apply(TensorList grads) override {
    const Tensor grad = geometry_.unfold_base(grads[0]);
    const Tensor flat = arith::flat_zeros(geometry_.length, grad.dtype(), grad.device());
    Tensor whole = arith::as_strided(flat, geometry_.base);
    arith::copy_into(whole, grad);
    const Tensor part = arith::as_strided(flat, geometry_.view);
    const Tensor own = arith::copy_with_strides(part, contiguous_strides(part.sizes()));
    TensorList inner = inner_->apply({geometry_.fold_view(own)});

    const int self = inner_->self_edge;
    Tensor passed = self >= 0 && static_cast<size_t>(self) < inner.size() ? inner[self] : Tensor();
    if (!passed.defined()) passed = arith::zeros(inner_->results[0]);
    arith::copy_into(part, geometry_.unfold_view(passed));
    // Seen again from the flat buffer: the write above is part of its history.
    TensorList outer{geometry_.fold_base(arith::as_strided(flat, geometry_.base))};
    for (size_t i = 0; i < inner.size(); ++i) {
      if (static_cast<int>(i) != self) outer.push_back(std::move(inner[i]));
    }
    return outer;
  }

 private:
  ViewGeometry geometry_;
  Ref<Node> inner_;
};

void move_retained_grad(AutogradMeta& meta, const Ref<Node>& node, uint32_t index) {
  if (!meta.retains_grad) return;
  if (meta.node) remove_retained(*meta.node, meta.slot.get());
  add_retained(*node, index, meta.slot);
}

// `tensor` is no view.
void give_history(const Tensor& tensor, const Ref<Node>& node, uint32_t index) {
  AutogradMeta& meta = ensure_meta(tensor);
  move_retained_grad(meta, node, index);
  meta.node = node;
  meta.index = index;
  meta.leaf = false;
  meta.requires_grad = true;
  meta.epoch.fetch_add(1, std::memory_order_release);
}

// Gives `view` the history it has as a part of its base; returns the history it had. Under the
// refresh mutex.
Ref<Node> renew_history(const Tensor& view, AutogradMeta& meta) {
  Ref<Node> old;
  const AutogradMeta& base = *meta_of(meta.base);
  if (base.requires_grad && is_differentiable(view.dtype())) {
    auto node = make_ref<AsStridedBackward>(meta.base, view);
    node->add_input(meta.base);
    node->add_result(view);
    move_retained_grad(meta, node, 0);
    old = std::exchange(meta.node, std::move(node));
    meta.index = 0;
    meta.leaf = false;
    meta.requires_grad = true;
  }
  meta.epoch.store(base.epoch.load(std::memory_order_acquire), std::memory_order_release);
  return old;
}

}  // namespace

ViewGeometry::ViewGeometry(const Tensor& base_tensor, const Tensor& view_tensor)
    : base(base_tensor.layout()), view(view_tensor.layout()), dtype(base_tensor.dtype()) {
  if (is_complex(base_tensor.dtype()) != is_complex(view_tensor.dtype())) {
    base_has_parts = is_complex(base_tensor.dtype());
    view_has_parts = !base_has_parts;
    if (base_has_parts) dtype = real_of(dtype);
    Layout& folded = base_has_parts ? base : view;
    folded = views::parts_of_complex(folded);
  }
  const Layout::Extent outer = base.extent();
  const Layout::Extent inner = view.extent();
  const bool empty = inner.begin == inner.end;
  const int64_t begin = empty ? outer.begin : std::min(outer.begin, inner.begin);
  const int64_t end = empty ? outer.end : std::max(outer.end, inner.end);
  length = end - begin;
  base.offset = length == 0 ? 0 : base.offset - begin;
  view.offset = empty ? 0 : view.offset - begin;
}

Tensor ViewGeometry::unfold_base(const Tensor& grad) const {
  return base_has_parts ? arith::view_as_real(grad) : grad;
}
Tensor ViewGeometry::unfold_view(const Tensor& grad) const {
  return view_has_parts ? arith::view_as_real(grad) : grad;
}
Tensor ViewGeometry::fold_base(const Tensor& grad) const {
  return base_has_parts ? arith::view_as_complex(grad) : grad;
}
Tensor ViewGeometry::fold_view(const Tensor& grad) const {
  return view_has_parts ? arith::view_as_complex(grad) : grad;
}

void mark_view(const Tensor& view, const Tensor& base) {
  if (base.impl()->inference) return;
  if (is_differentiable(base.dtype()) && !is_differentiable(view.dtype())) return;
  const AutogradMeta* base_meta = meta_of(base);
  AutogradMeta& meta = ensure_meta(view);
  const bool of_view = base_meta && base_meta->base.defined();
  meta.base = of_view ? base_meta->base : base;
  meta.made_without_grad = !grad_enabled() || (of_view && base_meta->made_without_grad);
  if (const AutogradMeta* root = meta_of(meta.base)) {
    // Without history: gradients end there, and writes that the base would not record are refused.
    meta.requires_grad = !grad_enabled() && root->requires_grad;
    // A view of a stale view is as old as that.
    const AutogradMeta& source = of_view ? *base_meta : *root;
    meta.epoch.store(source.epoch.load(std::memory_order_acquire), std::memory_order_release);
  }
}

void refresh_view(const Tensor& view) {
  AutogradMeta& meta = *meta_of(view);
  Ref<Node> old;  // dropped after the lock
  std::lock_guard lock(refresh_mutex);
  if (is_stale_view(meta)) old = renew_history(view, meta);
}

namespace {

thread_local std::vector<std::vector<Tensor>> transforms;  // what those under way lend

// Whether a function under a transform has a tensor from elsewhere: nothing made it meanwhile.
bool is_captured(const Tensor& self) {
  if (transforms_under_way.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  if (transforms.empty() || self.storage()->has(kMadeInTransform)) return false;
  const auto same = [&](const Tensor& own) { return own.storage() == self.storage(); };
  return std::none_of(transforms.back().begin(), transforms.back().end(), same);
}

}  // namespace

void begin_transform(std::vector<Tensor> lent) {
  transforms.push_back(std::move(lent));
  ++transforms_under_way;
}

void end_transform() {
  --transforms_under_way;
  transforms.pop_back();
}

void check_inplace(const char* op, const Tensor& self) {
  if (!grad_enabled()) return;
  WEFT_CHECK(!is_captured(self), op,
             ": expected a tensor that the function under a transform made, for a write in place, "
             "got one from outside; change a clone() of it");
  mode.inplace_target = self.impl();
  const AutogradMeta* meta = meta_of(self);
  if (!meta) return;
  const AutogradMeta* base = meta->base.defined() ? meta_of(meta->base) : nullptr;
  if (base && base->requires_grad) {
    WEFT_CHECK(
        !base->leaf, op,
        ": expected a tensor that may be changed in place, got a view of a leaf that requires "
        "grad; use no_grad() or detach()");
    WEFT_CHECK(
        !meta->made_without_grad, op,
        ": expected a tensor that may be changed in place, got a view made under no_grad of a "
        "tensor that requires grad; make the view with gradients enabled or use no_grad()");
    return;
  }
  WEFT_CHECK(!meta->requires_grad || !meta->leaf, op,
             ": expected a tensor that may be changed in place, got a leaf that requires grad; "
             "use no_grad() or detach()");
}

void rebase_history(const Tensor& self, const Ref<Node>& node) {
  mode.inplace_target = nullptr;
  node->add_result(self);
  if (!is_differentiable(self.dtype())) return;
  if (anomaly_enabled()) [[unlikely]]
    note_origin(*node);
  const AutogradMeta* meta = meta_of(self);
  if (!meta || !meta->base.defined()) {
    give_history(self, node, static_cast<uint32_t>(node->results.size() - 1));
    return;
  }
  const Tensor base = meta->base;
  auto slices = make_ref<CopySlices>(base, self, node);
  slices->add_result(base);
  if (anomaly_enabled()) [[unlikely]]
    note_origin(*slices);
  give_history(base, slices, 0);
}

void rebase_layout(const Tensor& self, const Ref<Node>& node) {
  const AutogradMeta* base = is_view(self) ? meta_of(view_base(self)) : nullptr;
  if (!base || !base->requires_grad) {
    rebase_history(self, node);
    return;
  }
  mode.inplace_target = nullptr;
  Ref<Node> old;  // dropped after the lock
  std::lock_guard lock(refresh_mutex);
  old = renew_history(self, *meta_of(self));
}

}  // namespace weft::autograd
