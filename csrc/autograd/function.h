// Functions whose gradient the program gives itself: weft.autograd.Function, and those of hosts.
#pragma once

#include <memory>

#include "autograd/node.h"

namespace weft::autograd {

// The node of one call. Who makes it gives the gradient.
class FunctionNode : public Node {
 public:
  void release_saved() override {
    for (SavedTensor& tensor : saved) tensor.reset();
  }
  // RuntimeError for those that were changed since, or freed.
  TensorList unpack_saved();

  std::vector<SavedTensor> saved;
  std::vector<ResultInfo> infos;  // of all results, those without gradient as well

 protected:
  // Zeros in the place of what is missing, unless the function wants to see what is.
  void fill(TensorList& grads) const;
};

// The tensors of one call of a function. Undefined ones hold the place of what is no tensor.
struct FunctionCall {
  TensorList inputs, outputs;
  TensorList dirty;      // inputs that were written to, which are outputs as well
  TensorList constants;  // outputs without a gradient
  TensorList saved;      // for the gradient
};

// Makes the node the history of the outputs, which are returned as what they are from now on: an
// output that is an input, a view, or has a history already, as a new tensor over its elements.
TensorList record_function(const Ref<FunctionNode>& node, const FunctionCall& call);

}  // namespace weft::autograd
