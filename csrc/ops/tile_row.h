// Row programs: what planning found (RowWalk) and what one thread does with it (RowWorker).
#pragma once

#include "ops/tile_operand.h"
#include "ops/tile_plan.h"

namespace weft::tile {

inline constexpr int kMaxPasses = 16;
inline constexpr int kMaxStates = 8;  // of one pass
// Elements folded in sequence before partial states merge: a kernel keeps many accumulators when
// horizontal, one a lane when vertical.
inline constexpr int64_t kFoldHorizontal = 8192, kFoldVertical = 128;
// A part of a long row, for threads that share it: a power of two times the fold, so that sums do
// not depend on the number of threads.
inline constexpr int64_t kPart = 65536;

using SlotMask = uint64_t;

// A row slot that a pass folds into.
struct State {
  uint8_t slot;
  uint8_t item;
  uint32_t offset;  // bytes, within the states of one block
};

// A step with the kernels of this call.
struct BoundStep {
  const Step* step;
  int number;
  KernelFn kernel, identity, merge;
};

struct PassPlan {
  FixedVector<BoundStep, kMaxSteps> tile_steps, row_steps;
  SlotMask reads = 0;   // element operands to load
  SlotMask writes = 0;  // element results to store
  SlotMask kept = 0;    // kept tiles to point at
  FixedVector<State, kMaxStates> states;
  bool mergeable = true;  // every reduce step can merge
  // A row is one tile, and every operand is used where it lies or is one value for the row.
  bool one_tile = false;
  TileRule rule;
};

// An element operand (input or element result): its view over the space that tiles walk, and its
// strides over the other one.
struct RowOperand {
  View view;
  Dims row, outer;  // strides over both
  Dims across;
};

struct RowResult {
  uint8_t slot;
  View view;  // over the outer space
};

// All that the threads share.
struct RowWalk {
  explicit RowWalk(const Program& program) : program(program) {}

  const Program& program;
  DType compute{};
  bool vertical = false;
  Space row, outer, strip;  // strip: a block's rows and the row elements behind, if `wide` > 1
  FixedVector<RowOperand, kMaxCallOperands> operands;
  FixedVector<RowResult, kMaxCallOperands> results;
  uint8_t operand_of[kMaxSlots];  // by slot
  FixedVector<PassPlan, kMaxPasses> passes;
  ScalarSlot scalars[kMaxScalars];
  int64_t width = 1;  // rows of a block
  int64_t wide = 1;   // neighbouring row elements that a vertical tile spans: narrow blocks fold
                      // into `wide` groups of lanes, which merge at the end
  int64_t fold = 1;   // row elements folded in sequence before partial states merge

  const Space& tiled() const { return !vertical ? row : wide > 1 ? strip : outer; }
  size_t slot_item(int slot) const {
    return item_size(slot_dtype(program.slots[slot].type, compute));
  }
  bool is_row_slot(int slot) const {
    const Slot& s = program.slots[slot];
    return s.kind == SlotKind::Row || (s.kind == SlotKind::Output && s.per_row);
  }
  // Values of a state in one block.
  int64_t lanes() const { return vertical ? width * wide : 1; }
  // Bytes of the states of one pass for one block.
  size_t state_bytes(const PassPlan& pass) const;
};

// Plans a call: checks it, makes the results and says how to walk. False when there is nothing to
// compute. `inputs` must outlive the walk.
bool plan_row(const Call& call, std::span<Tensor> results, Inputs& inputs, RowWalk& walk);

// The same plan for operands that lie elsewhere, as RowWorker::move will say: `call` and `results`
// (all of them defined) give sizes, strides and dtypes alone.
bool plan_row_layout(const Call& call, std::span<Tensor> results, Inputs& inputs, RowWalk& walk);

// Runs the walk with the CPU's threads, whose kernels reach the views' addresses.
void run_on_cpu(const RowWalk& walk);

// Combines partial states pairwise, like a binary counter: level k holds 2^k partial results.
class Cascade {
 public:
  // `memory` has room for a level for each binary digit of the number of pushes.
  void open(const RowWalk& walk, const PassPlan& pass, int64_t lanes, char* memory);
  // Takes the values over (copies them).
  void push(void* const* states);
  // Leaves the total of all that was pushed in `states`; without any, does nothing.
  void finish(void* const* states);

