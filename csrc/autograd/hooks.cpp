#include "autograd/hooks.h"

#include <algorithm>
#include <utility>

#include "autograd/arith.h"
#include "autograd/sparse.h"
#include "core/fork.h"

namespace weft::autograd {
namespace {

// Guards every node's pointer to its hooks; held only to copy or replace one.
GlobalMutex hooks_mutex(ForkRank::Hooks);

std::atomic<uint64_t> hook_counter{0};

template <class F>
void drop(std::vector<Hooks::Entry<F>>& entries, uint64_t id) {
  std::erase_if(entries, [id](const auto& entry) { return entry.id == id; });
}

}  // namespace

// Replaces the hooks of a node by an edited copy.
struct HooksEditor {
  template <class Edit>
  static void edit(Node& node, Edit&& change) {
    auto copy = std::make_shared<Hooks>();
    std::shared_ptr<const Hooks> next = copy;
    std::lock_guard lock(hooks_mutex);
    if (node.hooks_) *copy = *node.hooks_;
    change(*copy);
    std::swap(node.hooks_, next);  // `next` frees the old record after the lock is gone
    node.has_hooks.store(true, std::memory_order_release);
  }
};

std::shared_ptr<const Hooks> hooks_of(const Node& node) {
  std::lock_guard lock(hooks_mutex);
  return node.hooks_;
}

uint64_t register_hook(const Tensor& tensor, TensorHook hook) {
  const Edge edge = gradient_edge(tensor);
  WEFT_CHECK(edge, "register_hook: expected a tensor that requires grad, got one that does not");
  const uint64_t id = ++hook_counter;
  HooksEditor::edit(
      *edge.node, [&](Hooks& hooks) { hooks.tensor.push_back({id, edge.index, std::move(hook)}); });
  return id;
}

uint64_t register_accumulated_hook(const Tensor& leaf, AccumulatedHook hook) {
  const Edge edge = gradient_edge(leaf);
  WEFT_CHECK(edge && edge.node->is_accumulator,
             "register_post_accumulate_grad_hook: expected a leaf that requires grad, got ",
             edge ? "a result of " : "a tensor that does not require grad",
             edge ? edge.node->name() : "");
  const uint64_t id = ++hook_counter;
  HooksEditor::edit(*edge.node,
                    [&](Hooks& hooks) { hooks.accumulated.push_back({id, 0, std::move(hook)}); });
  return id;
}

uint64_t register_pre_hook(Node& node, PreHook hook) {
  const uint64_t id = ++hook_counter;
  HooksEditor::edit(node, [&](Hooks& hooks) { hooks.pre.push_back({id, 0, std::move(hook)}); });
  return id;
}

uint64_t register_post_hook(Node& node, PostHook hook) {
  const uint64_t id = ++hook_counter;
  HooksEditor::edit(node, [&](Hooks& hooks) { hooks.post.push_back({id, 0, std::move(hook)}); });
  return id;
}

void remove_hook(Node& node, uint64_t id) {
  HooksEditor::edit(node, [id](Hooks& hooks) {
    drop(hooks.tensor, id);
    drop(hooks.pre, id);
    drop(hooks.post, id);
    drop(hooks.accumulated, id);
  });
}

void remove_all_hooks(Node& node) {
  HooksEditor::edit(node, [](Hooks& hooks) {
    hooks.tensor.clear();
    hooks.pre.clear();
    hooks.post.clear();
    hooks.accumulated.clear();
    hooks.metadata = nullptr;
  });
}

void set_origin(Node& node, std::string origin) {
  HooksEditor::edit(node, [&](Hooks& hooks) { hooks.origin = std::move(origin); });
}

void set_metadata(Node& node, std::shared_ptr<void> metadata) {
  HooksEditor::edit(node, [&](Hooks& hooks) {
    if (!hooks.metadata) hooks.metadata = std::move(metadata);
  });
}

void add_retained(Node& node, uint32_t index, Ref<GradSlot> slot) {
  HooksEditor::edit(node,
                    [&](Hooks& hooks) { hooks.retained.emplace_back(index, std::move(slot)); });
}

void remove_retained(Node& node, const GradSlot* slot) {
  HooksEditor::edit(node, [slot](Hooks& hooks) {
    std::erase_if(hooks.retained, [slot](const auto& entry) { return entry.second.get() == slot; });
  });
}

Tensor GradSlot::get() const {
  const PatientLock lock(mutex_);
  return value_;
}

void GradSlot::set(Tensor value) {
  const PatientLock lock(mutex_);
  std::swap(value_, value);  // the old one is dropped by the caller's side, without the lock
}

Tensor GradSlot::leaf() const {
  const PatientLock lock(mutex_);
  if (!leaf_ || !leaf_->try_retain()) return {};
  return Tensor(Ref<TensorImpl>::adopt(const_cast<TensorImpl*>(leaf_)));
}

void GradSlot::set_leaf(const TensorImpl* leaf) {
  if (leaf) leaf->allow_try_retain();
  const PatientLock lock(mutex_);
  leaf_ = leaf;
}

void GradSlot::accumulate(Tensor grad, const Dims& strides) {
  Tensor old;  // freed after the lock: that may need Python's lock, whose holder may want ours
  const PatientLock lock(mutex_);
  if (!value_.defined()) {
    const bool take = arith::is_private(grad) && arith::has_strides(grad, strides);
    value_ = take ? std::move(grad) : arith::copy_with_strides(grad, strides);
    if (take && is_view(value_)) old = std::exchange(value_, detach(value_));
  } else if (grad_enabled()) {
    // The old value may have a history and be held by others: leave it as it is.
    grad = arith::add(value_, grad);
    std::swap(value_, grad);
  } else {
    arith::add_into(value_, grad);
  }
}

AccumulateGrad::AccumulateGrad(const Tensor& leaf, Ref<GradSlot> grad_slot)
    : slot(std::move(grad_slot)) {
  is_accumulator = true;
  exclusive = false;  // the slot has a lock of its own
  describe(leaf);
}

void AccumulateGrad::describe(const Tensor& leaf) {
  slot->set_leaf(leaf.impl());
  results.clear();
  add_result(leaf);
  strides = arith::dense_strides(leaf);
}

TensorList AccumulateGrad::apply(TensorList grads) {
  if (sparse::in_use()) {
    const Tensor old = slot->get();
    if (sparse::is_sparse(old) || sparse::is_sparse(grads[0])) {
      slot->set(old.defined() ? sparse::add(old, grads[0]) : grads[0]);
      return {};
    }
  }
  slot->accumulate(std::move(grads[0]), strides);
  return {};
}

}  // namespace weft::autograd
