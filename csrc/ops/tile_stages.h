// Staged programs: programs that run one after the other on blocks of rows.
//
// A row program needs a whole row before its result can be read. So operators among which some are
// row programs run in stages: pointwise programs and row programs. A block of rows goes through all
// stages, and the values between them stay in the cache of the thread that has the block. Every
// stage has the plan that its program has on whole tensors, with the same tiles and the same order
// of additions: results have the bits of the programs one by one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/tile_row.h"
#include "ops/tile_walk.h"

namespace weft::tile {

// What a value has one element for. The row is the last dimension.
enum class Per : uint8_t { Element, Row, Call };

// An operand of a stage: an input of the call, or a value that an earlier stage gives.
struct StageOperand {
  bool is_value;
  uint8_t index;
};

struct Stage {
  const Program* program;
  // Pointwise programs: what they walk, elements or values of rows. Row programs: what they give
  // one value for, rows (the last dimension is reduced) or the call (all dimensions are).
  Per over = Per::Element;
  std::vector<StageOperand> inputs;  // in the program's order
  std::vector<uint8_t> results;      // the numbers of the values it gives, in the program's order
  std::vector<Scalar> attributes;
};

struct StageValue {
  Per per = Per::Element;
  DType dtype = DType::F32;
  bool is_wanted = false;  // the caller reads it
  Tensor tensor;           // of wanted values; rows have size 1
};

struct StagedCall {
  std::span<const Stage> stages;
  std::span<const Tensor* const> inputs;  // null where no stage reads it
  const Dims& shape;                      // of the elements, of which there are some
  DType compute;                          // of every stage, with kernels of its own
  uint64_t donated = 0;                   // bit i: a result may take over the memory of inputs[i]
};

// Runs the stages on the CPU and makes the wanted values. Row programs read operands of the compute
// dtype and of the full shape, values of rows, and weights of one dimension; one value for the call
// comes of the last stages alone. False, with nothing done, where a row program does not walk as
// blocks need it.
bool run_stages(const StagedCall& call, std::span<StageValue> values);

// A stage as a call of its own.
Call stage_call(const Stage& stage, std::span<const Tensor* const> inputs);

// The plans of a call's stages.
class StagedWalk {
 public:
  StagedWalk(const StagedCall& call, std::span<StageValue> values);
  // Whether operators take their short way (run_plain_rows), with tiles of its own: then the stages
  // run one by one.
  bool is_small() const;
  bool plan();
  void run() const;

 private:
  // An operand in scratch: a view of a Walk, or a slot of a RowWalk.
  struct ScratchOperand {
    int where;
    uint8_t value;
  };
  struct Plan {
    std::unique_ptr<Walk> walk;
    std::unique_ptr<RowWalk> rows;
    std::unique_ptr<Inputs> inputs;
    std::vector<Tensor> tensors;  // operands that the plan refers to, or what stands for them
    std::vector<ScratchOperand> in_scratch;
    int64_t row_elements = 1;  // that a pointwise program walks for one row
  };
  class Workspace;

  const Dims& sizes_of(Per per) const { return per == Per::Element ? call_.shape : row_shape_; }
  void plan_pointwise(const Stage& stage, Plan& plan);
  bool plan_rows(const Stage& stage, Plan& plan);
  void add_operand(Plan& plan, int where, StageOperand operand) const;
  Placed placed(StageOperand operand, const Dims& shape) const;
  Tensor stand_in(uint8_t value) const;
  void make_place(uint8_t value);
  Tensor donate(DType dtype);
  void run_blocks() const;
  void run_folds() const;

  const StagedCall& call_;
  std::span<StageValue> values_;
  uint64_t donated_;  // inputs whose memory no result has taken over yet
  Dims row_shape_;    // of values of rows
  int64_t length_, rows_ = 1, block_;
  bool over_all_ = false;
  std::vector<Plan> plans_;
  std::vector<size_t> scratch_bytes_;  // by value, of each thread
};

}  // namespace weft::tile
