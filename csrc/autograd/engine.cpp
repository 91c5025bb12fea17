// The engine: sends gradients from the roots down the graph, each node once, the latest call first.
#include <span>
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/arith.h"
#include "autograd/hooks.h"
#include "autograd/sparse.h"
#include "autograd/task.h"
#include "core/profiler.h"

namespace weft::autograd {

// Here, not inline: libraries of hidden symbols (weft._C) would each have their own.
constinit std::atomic<const sparse::Wrappers*> sparse::wrappers{nullptr};

namespace {

// The gradient as the receiving result wants it: its size (broadcast dimensions are summed), its
// dtype, its device. `from` names who made it.
Tensor fit(Tensor grad, const ResultInfo& info, const char* from) {
  if (grad.sizes() != info.sizes) {
    WEFT_CHECK(arith::can_sum_to(grad.sizes(), info.sizes), from, ": expected gradient of shape ",
               AsTuple{info.sizes}, ", got ", AsTuple{grad.sizes()});
    grad = arith::sum_to(grad, info.sizes);
  }
  if (grad.dtype() != info.dtype) {
    WEFT_CHECK(is_differentiable(grad.dtype()) || !is_complex(info.dtype), from,
               ": expected gradient of dtype ", info.dtype, ", got ", grad.dtype());
    grad = arith::cast(grad, info.dtype);
  }
  return grad.device() == info.device ? grad : arith::move(grad, info.device);
}

// A sparse gradient as the receiving node wants it. That of a sparse tensor is one for its values.
Tensor fit_sparse(Tensor grad, const Node& node, const ResultInfo& info, const char* from) {
  const Dims sizes = sparse::sizes_of(grad);
  if (sizes == info.sizes) {
    if (!node.is_accumulator) return fit(sparse::to_dense(grad), info, from);
    WEFT_CHECK(grad.dtype() == info.dtype, from, ": expected gradient of dtype ", info.dtype,
               ", got ", grad.dtype());
    return grad;
  }
  WEFT_CHECK(grad.sizes() == info.sizes, from, ": expected gradient of shape ", AsTuple{info.sizes},
             ", got ", AsTuple{sizes}, " (sparse)");
  return fit(detach(grad), info, from);
}

Tensor sum_of(Tensor a, const Tensor& b) {
  if (sparse::is_sparse(a) || sparse::is_sparse(b)) return sparse::add(a, b);
  return arith::accumulate(std::move(a), b);
}

class Engine {
 public:
  Engine(const BackwardOptions& options, const char* op) : options_(options), op_(op) {}

  TensorList run(const TensorList& roots, const TensorList& grads, const TensorList& inputs);

 private:
  TensorList root_gradients(const TensorList& roots, const TensorList& grads);
  Tensor root_gradient(const Tensor& root, const Tensor& grad);
  void discover();
  void ask_for(const TensorList& inputs);
  void mark_needed();
  void run_asked_leaves();
  void count_gradients();
  void start(TensorList root_grads);
  void process(uint32_t state);
  void run_tensor_hooks(const Hooks& hooks, TensorList& grads, const Node& node);
  void capture(uint32_t state, const TensorList& grads);
  void fill_missing(const Node& node, TensorList& grads);
  TensorList apply(Node& node, TensorList grads, const Hooks* hooks);
  TensorList watched_apply(Node& node, TensorList grads, const Hooks* hooks);
  void deliver(const Edge& edge, Tensor grad, const char* from);
  void arrived(uint32_t state);
  TensorList results(const TensorList& inputs);

