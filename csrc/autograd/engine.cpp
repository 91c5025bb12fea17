// The engine: sends gradients from the roots down the graph, each node once, the latest call first.
#include <algorithm>
#include <span>
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/arith.h"
#include "autograd/hooks.h"
#include "autograd/part.h"
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
    // cat takes empty vectors beside tensors of any sizes.
    if (grad.numel() == 0 && info.sizes == Dims{0})
      return fit(arith::reshape(grad, info.sizes), info, from);
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

  TensorList run(Targets roots, const TensorList& grads, Targets inputs);

 private:
  TensorList root_gradients(Targets roots, const TensorList& grads);
  Tensor root_gradient(const ResultInfo& root, const Tensor& grad);
  void discover();
  void ask_for(Targets inputs);
  void mark_needed();
  void run_asked();
  void count_gradients();
  void start(TensorList root_grads);
  void process(uint32_t state);
  void run_tensor_hooks(const Hooks& hooks, TensorList& grads, const Node& node);
  void capture(uint32_t state, const TensorList& grads);
  void fill_missing(const Node& node, TensorList& grads);
  TensorList run_node(Node& node, TensorList grads);
  TensorList run_post_hooks(const Hooks& hooks, const Node& node, TensorList result,
                            const TensorList& grads);
  TensorList apply(Node& node, TensorList grads, const Hooks* hooks);
  TensorList watched_apply(Node& node, TensorList grads, const Hooks* hooks);
  void deliver(const Edge& edge, Tensor grad, const char* from);
  void arrived(uint32_t state);
  void check_found();

  const BackwardOptions options_;
  const char* const op_;
  Task::Pooled task_;
  TensorList captured_;
  bool restricted_ = false;
};

Tensor Engine::root_gradient(const ResultInfo& root, const Tensor& grad) {
  if (grad.defined()) {
    WEFT_CHECK(grad.sizes() == root.sizes, op_, ": expected a gradient of shape ",
               AsTuple{root.sizes}, ", got ", AsTuple{grad.sizes()});
    WEFT_CHECK(!is_complex(grad.dtype()) || is_complex(root.dtype), op_,
               ": expected a gradient of dtype ", root.dtype, ", got ", grad.dtype());
    return grad;
  }
  WEFT_CHECK(checked_numel(op_, root.sizes) == 1, op_,
             ": expected a gradient for a non-scalar root, got None for shape ",
             AsTuple{root.sizes});
  WEFT_CHECK(!is_complex(root.dtype), op_,
             ": expected a gradient for a complex root, got None for dtype ", root.dtype);
  return arith::ones(root);
}

