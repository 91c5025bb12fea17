// Planning of row programs: which dimensions are walked how.
#include <cstdlib>
#include <cstring>

#include "core/thread_pool.h"
#include "ops/tile_row.h"

namespace weft::tile {
namespace {

// The row among the dimensions.
struct RowDims {
  SlotMask mask = 0;
  bool has(size_t d) const { return (mask >> d) & 1u; }
};

RowDims row_dims(const Program& program, const Call& call, const Dims& shape) {
  WEFT_CHECK(shape.size() <= 64, program.name, ": expected at most 64 dims, got ", shape.size());
  RowDims row;
  if (call.dims.empty()) {
    row.mask = ~SlotMask{0};
    return row;
  }
  for (int64_t d : wrap_dims(program.name, call.dims, static_cast<int64_t>(shape.size()))) {
    row.mask |= SlotMask{1} << d;
  }
  return row;
}

Dims per_row_shape(const Dims& shape, RowDims row, bool keepdim) {
  Dims result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!row.has(d)) {
      result.push_back(shape[d]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

void check_elements(const Program& program, const Call& call, const Dims& shape, RowDims row) {
  if (!program.needs_elements) return;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!row.has(d) || shape[d] > 0) continue;
    const bool places = output_slot(program, 0).type == SlotType::Int64;  // argmax: none to name
    fail(call.dims.empty() && !places ? ErrorKind::Runtime : ErrorKind::Index,
         str(program.name, ": expected a non-empty row, got shape ", AsTuple{shape}));
  }
}

// Which dimensions walk fastest within the row and outside of it.
struct Split {
  Dims row, outer;  // dimensions, fastest first

  static Dims pick(const Dims& list, const Dims& order) {
    Dims picked(order.size());
    for (size_t i = 0; i < order.size(); ++i) picked[i] = list[order[i]];
    return picked;
  }
};

// `ordered`: elements of a row must come in the order of its dimensions.
Split split_dims(const Dims& shape, std::span<const Dims> strides, RowDims row, bool ordered) {
  Split split;
  for (int64_t d : walk_order(shape, strides)) {
    if (!row.has(d)) {
      split.outer.push_back(d);
    } else if (!ordered) {
      split.row.push_back(d);
    }
  }
  for (size_t d = shape.size(); ordered && d-- > 0;) {
    if (row.has(d)) split.row.push_back(static_cast<int64_t>(d));
  }
  return split;
}

int64_t smallest_stride(const Dims& sizes, const Dims& strides) {
  int64_t smallest = INT64_MAX;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && strides[d] != 0) smallest = std::min(smallest, std::abs(strides[d]));
  }
  return smallest;
}

class Planner {
 public:
  Planner(const Call& call, std::span<Tensor> results, Inputs& inputs, RowWalk& walk,
          bool layout_only)
      : program_(walk.program),
        call_(call),
        results_(results),
        inputs_(inputs),
        walk_(walk),
        layout_only_(layout_only) {}
  bool run();

 private:
  bool keeps_order() const;
  bool keeps_dims() const;
  void make_results();
  void lay_out();
  size_t main_input() const;
  void add_operand(int slot, const Tensor& tensor, const Dims& strides, const Split& split,
                   bool output);
  void add_result(int slot, const Tensor& tensor, const Split& split);
  void choose_direction(size_t main);
  bool can_widen() const;
  void plan_passes();
  void plan_step(PassPlan& plan, int number, SlotMask& written);
  void size_blocks();
  void set_rule(PassPlan& pass);

  const Program& program_;
  const Call& call_;
  std::span<Tensor> results_;
  Inputs& inputs_;
  RowWalk& walk_;
  Types types_{};
  Dims shape_;
  RowDims row_;
  SlotMask used_ = 0;  // element operands that some pass reads or writes
  bool keepdim_ = false;
  const bool layout_only_;  // operands lie elsewhere
};