  const BackwardOptions options_;
  const char* const op_;
  Task::Pooled task_;
  TensorList captured_;
  bool restricted_ = false;
};

Tensor Engine::root_gradient(const Tensor& root, const Tensor& grad) {
  if (grad.defined()) {
    WEFT_CHECK(grad.sizes() == root.sizes(), op_, ": expected a gradient of shape ",
               AsTuple{root.sizes()}, ", got ", AsTuple{grad.sizes()});
    WEFT_CHECK(!is_complex(grad.dtype()) || is_complex(root.dtype()), op_,
               ": expected a gradient of dtype ", root.dtype(), ", got ", grad.dtype());
    return grad;
  }
  WEFT_CHECK(root.numel() == 1, op_,
             ": expected a gradient for a non-scalar root, got None for shape ",
             AsTuple{root.sizes()});
  WEFT_CHECK(!is_complex(root.dtype()), op_,
             ": expected a gradient for a complex root, got None for dtype ", root.dtype());
  return arith::ones(root);
}

TensorList Engine::root_gradients(const TensorList& roots, const TensorList& grads) {
  WEFT_CHECK(grads.empty() || grads.size() == roots.size(), op_,
             ": expected one gradient per root, got ", grads.size(), " for ", roots.size());
  TensorList result(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    const Tensor& root = roots[i];
    WEFT_CHECK(root.defined(), op_, ": expected tensors as roots, got None for root ", i);
    Edge edge = gradient_edge(root);
    WEFT_CHECK(edge, op_, ": expected roots that require grad, got root ", i,
               " that does not require grad and has no grad_fn");
    result[i] = root_gradient(root, grads.empty() ? Tensor() : grads[i]);
    task_->roots.push_back(std::move(edge));
  }
  return result;
}

// Every node that can be reached, breadth first; the list of states is its own queue.
void Engine::discover() {
  for (const Edge& root : task_->roots) task_->place(root.node.get());
  for (size_t i = 0; i < task_->states.size(); ++i) {
    for (const Edge& edge : task_->states[i].node->edges) {
      if (edge) task_->place(edge.node.get());
    }
  }
}

void Engine::ask_for(const TensorList& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    WEFT_CHECK(inputs[i].defined(), op_, ": expected tensors as inputs, got None for input ", i);
    const Edge edge = gradient_edge(inputs[i]);
    WEFT_CHECK(edge, op_, ": expected inputs that require grad, got input ", i, " that does not");
    const int64_t state = task_->find(edge.node.get());
    if (state < 0) continue;
    task_->states[static_cast<size_t>(state)].captured = true;
    task_->captures.push_back({static_cast<uint32_t>(state), edge.index, static_cast<uint32_t>(i)});
  }
}

// A node is needed when one of its edges leads to a captured or a needed node: depth first, each
// node after those it leads to.
void Engine::mark_needed() {
  struct Visit {
    uint32_t state;
    size_t edge;
  };
  std::vector<NodeState>& states = task_->states;
  std::vector<bool> seen(states.size());
  std::vector<Visit> stack;
  for (NodeState& state : states) state.needed = false;
  for (const Edge& root : task_->roots) {
    const uint32_t first = task_->place(root.node.get());
    if (!seen[first]) stack.push_back({first, 0});
    while (!stack.empty()) {
      Visit& top = stack.back();
      NodeState& state = states[top.state];
      seen[top.state] = true;
      if (top.edge > 0 && state.node->edges[top.edge - 1]) {
        const NodeState& below = states[task_->place(state.node->edges[top.edge - 1].node.get())];
        state.needed = state.needed || below.needed || below.captured;
      }
      if (top.edge == state.node->edges.size()) {
        stack.pop_back();
        continue;
      }
      const Edge& edge = state.node->edges[top.edge++];
      if (!edge) continue;
      const uint32_t next = task_->place(edge.node.get());
      if (!seen[next]) stack.push_back({next, 0});
    }
  }
}

// backward(inputs=...): a leaf is run as usual, hooks included, instead of being captured.
void Engine::run_asked_leaves() {
  for (const Task::Capture& wanted : task_->captures) {
    NodeState& state = task_->states[wanted.state];
    if (!state.node->is_accumulator) continue;
    state.needed = true;
    state.captured = false;
  }
}

void Engine::count_gradients() {
  for (NodeState& state : task_->states) {
    if (!state.needed) continue;
    for (const Edge& edge : state.node->edges) {
      if (edge) ++task_->states[task_->place(edge.node.get())].waiting;
    }
  }
}

// A root waits for its own gradients as for any others.
void Engine::start(TensorList root_grads) {
  for (const Edge& root : task_->roots) ++task_->states[task_->place(root.node.get())].waiting;
  for (size_t i = 0; i < root_grads.size(); ++i) {
    deliver(task_->roots[i], std::move(root_grads[i]), op_);
  }
}

void Engine::deliver(const Edge& edge, Tensor grad, const char* from) {
  const uint32_t place = task_->place(edge.node.get());
  const NodeState& target = task_->states[place];
  if (grad.defined() && (target.needed || target.captured)) {
    const ResultInfo& info = edge.node->results[edge.index];
    grad = sparse::is_sparse(grad) ? fit_sparse(std::move(grad), *edge.node, info, from)
                                   : fit(std::move(grad), info, from);
    NodeState& state = task_->states[place];
    if (state.grads.empty()) state.grads.resize(edge.node->results.size());
    Tensor& sum = state.grads[edge.index];
    sum = sum.defined() ? sum_of(std::move(sum), grad) : std::move(grad);
  }
  arrived(place);
}

// Leaves run at once: their gradients need not be kept until the end.
void Engine::arrived(uint32_t place) {
  NodeState& state = task_->states[place];
  if (--state.waiting > 0) return;
  if (state.node->is_accumulator) {
    process(place);
  } else if (state.needed || state.captured) {
    task_->push_ready(place);
  }
}

void Engine::run_tensor_hooks(const Hooks& hooks, TensorList& grads, const Node& node) {
  for (const auto& hook : hooks.tensor) {
    Tensor& grad = grads[hook.index];
    if (!grad.defined()) continue;
    Tensor other = hook.function(grad);
    if (!other.defined()) continue;
    WEFT_CHECK(other.sizes() == grad.sizes(), node.name(), ": expected a hook to return shape ",
               AsTuple{grad.sizes()}, ", got ", AsTuple{other.sizes()});
    grad = std::move(other);
  }
  for (const auto& [index, slot] : hooks.retained) {
    if (!grads[index].defined()) continue;
    slot->accumulate(Tensor(grads[index]), arith::dense_strides(grads[index]));
  }
}

void Engine::capture(uint32_t state, const TensorList& grads) {
  for (const Task::Capture& wanted : task_->captures) {
    if (wanted.state == state) captured_[wanted.input] = grads[wanted.index];
  }
}

void Engine::fill_missing(const Node& node, TensorList& grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    const ResultInfo& info = node.results[i];
    if (!grads[i].defined() && is_differentiable(info.dtype)) grads[i] = arith::zeros(info);
  }
}

