// One call: the stages one by one where tensors are small, else planned and run block by block.
#include "runtime/fused_rows_run.h"

#include <algorithm>
#include <cstdlib>

#include "autograd/mode.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "ops_copying.h"
#include "ops_views.h"
#include "runtime/fused_assembly.h"
#include "runtime/fused_shapes.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;
using tile::Placed;
using tile::SlotKind;
using tile::SlotType;

// Below this operators take ways of their own (run_plain_rows): the stages then run one by one.
constexpr int64_t kWhole = 4096;
// Elements of a block: several values of it stay in the cache.
constexpr int64_t kBlock = 8192;
const int64_t kLastDim[] = {-1};

int slot_of(const tile::Program& program, SlotKind kind, size_t index) {
  for (size_t s = 0; s < program.slots.size(); ++s) {
    if (program.slots[s].kind == kind && program.slots[s].index == index)
      return static_cast<int>(s);
  }
  WEFT_INTERNAL_ASSERT(false, "in ", program.name);
  __builtin_unreachable();
}

// Where element 0 would lie if element `first` lies at `memory`.
char* origin(char* memory, int64_t first, size_t item) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(memory) -
                                 static_cast<uintptr_t>(first) * item);
}

}  // namespace

FusedRowsRun::FusedRowsRun(const FusedRows& group, const FusedKey& key, const Value* args,
                           const Dims& shape, uint64_t donated)
    : group_(group),
      key_(key),
      args_(args),
      shape_(shape),
      donated_(unique_among(donated)),
      row_shape_(shape),
      length_(shape.back()),
      rows_(1),
      places_(group.values_.size()),
      leaves_(group.values_.size()) {
  row_shape_.back() = 1;
  for (int64_t size : row_shape_) rows_ *= size;
  for (uint8_t output : group_.spec_.outputs) leaves_[output] = true;
  // The one value of a sum over all has a place in any case.
  for (size_t v = 0; v < leaves_.size(); ++v) {
    if (group_.values_[v].extent == Extent::All) leaves_[v] = true;
  }
}

bool FusedRowsRun::run(Value* results, std::vector<Tensor>* kept) {
  const int64_t numel = rows_ * length_;
  if (numel <= (group_.over_all_ ? tile::kFoldHorizontal : kWhole)) return run_whole(results, kept);
  if (kept) {
    for (uint8_t value : group_.kept_) leaves_[value] = true;
  }
  if (!plan()) return false;
  if (group_.over_all_) {
    run_over_all();
  } else {
    run_blocks();
  }
  for (size_t i = 0; i < group_.spec_.outputs.size(); ++i) {
    const uint8_t value = group_.spec_.outputs[i];
    results[i] = Value(shaped(value, places_[value].tensor));
  }
  if (!kept) return true;
  for (uint8_t value : group_.kept_) kept->push_back(kept_value(value, places_[value].tensor));
  return true;
}

// A value of rows for the gradient: not in the memory of a result, which the caller may write to.
Tensor FusedRowsRun::kept_value(uint8_t value, const Tensor& tensor) const {
  const bool given = std::ranges::find(group_.spec_.outputs, value) != group_.spec_.outputs.end();
  return without_row(given ? ops::clone(tensor, std::nullopt) : tensor);
}

// A result as the operator would shape it.
Tensor FusedRowsRun::shaped(uint8_t value, const Tensor& tensor) const {
  return group_.values_[value].extent == Extent::Squeezed ? without_row(tensor) : tensor;
}

// A value of rows, contiguous, without their dimension.
Tensor FusedRowsRun::without_row(const Tensor& tensor) const {
  Dims sizes(row_shape_);
  sizes.resize(sizes.size() - 1);
  return Tensor(tensor.storage(), Layout::contiguous(sizes), tensor.dtype());
}

Scalar FusedRowsRun::number(const FusedOperand& one) const {
  switch (one.kind) {
    case Kind::Input:
      return args_[one.index].to_scalar();
    case Kind::Length:
      return Scalar(one.index ? rows_ * length_ : length_);
    default:
      return group_.spec_.constants[one.index].to_scalar();
  }
}

// ---- small tensors: stage by stage ----

