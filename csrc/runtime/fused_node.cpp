#include "runtime/fused_node.h"

#include <utility>

#include "ops_copying.h"
#include "ops_views.h"

namespace weft {

FusedNode::FusedNode(Ref<FusedGroup> group, const Value* args, Dims full, std::vector<Tensor> saved)
    : group_(std::move(group)),
      full_(std::move(full)),
      tensors_(group_->spec().input_count),
      numbers_(group_->spec().input_count),
      results_(group_->spec().outputs.size()),
      saved_(std::move(saved)) {
  fill_missing = false;  // what only missing gradients would reach has none
  const uint64_t again = group_->inputs_of(backward().saved);
  for (uint8_t i = 0; i < tensors_.size(); ++i) {
    if (backward().group->reads_tensor(i) || (again & bit(i))) {
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
  for (const Tensor& value : saved_) args.emplace_back(value);
  return args;
}

TensorList FusedNode::apply(TensorList grads) {
  FusedGroup& group = *backward().group;
  uint64_t missing = 0;
  const std::vector<Value> args = arguments(grads, missing);
  std::vector<Value> outputs(group.spec().outputs.size());
  // With create_graph the gradient has a gradient: then every operator records its own.
  if (!outputs.empty() && (missing || !group.run(args.data(), outputs.data(), &full_))) {
    outputs = run_operators(args, missing);
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

// The gradient operator by operator, which has a gradient itself: values of rows that were saved
// have none, so they are computed again.
std::vector<Value> FusedNode::run_operators(std::vector<Value> args, uint64_t missing) {
  const std::vector<uint8_t>& saved = backward().saved;
  std::vector<Value> inputs(numbers_.begin(), numbers_.end());
  const uint64_t again = group_->inputs_of(saved);
  for (uint8_t i = 0; i < tensors_.size(); ++i) {
    if (again & bit(i)) inputs[i] = Value(tensors_[i].unpack(this));
  }
  const std::vector<Value> values = group_->run_operators(inputs.data(), saved, &full_);
  for (size_t k = 0; k < saved.size(); ++k) {
    const Tensor& value = values[k].to_tensor();
    const bool has_row = value.sizes().size() == full_.size();
    args[args.size() - saved.size() + k] = Value(has_row ? ops::squeeze(value, -1) : value);
  }
  const FusedGroup& group = *backward().group;
  return group.run_operators(args.data(), group.spec().outputs, &full_, missing);
}

// The gradient of a sum is the same for all it is the sum of: here it becomes as many.
Tensor FusedNode::spread(const Tensor& grad) const {
  if (!grad.defined() || grad.sizes() == full_) return grad;
  return ops::clone(ops::expand(grad, full_), std::nullopt);
}

Tensor FusedNode::passed_on(const Tensor& grad, size_t output) const {
  const bool squeezed = backward().group->spec().squeezed_inputs >> (numbers_.size() + output) & 1;
  return spread(squeezed && grad.defined() ? ops::unsqueeze(grad, -1) : grad);
}

void FusedNode::release_saved() {
  for (autograd::SavedTensor& tensor : tensors_) tensor.reset();
  for (autograd::SavedTensor& result : results_) result.reset();
  saved_.clear();
}

}  // namespace weft
