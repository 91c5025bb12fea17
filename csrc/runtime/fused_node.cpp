#include "runtime/fused_node.h"

#include <algorithm>
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/task.h"
#include "ops_copying.h"
#include "ops_views.h"

namespace weft {
namespace {

using Source = FusedTotals::Source;

// What leaves the bits of everything it is added to.
Tensor negative_zero(DType dtype) {
  Tensor zero = Tensor::empty({}, dtype, {});
  Scalar(-0.0).store(dtype, zero.data());
  return zero;
}

bool same_place(const autograd::Edge& a, const autograd::Edge& b) {
  return a.node.get() == b.node.get() && a.index == b.index;
}

}  // namespace

FusedNode::FusedNode(Ref<FusedGroup> group, const Value* args, Dims full,
                     std::vector<Tensor> statistics)
    : group_(std::move(group)),
      full_(std::move(full)),
      tensors_(group_->spec().input_count),
      numbers_(group_->spec().input_count),
      results_(group_->spec().outputs.size()),
      statistics_(std::move(statistics)) {
  fill_missing = false;  // what only missing gradients would reach has none
  for (uint8_t i = 0; i < tensors_.size(); ++i) {
    if (backward().group->reads_tensor(i)) {
      tensors_[i].save(args[i].to_tensor(), false, "fused");
    } else if (args[i].tag() != ValueTag::Tensor) {
      numbers_[i] = args[i];
    }
  }
}

void FusedNode::save_results(const Value* results) {
  for (size_t k = 0; k < results_.size(); ++k) {
    const size_t input = numbers_.size() + results_.size() + k;
    if (!backward().group->reads_tensor(static_cast<uint8_t>(input))) continue;
    results_[k].save(results[k].to_tensor(), true, "fused", static_cast<uint32_t>(k));
  }
}

// What the group of the gradient gets. `missing`: bit i: it would read args[i], which is not there.
std::vector<Value> FusedNode::arguments(const TensorList& grads, uint64_t& missing) {
  const FusedGroup& group = *backward().group;
  std::vector<Value> args(numbers_.begin(), numbers_.end());
  for (uint8_t i = 0; i < tensors_.size(); ++i) {
    if (group.reads_tensor(i)) args[i] = Value(tensors_[i].unpack(this));
  }
  for (const Tensor& grad : grads) {
    const bool read = group.reads_tensor(static_cast<uint8_t>(args.size()));
    if (read && !grad.defined()) missing |= uint64_t{1} << args.size();
    args.emplace_back(grad);
  }
  for (const autograd::SavedTensor& result : results_) {
    const bool read = group.reads_tensor(static_cast<uint8_t>(args.size()));
    args.push_back(read ? Value(result.unpack(this, Ref<Node>(this))) : Value());
  }
  return args;
}

TensorList FusedNode::apply(TensorList grads) {
  FusedGroup& group = *backward().group;
  uint64_t missing = 0;
  const std::vector<Value> args = arguments(grads, missing);
  if (!missing) {
    if (std::optional<TensorList> found = totals(args, grads)) return std::move(*found);
  }
  std::vector<Value> outputs(group.spec().outputs.size());
  // With create_graph the gradient has a gradient: then every operator records its own.
  if (!outputs.empty() && (missing || !group.run(args.data(), outputs.data(), &full_))) {
    group.run_operators(args.data(), outputs.data(), &full_, missing);
  }
  for (Value& output : outputs) output = Value(spread(output.to_tensor()));
  TensorList result;
  result.reserve(edges.size());
  for (const FusedBackward::Edge& edge : backward().edges) {
    result.push_back(edge.from_output ? outputs[edge.index].to_tensor()
                                      : passed_on(grads[edge.index], edge.index));
  }
  return result;
}

// Whether sums come to what the engine would add up: nobody looks at its gradients one by one,
// those of an input are of all elements (others it sums to the input's size first), and no other
// input is the same tensor, so that its gradients would come in between.
bool FusedNode::may_sum(const FusedTotals& totals) const {
  if (totals.sums.empty()) return true;
  if (has_hooks.load(std::memory_order_acquire) || autograd::anomaly_enabled()) return false;
  const std::vector<FusedBackward::Edge>& all = backward().edges;
  for (const FusedTotals::Sum& sum : totals.sums) {
    const auto at = std::ranges::find(all, sum.input, &FusedBackward::Edge::input);
    const autograd::Edge& edge = edges[static_cast<size_t>(at - all.begin())];
    if (!edge) continue;
    if (edge.node->results[edge.index].sizes != full_) return false;
    for (size_t k = 0; k < all.size(); ++k) {
      if (all[k].input != sum.input && edges[k] && same_place(edges[k], edge)) return false;
    }
  }
  return true;
}

// The gradients with their sums, which take along what has arrived from other operators.
std::optional<TensorList> FusedNode::totals(const std::vector<Value>& args,
                                            const TensorList& grads) {
  const FusedTotals* totals = group_->totals(!statistics_.empty());
  if (!totals || !may_sum(*totals)) return {};
  const Tensor* like = nullptr;  // any gradient
  for (size_t k = 0; k < grads.size(); ++k) {
    if (grads[k].defined()) like = &grads[k];
    // A sum may be of a gradient that the plain group passes on.
    const bool read = totals->group->reads_tensor(static_cast<uint8_t>(numbers_.size() + k));
    if (read && !grads[k].defined()) return {};
  }
  std::vector<Value> inputs(args);
  for (const Tensor& statistic : statistics_) inputs.emplace_back(statistic);
  const auto edge_of = [&](const FusedTotals::Sum& sum) -> const autograd::Edge& {
    const auto at = std::ranges::find(backward().edges, sum.input, &FusedBackward::Edge::input);
    return edges[static_cast<size_t>(at - backward().edges.begin())];
  };
  uint64_t dying = 0;
  for (const FusedTotals::Sum& sum : totals->sums) {
    Tensor* const arrived = autograd::arrived_gradient(*this, edge_of(sum));
    const bool any = arrived && arrived->defined();
    if (any) dying |= uint64_t{1} << sum.argument;
    inputs.emplace_back(any ? std::exchange(*arrived, {}) : negative_zero(like->dtype()));
  }
  std::vector<Value> outputs(totals->group->spec().outputs.size());
  if (!totals->group->run(inputs.data(), outputs.data(), &full_, dying)) {
    for (const FusedTotals::Sum& sum : totals->sums) {
      Tensor* const arrived = autograd::arrived_gradient(*this, edge_of(sum));
      if (dying >> sum.argument & 1) *arrived = inputs[sum.argument].to_tensor();
    }
    return {};
  }
  TensorList result;
  result.reserve(edges.size());
  for (size_t k = 0; k < totals->sources.size(); ++k) {
    const Source& source = totals->sources[k];
    if (source.kind == Source::Kind::Earlier) {
      result.emplace_back();
    } else if (source.kind == Source::Kind::Gradient) {
      result.push_back(passed_on(grads[source.index], source.index));
    } else {
      result.push_back(spread(outputs[source.index].to_tensor()));
    }
  }
  return result;
}

// The gradient of a sum is the same for all it is the sum of: here it becomes as many.
Tensor FusedNode::spread(const Tensor& grad) const {
  if (!grad.defined() || grad.sizes() == full_) return grad;
  return ops::clone(ops::expand(grad, full_), std::nullopt);
}

Tensor FusedNode::passed_on(const Tensor& grad, size_t output) const {
  const bool dropped = backward().group->spec().dropped_inputs >> (numbers_.size() + output) & 1;
  return spread(dropped && grad.defined() ? ops::unsqueeze(grad, -1) : grad);
}

void FusedNode::release_saved() {
  for (autograd::SavedTensor& tensor : tensors_) tensor.reset();
  for (autograd::SavedTensor& result : results_) result.reset();
  statistics_.clear();
}

}  // namespace weft