bool FusedRowsRun::run_stage(const Stage& stage, std::vector<Value>& values) const {
  const auto tensor = [&](const FusedOperand& one) {
    return one.kind == Kind::Step ? values[one.index].to_tensor() : args_[one.index].to_tensor();
  };
  std::vector<Value> results(stage.values.size());
  if (!stage.is_row) {
    std::vector<Value> args;
    for (const FusedOperand& one : stage.inputs) {
      const bool is_tensor = one.kind == Kind::Step ||
                             (one.kind == Kind::Input && group_.tensor_inputs_ & bit(one.index));
      args.push_back(is_tensor ? Value(tensor(one)) : Value(number(one)));
    }
    if (!stage.group->run(args.data(), results.data())) return false;
  } else {
    FixedVector<Tensor, tile::kMaxCallOperands> held;
    const Tensor* inputs[tile::kMaxCallOperands];
    Scalar numbers_of[tile::kMaxAttributes];
    const FusedStep& step = *stage.step;
    for (size_t i = 0; i < step.tensors.size(); ++i) {
      Tensor& operand = held.emplace_back(tensor(step.tensors[i]));
      const bool made = step.tensors[i].kind == Kind::Step && is_element(step.tensors[i].index);
      if (made && !(operand.sizes() == shape_)) {
        operand = ops::clone(ops::expand(operand, shape_), std::nullopt);
      }
      inputs[i] = &operand;
      if (inputs[i]->dtype() != key_.compute) return false;
    }
    if (!numbers(step.numbers, stage, *stage.program, numbers_of)) return false;
    Tensor made[tile::kMaxCallOperands];
    const bool all = step.over == Over::All;
    const tile::Call call{.inputs = {inputs, step.tensors.size()},
                          .attributes = {numbers_of, step.numbers.size()},
                          .dims = all ? IntList{} : IntList(kLastDim),
                          .keepdim = !all};
    tile::run(*stage.program, call, {made, stage.values.size()});
    for (size_t i = 0; i < results.size(); ++i) results[i] = Value(made[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) values[stage.values[i]] = std::move(results[i]);
  return true;
}

bool FusedRowsRun::run_whole(Value* results, std::vector<Tensor>* kept) {
  const autograd::NoGradGuard quiet;
  std::vector<Value> values(places_.size());
  for (const Stage& stage : group_.stages_) {
    if (!run_stage(stage, values)) return false;
  }
  for (size_t i = 0; i < group_.spec_.outputs.size(); ++i) {
    const uint8_t value = group_.spec_.outputs[i];
    results[i] = Value(shaped(value, values[value].to_tensor()));
  }
  if (!kept) return true;
  for (uint8_t value : group_.kept_) kept->push_back(kept_value(value, values[value].to_tensor()));
  return true;
}

// ---- plans ----

bool FusedRowsRun::numbers(const std::vector<FusedOperand>& operands, const Stage& stage,
                           const tile::Program& program, Scalar* out) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    FusedOperand one = operands[i];
    // The inputs of a part are the group's, its values and its length.
    if (!stage.is_row && one.kind == Kind::Input) one = stage.inputs[one.index];
    out[i] = number(one);
    if (program.attribute_types[i] != SlotType::Compute && out[i].is_floating()) {
      if (!stage.is_row) return false;
    }
  }
  return true;
}

bool FusedRowsRun::plan_part(const Stage& stage, Planned& planned) {
  FusedKey key{key_.compute, 0, 0};
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const FusedOperand& one = stage.inputs[i];
    const auto is = [&](DType dtype, uint64_t inputs) {
      return one.kind == Kind::Step ? places_[one.index].dtype == dtype
                                    : one.kind == Kind::Input && (inputs >> one.index & 1);
    };
    if (is(DType::Bool, key_.masks)) key.masks |= bit(static_cast<uint8_t>(i));
    if (is(DType::I64, key_.ints)) key.ints |= bit(static_cast<uint8_t>(i));
  }
  const FusedGroup::Ready ready = stage.group->ready(key);
  if (!ready.program) return false;
  planned.per_row = stage.per_row;
  const Dims& shape = stage.per_row ? row_shape_ : shape_;
  std::vector<Placed> results, inputs;
  for (size_t i = 0; i < stage.values.size(); ++i) {
    const uint8_t value = stage.values[i];
    const SlotType type = tile::output_slot(*ready.program, static_cast<int>(i)).type;
    set_dtype(value, tile::slot_dtype(type, key_.compute));
    if (!leaves_[value]) planned.moves.push_back({static_cast<int>(i), value});
    results.push_back(place_value(value));
  }
  for (size_t i = 0; i < ready.binding->tensors.size(); ++i) {
    const FusedOperand& one = stage.inputs[ready.binding->tensors[i]];
    if (one.kind == Kind::Step && !leaves_[one.index]) {
      planned.moves.push_back({static_cast<int>(results.size() + i), one.index});
    }
    inputs.push_back(place(one, shape));
  }
  Scalar attributes[tile::kMaxAttributes];
  if (!numbers(ready.binding->attributes, stage, *ready.program, attributes)) return false;
  planned.walk = std::make_unique<tile::Walk>(*ready.program);
  tile::Walk& walk = *planned.walk;
  walk.compute = key_.compute;
  const tile::Call call{.inputs = {}, .attributes = {attributes, ready.binding->attributes.size()}};
  tile::store_attributes(*ready.program, call, key_.compute, walk.scalars);
  tile::lay_out_in_order(walk, shape, results, inputs);
  // Views stand in the order of the program's slots: results, then inputs as slots come.
  for (Moved& moved : planned.moves) {
    if (moved.where < ready.program->output_count) continue;
    const auto index = static_cast<size_t>(moved.where - ready.program->output_count);
    const int slot = slot_of(*ready.program, SlotKind::Input, index);
    for (const tile::SlotView& read : walk.reads) {
      if (read.slot == slot) moved.where = read.view;
    }
  }
  return true;
}

