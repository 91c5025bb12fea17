// The recorded graph: nodes (one per operator call) and edges to the nodes that made its inputs.
//
// Ownership runs one way, from results to what they were made from, so there are no cycles: a
// tensor owns its grad_fn; a node owns its edges and its saved values; a saved *result* holds no
// reference to its own node. A leaf owns its accumulator, which owns the gradient but not the leaf.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "autograd/inline_vector.h"
#include "autograd/mode.h"
#include "autograd/pool.h"
#include "core/error.h"
#include "core/mutex.h"
#include "core/tensor.h"

namespace weft::autograd {

class Node;
struct Hooks;

// "The gradient of this value goes into input slot `index` of `node`." Undefined: no gradient
// wanted.
struct Edge {
  Ref<Node> node;
  uint32_t index = 0;
  explicit operator bool() const noexcept { return static_cast<bool>(node); }
};

// What the engine must know of a forward result to shape its gradient (un-broadcast, zeros).
struct ResultInfo {
  Dims sizes;
  DType dtype = DType::Bool;  // a dtype without gradients: no gradient is ever sent here
  Device device = {};
};

class Node : public RefCounted {
 public:
  Node() noexcept : sequence(next_sequence()) {}
  virtual ~Node();

  virtual const char* name() const = 0;  // "MulBackward0"
  // grads[i]: gradient of forward result i. At least one is defined; the others are zeros, or
  // undefined where `fill_missing` is false or the result has no gradient (an index).
  // Returns one gradient per edge; undefined entries mean zero. The engine casts them and sums them
  // to the size of the input.
  virtual TensorList apply(TensorList grads) = 0;
  // Drops saved values; a later apply raises.
  virtual void release_saved() {}

  // Edges, one per differentiable tensor input of the forward call, in schema order (a Tensor[]
  // argument contributes one edge per element).
  InlineVector<Edge, 2> edges;
  InlineVector<ResultInfo, 1> results;  // filled by set_history, in the order of the results
  uint64_t sequence;  // later calls have larger numbers; the engine runs the largest first
  bool fill_missing = true;
  bool exclusive = true;  // one thread at a time runs it (false: it runs Python)
  bool is_accumulator = false;
  // In-place operators: which edge is that of the tensor written to; -1 when its old value does not
  // matter and it has no edge.
  int16_t self_edge = 0;

  // False when the gradient for this edge would be dropped: apply() need not compute it.
  bool wants(size_t edge) const {
    return edge < edges.size() && edges[edge] && (!mode.filter_edges || wanted_by_task(edge));
  }
  bool wants_any(size_t first, size_t count) const;
  void add_input(const Tensor& tensor);
  void add_inputs(const TensorList& tensors);
  void add_result(const Tensor& tensor);

  std::atomic<bool> has_hooks{false};  // see hooks.h
  void* python_wrapper = nullptr;      // borrowed PyObject, set by the bindings

  // Frees long chains without recursion (a pending list).
  static void destroy(Node* node);
  static void* operator new(size_t size) { return pool_allocate(size); }
  static void operator delete(void* block, size_t size) { pool_free(block, size); }

 private:
  friend class Task;
  friend class NodeLock;
  friend std::shared_ptr<const Hooks> hooks_of(const Node& node);
  friend struct HooksEditor;

  static uint64_t next_sequence() noexcept { return ++sequence_counter; }
  static constinit thread_local uint64_t sequence_counter WEFT_FAST_TLS;
  bool wanted_by_task(size_t edge) const;

  std::shared_ptr<const Hooks> hooks_;
  // Scratch of the engine: the task that works on this node, and the place it has there. A second
  // task that meets the node meanwhile (another thread, a nested backward) keeps its own record.
  std::atomic<const void*> task_{nullptr};
  uint32_t task_slot_ = 0;
  Mutex running_;
  Node* next_pending_ = nullptr;
};

// A tensor kept for backward. unpack() raises RuntimeError when it was changed in place since,
// naming the node and both versions, and when it was released already.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_result`: the tensor is result number `result_index` of the node that saves it (no reference
  // to that node is kept). `name`: a literal, for messages. An in-place operator saves its inputs
  // between check_inplace and rebase_history.
  void save(const Tensor& tensor, bool is_result = false, const char* name = nullptr,
            uint32_t result_index = 0);
  // With its history where `differentiable`; without, a tensor that was kept apart from it (a
  // result, a view, what a hook packed) comes without.
  Tensor unpack(const Node* owner, Ref<Node> grad_fn_if_result, bool differentiable) const;
  // Differentiable where gradients are recorded.
  Tensor unpack(const Node* owner, Ref<Node> grad_fn_if_result = {}) const;
  void reset();

 private:
  Tensor tensor_;  // without history when `detached_`
  Edge edge_;      // the history of a detached input
  const char* name_ = nullptr;
  uint32_t version_ = 0;
  uint32_t result_index_ = 0;
  bool is_result_ = false;
  bool detached_ = false;
  bool saved_ = false;
};

// ---- per-tensor state ----

// Where the .grad of a tensor lives. Shared by the tensor and by the node that fills it, so that
// neither owns the other.
class GradSlot final : public RefCounted {
 public:
  Tensor get() const;
  void set(Tensor value);
  // Adds `grad` to the value: takes it over when nobody else can see it, adds in place when no
  // graph of this addition is recorded. `strides`: those of the tensor it is the gradient of.
  void accumulate(Tensor grad, const Dims& strides);

  // The leaf whose gradient it is, as long as somebody holds it; null for others.
  Tensor leaf() const;
  void set_leaf(const TensorImpl* leaf);

 private:
  mutable Mutex mutex_;  // held while a gradient is added
  Tensor value_;
  const TensorImpl* leaf_ = nullptr;
};