// Whether row elements may not change places: kernels ask for their positions, or there are values
// for each element, which lie in order.
bool Planner::keeps_order() const {
  if (program_.uses_position) return true;
  for (const Slot& slot : program_.slots) {
    if (slot.kind == SlotKind::Tile) return true;
    if (slot.kind == SlotKind::Output && !slot.per_row) return true;
  }
  return false;
}

// Row values that come beside element results (the means of a layer_norm) always keep the row as
// dimensions of size 1, so that they broadcast against them.
bool Planner::keeps_dims() const {
  if (call_.keepdim) return true;
  for (const Slot& slot : program_.slots) {
    if (slot.kind == SlotKind::Output && !slot.per_row) return true;
  }
  return false;
}

void Planner::make_results() {
  if (layout_only_) {
    for (size_t i = 0; i < call_.inputs.size(); ++i) inputs_.tensors[i] = call_.inputs[i];
    return;
  }
  const Dims reduced = per_row_shape(shape_, row_, keepdim_);
  bool given = false;
  for (int i = 0; i < program_.output_count; ++i) {
    if (!results_[i].defined()) continue;
    given = true;
    const Slot& slot = output_slot(program_, i);
    check_result(program_, call_, results_[i], slot.per_row ? reduced : shape_,
                 slot_dtype(slot.type, types_.promoted));
  }
  protect_inputs(call_, given ? results_ : std::span<Tensor>{}, false, inputs_);
  for (int i = 0; i < program_.output_count; ++i) {
    const Slot& slot = output_slot(program_, i);
    const DType dtype = slot_dtype(slot.type, types_.promoted);
    if (results_[i].defined()) {
      results_[i].check_writable(program_.name);
      continue;
    }
    if (!slot.per_row) results_[i] = donated_result(program_, call_, shape_, dtype);
    if (!results_[i].defined()) {
      results_[i] = make_result(program_.name, slot.per_row ? reduced : shape_, {}, dtype,
                                call_device(call_, results_));
    }
  }
}

void Planner::add_operand(int slot, const Tensor& tensor, const Dims& strides, const Split& split,
                          bool output) {
  walk_.operand_of[slot] = static_cast<uint8_t>(walk_.operands.size());
  RowOperand& operand = walk_.operands.emplace_back();
  operand.view.base = static_cast<char*>(tensor.address());
  const DType kernel = slot_dtype(program_.slots[slot].type, types_.compute);
  set_types(operand.view, tensor.dtype(), kernel, output);
  operand.row = Split::pick(strides, split.row);
  operand.outer = Split::pick(strides, split.outer);
}

void Planner::add_result(int slot, const Tensor& tensor, const Split& split) {
  RowResult& result = walk_.results.emplace_back();
  result.slot = static_cast<uint8_t>(slot);
  result.view.base = static_cast<char*>(tensor.address());
  const DType kernel = slot_dtype(program_.slots[slot].type, types_.compute);
  set_types(result.view, tensor.dtype(), kernel, true);
  // Its dimensions are the outer ones, with or without the row's.
  Dims strides(shape_.size());
  const auto item = static_cast<int64_t>(tensor.item_size());
  for (size_t d = 0, at = 0; d < shape_.size(); ++d) {
    if (row_.has(d) && !keepdim_) continue;
    strides[d] = row_.has(d) || shape_[d] == 1 ? 0 : tensor.strides()[at] * item;
    ++at;
  }
  result.view.strides = Split::pick(strides, split.outer);
}

// The first input of full size: its layout decides.
size_t Planner::main_input() const {
  const int64_t numel = checked_numel(program_.name, shape_);
  for (int i = 0; i < program_.input_count; ++i) {
    if (inputs_.tensors[i]->numel() == numel) return static_cast<size_t>(i);
  }
  return 0;
}

