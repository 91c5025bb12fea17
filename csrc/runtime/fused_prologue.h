// A group as the prologue of a product or a convolution: the operand it makes is there a part at a
// time, each as the thread that multiplies it needs it.
#pragma once

#include <optional>

#include "ops/epilogue.h"
#include "ops/tile_walk.h"
#include "runtime/fused.h"
#include "runtime/fused_rows_run.h"

namespace weft {

class FusedPrologue final : public Prologue {
 public:
  // A group with one result. `dying`: bit i: nobody else reads args[i] in this call or later.
  FusedPrologue(FusedGroup& group, const Value* args, uint64_t dying);

  // A tensor of the operand's sizes and dtype without memory; undefined where they are not known
  // before the group has run.
  const Tensor& stand_in() const noexcept { return stand_in_; }

  // Whether the whole lies where an argument lay.
  bool took_over() const noexcept { return took_over_; }

  bool begin(int64_t columns) override;
  void part(const Part& part, void* out) override;
  Tensor whole() override;

 private:
  bool begin_elements();

  FusedGroup& group_;
  const Value* const args_;
  const uint64_t dying_;
  FusedKey key_;
  Tensor stand_in_;
  int64_t columns_ = 0;
  bool took_over_ = false;
  std::optional<tile::Walk> walk_;    // of elements alone
  std::optional<FusedRowsRun> rows_;  // with row operators
};

}  // namespace weft