TensorList Engine::root_gradients(Targets roots, const TensorList& grads) {
  WEFT_CHECK(grads.empty() || grads.size() == roots.size(), op_,
             ": expected one gradient per root, got ", grads.size(), " for ", roots.size());
  TensorList result(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    Target& root = roots[i];
    WEFT_CHECK(root.tensor.defined() || root.edge, op_,
               ": expected tensors as roots, got None for root ", i);
    if (root.tensor.defined()) root.edge = gradient_edge(root.tensor);
    WEFT_CHECK(root.edge, op_, ": expected roots that require grad, got root ", i,
               " that does not require grad and has no grad_fn");
    const ResultInfo& info = root.edge.node->results[root.edge.index];
    result[i] = root_gradient(info, grads.empty() ? Tensor() : grads[i]);
    task_->roots.push_back(std::move(root.edge));
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

void Engine::ask_for(Targets inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& [tensor, edge] = inputs[i];
    WEFT_CHECK(tensor.defined() || edge, op_, ": expected tensors as inputs, got None for input ",
               i);
    if (tensor.defined()) edge = gradient_edge(tensor);
    WEFT_CHECK(edge, op_, ": expected inputs that require grad, got input ", i, " that does not");
    if (tensor.defined() && options_.accumulate) retain_grad(tensor);
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

// backward(inputs=...): a node is run as usual, hooks included, instead of being captured.
void Engine::run_asked() {
  for (const Task::Capture& wanted : task_->captures) {
    task_->states[wanted.state].needed = true;
    task_->states[wanted.state].captured = false;
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

// What a hook gives in the place of a gradient.
void check_replacement(const Tensor& grad, const Tensor& other, const Node& node) {
  if (!other.defined()) return;
  WEFT_CHECK(grad.defined(), node.name(),
             ": expected a hook to return None for None, got a tensor");
  WEFT_CHECK(other.sizes() == grad.sizes(), node.name(), ": expected a hook to return shape ",
             AsTuple{grad.sizes()}, ", got ", AsTuple{other.sizes()});
  WEFT_CHECK(other.dtype() == grad.dtype(), node.name(), ": expected a hook to return dtype ",
             grad.dtype(), ", got ", other.dtype());
}

void replace(TensorList& grads, TensorList others, const Node& node, const char* who) {
  if (others.empty()) return;
  WEFT_CHECK(others.size() == grads.size(), node.name(), ": expected a ", who, " to return ",
             grads.size(), " gradients, got ", others.size());
  for (size_t i = 0; i < grads.size(); ++i) check_replacement(grads[i], others[i], node);
  grads = std::move(others);
}

bool any_defined(const TensorList& grads) {
  return std::ranges::any_of(grads, [](const Tensor& grad) { return grad.defined(); });
}

void Engine::run_tensor_hooks(const Hooks& hooks, TensorList& grads, const Node& node) {
  for (const auto& hook : hooks.tensor) {
    Tensor& grad = grads[hook.index];
    Tensor other = hook.function(grad);
    if (!other.defined()) continue;
    check_replacement(grad, other, node);
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

TensorList Engine::run_node(Node& node, TensorList grads) {
  if (!any_defined(grads)) return TensorList(node.edges.size());
  if (node.fill_missing && grads.size() > 1) fill_missing(node, grads);
  NodeLock lock(node);
  TensorList result =
      profiler::recording() ? recorded_apply(node, std::move(grads)) : node.apply(std::move(grads));
  if (!options_.retain_graph) node.release_saved();
  if (!node.is_accumulator) {
    WEFT_CHECK(result.size() == node.edges.size(), node.name(), ": expected ", node.edges.size(),
               " gradients, got ", result.size());
  }
  return result;
}

// They see the gradients as the inputs get them.
TensorList Engine::run_post_hooks(const Hooks& hooks, const Node& node, TensorList result,
                                  const TensorList& grads) {
  for (size_t i = 0; i < result.size(); ++i) {
    const Edge& edge = node.edges[i];
    if (!edge || !result[i].defined() || sparse::is_sparse(result[i])) continue;
    result[i] = fit(std::move(result[i]), edge.node->results[edge.index], node.name());
  }
  for (const auto& hook : hooks.post) replace(result, hook.function(result, grads), node, "hook");
  return result;
}

TensorList Engine::apply(Node& node, TensorList grads, const Hooks* hooks) {
  if (!hooks) return run_node(node, std::move(grads));
  for (const auto& hook : hooks->pre) replace(grads, hook.function(grads), node, "prehook");
  const TensorList kept = hooks->post.empty() ? TensorList() : grads;
  TensorList result = run_node(node, std::move(grads));
  if (node.is_accumulator) {
    for (const auto& hook : hooks->accumulated) hook.function();
  }
  return hooks->post.empty() ? result : run_post_hooks(*hooks, node, std::move(result), kept);
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

  if (!needed && !captured) return;
  // As in PyTorch: a gradient that is captured has passed the hooks only where it goes no further.
  if (captured && needed && !grads.empty()) capture(place, grads);
  if (hooks) {
    grads.resize(node.results.size());
    run_tensor_hooks(*hooks, grads, node);
  }
  if (!needed && !grads.empty()) capture(place, grads);
  if (!needed) return;
  if (grads.empty()) {
    for (const Edge& edge : node.edges) {
      if (edge) deliver(edge, {}, node.name());
    }
    return;
  }
  if (!hooks && add_part(node, grads, *task_)) {
    if (!options_.retain_graph) node.release_saved();
    return deliver(node.edges[0], {}, node.name());
  }
  TensorList result = anomaly_enabled() ? watched_apply(node, std::move(grads), hooks.get())
                                        : apply(node, std::move(grads), hooks.get());
  for (size_t i = 0; i < node.edges.size(); ++i) {
    if (node.edges[i]) deliver(node.edges[i], std::move(result[i]), node.name());
  }
}

void Engine::check_found() {
  for (size_t i = 0; i < captured_.size(); ++i) {
    WEFT_CHECK(captured_[i].defined() || options_.allow_unused, op_,
               ": expected inputs that the roots depend on, got input ", i,
               " that is not part of their graph; use allow_unused=True");
  }
}

TensorList Engine::run(Targets roots, const TensorList& grads, Targets inputs) {
  GradGuard guard(options_.create_graph);
  TensorList root_grads = root_gradients(std::move(roots), grads);
  discover();
  restricted_ = !inputs.empty();
  if (restricted_) {
    if (!options_.accumulate) captured_.resize(inputs.size());
    ask_for(std::move(inputs));
    mark_needed();
    if (options_.accumulate) run_asked();
    mode.filter_edges = true;
  }
  count_gradients();
  start(std::move(root_grads));
  while (task_->has_ready()) process(task_->pop_ready());
  check_found();
  for (size_t i = 0; i < task_->at_end.size(); ++i) {  // one may ask for further ones
    const AccumulatedHook function = std::move(task_->at_end[i]);
    function();
  }
  return std::move(captured_);
}

}  // namespace

TensorList backward_of(Targets roots, const TensorList& grads, Targets inputs,
                       BackwardOptions options) {
  WEFT_CHECK(options.accumulate || !inputs.empty(), "grad: expected at least one input, got none");
  Engine engine(options, options.accumulate ? "backward" : "grad");
  return engine.run(std::move(roots), grads, std::move(inputs));
}

TensorList backward(const TensorList& roots, const TensorList& grads, const TensorList& inputs,
                    BackwardOptions options) {
  return backward_of(Targets(roots.begin(), roots.end()), grads,
                     Targets(inputs.begin(), inputs.end()), options);
}

}  // namespace weft::autograd