 private:
  void merge(void* const* older, void* const* newer);
  void level_states(int level, void** states) const;
  void copy(void* const* to, void* const* from) const;

  const RowWalk* walk_ = nullptr;
  const PassPlan* pass_ = nullptr;
  int64_t lanes_ = 1;
  char* memory_ = nullptr;
  size_t level_bytes_ = 0;
  uint64_t count_ = 0;
};

// One thread at work on blocks of rows.
class RowWorker {
 public:
  // With `leader`, works for it on parts of its rows: shares its row values and kept tiles.
  explicit RowWorker(const RowWalk& walk, const RowWorker* leader = nullptr);

  // Element 0 of an input's or a result's slot lies there from now on.
  void move(int slot, char* base);

  // Rows [begin, end) from first to last pass.
  void run(int64_t begin, int64_t end);

  // The parts of that for rows that several threads share.
  void open(int64_t first, int64_t count);
  void row_steps(const PassPlan& pass);
  void close();
  // Folds elements [begin, end) of the open row (block) into the states at `partial`.
  void part(const PassPlan& pass, int64_t begin, int64_t end, char* partial);
  // Merges `count` such partial states, `stride` bytes apart, into the row values.
  void combine(const PassPlan& pass, char* partial, int64_t count, size_t stride);

 private:
  size_t arena_bytes(bool leads) const;
  size_t slot_bytes(int slot, bool leads) const;
  int64_t lanes_now() const { return walk_.vertical ? count_ * walk_.wide : 1; }
  void read_given(int slot);
  void widen(int slot);
  void tile_pass(const PassPlan& pass);
  struct Spaced {
    char* at[kMaxOperands];
    int64_t stride[kMaxOperands];
    const char* value[kMaxOperands];  // row values, one after the other
    size_t value_item[kMaxOperands];
    void* value_to[kMaxOperands];  // the scalars that kernels read
    // Operands of one value a row, and their number among the walk's.
    FixedVector<std::pair<int, uint8_t>, kMaxOperands> repeated;
  };
  static constexpr size_t kFewSteps = 4;
  bool is_repeated(uint8_t operand) const;
  void* repeat(uint8_t operand, const void* from);
  void one_tile_rows(const PassPlan& pass);
  void space(const PassPlan& pass, const BoundStep& bound, Spaced& spaced) const;
  void evenly_spaced_rows(const PassPlan& pass);
  void enter_row(const PassPlan& pass, int64_t row);
  void read_row_values(const PassPlan& pass, int64_t row);
  void fold(const PassPlan& pass, int64_t begin, int64_t end);
  void fold_directly(const PassPlan& pass, int64_t begin, int64_t end);
  void identity(const PassPlan& pass, int64_t lanes);
  void narrow(const PassPlan& pass);
  void horizontal(const PassPlan& pass, int64_t begin, int64_t end);
  void vertical(const PassPlan& pass, int64_t begin, int64_t end);
  bool strides_only(const PassPlan& pass) const;
  void vertical_strides(const PassPlan& pass, int64_t begin, int64_t end);
  void tile(const PassPlan& pass, const Cursor& at, int64_t position, int64_t n);
  void point_at_kept(const PassPlan& pass, int64_t position);
  void run_steps(const PassPlan& pass, int64_t position, int64_t n);
  void state_pointers(const PassPlan& pass, void** states) const;

  const RowWalk& walk_;
  Arena arena_;
  Buffer buffers_[kMaxCallOperands];
  Buffer result_buffers_[kMaxCallOperands];
  char* origins_[kMaxCallOperands];         // element 0 of operands
  char* result_origins_[kMaxCallOperands];  // ... of results
  char* bases_[kMaxCallOperands];           // operands' element 0 of the tiled space
  char* values_[kMaxSlots];                 // row values of the block, kept tiles
  void* at_[kMaxSlots];                     // where kernels find each slot now
  ScalarSlot (*scalars_)[kMaxScalars];      // by step
  char* levels_;
  Cascade cascade_;
  Cursor outer_, position_;
  int64_t count_ = 0;  // rows of the open block
  int64_t lane_ = 0;   // the row of it that is being walked, when horizontal
};

}  // namespace weft::tile
