// Fusion groups with row operators: softmax, layer norm, sums over the last dimension or over all.
//
// The group is cut into stages: pointwise parts, each a group of its own (and compiled as such),
// and row operators between them. The tile driver runs them as one staged program
// (ops/tile_stages.h).
#pragma once

#include <bitset>
#include <optional>
#include <span>
#include <vector>

#include "ops/tile_stages.h"
#include "runtime/fused.h"

namespace weft {

class FusedStages {
 public:
  // Raises RuntimeError where the steps do not fit each other.
  FusedStages(const FusedSpec& spec, std::span<const tile::Program* const> programs);

  // `key`: as FusedGroup::classify found it. False, with nothing done, where the group does not
  // apply. `donated`: bit i: results may take over the memory of args[i]. `saved`: if not null,
  // takes the values that the gradient reads, without the row's dimension.
  bool run(const FusedKey& key, const Value* args, Value* results, const Dims* full,
           uint64_t donated, std::vector<Tensor>* saved = nullptr) const;
  // Whether gradients may take the group's way: every value has the shape the operators would give.
  bool is_full(const Value* args) const;

 private:
  // What a step runs over: its result has one value for each element, for each row (with or without
  // the row as a dimension of size 1), or one for all.
  enum class IterationSpace : uint8_t { Elements, Rows, SqueezedRows, All };

  struct ValueInfo {
    IterationSpace space = IterationSpace::Elements;
    int stage = 0;         // even: pointwise; odd: row operators
    uint64_t reads = 0;    // bit i: input i
    bool crosses = false;  // read outside of its stage's part, or an output
    uint8_t step = 0;
  };
  struct Stage {
    Ref<FusedGroup> group;            // of a pointwise part; its inputs are `inputs`
    const FusedStep* step = nullptr;  // of a row operator
    const tile::Program* program = nullptr;
    tile::Per over = tile::Per::Element;
    std::vector<FusedOperand> inputs;
    std::vector<uint8_t> values;  // its results
  };
  struct Call {
    const FusedKey& key;
    const Value* args;
    const Dims& shape;
    std::vector<tile::StageValue> values;
  };

  void add_values(size_t step);
  IterationSpace pointwise_space(const FusedStep& step) const;
  void add_stages();
  void add_row_operators(int stage);
  void add_part(int stage, bool of_rows);
  using ValueSet = std::bitset<256>;
  ValueSet spanning(const Value* args) const;
  bool has_shape(const Value* args, const ValueSet& spanning, uint8_t value,
                 const Dims& shape) const;
  bool row_operator_fits(const Value* args, const FusedStep& step, const Dims& shape) const;
  bool shapes_fit(const Value* args, const Dims& shape, bool full) const;
  std::optional<Dims> shape_for(const FusedKey& key, const Value* args, const Dims* full) const;
  std::vector<tile::StageValue> values_of_call(bool saves) const;
  bool bind(const Stage& stage, Call& call, tile::Stage& bound) const;
  bool bind_part(const Stage& stage, Call& call, tile::Stage& bound) const;
  bool bind_row_operator(const Stage& stage, Call& call, tile::Stage& bound) const;
  Tensor saved_value(uint8_t value, const Tensor& tensor) const;

  const FusedSpec& spec_;
  std::vector<const tile::Program*> programs_;
  std::vector<ValueInfo> values_;
  std::vector<uint8_t> first_value_;  // of each step
  std::vector<Stage> stages_;
  std::vector<uint8_t> saved_;    // values that the gradient reads
  uint64_t tensor_inputs_ = 0;    // bit i: input i is a tensor
  std::vector<uint8_t> tensors_;  // these inputs
  bool over_all_ = false;
};

}  // namespace weft