void Planner::lay_out() {
  const size_t main = main_input();
  FixedVector<Dims, kMaxCallOperands> strides;  // the main input's first
  strides.emplace_back(broadcast_strides(*inputs_.tensors[main], shape_));
  for (int i = 0; i < program_.input_count; ++i) {
    if (static_cast<size_t>(i) == main) continue;
    strides.emplace_back(broadcast_strides(*inputs_.tensors[i], shape_));
  }
  const Split split = split_dims(shape_, strides, row_, keeps_order());
  size_t main_operand = 0;
  for (size_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& slot = program_.slots[s];
    const int number = static_cast<int>(s);
    if (slot.kind == SlotKind::Input) {
      const size_t i = slot.index;
      if (i == main) main_operand = walk_.operands.size();
      const Dims& list = strides[i == main ? 0 : i < main ? i + 1 : i];
      add_operand(number, *inputs_.tensors[i], list, split, false);
    } else if (slot.kind == SlotKind::Output && slot.per_row) {
      add_result(number, results_[slot.index], split);
    } else if (slot.kind == SlotKind::Output) {
      const Tensor& result = results_[slot.index];
      add_operand(number, result, broadcast_strides(result, shape_), split, true);
    }
  }
  Dims row_sizes = Split::pick(shape_, split.row), outer_sizes = Split::pick(shape_, split.outer);
  FixedVector<Dims*, 2 * kMaxCallOperands> row_lists, outer_lists;
  for (RowOperand& operand : walk_.operands) {
    row_lists.emplace_back(&operand.row);
    outer_lists.emplace_back(&operand.outer);
  }
  for (RowResult& result : walk_.results) outer_lists.emplace_back(&result.view.strides);
  coalesce(row_sizes, std::span<Dims* const>(row_lists.data(), row_lists.size()));
  coalesce(outer_sizes, std::span<Dims* const>(outer_lists.data(), outer_lists.size()));
  walk_.row = make_space(std::move(row_sizes));
  walk_.outer = make_space(std::move(outer_sizes));
  choose_direction(main_operand);
}

// Whether a vertical tile may span several neighbours along the row: outer elements and row
// elements follow each other without a gap in every operand, and positions do not matter.
bool Planner::can_widen() const {
  constexpr int64_t kNarrow = 256;
  const int64_t rows = walk_.outer.sizes[0];
  if (rows < 2 || rows > kNarrow || program_.uses_position) return false;
  for (const PassPlan& pass : walk_.passes) {
    if (!pass.mergeable) return false;
    for (const State& state : pass.states) {
      if (program_.slots[state.slot].kind != SlotKind::Row) return false;
    }
  }
  for (size_t s = 0; s < program_.slots.size(); ++s) {
    if (!((used_ >> s) & 1u)) continue;
    const RowOperand& operand = walk_.operands[walk_.operand_of[s]];
    const int64_t item = operand.view.item;
    if (operand.outer[0] != item || operand.row[0] != rows * item) return false;
  }
  return walk_.row.sizes[0] >= 2 * kTile / rows;
}

void Planner::choose_direction(size_t main) {
  // A call of a kernel costs as much as gathering some 16 elements: short fast axes do not pay.
  constexpr int64_t kShort = 16, kManyTimes = 4;
  const int64_t length = walk_.row.numel, rows = walk_.outer.numel;
  bool can_vertical = true, can_horizontal = true;
  for (const Step& step : program_.steps) {
    const bool rows_only = step.states == 0 && walk_.is_row_slot(step.operands[0]);
    can_vertical = can_vertical && (rows_only || step.vertical);
    can_horizontal = can_horizontal && (rows_only || step.horizontal);
  }
  bool fast_in_row = rows < length;
  // The main input tells, or of an expanded one the next operand.
  for (size_t i = 0; i < walk_.operands.size(); ++i) {
    const RowOperand& operand = walk_.operands[i == 0 ? main : i <= main ? i - 1 : i];
    const int64_t in_row = smallest_stride(walk_.row.sizes, operand.row);
    const int64_t outside = smallest_stride(walk_.outer.sizes, operand.outer);
    if (in_row == outside) continue;
    fast_in_row = in_row < outside;
    break;
  }
  if (fast_in_row) {
    walk_.vertical = length < kShort && rows >= kManyTimes * kShort;
  } else {
    walk_.vertical = rows >= kShort || length < kManyTimes * rows;
  }
  walk_.vertical = can_vertical && (walk_.vertical || !can_horizontal);
}

