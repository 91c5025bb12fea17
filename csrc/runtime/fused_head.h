// Groups with a head: a matrix product or a convolution, the group that makes its operand, and the
// group that is computed from its result.
#pragma once

#include <span>
#include <string_view>

#include "runtime/fused_epilogue.h"
#include "runtime/fused_prologue.h"
#include "runtime/operator.h"

namespace weft {

// A row that may be the head of a group (made by tools/gen/products.py).
struct FusedProduct {
  std::string_view id;  // of the row
  const char* kind;     // as programs call it
  size_t operand;       // the argument that a prologue may make; of products, the next one too
  bool is_convolution;
  bool is_composite;                 // recorded as what it is made of
  Dims (*sizes)(const Value* args);  // of the result; of what the operator refuses, anything
  Tensor (*call)(const Value* args, const Around& around);
};

std::span<const FusedProduct> fused_products();

class FusedHead {
 public:
  // Raises RuntimeError where the steps do not fit each other.
  explicit FusedHead(const FusedSpec& spec);

  // False, with nothing done, where the operators have to run one by one: a gradient is recorded
  // through what has none of that kind, autocast is on, or one of them raises.
  // `dying`: as of FusedGroup::run.
  bool run(const Value* args, Value* results, uint64_t dying) const;

  static bool is_in(const FusedSpec& spec);

 private:
  static constexpr size_t kMostArguments = 8;
  using Arguments = Borrowed<kMostArguments>;

  void check_arguments() const;
  bool rows_fit(const Value* arguments, FusedArgs& inputs) const;
  bool gather(const Value* args, Arguments& arguments, bool& records) const;
  bool compute(const Value* arguments, FusedPrologue* prologue, FusedArgs& inputs,
               Value* results) const;
  bool compute_all(const Value* args, Arguments& arguments, Value* results, bool records,
                   FusedPrologue* prologue) const;
  bool run_recorded(const Value* arguments, FusedArgs& inputs, Value* results) const;

  const FusedSpec& spec_;
  const FusedStep& step_;  // the head
  const FusedProduct& kind_;
  const size_t product_;  // the number of its result
  const Operator* operator_;
  size_t operand_;            // the argument that is made by what stands before, or may be
  bool right_ = false;        // it is the right operand
  Ref<FusedGroup> before_;    // null: nothing; its inputs: those of the whole
  uint64_t before_only_ = 0;  // bit i: nothing else reads input i
  Ref<FusedGroup> rest_;      // null: nothing; its inputs: those of the whole, then the product
  size_t rest_outputs_ = 0;
  bool keeps_ = false;  // the head's result leaves the group
};

}  // namespace weft
