// The node of a fusion group: one for all its operators.
#pragma once

#include <vector>

#include "autograd/node.h"
#include "runtime/fused.h"

namespace weft {

class FusedNode final : public autograd::Node {
 public:
  // Saves those of the group's inputs that its gradient reads or would compute again, and the shape
  // of all elements. `saved`: the values of rows that the gradient reads, nobody else's.
  FusedNode(Ref<FusedGroup> group, const Value* args, Dims full, std::vector<Tensor> saved);

  // Saves those of the results that the gradient reads; they have their history.
  void save_results(const Value* results);

  const char* name() const override { return "FusedBackward"; }
  TensorList apply(TensorList grads) override;
  void release_saved() override;

 private:
  const FusedBackward& backward() const { return *group_->spec().backward; }
  std::vector<Value> arguments(const TensorList& grads, uint64_t& missing);
  std::vector<Value> run_operators(std::vector<Value> args, uint64_t missing);
  Tensor spread(const Tensor& grad) const;
  // The gradient of a result as that of an input.
  Tensor passed_on(const Tensor& grad, size_t output) const;

  const Ref<FusedGroup> group_;
  const Dims full_;
  std::vector<autograd::SavedTensor> tensors_;  // by input; not all are in use
  std::vector<Value> numbers_;                  // by input
  std::vector<autograd::SavedTensor> results_;  // by output; not all are in use
  std::vector<Tensor> saved_;
};

}  // namespace weft
