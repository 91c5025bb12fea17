// Functions that users hang on tensors and nodes, and the node at the end of the graph.
//
// A node's hooks are an immutable record behind a shared pointer: registering replaces the record,
// so a backward that runs meanwhile in another thread keeps the one it started with.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/node.h"

namespace weft::autograd {

// A tensor hook sees the complete gradient of one result and may return another one.
using TensorHook = std::function<Tensor(const Tensor& grad)>;
// Before a node runs: gradients of its results. Returns the ones to use, or an empty list.
using PreHook = std::function<TensorList(const TensorList& grads)>;
// After it: (gradients for its inputs, gradients of its results).
using PostHook = std::function<TensorList(const TensorList& inputs, const TensorList& grads)>;
// After a leaf's .grad was updated.
using AccumulatedHook = std::function<void()>;

struct Hooks {
  template <class F>
  struct Entry {
    uint64_t id;
    uint32_t index;  // which result; tensor hooks only
    F function;
  };
  std::vector<Entry<TensorHook>> tensor;
  std::vector<std::pair<uint32_t, Ref<GradSlot>>> retained;
  std::vector<Entry<PreHook>> pre;
  std::vector<Entry<PostHook>> post;
  std::vector<Entry<AccumulatedHook>> accumulated;
  std::string origin;              // anomaly mode: where the node was recorded
  std::shared_ptr<void> metadata;  // of the bindings: what a program hung on the node
};

// Each returns an id for remove_hook. RuntimeError for a tensor that does not require grad.
uint64_t register_hook(const Tensor& tensor, TensorHook hook);
uint64_t register_accumulated_hook(const Tensor& leaf, AccumulatedHook hook);
uint64_t register_pre_hook(Node& node, PreHook hook);
uint64_t register_post_hook(Node& node, PostHook hook);
void remove_hook(Node& node, uint64_t id);  // does nothing when it is gone
void remove_all_hooks(Node& node);          // and metadata
void set_origin(Node& node, std::string origin);
void set_metadata(Node& node, std::shared_ptr<void> metadata);  // unless it has some

std::shared_ptr<const Hooks> hooks_of(const Node& node);
void add_retained(Node& node, uint32_t index, Ref<GradSlot> slot);
void remove_retained(Node& node, const GradSlot* slot);

// The end of the graph at a leaf: adds the gradient into the leaf's slot.
class AccumulateGrad final : public Node {
 public:
  AccumulateGrad(const Tensor& leaf, Ref<GradSlot> slot);
  const char* name() const override { return "AccumulateGrad"; }
  TensorList apply(TensorList grads) override;

  void describe(const Tensor& leaf);  // which tensor it is, its shape and dtype now

  Ref<GradSlot> slot;
  Dims strides;
};

}  // namespace weft::autograd
