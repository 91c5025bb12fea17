// Fusion groups with row operators: softmax, layer norm, sums over the last dimension or over all.
//
// The group is cut into stages: pointwise parts, each a group of its own (and compiled as such),
// and row operators between them. Stages run on a block of rows at a time, and what lies between
// them stays in the cache. Row operators are walked as they are on whole tensors: the same tiles,
// so that sums come out with the same bits.
#pragma once

#include <bitset>
#include <optional>
#include <span>
#include <vector>

#include "runtime/fused.h"

namespace weft {

class FusedRows {
 public:
  // What a value is: one for each element, one for each row (with or without the row as a
  // dimension of size 1), or one for all.
  enum class Extent : uint8_t { Elements, Row, Squeezed, All };

  // Raises RuntimeError where the steps do not fit each other.
  FusedRows(const FusedSpec& spec, std::span<const tile::Program* const> programs);

  // `key`: as FusedGroup::classify found it. False, with nothing done, where the group does not
  // apply. `donated`: bit i: results may take over the memory of args[i]. `kept`: if not null,
  // takes the values that the gradient reads, without the row's dimension.
  bool run(const FusedKey& key, const Value* args, Value* results, const Dims* full,
           uint64_t donated, std::vector<Tensor>* kept = nullptr) const;
  // The shape of its elements; null where the group does not apply.
  std::optional<Dims> shape_for(const FusedKey& key, const Value* args, const Dims* full) const;
  // Whether gradients may take the group's way: every value has the shape the operators would give.
  bool is_full(const Value* args) const;

 private:
  friend class FusedRowsRun;

  struct ValueInfo {
    Extent extent = Extent::Elements;
    int stage = 0;         // even: pointwise; odd: row operators
    uint64_t reads = 0;    // bit i: input i
    bool crosses = false;  // read outside of its stage's part, or an output
    uint8_t step = 0;
  };
  struct Stage {
    bool is_row = false;
    // A pointwise part: its group, what the group's inputs are, which values its outputs are.
    Ref<FusedGroup> group;
    std::vector<FusedOperand> inputs;
    std::vector<uint8_t> values;
    bool per_row = false;  // values of rows
    // A row operator.
    const FusedStep* step = nullptr;
    const tile::Program* program = nullptr;

    bool reads(uint8_t input) const;  // as a tensor of its own: not what an earlier stage made
  };

  void add_values(size_t step);
  Extent pointwise_extent(const FusedStep& step) const;
  void add_stages();
  void add_part(int stage, bool per_row);
  using ValueSet = std::bitset<256>;
  ValueSet spanning(const Value* args) const;
  bool has_shape(const Value* args, const ValueSet& spanning, uint8_t value,
                 const Dims& shape) const;
  bool shapes_fit(const Value* args, const Dims& shape, bool full) const;

  const FusedSpec& spec_;
  std::vector<const tile::Program*> programs_;
  std::vector<ValueInfo> values_;
  std::vector<uint8_t> first_value_;  // of each step
  std::vector<Stage> stages_;
  std::vector<uint8_t> kept_;     // values that the gradient reads
  uint64_t tensor_inputs_ = 0;    // bit i: input i is a tensor
  std::vector<uint8_t> tensors_;  // these inputs
  bool over_all_ = false;
};

}  // namespace weft
