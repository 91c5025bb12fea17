#include "autograd/function.h"

#include <algorithm>

#include "autograd/arith.h"

namespace weft::autograd {
namespace {

// The first place of a tensor; -1 where it has none.
int16_t position_of(const TensorList& tensors, const Tensor& wanted) {
  const auto same = [&](const Tensor& each) { return each.defined() && each.is_same(wanted); };
  const auto found = std::ranges::find_if(tensors, same);
  return found == tensors.end() ? int16_t{-1} : static_cast<int16_t>(found - tensors.begin());
}
bool contains(const TensorList& tensors, const Tensor& tensor) {
  return position_of(tensors, tensor) >= 0;
}

Tensor finish_output(const Ref<FunctionNode>& node, const Tensor& output,
                     const FunctionCall& call) {
  if (!output.defined()) {
    node->infos.emplace_back();
    set_history({}, node);
    return {};
  }
  node->infos.push_back({output.sizes(), output.dtype(), output.device()});
  if (contains(call.dirty, output)) {
    node->self_edge = position_of(call.inputs, output);
    rebase_history(output, node);
    return output;
  }
  const bool is_input = contains(call.inputs, output);
  if (contains(call.constants, output)) {
    const Tensor result = is_input || requires_grad(output) ? detach(output) : output;
    set_history({}, node);
    return result;
  }
  const bool fresh = !is_input && !is_view(output) && !requires_grad(output);
  const Tensor result = fresh ? output : detach(output);
  set_history(result, node);
  return result;
}

void save(FunctionNode& node, const FunctionCall& call, const TensorList& finished) {
  node.saved.resize(call.saved.size());
  for (size_t i = 0; i < node.saved.size(); ++i) {
    const Tensor& tensor = call.saved[i];
    const int16_t output = tensor.defined() ? position_of(call.outputs, tensor) : int16_t{-1};
    if (output >= 0) {
      const auto index = static_cast<uint32_t>(output);
      const bool constant = !requires_grad(finished[index]);
      node.saved[i].save(constant ? detach(tensor) : finished[index], !constant, nullptr, index);
    } else {
      node.saved[i].save(tensor);
    }
  }
}

}  // namespace

TensorList FunctionNode::unpack_saved() {
  TensorList tensors;
  for (const SavedTensor& each : saved) tensors.push_back(each.unpack(this, Ref<Node>(this), true));
  return tensors;
}

void FunctionNode::fill(TensorList& grads) const {
  if (!fill_missing) return;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = arith::zeros(infos[i]);
  }
}

TensorList record_function(const Ref<FunctionNode>& node, const FunctionCall& call) {
  node->add_inputs(call.inputs);
  for (const Tensor& changed : call.dirty) {
    WEFT_CHECK(contains(call.inputs, changed) && contains(call.outputs, changed), node->name(),
               ": expected tensors given to mark_dirty to be inputs and outputs of forward, got "
               "another");
    check_inplace(node->name(), changed);
  }
  TensorList finished;
  for (const Tensor& output : call.outputs) finished.push_back(finish_output(node, output, call));
  save(*node, call, finished);
  return finished;
}

}  // namespace weft::autograd
