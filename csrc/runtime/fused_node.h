// The node of a fusion group: one for all its operators.
#pragma once

#include <vector>

#include "autograd/node.h"
#include "runtime/fused.h"

namespace weft {

class FusedNode final : public autograd::Node {
 public:
  // Saves those of the group's inputs that its gradient reads, and the shape of all elements.
  FusedNode(std::shared_ptr<const FusedBackward> backward, const FusedSpec& spec, const Value* args,
            Dims full);

  // Saves those of the results that the gradient reads; they have their history.
  void save_results(const Value* results);

  const char* name() const override { return "FusedBackward"; }
  TensorList apply(TensorList grads) override;
  void release_saved() override;

 private:
  Tensor spread(const Tensor& grad) const;
  // The gradient of a result as that of an input.
  Tensor passed_on(const Tensor& grad, size_t output) const;

  std::shared_ptr<const FusedBackward> backward_;
  const Dims full_;
  std::vector<autograd::SavedTensor> tensors_;  // by input; not all are in use
  std::vector<Value> numbers_;                  // by input
  std::vector<autograd::SavedTensor> results_;  // by output; not all are in use
};

}  // namespace weft