void Planner::plan_step(PassPlan& plan, int number, SlotMask& written) {
  const Step& step = program_.steps[number];
  auto kernel = [&](const KernelSet* set) { return set ? set->get(types_.compute) : nullptr; };
  bool rows_only = step.states == 0;
  for (int k = 0; k < step.operand_count; ++k) {
    rows_only = rows_only && walk_.is_row_slot(step.operands[k]);
  }
  if (rows_only) {
    plan.row_steps.emplace_back(BoundStep{&step, number, kernel(step.vertical), nullptr, nullptr});
    return;
  }
  // run() fills the kernel in once the direction is known.
  plan.tile_steps.emplace_back(
      BoundStep{&step, number, nullptr, kernel(step.identity), kernel(step.merge)});
  if (step.states > 0 && !step.merge) plan.mergeable = false;
  for (int k = 0; k < step.operand_count; ++k) {
    const int slot_number = step.operands[k];
    const SlotMask bit = SlotMask{1} << slot_number;
    const Slot& slot = program_.slots[slot_number];
    if (k < step.states) {
      const auto item = static_cast<uint8_t>(walk_.slot_item(slot_number));
      plan.states.emplace_back(State{static_cast<uint8_t>(slot_number), item, 0});
    } else if (slot.kind == SlotKind::Tile) {
      if (slot.kept) plan.kept |= bit;
    } else if (slot.kind == SlotKind::Output && !(written & bit)) {
      plan.writes |= bit;  // the first step to name a result writes it
      written |= bit;
    } else if (!(plan.writes & bit)) {
      plan.reads |= bit;
    }
  }
}

void Planner::plan_passes() {
  SlotMask written = 0;
  for (const Pass& pass : program_.passes) {
    PassPlan& plan = walk_.passes.emplace_back();
    for (int i = 0; i < pass.step_count; ++i) plan_step(plan, pass.first_step + i, written);
    used_ |= plan.reads | plan.writes;
  }
}

void Planner::size_blocks() {
  constexpr int64_t kWidest = 512;
  const int64_t length = std::max<int64_t>(walk_.row.numel, 1), rows = walk_.outer.numel;
  if (can_widen()) {
    walk_.vertical = true;
    walk_.width = walk_.outer.sizes[0];
    walk_.wide = kWidest / walk_.width;
    walk_.strip = make_space({walk_.width * walk_.row.sizes[0]});
    walk_.fold = kFoldVertical * walk_.wide;
  } else if (!walk_.vertical) {
    // Several passes come back to the block: it should still be in L1. One pass need not.
    const int64_t elements = walk_.passes.size() > 1 ? 4096 : 16384;
    walk_.fold = kFoldHorizontal;
    walk_.width = std::min(std::clamp<int64_t>(elements / length, 1, 256), rows);
  } else {
    // Several passes come back to the block: it should still be in the cache. Of rows that are too
    // long for that, wide blocks are read as they lie, but kept tiles want memory.
    constexpr int64_t kBlockElements = 32768, kNarrow = 64;
    walk_.fold = kFoldVertical;
    bool stays = kNarrow * length <= 2 * kBlockElements;
    for (const PassPlan& pass : walk_.passes) stays = stays || pass.kept != 0;
    int64_t width =
        stays && walk_.passes.size() > 1 ? std::max(kNarrow, kBlockElements / length) : kWidest;
    if (length * rows > kGrain) {
      const int64_t share = (rows + num_threads() - 1) / num_threads();
      width = std::min(width, std::max(kNarrow, (share + kNarrow - 1) / kNarrow * kNarrow));
    }
    walk_.width = std::min({width, kWidest, rows});
  }
}

// One value for a whole row, of a size that is quickly repeated.
bool repeats_plainly(const View& view) {
  const bool word = view.item == 4 || view.item == 8;
  return word && view.in_place() && view.strides.size() == 1 && view.strides[0] == 0;
}

