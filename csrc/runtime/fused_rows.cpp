// How a group with row operators is cut into stages.
#include "runtime/fused_rows.h"

#include <algorithm>

#include "core/error.h"
#include "ops/tile_plan.h"
#include "runtime/fused_shapes.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;

}  // namespace

FusedRows::FusedRows(const FusedSpec& spec, std::span<const tile::Program* const> programs)
    : spec_(spec), programs_(programs.begin(), programs.end()) {
  for (size_t s = 0; s < spec_.steps.size(); ++s) add_values(s);
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    if (tensor_inputs_ & bit(i)) tensors_.push_back(i);
  }
  for (uint8_t output : spec_.outputs) values_[output].crosses = true;
  if (spec_.backward) kept_ = spec_.backward->kept;
  for (uint8_t value : kept_) {
    const Extent extent = value < values_.size() ? values_[value].extent : Extent::All;
    WEFT_CHECK(extent == Extent::Row || extent == Extent::Squeezed,
               "fused: expected values of rows to keep, got ", int{value});
    values_[value].crosses = true;
  }
  add_stages();
}

// Elements take values of rows along. Those without the row's dimension count as if they had it:
// the compiler puts together what operators would. Inputs without it (gradients) are given it.
FusedRows::Extent FusedRows::pointwise_extent(const FusedStep& step) const {
  bool any[4] = {};
  for (const FusedOperand& one : step.tensors) {
    Extent extent = Extent::Elements;
    if (one.kind == Kind::Step) {
      extent = values_[one.index].extent;
    } else if (spec_.squeezed_inputs & bit(one.index)) {
      extent = Extent::Row;
    }
    any[static_cast<int>(extent)] = true;
  }
  WEFT_CHECK(!any[static_cast<int>(Extent::All)], "fused: expected operands of ", step.op,
             " that go together");
  return any[static_cast<int>(Extent::Elements)] ? Extent::Elements
         : any[static_cast<int>(Extent::Row)]    ? Extent::Row
                                                 : Extent::Squeezed;
}

void FusedRows::add_values(size_t s) {
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
  const Extent extent = is_row ? Extent::Elements : pointwise_extent(step);
  if (step.over == Over::All) {
    WEFT_CHECK(info.stage == 1, "fused: expected one sum over all, got one of another");
    over_all_ = true;
  }
  for (int r = 0; r < programs_[s]->output_count; ++r) {
    info.extent = extent;
    if (is_row && tile::output_slot(*programs_[s], r).per_row) {
      info.extent = step.over == Over::All ? Extent::All
                    : step.keepdim         ? Extent::Row
                                           : Extent::Squeezed;
    }
    values_.push_back(info);
  }
  for (const FusedOperand& one : step.tensors) {
    if (one.kind != Kind::Step) continue;
    ValueInfo& read = values_[one.index];
    const bool together = !is_row && read.stage == info.stage &&
                          (read.extent == Extent::Elements) == (extent == Extent::Elements);
    read.crosses |= !together;
  }
}

void FusedRows::add_stages() {
  int last = 0;
  for (const ValueInfo& value : values_) last = std::max(last, value.stage);
  WEFT_CHECK(!over_all_ || last == 1, "fused: expected a sum over all at the end");
  for (int stage = 0; stage <= last; ++stage) {
    if (stage % 2 == 0) {
      add_part(stage, true);
      add_part(stage, false);
      continue;
    }
    for (size_t s = 0; s < spec_.steps.size(); ++s) {
      if (values_[first_value_[s]].stage != stage) continue;
      const Over over = spec_.steps[s].over;
      WEFT_CHECK((over == Over::All) == over_all_,
                 "fused: expected sums over all or rows, got both");
      Stage& made = stages_.emplace_back();
      made.is_row = true;
      made.step = &spec_.steps[s];
      made.program = programs_[s];
      for (int r = 0; r < made.program->output_count; ++r) {
        made.values.push_back(static_cast<uint8_t>(first_value_[s] + r));
      }
    }
  }
}

// The pointwise steps of a stage, for rows or for elements, as a group of their own.
void FusedRows::add_part(int stage, bool per_row) {
  FusedSpec part;
  Stage made;
  made.per_row = per_row;
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
    if (info.stage != stage || (info.extent != Extent::Elements) != per_row) continue;
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

// Which values have elements for the whole row: pointwise ones may be made of values of rows alone.
FusedRows::ValueSet FusedRows::spanning(const Value* args) const {
  ValueSet found;
  for (size_t v = 0; v < values_.size(); ++v) {
    const FusedStep& step = spec_.steps[values_[v].step];
    if (step.over != Over::Elements) {
      found[v] = values_[v].extent == Extent::Elements;
      continue;
    }
    for (const FusedOperand& one : step.tensors) {
      if (one.kind == Kind::Step) {
        found[v] = found[v] || found[one.index];
      } else {
        const Dims& sizes = args[one.index].to_tensor().sizes();
        found[v] = found[v] || (!sizes.empty() && sizes.back() != 1);
      }
    }
  }
  return found;
}

// Whether the operators would give a value this shape, or what it says of rows.
bool FusedRows::has_shape(const Value* args, const ValueSet& spanning, uint8_t value,
                          const Dims& shape) const {
  const uint64_t reads = values_[value].reads;
  if (reads != tensor_inputs_ && shape_of(args, tensors_, reads) != shape) return false;
  return values_[value].extent != Extent::Elements || spanning[value];
}

// Whether results have the full shape, and row operators get whole rows of it, along the dimension
// they ask for.
// `full`: values have it, whatever they are made of.
bool FusedRows::shapes_fit(const Value* args, const Dims& shape, bool full) const {
  const ValueSet spans = full ? ValueSet() : spanning(args);
  for (uint8_t output : spec_.outputs) {
    if (!full && !has_shape(args, spans, output, shape)) return false;
  }
  const auto ndim = static_cast<int64_t>(shape.size());
  const int64_t length = shape.back();
  for (const Stage& stage : stages_) {
    if (!stage.is_row) continue;
    const FusedStep& step = *stage.step;
    const bool last = step.dim == -1 || step.dim == ndim - 1;
    if (step.over == Over::LastDim && (!last || (step.length && step.length != length))) {
      return false;
    }
    for (size_t k = 0; k < step.tensors.size(); ++k) {
      const FusedOperand& one = step.tensors[k];
      if (one.kind == Kind::Step) {
        if (!full && !has_shape(args, spans, one.index, shape)) return false;
        continue;
      }
      const Dims& sizes = args[one.index].to_tensor().sizes();
      if (spec_.squeezed_inputs & bit(one.index)) {
        Dims per_row(shape);
        per_row.back() = 1;
        if (!(sizes == per_row)) return false;
        continue;
      }
      const bool weight = k > 0 && sizes.size() == 1 && sizes[0] == length;
      if (!(sizes == shape) && !weight) return false;
    }
  }
  return true;
}

bool FusedRows::is_full(const Value* args) const {
  const std::optional<Dims> shape = shape_of(args, tensors_, ~uint64_t{0});
  if (!shape) return false;
  const ValueSet spans = spanning(args);
  for (size_t v = 0; v < values_.size(); ++v) {
    if (!has_shape(args, spans, static_cast<uint8_t>(v), *shape)) return false;
  }
  return true;
}

}  // namespace weft
