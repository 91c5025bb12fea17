// Staged programs at work: stage by stage on small tensors, else block by block.
#include "ops/tile_stages.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/thread_pool.h"
#include "ops/copy.h"
#include "ops/tile_drivers.h"

namespace weft::tile {
namespace {

// Where element 0 would lie if element `first` lies at `memory`.
char* origin(char* memory, int64_t first, size_t item) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(memory) -
                                 static_cast<uintptr_t>(first) * item);
}

// A value whose operands were all broadcast, in the shape that its stage would give it in blocks.
Tensor in_full(const Tensor& value, const Dims& shape) {
  Tensor full = make_result("fused", shape, {}, value.dtype());
  copy_new(full, value);
  return full;
}

void run_whole(const Stage& stage, const StagedCall& staged, std::span<StageValue> values) {
  FixedVector<Tensor, kMaxCallOperands> copies;
  const Tensor* inputs[kMaxCallOperands];
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const auto [is_value, index] = stage.inputs[i];
    inputs[i] = is_value ? &values[index].tensor : staged.inputs[index];
    const bool is_element = is_value && values[index].per == Per::Element;
    if (stage.program->row && is_element && !(inputs[i]->sizes() == staged.shape)) {
      inputs[i] = &copies.emplace_back(in_full(*inputs[i], staged.shape));
    }
  }
  Tensor results[kMaxCallOperands];
  Call call = stage_call(stage, {inputs, stage.inputs.size()});
  const Program& program = *stage.program;
  const auto outside_promotion = std::popcount(program.bool_inputs | program.int_inputs);
  if (outside_promotion == program.input_count) call.dtype = staged.compute;
  tile::run(program, call, {results, stage.results.size()});
  for (size_t i = 0; i < stage.results.size(); ++i) {
    values[stage.results[i]].tensor = std::move(results[i]);
  }
}

}  // namespace

// One thread's workers, and its scratch for values.
class StagedWalk::Workspace {
 public:
  using Leaders = std::vector<std::unique_ptr<RowWorker>>;
  explicit Workspace(const StagedWalk& walk, const Leaders* leaders = nullptr)
      : walk_(walk), arena_(std::reduce(walk.scratch_bytes_.begin(), walk.scratch_bytes_.end())) {
    for (const size_t nbytes : walk.scratch_bytes_) memory_.push_back(arena_.take(nbytes));
    for (size_t s = 0; s < walk.plans_.size(); ++s) {
      const Plan& plan = walk.plans_[s];
      const RowWorker* leader = leaders ? (*leaders)[s].get() : nullptr;
      pointwise.push_back(plan.walk ? std::make_unique<Worker>(*plan.walk) : nullptr);
      rows.push_back(plan.rows ? std::make_unique<RowWorker>(*plan.rows, leader) : nullptr);
    }
  }

  // Scratch holds the values of a stage from this row and element on.
  void place(size_t stage, int64_t row, int64_t element) {
    for (const auto [where, number] : walk_.plans_[stage].in_scratch) {
      const StageValue& value = walk_.values_[number];
      const int64_t first = value.per == Per::Element ? element : row;
      char* base = origin(memory_[number], first, item_size(value.dtype));
      if (pointwise[stage]) {
        pointwise[stage]->move(static_cast<size_t>(where), base);
      } else {
        rows[stage]->move(where, base);
      }
    }
  }

  std::vector<std::unique_ptr<Worker>> pointwise;  // by stage
  std::vector<std::unique_ptr<RowWorker>> rows;

 private:
  const StagedWalk& walk_;
  Arena arena_;
  std::vector<char*> memory_;  // by value
};

void StagedWalk::run_blocks() const {
  const int64_t blocks = (rows_ + block_ - 1) / block_;
  const int64_t grain = std::max<int64_t>(1, kGrain / (block_ * length_));
  parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
    Workspace workspace(*this);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * block_, last = std::min(first + block_, rows_);
      for (size_t s = 0; s < plans_.size(); ++s) {
        workspace.place(s, first, first * length_);
        const int64_t each = plans_[s].row_elements;
        if (workspace.pointwise[s]) {
          workspace.pointwise[s]->run(first * each, last * each);
        } else {
          workspace.rows[s]->run(first, last);
        }
      }
    }
  });
}

// Reductions over all, a fold of the elements at a time.
void StagedWalk::run_folds() const {
  const int64_t numel = rows_ * length_, fold = kFoldHorizontal;
  const int64_t folds = (numel + fold - 1) / fold;
  // By stage: the worker that owns the one value, and a partial state for each fold.
  Workspace::Leaders leaders;
  std::vector<std::unique_ptr<Arena>> arenas;
  std::vector<char*> states;
  for (const Plan& plan : plans_) {
    const RowWalk* walk = plan.rows.get();
    const size_t nbytes =
        walk ? static_cast<size_t>(folds) * walk->state_bytes(walk->passes[0]) : 0;
    leaders.push_back(walk ? std::make_unique<RowWorker>(*walk) : nullptr);
    if (walk) leaders.back()->open(0, 1);
    states.push_back(arenas.emplace_back(std::make_unique<Arena>(nbytes))->take(nbytes));
  }
  parallel_for(folds, kGrain / fold, [&](int64_t first, int64_t last) {
    Workspace workspace(*this, &leaders);
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * fold, end = std::min(begin + fold, numel);
      for (size_t s = 0; s < plans_.size(); ++s) {
        workspace.place(s, 0, begin);
        if (workspace.pointwise[s]) {
          workspace.pointwise[s]->run(begin, end);
          continue;
        }
        const PassPlan& pass = plans_[s].rows->passes[0];
        const size_t at = static_cast<size_t>(i) * plans_[s].rows->state_bytes(pass);
        workspace.rows[s]->part(pass, begin, end, states[s] + at);
      }
    }
  });
  for (size_t s = 0; s < plans_.size(); ++s) {
    if (!leaders[s]) continue;
    const PassPlan& pass = plans_[s].rows->passes[0];
    leaders[s]->combine(pass, states[s], folds, plans_[s].rows->state_bytes(pass));
    leaders[s]->row_steps(pass);
    leaders[s]->close();
  }
}

void StagedWalk::run() const { over_all_ ? run_folds() : run_blocks(); }

bool run_stages(const StagedCall& call, std::span<StageValue> values) {
  StagedWalk walk(call, values);
  if (walk.is_small()) {
    for (const Stage& stage : call.stages) run_whole(stage, call, values);
    return true;
  }
  if (!walk.plan()) return false;
  walk.run();
  return true;
}

}  // namespace weft::tile
