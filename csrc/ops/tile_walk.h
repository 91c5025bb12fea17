// Pointwise programs: one coalesced space (Walk), walked tile by tile by every thread (Worker).
#pragma once

#include "ops/tile_operand.h"
#include "ops/tile_plan.h"

namespace weft::tile {

struct SlotView {
  uint8_t slot, view;
};

// All that the threads share.
struct Walk {
  explicit Walk(const Program& program) : program(program) {}

  const Program& program;
  DType compute{};
  Space space;
  FixedVector<View, kMaxCallOperands> views;  // results, then inputs
  FixedVector<SlotView, kMaxCallOperands> reads, writes;
  TileRule rule;
  ScalarSlot scalars[kMaxScalars];
};

// Runs the walk with the CPU's threads, whose kernels reach the views' addresses.
void run_on_cpu(const Walk& walk);

// One thread's part of a walk.
class Worker {
 public:
  explicit Worker(const Walk& walk)
      : walk_(walk), tile_(walk.rule.capacity), arena_(arena_bytes()) {
    for (size_t v = 0; v < walk.views.size(); ++v) {
      buffers_[v] = give_buffer(walk.views[v], tile_, arena_);
      bases_[v] = walk.views[v].base;
    }
    for (size_t s = 0; s < walk.program.slots.size(); ++s) {
      const Slot& slot = walk.program.slots[s];
      if (slot.kind == SlotKind::Tile) at_[s] = arena_.take(temporary_bytes(slot));
    }
  }

  // Element 0 of a view lies there from now on.
  void move(size_t view, char* base) {
    bases_[view] = base;
    buffers_[view].cached = nullptr;
  }

  void run(int64_t begin, int64_t end) {
    Cursor cursor;
    cursor.seek(walk_.space, begin);
    while (begin < end) {
      const int64_t n = walk_.rule.next(walk_.space, cursor, end - begin);
      tile(cursor, n);
      begin += n;
      if (begin < end) cursor.advance(walk_.space, n);
    }
  }

 private:
  size_t temporary_bytes(const Slot& slot) const {
    return static_cast<size_t>(tile_) * item_size(slot_dtype(slot.type, walk_.compute));
  }
  size_t arena_bytes() const {
    size_t nbytes = 0;
    for (const View& view : walk_.views) nbytes += buffer_bytes(view, tile_);
    for (const Slot& slot : walk_.program.slots) {
      if (slot.kind == SlotKind::Tile) nbytes += Arena::rounded(temporary_bytes(slot));
    }
    return nbytes;
  }

  void tile(const Cursor& cursor, int64_t n) {
    for (auto [slot, v] : walk_.reads) {
      const View& view = walk_.views[v];
      at_[slot] = load(view, buffers_[v], bases_[v], walk_.space, cursor, n);
    }
    for (auto [slot, v] : walk_.writes) {
      const View& view = walk_.views[v];
      at_[slot] = target(view, buffers_[v], bases_[v], walk_.space, cursor, n);
    }
    for (const Step& step : walk_.program.steps) {
      void* operands[kMaxOperands];
      for (int i = 0; i < step.operand_count; ++i) operands[i] = at_[step.operands[i]];
      step.horizontal->get(walk_.compute)(operands, n, walk_.scalars + step.first_attribute);
    }
    for (auto [slot, v] : walk_.writes) {
      const View& view = walk_.views[v];
      store(view, buffers_[v], bases_[v], walk_.space, cursor, n);
    }
  }

  const Walk& walk_;
  const int64_t tile_;
  Arena arena_;
  Buffer buffers_[kMaxCallOperands];
  char* bases_[kMaxCallOperands];
  void* at_[kMaxSlots];  // where the current tile of each slot lies
};

// An operand where it lies, before the walk is laid out.
struct Placed {
  char* base;
  Dims strides;  // bytes, in the order of the dimensions
  DType memory;
  bool buffered = false;  // of results: kernels may not write to its memory
};

// Lays out the walk of a program over `shape` in row-major order, whatever the operands suggest:
// element i of the walk is element i of the shape. Results and inputs in the program's order.
// `scalars` are left to the caller.
void lay_out_in_order(Walk& walk, const Dims& shape, std::span<const Placed> results,
                      std::span<const Placed> inputs);

}  // namespace weft::tile