TensorList recorded_apply(Node& node, TensorList grads) {
  std::vector<Dims> sizes;
  for (const Tensor& grad : grads) sizes.push_back(grad.defined() ? grad.sizes() : Dims());
  const int64_t start = profiler::now();
  TensorList result = node.apply(std::move(grads));
  profiler::record(str(node.is_accumulator ? "torch::autograd::" : "", node.name()),
                   std::move(sizes), start);
  return result;
}

TensorList Engine::apply(Node& node, TensorList grads, const Hooks* hooks) {
  TensorList kept;
  if (hooks) {
    for (const auto& hook : hooks->pre) {
      TensorList other = hook.function(grads);
      if (other.empty()) continue;
      WEFT_CHECK(other.size() == grads.size(), node.name(), ": expected a prehook to return ",
                 grads.size(), " gradients, got ", other.size());
      grads = std::move(other);
    }
    if (!hooks->post.empty()) kept = grads;
  }
  TensorList result;
  {
    NodeLock lock(node);
    result = profiler::recording() ? recorded_apply(node, std::move(grads))
                                   : node.apply(std::move(grads));
    if (!options_.retain_graph) node.release_saved();
  }
  if (!node.is_accumulator) {
    WEFT_CHECK(result.size() == node.edges.size(), node.name(), ": expected ", node.edges.size(),
               " gradients, got ", result.size());
  }
  if (!hooks) return result;
  for (const auto& hook : hooks->post) {
    TensorList other = hook.function(result, kept);
    if (other.empty()) continue;
    WEFT_CHECK(other.size() == result.size(), node.name(), ": expected a hook to return ",
               result.size(), " gradients, got ", other.size());
    result = std::move(other);
  }
  if (node.is_accumulator) {
    for (const auto& hook : hooks->accumulated) hook.function();
  }
  return result;
}