bool FusedRowsRun::plan_rows(const Stage& stage, Planned& planned) {
  const FusedStep& step = *stage.step;
  const tile::Program& program = *stage.program;
  const bool all = step.over == Over::All;
  planned.tensors.reserve(step.tensors.size() + stage.values.size());
  const Tensor* inputs[tile::kMaxCallOperands];
  for (size_t i = 0; i < step.tensors.size(); ++i) {
    const FusedOperand& one = step.tensors[i];
    const bool value = one.kind == Kind::Step;
    planned.tensors.push_back(value ? row_operand(one.index) : args_[one.index].to_tensor());
    inputs[i] = &planned.tensors.back();
    if (inputs[i]->dtype() != key_.compute) return false;
    if (value && !leaves_[one.index]) {
      planned.moves.push_back({slot_of(program, SlotKind::Input, i), one.index});
    }
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < stage.values.size(); ++i) {
    const uint8_t value = stage.values[i];
    if (tile::output_slot(program, static_cast<int>(i)).type != SlotType::Compute) return false;
    set_dtype(value, key_.compute);
    results.push_back(row_operand(value));
    if (!leaves_[value]) planned.moves.push_back({slot_of(program, SlotKind::Output, i), value});
  }
  Scalar attributes[tile::kMaxAttributes];
  if (!numbers(step.numbers, stage, program, attributes)) return false;
  const tile::Call call{.inputs = {inputs, step.tensors.size()},
                        .attributes = {attributes, step.numbers.size()},
                        .dims = all ? IntList{} : IntList(kLastDim),
                        .keepdim = !all};
  planned.rows = std::make_unique<tile::RowWalk>(program);
  planned.inputs = std::make_unique<tile::Inputs>();
  return tile::plan_row_layout(call, results, *planned.inputs, *planned.rows) &&
         (!all || shares_folds(*planned.rows));
}

// Sums over all are shared in folds, which needs one pass over one row that can merge.
bool FusedRowsRun::shares_folds(const tile::RowWalk& walk) {
  if (walk.vertical || walk.outer.numel != 1 || walk.row.sizes.size() != 1) return false;
  if (walk.passes.size() != 1) return false;
  const tile::PassPlan& pass = walk.passes[0];
  return pass.tile_steps.size() > 0 && pass.states.size() > 0 && pass.mergeable &&
         walk.fold == tile::kFoldHorizontal;
}

bool FusedRowsRun::plan() {
  block_ = std::max<int64_t>(1, kBlock / length_);
  for (const Stage& stage : group_.stages_) {
    Planned& planned = planned_.emplace_back();
    if (!(stage.is_row ? plan_rows(stage, planned) : plan_part(stage, planned))) return false;
  }
  return true;
}

// ---- at work ----

// One thread's workers, and its scratch for values.
class FusedRowsRun::Workspace {
 public:
  using Leaders = std::vector<std::unique_ptr<tile::RowWorker>>;
  explicit Workspace(const FusedRowsRun& run, const Leaders* leaders = nullptr)
      : run_(run), arena_(run.scratch_bytes_), memory_(run.places_.size()) {
    for (size_t v = 0; v < memory_.size(); ++v)
      memory_[v] = arena_.take(run.places_[v].block_bytes);
    for (size_t s = 0; s < run.planned_.size(); ++s) {
      const Planned& planned = run.planned_[s];
      parts.push_back(planned.walk ? std::make_unique<tile::Worker>(*planned.walk) : nullptr);
      const tile::RowWorker* leader = leaders ? (*leaders)[s].get() : nullptr;
      rows.push_back(planned.rows ? std::make_unique<tile::RowWorker>(*planned.rows, leader)
                                  : nullptr);
    }
  }

  // Scratch holds the values of a stage from this row and element on.
  void place(size_t stage, int64_t row, int64_t element) {
    for (const Moved& moved : run_.planned_[stage].moves) {
      const int64_t first = run_.is_element(moved.value) ? element : row;
      const size_t item = item_size(run_.places_[moved.value].dtype);
      char* base = origin(memory_[moved.value], first, item);
      if (parts[stage]) {
        parts[stage]->move(static_cast<size_t>(moved.where), base);
      } else {
        rows[stage]->move(moved.where, base);
      }
    }
  }

