// Row programs: threads take blocks of rows, or share long rows; the groups of lanes of a block.
#include "ops/tile_row.h"

#include "core/thread_pool.h"
#include "ops/tile_drivers.h"

namespace weft::tile {
namespace {

// Rows of the block that starts at row `first`.
int64_t block_rows(const RowWalk& walk, int64_t first) {
  const int64_t count = std::min(walk.width, walk.outer.numel - first);
  if (!walk.vertical) return count;
  Cursor at;
  at.seek(walk.outer, first);
  return walk.passes[0].rule.next(walk.outer, at, count);
}

// Few long rows: threads share each of them.
bool shares_rows(const RowWalk& walk) {
  if (num_threads() == 1 || in_parallel_region()) return false;
  for (const PassPlan& pass : walk.passes) {
    if (pass.states.size() && !pass.mergeable) return false;
  }
  const int64_t blocks = (walk.outer.numel + walk.width - 1) / walk.width;
  return blocks < 2 * num_threads() && walk.row.numel * walk.width >= 2 * kPart &&
         walk.row.numel >= 2 * walk.fold;
}

void run_shared_pass(const RowWalk& walk, RowWorker& leader, const PassPlan& pass) {
  if (pass.tile_steps.size() == 0) return;
  int64_t part = walk.fold;
  while (part * walk.width < kPart) part *= 2;
  const int64_t length = walk.row.numel, parts = (length + part - 1) / part;
  const size_t stride = walk.state_bytes(pass);
  Arena partial(static_cast<size_t>(parts) * stride);
  char* const states = partial.take(static_cast<size_t>(parts) * stride);
  parallel_sweep(parts, 1, [&](int64_t begin, int64_t end) {
    RowWorker worker(walk, &leader);
    for (int64_t i = begin; i < end; ++i) {
      worker.part(pass, i * part, std::min((i + 1) * part, length),
                  states + static_cast<size_t>(i) * stride);
    }
  });
  if (pass.states.size()) leader.combine(pass, states, parts, stride);
}

void run_shared(const RowWalk& walk) {
  RowWorker leader(walk);
  for (int64_t first = 0; first < walk.outer.numel;) {
    const int64_t count = block_rows(walk, first);
    leader.open(first, count);
    for (const PassPlan& pass : walk.passes) {
      run_shared_pass(walk, leader, pass);
      leader.row_steps(pass);
    }
    leader.close();
    first += count;
  }
}

}  // namespace

// Repeats the row values of a block for each group of its lanes.
void RowWorker::widen(int slot) {
  const size_t nbytes = static_cast<size_t>(count_) * walk_.slot_item(slot);
  for (int64_t group = 1; group < walk_.wide; ++group) {
    std::memcpy(values_[slot] + static_cast<size_t>(group) * nbytes, values_[slot], nbytes);
  }
}

// Merges the groups of lanes of a wide block, halving their number.
void RowWorker::narrow(const PassPlan& pass) {
  for (int64_t groups = walk_.wide; groups > 1;) {
    const int64_t half = (groups + 1) / 2;
    for (const BoundStep& bound : pass.tile_steps) {
      const int states = bound.step->states;
      if (states == 0) continue;
      void* operands[2 * kMaxOperands];
      for (int i = 0; i < states; ++i) {
        const int slot = bound.step->operands[i];
        operands[i] = values_[slot];
        operands[states + i] =
            values_[slot] + half * count_ * static_cast<int64_t>(walk_.slot_item(slot));
      }
      bound.merge(operands, (groups - half) * count_, walk_.scalars);
    }
    groups = half;
  }
}

void RowWorker::combine(const PassPlan& pass, char* partial, int64_t count, size_t stride) {
  void* states[kMaxStates];
  cascade_.open(walk_, pass, lanes_now(), levels_);
  for (int64_t i = 0; i < count; ++i) {
    for (size_t s = 0; s < pass.states.size(); ++s) {
      states[s] = partial + static_cast<size_t>(i) * stride + pass.states[s].offset;
    }
    cascade_.push(states);
  }
  for (size_t s = 0; s < pass.states.size(); ++s) states[s] = values_[pass.states[s].slot];
  cascade_.finish(states);
  narrow(pass);
}

void run_on_cpu(const RowWalk& walk) {
  constexpr int64_t kPiecesEach = 8;  // at least, where there is enough to do
  const int64_t rows = walk.outer.numel, length = std::max<int64_t>(walk.row.numel, 1);
  if (rows * length <= kGrain) return RowWorker(walk).run(0, rows);
  if (shares_rows(walk)) return run_shared(walk);
  int64_t unit = walk.width;
  if (walk.vertical && walk.passes[0].rule.whole_rows) {
    unit = walk.width / walk.outer.sizes[0] * walk.outer.sizes[0];
  }
  // A worker is made for each piece, which should not cost as much as the rows of it.
  const int64_t share = rows * length / (kPiecesEach * num_threads());
  const int64_t grain =
      std::max<int64_t>(1, std::clamp(share, kPiece, 4 * kPiece) / (unit * length));
  parallel_sweep((rows + unit - 1) / unit, grain, [&](int64_t begin, int64_t end) {
    RowWorker(walk).run(begin * unit, std::min(end * unit, rows));
  });
}

void run_row(const Program& program, const Call& call, std::span<Tensor> results) {
  Inputs inputs;
  RowWalk walk(program);
  if (plan_row(call, results, inputs, walk)) run_on(call_device(call, results), walk);
}

}  // namespace weft::tile