// In anomaly mode: a failure names the line of the program that recorded the node.
TensorList Engine::watched_apply(Node& node, TensorList grads, const Hooks* hooks) {
  const AnomalyScope scope(node);
  try {
    TensorList result = apply(node, std::move(grads), hooks);
    check_nan(node, result);
    return result;
  } catch (const Error& error) {
    report_failure(node);
    throw with_origin(node, error);
  } catch (...) {
    report_failure(node);
    throw;
  }
}

void Engine::process(uint32_t place) {
  Node& node = *task_->states[place].node;
  const bool needed = task_->states[place].needed;
  const bool captured = task_->states[place].captured;
  TensorList grads = std::move(task_->states[place].grads);
  std::shared_ptr<const Hooks> hooks;
  if (node.has_hooks.load(std::memory_order_acquire)) hooks = hooks_of(node);

  const bool any = !grads.empty();
  if (any && hooks) run_tensor_hooks(*hooks, grads, node);
  if (any && captured) capture(place, grads);
  if (!needed) return;
  if (!any) {
    for (const Edge& edge : node.edges) {
      if (edge) deliver(edge, {}, node.name());
    }
    return;
  }
  if (node.fill_missing && grads.size() > 1) fill_missing(node, grads);
  TensorList result = anomaly_enabled() ? watched_apply(node, std::move(grads), hooks.get())
                                        : apply(node, std::move(grads), hooks.get());
  for (size_t i = 0; i < node.edges.size(); ++i) {
    if (node.edges[i]) deliver(node.edges[i], std::move(result[i]), node.name());
  }
}

TensorList Engine::results(const TensorList& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (options_.accumulate) {
      if (!captured_[i].defined()) continue;
      const AutogradMeta* meta = meta_of(inputs[i]);
      if (!meta->slot) retain_grad(inputs[i]);
      meta->slot->accumulate(std::move(captured_[i]), arith::dense_strides(inputs[i]));
    } else {
      WEFT_CHECK(captured_[i].defined() || options_.allow_unused, op_,
                 ": expected inputs that the roots depend on, got input ", i,
                 " that is not part of their graph; use allow_unused=True");
    }
  }
  return options_.accumulate ? TensorList() : std::move(captured_);
}

TensorList Engine::run(const TensorList& roots, const TensorList& grads, const TensorList& inputs) {
  GradGuard guard(options_.create_graph);
  TensorList root_grads = root_gradients(roots, grads);
  discover();
  restricted_ = !inputs.empty();
  if (restricted_) {
    captured_.resize(inputs.size());
    ask_for(inputs);
    mark_needed();
    if (options_.accumulate) run_asked_leaves();
    mode.filter_edges = true;
  }
  count_gradients();
  start(std::move(root_grads));
  while (task_->has_ready()) process(task_->pop_ready());
  TensorList found = restricted_ ? results(inputs) : TensorList();
  for (size_t i = 0; i < task_->at_end.size(); ++i) {  // one may ask for further ones
    const AccumulatedHook function = std::move(task_->at_end[i]);
    function();
  }
  return found;
}

}  // namespace

TensorList backward(const TensorList& roots, const TensorList& grads, const TensorList& inputs,
                    BackwardOptions options) {
  WEFT_CHECK(options.accumulate || !inputs.empty(), "grad: expected at least one input, got none");
  Engine engine(options, options.accumulate ? "backward" : "grad");
  return engine.run(roots, grads, inputs);
}

}  // namespace weft::autograd