// A leaf that requires grad: `node` is its accumulator. A result: `node` is its grad_fn. A view
// also knows its base; when the base gets a new history (an in-place write), the view's is made
// anew from the base's when next asked for.
class AutogradMeta final : public AutogradMetaBase {
 public:
  AutogradMeta() = default;
  ~AutogradMeta() override {
    if (slot) slot->set_leaf(nullptr);
  }

  Ref<Node> node;
  Tensor base;                     // of a view; never a view itself
  Ref<GradSlot> slot;              // where .grad lives, shared with the node that fills it
  uint32_t index = 0;              // which result of `node`
  std::atomic<uint32_t> epoch{0};  // of a base: times its history changed; of a view: the base's
                                   // epoch that `node` belongs to
  bool requires_grad = false;
  bool leaf = true;
  bool retains_grad = false;
  bool made_without_grad = false;  // a view made under no_grad

  std::unique_ptr<AutogradMetaBase> sharing_writes() const override {
    auto other = std::make_unique<AutogradMeta>();
    other->writes = writes;
    return other;
  }
  bool has_history() const;
  bool records() const override;

  static void* operator new(size_t size) { return pool_allocate(size); }
  static void operator delete(void* block, size_t size) { pool_free(block, size); }
};

inline AutogradMeta* meta_of(const Tensor& tensor) {
  return static_cast<AutogradMeta*>(tensor.impl()->autograd.get());
}
// A view whose base got a new history since.
inline bool is_stale_view(const AutogradMeta& meta) {
  if (!meta.base.defined()) return false;
  const AutogradMeta* base = meta_of(meta.base);
  return base &&
         base->epoch.load(std::memory_order_acquire) != meta.epoch.load(std::memory_order_acquire);
}

inline bool AutogradMeta::has_history() const {
  return requires_grad || (is_stale_view(*this) && meta_of(base)->requires_grad);
}
inline bool AutogradMeta::records() const { return grad_enabled() && has_history(); }

inline bool requires_grad(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor);
  return meta && meta->has_history();
}
// RuntimeError on a non-leaf, or when the dtype is not floating or complex.
void set_requires_grad(const Tensor& tensor, bool value);
bool is_leaf(const Tensor& tensor);
Ref<Node> grad_fn(const Tensor& tensor);      // null for leaves
uint32_t result_index(const Tensor& tensor);  // which result of its grad_fn
Tensor grad(const Tensor& tensor);            // undefined when none
// Undefined clears. RuntimeError when shape, dtype or device differ.
void set_grad(const Tensor& tensor, const Tensor& grad);
bool retains_grad(const Tensor& tensor);
void retain_grad(const Tensor& tensor);
Edge gradient_edge(const Tensor& tensor);  // grad_fn, or the leaf's accumulator
bool is_view(const Tensor& tensor);
Tensor view_base(const Tensor& tensor);  // undefined when not a view
// The same elements without history; not a view for autograd.
Tensor detach(const Tensor& tensor);
// Drops the history in place; RuntimeError for a view.
void detach_(const Tensor& tensor);
// x.data: the same elements without history, whose writes x and its saved values do not notice.
Tensor data(const Tensor& tensor);
// x.data = source: memory, shape and dtype of `source`; history and count of writes stay.
void set_data(const Tensor& tensor, const Tensor& source);
// To be called when a leaf gets other contents of another shape or dtype.
void data_changed(const Tensor& tensor);

// ---- used by generated operator functions ----
inline bool wants_grad(const Tensor& tensor) {
  return tensor.defined() && tensor.impl()->autograd && requires_grad(tensor);
}
bool wants_grad(const TensorList& tensors);
template <class... T>
bool needs_graph(const T&... tensors) {
  return grad_enabled() && (wants_grad(tensors) || ...);
}
// Makes `node` the history of a fresh result. Call it once per result, in order; an undefined
// result or one without gradients (an index) only takes its place in the numbering.
void set_history(const Tensor& result, const Ref<Node>& node);
// Before an in-place write under grad mode: RuntimeError for a leaf that requires grad (or a view
// of one).
void check_inplace(const char* op, const Tensor& self);
// After it: `self` gets the node as its history; when `self` is a view, its base is rebased as
// well.
void rebase_history(const Tensor& self, const Ref<Node>& node);
// The same after an operator that changed nothing but the layout (`squeeze_`): a base is rebased as
// above; a view becomes another part of a base whose elements, and so whose history, stay.
void rebase_layout(const Tensor& self, const Ref<Node>& node);
// Marks `view` as a view of `base` (chains to the base's base) so that in-place writes propagate.
void mark_view(const Tensor& view, const Tensor& base);
// A node for operators without a gradient: raises when backward reaches it.
Ref<Node> not_differentiable(const char* op);

// ---- engine ----
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // add into .grad of leaves; false: return gradients of `inputs`
  bool allow_unused = false;
};
// Where a run of backward starts or ends: a tensor, or an edge of the graph alone.
struct Target {
  Target(Tensor given) : tensor(std::move(given)) {}
  Target(Edge given) : edge(std::move(given)) {}

  Tensor tensor;  // undefined: an edge, or nothing
  Edge edge;
};
using Targets = std::vector<Target>;
// Runs in the calling thread. grads[i] may be undefined for a one-element root (means 1).
// With `inputs`, only their gradients are computed (and accumulated or returned). An edge has no
// place for a gradient: it accumulates where its node does.
TensorList backward_of(Targets roots, const TensorList& grads, Targets inputs,
                       BackwardOptions options);
TensorList backward(const TensorList& roots, const TensorList& grads, const TensorList& inputs,
                    BackwardOptions options);

}  // namespace weft::autograd
