// How a group with row operators is cut into stages.
#include "runtime/fused_stages.h"

#include <algorithm>

#include "core/error.h"
#include "ops/tile_plan.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;

}  // namespace

FusedStages::FusedStages(const FusedSpec& spec, std::span<const tile::Program* const> programs)
    : spec_(spec), programs_(programs.begin(), programs.end()) {
  for (size_t s = 0; s < spec_.steps.size(); ++s) add_values(s);
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    if (tensor_inputs_ & bit(i)) tensors_.push_back(i);
  }
  for (uint8_t output : spec_.outputs) values_[output].crosses = true;
  if (spec_.backward) saved_ = spec_.backward->saved;
  for (uint8_t value : saved_) {
    const IterationSpace space =
        value < values_.size() ? values_[value].space : IterationSpace::All;
    WEFT_CHECK(space == IterationSpace::Rows || space == IterationSpace::SqueezedRows,
               "fused: expected values of rows to save, got ", int{value});
    values_[value].crosses = true;
  }
  add_stages();
}

// Elements take values of rows along. Those without the row's dimension count as if they had it:
// the compiler puts together what operators would. Inputs without it (gradients) are given it.
FusedStages::IterationSpace FusedStages::pointwise_space(const FusedStep& step) const {
  unsigned found = 0;
  const auto any = [&](IterationSpace space) { return found >> static_cast<int>(space) & 1; };
  for (const FusedOperand& one : step.tensors) {
    IterationSpace space = IterationSpace::Elements;
    if (one.kind == Kind::Step) {
      space = values_[one.index].space;
    } else if (spec_.squeezed_inputs & bit(one.index)) {
      space = IterationSpace::Rows;
    }
    found |= 1u << static_cast<int>(space);
  }
  WEFT_CHECK(!any(IterationSpace::All), "fused: expected operands of ", step.op,
             " that go together");
  return any(IterationSpace::Elements) ? IterationSpace::Elements
         : any(IterationSpace::Rows)   ? IterationSpace::Rows
                                       : IterationSpace::SqueezedRows;
}

void FusedStages::add_values(size_t s) {
  const FusedStep& step = spec_.steps[s];
  const bool is_row = step.over != Over::Elements;
  ValueInfo info;
  info.step = static_cast<uint8_t>(s);
  info.stage = is_row ? 1 : 0;
  for (const FusedOperand& one : step.tensors) {
    if (one.kind == Kind::Input) {
      info.reads |= bit(one.index);
      tensor_inputs_ |= bit(one.index);
      continue;
    }
    ValueInfo& read = values_[one.index];
    info.reads |= read.reads;
    const bool from_row = read.stage % 2 == 1;
    info.stage = std::max(info.stage, read.stage + (is_row ? (from_row ? 2 : 1) : from_row));
  }
  WEFT_CHECK(step.tensors.size() > 0, "fused: expected a tensor for ", step.op);
  first_value_.push_back(static_cast<uint8_t>(values_.size()));
  const IterationSpace space = is_row ? IterationSpace::Elements : pointwise_space(step);
  if (step.over == Over::All) {
    WEFT_CHECK(info.stage == 1, "fused: expected one sum over all, got one of another");
    over_all_ = true;
  }
  for (int r = 0; r < programs_[s]->output_count; ++r) {
    info.space = space;
    if (is_row && tile::output_slot(*programs_[s], r).per_row) {
      info.space = step.over == Over::All ? IterationSpace::All
                   : step.keepdim         ? IterationSpace::Rows
                                          : IterationSpace::SqueezedRows;
    }
    values_.push_back(info);
  }
  for (const FusedOperand& one : step.tensors) {
    if (one.kind != Kind::Step) continue;
    ValueInfo& read = values_[one.index];
    const bool together =
        !is_row && read.stage == info.stage &&
        (read.space == IterationSpace::Elements) == (space == IterationSpace::Elements);
    read.crosses |= !together;
  }
}

void FusedStages::add_stages() {
  int last = 0;
  for (const ValueInfo& value : values_) last = std::max(last, value.stage);
  WEFT_CHECK(!over_all_ || last == 1, "fused: expected a sum over all at the end");
  for (int stage = 0; stage <= last; stage += 2) {
    add_part(stage, true);
    add_part(stage, false);
    add_row_operators(stage + 1);
  }
}

void FusedStages::add_row_operators(int stage) {
  for (size_t s = 0; s < spec_.steps.size(); ++s) {
    if (values_[first_value_[s]].stage != stage) continue;
    const FusedStep& step = spec_.steps[s];
    WEFT_CHECK((step.over == Over::All) == over_all_,
               "fused: expected sums over all or rows, got both");
    Stage& made = stages_.emplace_back();
    made.step = &step;
    made.program = programs_[s];
    made.over = over_all_ ? tile::Per::Call : tile::Per::Row;
    made.inputs = step.tensors;
    for (int r = 0; r < made.program->output_count; ++r) {
      made.values.push_back(static_cast<uint8_t>(first_value_[s] + r));
    }
  }
}

// The pointwise steps of a stage, for rows or for elements, as a group of their own.
void FusedStages::add_part(int stage, bool of_rows) {
  FusedSpec part;
  Stage made;
  if (of_rows) made.over = tile::Per::Row;
  part.constants = spec_.constants;
  std::vector<int> local(values_.size(), -1);
  const auto outside = [&](const FusedOperand& one) {
    const auto same = [&](const FusedOperand& other) {
      return other.kind == one.kind && other.index == one.index;
    };
    const auto at = std::find_if(made.inputs.begin(), made.inputs.end(), same);
    const auto index = static_cast<uint8_t>(at - made.inputs.begin());
    if (at == made.inputs.end()) made.inputs.push_back(one);
    return FusedOperand{Kind::Input, index};
  };
  for (size_t s = 0; s < spec_.steps.size(); ++s) {
    const uint8_t value = first_value_[s];
    const ValueInfo& info = values_[value];
    if (info.stage != stage || (info.space != IterationSpace::Elements) != of_rows) continue;
    FusedStep step = spec_.steps[s];
    for (FusedOperand& one : step.tensors) {
      const bool inner = one.kind == Kind::Step && local[one.index] >= 0;
      one = inner ? FusedOperand{Kind::Step, static_cast<uint8_t>(local[one.index])} : outside(one);
    }
    for (FusedOperand& one : step.numbers) {
      if (one.kind != Kind::Constant) one = outside(one);
    }
    local[value] = static_cast<int>(part.steps.size());
    if (info.crosses) {
      part.outputs.push_back(static_cast<uint8_t>(local[value]));
      made.values.push_back(value);
    }
    part.steps.push_back(std::move(step));
  }
  if (part.outputs.empty()) return;  // nothing, or what nobody reads
  WEFT_CHECK(made.inputs.size() <= 64, "fused: expected at most 64 inputs of a part, got ",
             made.inputs.size());
  part.input_count = static_cast<uint8_t>(made.inputs.size());
  made.group = make_ref<FusedGroup>(std::move(part));
  stages_.push_back(std::move(made));
}

}  // namespace weft
