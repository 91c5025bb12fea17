// The node of a fusion group: one for all its operators.
#pragma once

#include <optional>
#include <vector>

#include "autograd/node.h"
#include "runtime/fused.h"
#include "runtime/fused_totals.h"

namespace weft {

class FusedNode final : public autograd::Node {
 public:
  // Saves those of the group's inputs that its gradient reads, and the shape of all elements.
  // `statistics`: what the group's totals read, or nothing.
  FusedNode(Ref<FusedGroup> group, const Value* args, Dims full, std::vector<Tensor> statistics);

  // Saves those of the results that the gradient reads; they have their history.
  void save_results(const Value* results);

  const char* name() const override { return "FusedBackward"; }
  TensorList apply(TensorList grads) override;
  void release_saved() override;

 private:
  const FusedBackward& backward() const { return *group_->spec().backward; }
  std::vector<Value> arguments(const TensorList& grads, uint64_t& missing);
  bool may_sum(const FusedTotals& totals) const;
  std::optional<TensorList> totals(const std::vector<Value>& args, const TensorList& grads);
  Tensor spread(const Tensor& grad) const;
  // The gradient of a result as that of an input.
  Tensor passed_on(const Tensor& grad, size_t output) const;

  const Ref<FusedGroup> group_;
  const Dims full_;
  std::vector<autograd::SavedTensor> tensors_;  // by input; not all are in use
  std::vector<Value> numbers_;                  // by input
  std::vector<autograd::SavedTensor> results_;  // by output; not all are in use
  std::vector<Tensor> statistics_;              // nobody else has them
};

}  // namespace weft
