// One call of a group with row operators.
#pragma once

#include <memory>
#include <vector>

#include "ops/tile_row.h"
#include "ops/tile_walk.h"
#include "runtime/fused_rows.h"

namespace weft {

class FusedRowsRun {
 public:
  // `donated`: bit i: nobody reads args[i] afterwards, a result may take its memory where nobody
  // else refers to it.
  FusedRowsRun(const FusedRows& group, const FusedKey& key, const Value* args, const Dims& shape,
               uint64_t donated);
  // False, with nothing done, where some stage has no program. `kept`: see FusedRows::run.
  bool run(Value* results, std::vector<Tensor>* kept = nullptr);

 private:
  using Extent = FusedRows::Extent;
  using Stage = FusedRows::Stage;
  // Where a value is: in a result, or in scratch of each thread.
  struct Place {
    DType dtype = DType::F32;
    Tensor tensor;           // of results
    size_t block_bytes = 0;  // of scratch, for one block
  };
  // An operand in scratch: a view of a Walk, or a slot of a RowWalk.
  struct Moved {
    int where;
    uint8_t value;
  };
  struct Planned {
    std::unique_ptr<tile::Walk> walk;
    std::unique_ptr<tile::RowWalk> rows;
    std::unique_ptr<tile::Inputs> inputs;
    std::vector<Tensor> tensors;  // stand-ins and results that the plan refers to
    std::vector<Moved> moves;
    bool per_row = false;
  };

  class Workspace;

  bool is_element(uint8_t value) const { return group_.values_[value].extent == Extent::Elements; }
  bool run_whole(Value* results, std::vector<Tensor>* kept);
  bool run_stage(const Stage& stage, std::vector<Value>& values) const;
  bool plan();
  bool plan_part(const Stage& stage, Planned& planned);
  bool plan_rows(const Stage& stage, Planned& planned);
  static bool shares_folds(const tile::RowWalk& walk);
  tile::Placed place(const FusedOperand& one, const Dims& shape) const;
  tile::Placed place_value(uint8_t value) const;
  Tensor row_operand(uint8_t value);
  void set_dtype(uint8_t value, DType dtype);
  Tensor donate(DType dtype);
  uint64_t unique_among(uint64_t donated) const;
  bool numbers(const std::vector<FusedOperand>& operands, const Stage& stage,
               const tile::Program& program, Scalar* out) const;
  Scalar number(const FusedOperand& one) const;
  void run_blocks();
  void run_rows(Workspace& workspace, int64_t begin, int64_t end) const;
  void run_over_all();
  Tensor shaped(uint8_t value, const Tensor& tensor) const;
  Tensor kept_value(uint8_t value, const Tensor& tensor) const;
  Tensor without_row(const Tensor& tensor) const;

  const FusedRows& group_;
  const FusedKey key_;
  const Value* args_;
  const Dims shape_;
  uint64_t donated_;  // those whose memory nobody has taken over yet
  Dims row_shape_;    // the shape of values of rows
  int64_t length_, rows_, block_ = 1;
  size_t scratch_bytes_ = 0;   // of each thread
  std::vector<Place> places_;  // by value
  std::vector<bool> leaves_;   // by value
  std::vector<Planned> planned_;
};

}  // namespace weft
