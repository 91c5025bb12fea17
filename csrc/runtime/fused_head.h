// Groups with a head: a matrix product or a convolution, and the pointwise group that is computed
// from its result.
#pragma once

#include "runtime/fused_epilogue.h"
#include "runtime/operator.h"

namespace weft {

class FusedHead {
 public:
  // Raises RuntimeError where the steps do not fit each other.
  explicit FusedHead(const FusedSpec& spec);

  // False, with nothing done, where the operators have to run one by one: a gradient is recorded,
  // autocast is on, or one of them raises.
  bool run(const Value* args, Value* results) const;

  using Call = Tensor (*)(const Value* args, Epilogue* epilogue);

 private:
  static constexpr size_t kMostArguments = 8;
  using Arguments = Borrowed<kMostArguments>;

  bool gather(const Value* args, Arguments& arguments) const;
  void compute(const Value* arguments, FusedArgs& inputs, Value* results) const;

  const FusedSpec& spec_;
  Call call_;
  const Operator* operator_;
  Ref<FusedGroup> rest_;  // its inputs: those of the whole, then the head's result
  size_t rest_outputs_ = 0;
  bool keeps_ = false;  // the head's result leaves the group
};

}  // namespace weft
