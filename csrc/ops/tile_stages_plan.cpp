// Planning of staged programs: the walk of every stage, and where values lie.
#include <algorithm>

#include "ops/donation.h"
#include "ops/tile_drivers.h"
#include "ops/tile_stages.h"

namespace weft::tile {
namespace {

// Elements of a block: several values of it stay in the cache.
constexpr int64_t kBlock = 8192;
const int64_t kLastDim[] = {-1};

Dims byte_strides(const Dims& sizes, DType dtype) {
  Dims strides = contiguous_strides(sizes);
  for (size_t d = 0; d < strides.size(); ++d) {
    strides[d] = sizes[d] == 1 ? 0 : strides[d] * static_cast<int64_t>(item_size(dtype));
  }
  return strides;
}

bool reads(const Stage& stage, uint8_t input) {
  return std::ranges::any_of(stage.inputs, [&](const StageOperand& operand) {
    return !operand.is_value && operand.index == input;
  });
}

// Reductions over all are shared in folds, which needs one pass over one row that can merge.
bool shares_folds(const RowWalk& walk) {
  if (walk.vertical || walk.outer.numel != 1 || walk.row.sizes.size() != 1) return false;
  if (walk.passes.size() != 1) return false;
  const PassPlan& pass = walk.passes[0];
  return pass.tile_steps.size() > 0 && pass.states.size() > 0 && pass.mergeable &&
         walk.fold == kFoldHorizontal;
}

}  // namespace

Call stage_call(const Stage& stage, std::span<const Tensor* const> inputs) {
  const bool all = stage.over == Per::Call;
  return {.inputs = inputs,
          .attributes = stage.attributes,
          .dims = all ? IntList{} : IntList(kLastDim),
          .keepdim = !all};
}

StagedWalk::StagedWalk(const StagedCall& call, std::span<StageValue> values)
    : call_(call),
      values_(values),
      donated_(call.donated),
      row_shape_(call.shape),
      length_(call.shape.back()),
      block_(std::max<int64_t>(1, kBlock / length_)),
      scratch_bytes_(values.size()) {
  row_shape_.back() = 1;
  for (int64_t size : row_shape_) rows_ *= size;
  for (StageValue& value : values_) {
    // The one value of a reduction over all has a place in any case.
    if (value.per == Per::Call) over_all_ = value.is_wanted = true;
  }
}

bool StagedWalk::is_small() const {
  return rows_ * length_ <= (over_all_ ? kFoldHorizontal : kMostPlain);
}

bool StagedWalk::plan() {
  for (const Stage& stage : call_.stages) {
    Plan& plan = plans_.emplace_back();
    if (!stage.program->row) {
      plan_pointwise(stage, plan);
    } else if (!plan_rows(stage, plan)) {
      return false;
    }
  }
  return true;
}

void StagedWalk::plan_pointwise(const Stage& stage, Plan& plan) {
  const Program& program = *stage.program;
  const Dims& shape = sizes_of(stage.over);
  plan.row_elements = stage.over == Per::Row ? 1 : length_;
  std::vector<Placed> results, inputs;
  for (const uint8_t value : stage.results) {
    make_place(value);
    results.push_back(placed({true, value}, shape));
  }
  for (const StageOperand& operand : stage.inputs) inputs.push_back(placed(operand, shape));
  plan.walk = std::make_unique<Walk>(program);
  Walk& walk = *plan.walk;
  walk.compute = call_.compute;
  store_attributes(program, stage_call(stage, {}), {call_.compute, call_.compute}, walk.scalars);
  lay_out_in_order(walk, shape, results, inputs);
  for (const auto [slot, view] : walk.writes) {
    add_operand(plan, view, {true, stage.results[program.slots[slot].index]});
  }
  for (const auto [slot, view] : walk.reads) {
    add_operand(plan, view, stage.inputs[program.slots[slot].index]);
  }
}

bool StagedWalk::plan_rows(const Stage& stage, Plan& plan) {
  const Program& program = *stage.program;
  plan.tensors.reserve(stage.inputs.size());
  const Tensor* inputs[kMaxCallOperands];
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const auto [is_value, index] = stage.inputs[i];
    inputs[i] = &plan.tensors.emplace_back(is_value ? stand_in(index) : *call_.inputs[index]);
  }
  std::vector<Tensor> results;
  for (const uint8_t value : stage.results) {
    make_place(value);
    results.push_back(stand_in(value));
  }
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.kind == SlotKind::Input) {
      add_operand(plan, static_cast<int>(s), stage.inputs[slot.index]);
    } else if (slot.kind == SlotKind::Output) {
      add_operand(plan, static_cast<int>(s), {true, stage.results[slot.index]});
    }
  }
  plan.rows = std::make_unique<RowWalk>(program);
  plan.inputs = std::make_unique<Inputs>();
  const Call call = stage_call(stage, {inputs, stage.inputs.size()});
  return plan_row_layout(call, results, *plan.inputs, *plan.rows) &&
         (stage.over != Per::Call || shares_folds(*plan.rows));
}