  std::vector<std::unique_ptr<tile::Worker>> parts;  // by stage
  std::vector<std::unique_ptr<tile::RowWorker>> rows;

 private:
  const FusedRowsRun& run_;
  tile::Arena arena_;
  std::vector<char*> memory_;  // by value
};

void FusedRowsRun::run_rows(Workspace& workspace, int64_t begin, int64_t end) const {
  for (int64_t first = begin; first < end; first += block_) {
    const int64_t last = std::min(first + block_, end);
    for (size_t s = 0; s < planned_.size(); ++s) {
      workspace.place(s, first, first * length_);
      const int64_t each = planned_[s].per_row ? 1 : length_;
      if (workspace.parts[s]) {
        workspace.parts[s]->run(first * each, last * each);
      } else {
        workspace.rows[s]->run(first, last);
      }
    }
  }
}

void FusedRowsRun::run_blocks() {
  const int64_t blocks = (rows_ + block_ - 1) / block_;
  const int64_t grain = std::max<int64_t>(1, tile::kGrain / (block_ * length_));
  parallel_for(blocks, grain, [&](int64_t first, int64_t last) {
    Workspace workspace(*this);
    run_rows(workspace, first * block_, std::min(last * block_, rows_));
  });
}

void FusedRowsRun::run_over_all() {
  const int64_t numel = rows_ * length_, fold = tile::kFoldHorizontal;
  const int64_t folds = (numel + fold - 1) / fold;
  // By stage: the worker that owns the one value, and a partial state for each fold.
  Workspace::Leaders leaders;
  std::vector<std::unique_ptr<tile::Arena>> arenas;
  std::vector<char*> states;
  for (const Planned& planned : planned_) {
    const tile::RowWalk* walk = planned.rows.get();
    const size_t each = walk ? walk->state_bytes(walk->passes[0]) : 0;
    const size_t nbytes = static_cast<size_t>(folds) * each;
    leaders.push_back(walk ? std::make_unique<tile::RowWorker>(*walk) : nullptr);
    if (walk) leaders.back()->open(0, 1);
    states.push_back(arenas.emplace_back(std::make_unique<tile::Arena>(nbytes))->take(nbytes));
  }
  parallel_for(folds, tile::kGrain / fold, [&](int64_t first, int64_t last) {
    Workspace workspace(*this, &leaders);
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * fold, end = std::min(begin + fold, numel);
      for (size_t s = 0; s < planned_.size(); ++s) {
        workspace.place(s, 0, begin);
        if (workspace.parts[s]) {
          workspace.parts[s]->run(begin, end);
          continue;
        }
        const tile::PassPlan& pass = planned_[s].rows->passes[0];
        const size_t at = static_cast<size_t>(i) * planned_[s].rows->state_bytes(pass);
        workspace.rows[s]->part(pass, begin, end, states[s] + at);
      }
    }
  });
  for (size_t s = 0; s < planned_.size(); ++s) {
    if (!leaders[s]) continue;
    const tile::PassPlan& pass = planned_[s].rows->passes[0];
    leaders[s]->combine(pass, states[s], folds, planned_[s].rows->state_bytes(pass));
    leaders[s]->row_steps(pass);
    leaders[s]->close();
  }
}

namespace {

bool broadcasts_to(const Dims& sizes, const Dims& shape) {
  if (sizes.size() > shape.size()) return false;
  const size_t lead = shape.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && sizes[d] != shape[lead + d]) return false;
  }
  return true;
}

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

}  // namespace

std::optional<Dims> FusedRows::shape_for(const FusedKey& key, const Value* args,
                                         const Dims* full) const {
  if (compute_type(key.compute) != key.compute) return {};  // operators round in between
  for (const uint8_t i : tensors_) {
    if (!is_in_order(args[i].to_tensor().layout())) return {};
  }
  const std::optional<Dims> own = weft::shape_of(args, tensors_, ~uint64_t{0});
  if (!own) return {};  // the operator that minds says so
  if (full && !broadcasts_to(*own, *full)) return {};
  const Dims& shape = full ? *full : *own;
  if (shape.empty() || shape.back() < 2) return {};
  int64_t numel = 1;
  for (int64_t size : shape) numel *= size;
  if (numel == 0 || !shapes_fit(args, shape, full != nullptr)) return {};
  return shape;
}

bool FusedRows::run(const FusedKey& key, const Value* args, Value* results, const Dims* full,
                    uint64_t donated, std::vector<Tensor>* kept) const {
  const std::optional<Dims> shape = shape_for(key, args, full);
  return shape && FusedRowsRun(*this, key, args, *shape, donated).run(results, kept);
}

}  // namespace weft