void Planner::set_rule(PassPlan& pass) {
  FixedVector<const View*, kMaxCallOperands> views;
  const SlotMask used = walk_.vertical ? used_ : pass.reads | pass.writes;
  pass.one_tile = !walk_.vertical && walk_.row.sizes.size() == 1 && walk_.row.numel > 0;
  bool scratch = false;   // some step leaves its tile to a later one
  bool repeated = false;  // some operand has one value for a row
  for (size_t s = 0; s < program_.slots.size(); ++s) {
    const Slot& slot = program_.slots[s];
    scratch = scratch || (slot.kind == SlotKind::Tile && !slot.kept);
    const bool element =
        slot.kind == SlotKind::Input || (slot.kind == SlotKind::Output && !slot.per_row);
    if (!element || !((used >> s) & 1u)) continue;
    const View& view = walk_.operands[walk_.operand_of[s]].view;
    views.emplace_back(&view);
    const bool one_value = slot.kind == SlotKind::Input && repeats_plainly(view);
    repeated = repeated || (one_value && !view.linear);
    pass.one_tile = pass.one_tile && ((view.in_place() && view.linear) || one_value);
  }
  pass.rule = tile_rule(walk_.tiled(), views, pass.tile_steps.size() <= 1);
  if (walk_.vertical) {
    pass.rule.most = walk_.width;
    pass.rule.capacity = kTile;
    pass.rule.whole_rows = pass.rule.whole_rows && walk_.outer.sizes[0] <= walk_.width;
  } else {
    // Several steps on what lies in place: the tile need only stay in L1 from one to the next.
    if (pass.one_tile && !scratch && !repeated)
      pass.rule.most = std::max(pass.rule.most, 4 * kTile);
    pass.rule.most = std::min(pass.rule.most, kFoldHorizontal);
    pass.one_tile = pass.one_tile && walk_.row.numel <= pass.rule.most;
  }
  uint32_t offset = 0;
  for (State& state : pass.states) {
    state.offset = offset;
    offset +=
        static_cast<uint32_t>(Arena::rounded(static_cast<size_t>(walk_.lanes()) * state.item));
  }
}

bool Planner::run() {
  WEFT_INTERNAL_ASSERT(results_.size() == program_.output_count, "in ", program_.name);
  types_ = call_types(program_, call_);
  shape_ = common_shape(program_, call_, results_);
  row_ = row_dims(program_, call_, shape_);
  keepdim_ = keeps_dims();
  check_kernels(program_, types_);
  check_elements(program_, call_, shape_, row_);
  walk_.compute = types_.compute;
  store_attributes(program_, call_, {types_.compute, types_.compute}, walk_.scalars);
  make_results();
  plan_passes();
  lay_out();
  if (walk_.outer.numel == 0) return false;
  std::memset(walk_.scalars, 0, kFirstAttribute * sizeof(ScalarSlot));
  std::memcpy(walk_.scalars[kRowLengthSlot].bytes, &walk_.row.numel, sizeof(int64_t));
  size_blocks();
  for (RowOperand& operand : walk_.operands) {
    operand.view.strides = !walk_.vertical   ? operand.row
                           : walk_.wide == 1 ? operand.outer
                                             : Dims{operand.view.item};
    operand.across = walk_.vertical ? operand.row : operand.outer;
    describe(operand.view, walk_.tiled());
  }
  for (RowResult& result : walk_.results) describe(result.view, walk_.outer);
  for (PassPlan& pass : walk_.passes) {
    set_rule(pass);
    for (BoundStep& bound : pass.tile_steps) {
      const KernelSet* set = walk_.vertical ? bound.step->vertical : bound.step->horizontal;
      bound.kernel = set->get(types_.compute);
    }
  }
  return true;
}

}  // namespace

bool plan_row(const Call& call, std::span<Tensor> results, Inputs& inputs, RowWalk& walk) {
  return Planner(call, results, inputs, walk, false).run();
}

bool plan_row_layout(const Call& call, std::span<Tensor> results, Inputs& inputs, RowWalk& walk) {
  return Planner(call, results, inputs, walk, true).run();
}

}  // namespace weft::tile
