#include "runtime/fused_node.h"

#include "ops.h"

namespace weft {

FusedNode::FusedNode(std::shared_ptr<const FusedBackward> backward, const FusedSpec& spec,
                     const Value* args, Dims full)
    : backward_(std::move(backward)),
      full_(std::move(full)),
      tensors_(spec.input_count),
      numbers_(spec.input_count),
      results_(spec.outputs.size()) {
  fill_missing = false;  // what only missing gradients would reach has none
  for (uint8_t i = 0; i < spec.input_count; ++i) {
    if (backward_->group->reads_tensor(i)) {
      tensors_[i].save(args[i].to_tensor(), false, "fused");
    } else if (args[i].tag() != ValueTag::Tensor) {
      numbers_[i] = args[i];
    }
  }
}

void FusedNode::save_results(const Value* results) {
  for (size_t k = 0; k < results_.size(); ++k) {
    const size_t input = numbers_.size() + results_.size() + k;
    if (!backward_->group->reads_tensor(static_cast<uint8_t>(input))) continue;
    results_[k].save(results[k].to_tensor(), true, "fused", static_cast<uint32_t>(k));
  }
}

TensorList FusedNode::apply(TensorList grads) {
  FusedGroup& group = *backward_->group;
  std::vector<Value> args(numbers_.begin(), numbers_.end());
  for (uint8_t i = 0; i < tensors_.size(); ++i) {
    if (group.reads_tensor(i)) args[i] = Value(tensors_[i].unpack(this));
  }
  uint64_t missing = 0;
  for (const Tensor& grad : grads) {
    const bool read = group.reads_tensor(static_cast<uint8_t>(args.size()));
    if (read && !grad.defined()) missing |= uint64_t{1} << args.size();
    args.emplace_back(grad);
  }
  for (const autograd::SavedTensor& result : results_) {
    const bool read = group.reads_tensor(static_cast<uint8_t>(args.size()));
    args.push_back(read ? Value(result.unpack(this, Ref<Node>(this))) : Value());
  }
  std::vector<Value> outputs(group.spec().outputs.size());
  // With create_graph the gradient has a gradient: then every operator records its own.
  if (!outputs.empty() && (missing || !group.run(args.data(), outputs.data(), &full_))) {
    group.run_operators(args.data(), outputs.data(), &full_, missing);
  }
  for (Value& output : outputs) output = Value(spread(output.to_tensor()));
  TensorList result;
  result.reserve(backward_->edges.size());
  for (const FusedBackward::Edge& edge : backward_->edges) {
    result.push_back(edge.from_output ? outputs[edge.index].to_tensor()
                                      : passed_on(grads[edge.index], edge.index));
  }
  return result;
}

// The gradient of a sum is the same for all it is the sum of: here it becomes as many.
Tensor FusedNode::spread(const Tensor& grad) const {
  if (!grad.defined() || grad.sizes() == full_) return grad;
  return ops::clone(ops::expand(grad, full_), std::nullopt);
}

Tensor FusedNode::passed_on(const Tensor& grad, size_t output) const {
  const bool dropped = backward_->group->spec().dropped_inputs >> (numbers_.size() + output) & 1;
  return spread(dropped && grad.defined() ? ops::unsqueeze(grad, -1) : grad);
}

void FusedNode::release_saved() {
  for (autograd::SavedTensor& tensor : tensors_) tensor.reset();
  for (autograd::SavedTensor& result : results_) result.reset();
}

}  // namespace weft