void StagedWalk::add_operand(Plan& plan, int where, StageOperand operand) const {
  if (!operand.is_value || values_[operand.index].is_wanted) return;
  plan.in_scratch.push_back({where, operand.index});
}

Placed StagedWalk::placed(StageOperand operand, const Dims& shape) const {
  if (!operand.is_value) {
    const Tensor& tensor = *call_.inputs[operand.index];
    return {static_cast<char*>(tensor.data()), broadcast_strides(tensor, shape), tensor.dtype()};
  }
  const StageValue& value = values_[operand.index];
  char* base = value.is_wanted ? static_cast<char*>(value.tensor.data()) : nullptr;
  return {base, byte_strides(sizes_of(value.per), value.dtype), value.dtype};
}

// The tensor of a value; without memory where only sizes, strides and dtype count.
Tensor StagedWalk::stand_in(uint8_t number) const {
  const StageValue& value = values_[number];
  if (value.is_wanted) return value.tensor;
  return Tensor(Storage::wrap(nullptr, 0, nullptr, nullptr),
                Layout::contiguous(sizes_of(value.per)), value.dtype);
}

// Memory for a value of the stage that is planned last.
void StagedWalk::make_place(uint8_t number) {
  StageValue& value = values_[number];
  if (value.is_wanted) {
    if (value.per == Per::Element) value.tensor = donate(value.dtype);
    if (value.tensor.defined()) return;
    const Dims sizes = value.per == Per::Call ? Dims() : sizes_of(value.per);
    value.tensor = Tensor::empty(sizes, value.dtype, {}, "fused");
    return;
  }
  const int64_t elements = value.per != Per::Element ? block_
                           : over_all_               ? kFoldHorizontal
                                                     : block_ * length_;
  scratch_bytes_[number] = Arena::rounded(static_cast<size_t>(elements) * item_size(value.dtype));
}

// Memory for a result of the stage that is planned last: that of a donated input which no later
// stage reads. Blocks of rows do not meet, so that a block's results lie over its own elements.
Tensor StagedWalk::donate(DType dtype) {
  if (rows_ * length_ < least_donated()) return {};
  const size_t at = plans_.size() - 1;
  const Stage& stage = call_.stages[at];
  const auto later = call_.stages.subspan(at + 1);
  for (uint8_t i = 0; i < call_.inputs.size(); ++i) {
    if (!(donated_ >> i & 1)) continue;
    const Tensor& tensor = *call_.inputs[i];
    if (tensor.dtype() != dtype || !(tensor.sizes() == call_.shape)) continue;
    const bool order_fits =
        !stage.program->row || !reads(stage, i) || reads_before_it_writes(*stage.program);
    if (!tensor.is_contiguous() || !order_fits ||
        std::ranges::any_of(later, [&](const Stage& other) { return reads(other, i); })) {
      continue;
    }
    donated_ &= ~(uint64_t{1} << i);
    return {tensor.storage(), Layout::contiguous(call_.shape), dtype};
  }
  return {};
}

}  // namespace weft::tile
