// One call of a group with row operators: shapes that fit, and the stages with their programs.
#include <algorithm>
#include <cstdlib>

#include "ops/tile_plan.h"
#include "ops_copying.h"
#include "runtime/fused_assembly.h"
#include "runtime/fused_shapes.h"
#include "runtime/fused_stages.h"
#include "runtime/unique.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;
using tile::SlotType;

// Whether operators on such tensors give dense row-major results: its dimensions lie in order.
bool is_in_order(const Layout& layout) {
  int64_t last = INT64_MAX;
  for (size_t d = 0; d < layout.sizes.size(); ++d) {
    const int64_t stride = std::abs(layout.strides[d]);
    if (layout.sizes[d] == 1 || stride == 0) continue;
    if (stride >= last) return false;
    last = stride;
  }
  return true;
}

// A value of rows, contiguous, without their dimension.
Tensor without_row(const Tensor& tensor) {
  Dims sizes(tensor.sizes());
  sizes.resize(sizes.size() - 1);
  return Tensor(tensor.storage(), Layout::contiguous(sizes), tensor.dtype());
}

tile::StageOperand operand_of(const FusedOperand& one) {
  return {one.kind == Kind::Step, one.index};
}

}  // namespace

// ---- shapes ----

// Which values have elements for the whole row: pointwise ones may be made of values of rows alone.
FusedStages::ValueSet FusedStages::spanning(const Value* args) const {
  ValueSet found;
  for (size_t v = 0; v < values_.size(); ++v) {
    const FusedStep& step = spec_.steps[values_[v].step];
    if (step.over != Over::Elements) {
      found[v] = values_[v].space == IterationSpace::Elements;
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
bool FusedStages::has_shape(const Value* args, const ValueSet& spanning, uint8_t value,
                            const Dims& shape) const {
  const uint64_t reads = values_[value].reads;
  if (reads != tensor_inputs_ && shape_of(args, tensors_, reads) != shape) return false;
  return values_[value].space != IterationSpace::Elements || spanning[value];
}

bool FusedStages::is_full(const Value* args) const {
  const std::optional<Dims> shape = shape_of(args, tensors_, ~uint64_t{0});
  if (!shape) return false;
  const ValueSet spans = spanning(args);
  for (size_t v = 0; v < values_.size(); ++v) {
    if (!has_shape(args, spans, static_cast<uint8_t>(v), *shape)) return false;
  }
  return true;
}

// Whether a row operator's dimension is the last one, and the inputs that it reads are whole rows,
// values of rows or weights.
bool FusedStages::row_operator_fits(const Value* args, const FusedStep& step,
                                    const Dims& shape) const {
  const int64_t length = shape.back();
  const bool last = step.dim == -1 || step.dim == static_cast<int64_t>(shape.size()) - 1;
  if (step.over == Over::LastDim && (!last || (step.length && step.length != length))) {
    return false;
  }
  Dims per_row(shape);
  per_row.back() = 1;
  for (size_t k = 0; k < step.tensors.size(); ++k) {
    const FusedOperand& one = step.tensors[k];
    if (one.kind == Kind::Step) continue;
    const Dims& sizes = args[one.index].to_tensor().sizes();
    const bool of_rows = spec_.squeezed_inputs & bit(one.index);
    const bool weight = k > 0 && !of_rows && sizes.size() == 1 && sizes[0] == length;
    if (!(sizes == (of_rows ? per_row : shape)) && !weight) return false;
  }
  return true;
}

// Whether results have the full shape, and row operators get whole rows of it, along the dimension
// they ask for. `full`: values have it, whatever they are made of.
bool FusedStages::shapes_fit(const Value* args, const Dims& shape, bool full) const {
  const ValueSet spans = full ? ValueSet() : spanning(args);
  const auto fits = [&](uint8_t value) { return full || has_shape(args, spans, value, shape); };
  if (!std::ranges::all_of(spec_.outputs, fits)) return false;
  return std::ranges::all_of(stages_, [&](const Stage& stage) {
    return !stage.step || (row_operator_fits(args, *stage.step, shape) &&
                           std::ranges::all_of(stage.inputs, [&](const FusedOperand& one) {
                             return one.kind != Kind::Step || fits(one.index);
                           }));
  });
}

// The shape of its elements; null where the group does not apply.
std::optional<Dims> FusedStages::shape_for(const FusedKey& key, const Value* args,
                                           const Dims* full) const {
  if (compute_type(key.compute) != key.compute) return {};  // operators round in between
  for (const uint8_t i : tensors_) {
    if (!is_in_order(args[i].to_tensor().layout())) return {};
  }
  const std::optional<Dims> own = shape_of(args, tensors_, ~uint64_t{0});
  if (!own || (full && broadcast_shape(*own, *full) != *full)) return {};
  const Dims& shape = full ? *full : *own;
  if (shape.empty() || shape.back() < 2) return {};
  if (checked_numel("fused", shape) == 0 || !shapes_fit(args, shape, full != nullptr)) return {};
  return shape;
}

// ---- stages ----

bool FusedStages::bind_part(const Stage& stage, Call& call, tile::Stage& bound) const {
  FusedKey key{call.key.compute, 0, 0};
  for (uint8_t i = 0; i < stage.inputs.size(); ++i) {
    const auto [kind, index] = stage.inputs[i];
    const auto is = [&](DType dtype, uint64_t inputs) {
      return kind == Kind::Step ? call.values[index].dtype == dtype
                                : kind == Kind::Input && (inputs & bit(index));
    };
    if (is(DType::Bool, call.key.masks)) key.masks |= bit(i);
    if (is(DType::I64, call.key.ints)) key.ints |= bit(i);
  }
  const FusedGroup::Ready ready = stage.group->ready(key);
  if (!ready.program) return false;
  bound.program = ready.program;
  for (const uint8_t input : ready.binding->tensors) {
    bound.inputs.push_back(operand_of(stage.inputs[input]));
  }
  for (size_t i = 0; i < stage.values.size(); ++i) {
    const SlotType type = tile::output_slot(*ready.program, static_cast<int>(i)).type;
    call.values[stage.values[i]].dtype = tile::slot_dtype(type, call.key.compute);
  }
  for (FusedOperand one : ready.binding->attributes) {
    if (one.kind == Kind::Input) one = stage.inputs[one.index];
    bound.attributes.push_back(number_of(spec_, one, call.args, call.shape));
    const SlotType type = ready.program->attribute_types[bound.attributes.size() - 1];
    if (type != SlotType::Compute && bound.attributes.back().is_floating()) return false;
  }
  return true;
}

bool FusedStages::bind_row_operator(const Stage& stage, Call& call, tile::Stage& bound) const {
  bound.program = stage.program;
  for (const FusedOperand& one : stage.inputs) {
    const DType dtype = one.kind == Kind::Step ? call.values[one.index].dtype
                                               : call.args[one.index].to_tensor().dtype();
    if (dtype != call.key.compute) return false;
    bound.inputs.push_back(operand_of(one));
  }
  for (size_t i = 0; i < stage.values.size(); ++i) {
    const tile::Slot& slot = tile::output_slot(*stage.program, static_cast<int>(i));
    if (slot.type != SlotType::Compute) return false;
    call.values[stage.values[i]].dtype = call.key.compute;
  }
  for (const FusedOperand& one : stage.step->numbers) {
    bound.attributes.push_back(number_of(spec_, one, call.args, call.shape));
  }
  return true;
}

bool FusedStages::bind(const Stage& stage, Call& call, tile::Stage& bound) const {
  bound.over = stage.over;
  bound.results = stage.values;
  return stage.step ? bind_row_operator(stage, call, bound) : bind_part(stage, call, bound);
}

std::vector<tile::StageValue> FusedStages::values_of_call(bool saves) const {
  std::vector<tile::StageValue> values(values_.size());
  for (size_t v = 0; v < values.size(); ++v) {
    const IterationSpace space = values_[v].space;
    values[v].per = space == IterationSpace::Elements ? tile::Per::Element
                    : space == IterationSpace::All    ? tile::Per::Call
                                                      : tile::Per::Row;
  }
  for (const uint8_t output : spec_.outputs) values[output].is_wanted = true;
  for (const uint8_t value : saved_) values[value].is_wanted |= saves;
  return values;
}

// A value of rows for the gradient: not in the memory of a result, which the caller may write to.
Tensor FusedStages::saved_value(uint8_t value, const Tensor& tensor) const {
  const bool given = std::ranges::find(spec_.outputs, value) != spec_.outputs.end();
  return without_row(given ? ops::clone(tensor, std::nullopt) : tensor);
}

bool FusedStages::run(const FusedKey& key, const Value* args, Value* results, const Dims* full,
                      uint64_t donated, std::vector<Tensor>* saved) const {
  const std::optional<Dims> shape = shape_for(key, args, full);
  if (!shape) return false;
  Call call{key, args, *shape, values_of_call(saved != nullptr)};
  std::vector<tile::Stage> stages(stages_.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    if (!bind(stages_[s], call, stages[s])) return false;
  }
  std::vector<const Tensor*> inputs(spec_.input_count);
  for (const uint8_t i : tensors_) {
    inputs[i] = &args[i].to_tensor();
    if ((donated & bit(i)) && !is_unique(*inputs[i])) donated &= ~bit(i);
  }
  const tile::StagedCall staged{stages, inputs, *shape, key.compute, donated & tensor_inputs_};
  if (!tile::run_stages(staged, call.values)) return false;
  for (size_t i = 0; i < spec_.outputs.size(); ++i) {
    const uint8_t value = spec_.outputs[i];
    const Tensor& tensor = call.values[value].tensor;
    const bool squeezed = values_[value].space == IterationSpace::SqueezedRows;
    results[i] = Value(squeezed ? without_row(tensor) : tensor);
  }
  if (!saved) return true;
  for (const uint8_t value : saved_)
    saved->push_back(saved_value(value, call.values[value].tensor));
  return true;
}

}  // namespace weft
