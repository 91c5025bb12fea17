// The recorded graph: nodes (one per operator call) and edges to the nodes that made its inputs.
//
// Ownership runs one way, from results to what they were made from, so there are no cycles: a tensor
// owns its grad_fn; a node owns its edges and its saved values; a saved *result* holds no reference to
// its own node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft::autograd {

class Node;

// "The gradient of this value goes into input slot `index` of `node`." Undefined: no gradient wanted.
struct Edge {
  Ref<Node> node;
  uint32_t index = 0;
  explicit operator bool() const noexcept { return static_cast<bool>(node); }
};

// What the engine must know of a forward result to shape its gradient (un-broadcast, zeros).
struct ResultInfo {
  Dims sizes;
  DType dtype = DType::F32;
  Device device;
};

class Node : public RefCounted {
 public:
  Node();
  virtual ~Node() = default;

  virtual const char* name() const = 0;  // "MulBackward0"
  // grads[i]: gradient of forward result i, undefined when none arrived.
  // Returns one gradient per edge; undefined entries mean zero.
  virtual TensorList apply(TensorList grads) = 0;
  // Drops saved values; a later apply raises.
  virtual void release_saved() {}

  // Edges, one per differentiable tensor input of the forward call, in schema order (a Tensor[]
  // argument contributes one edge per element).
  std::vector<Edge> edges;
  std::vector<ResultInfo> results;
  uint64_t sequence;  // later calls have larger numbers; the engine runs the largest first

  bool wants(size_t edge) const { return edge < edges.size() && edges[edge]; }
  void add_input(const Tensor& tensor);
  void add_inputs(const TensorList& tensors);

  // Hooks; owned here, run by the engine.
  std::vector<std::shared_ptr<std::function<TensorList(const TensorList&)>>> pre_hooks;
  std::vector<std::shared_ptr<std::function<TensorList(const TensorList&, const TensorList&)>>> post_hooks;
  void* python_wrapper = nullptr;  // borrowed PyObject, set by the bindings

  // Frees long chains without recursion (a pending list).
  static void destroy(Node* node);
};

// A tensor kept for backward. unpack() raises RuntimeError when it was changed in place since, naming
// the node and both versions, and when it was released already.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_result`: the tensor is an output of the node that saves it (no reference to that node is kept).
  void save(const Tensor& tensor, bool is_result = false);
  Tensor unpack(const Node* owner, Ref<Node> grad_fn_if_result = {}) const;
  void reset();

 private:
  Tensor tensor_;           // detached when is_result
  uint32_t version_ = 0;
  bool is_result_ = false;
  bool saved_ = false;
  uint32_t result_index_ = 0;
};

// ---- mode (thread local) ----
bool grad_enabled();
bool set_grad_enabled(bool enabled);  // returns the old value
bool inference_enabled();
bool set_inference_enabled(bool enabled);
struct NoGradGuard {
  NoGradGuard() : old_(set_grad_enabled(false)) {}
  ~NoGradGuard() { set_grad_enabled(old_); }
  NoGradGuard(const NoGradGuard&) = delete;

 private:
  bool old_;
};

// ---- per-tensor state ----
bool requires_grad(const Tensor& tensor);
// RuntimeError on a non-leaf, or when the dtype is not floating or complex.
void set_requires_grad(const Tensor& tensor, bool value);
bool is_leaf(const Tensor& tensor);
Ref<Node> grad_fn(const Tensor& tensor);      // null for leaves
uint32_t result_index(const Tensor& tensor);  // which result of its grad_fn
Tensor grad(const Tensor& tensor);            // undefined when none
void set_grad(const Tensor& tensor, const Tensor& grad);
bool retains_grad(const Tensor& tensor);
void retain_grad(const Tensor& tensor);
Edge gradient_edge(const Tensor& tensor);     // grad_fn, or the leaf's accumulator

// ---- used by generated operator functions ----
inline bool wants_grad(const Tensor& tensor) { return tensor.defined() && tensor.impl()->autograd && requires_grad(tensor); }
bool wants_grad(const TensorList& tensors);
template <class... T>
bool needs_graph(const T&... tensors) {
  return grad_enabled() && (wants_grad(tensors) || ...);
}
// Makes `node` the history of a fresh result (no-op for undefined or non-differentiable dtypes).
void set_history(const Tensor& result, const Ref<Node>& node);
// Before an in-place write under grad mode: RuntimeError for a leaf that requires grad (or a view of one).
void check_inplace(const char* op, const Tensor& self);
// After it: `self` gets the node as its history; when `self` is a view, its base is rebased as well.
void rebase_history(const Tensor& self, const Ref<Node>& node);
// Marks `view` as a view of `base` (chains to the base's base) so that in-place writes propagate.
void mark_view(const Tensor& view, const Tensor& base);
// A node for operators without a gradient: raises when backward reaches it.
Ref<Node> not_differentiable(const char* op);

// ---- engine ----
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;     // add into .grad of leaves; false: return gradients of `inputs`
  bool allow_unused = false;
};
// Runs in the calling thread. grads[i] may be undefined for a one-element root (means 1).
// With `inputs`, only their gradients are computed (and accumulated or returned).
TensorList backward(const TensorList& roots, const TensorList& grads, const TensorList& inputs,
                    BackwardOptions options);

}  // namespace weft::autograd
