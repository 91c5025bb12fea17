#include <bit>
#include <cstring>

#include "ops/strided.h"
#include "ops/tile_row.h"

namespace weft::tile {
namespace {

template <class Fn>
void for_each_bit(SlotMask mask, Fn&& fn) {
  for (; mask; mask &= mask - 1) fn(std::countr_zero(mask));
}

void set_int(ScalarSlot& slot, int64_t value) { std::memcpy(slot.bytes, &value, sizeof(value)); }

// One row value; its size is known to be small.
void copy_item(void* to, const void* from, size_t item) {
  switch (item) {
    case 1:
      return void(std::memcpy(to, from, 1));
    case 4:
      return void(std::memcpy(to, from, 4));
    case 8:
      return void(std::memcpy(to, from, 8));
    default:
      std::memcpy(to, from, item);
  }
}

int64_t tile_capacity(const RowWalk& walk) {
  int64_t capacity = walk.lanes();
  for (const PassPlan& pass : walk.passes) capacity = std::max(capacity, pass.rule.capacity);
  return capacity;
}

}  // namespace

// What a slot keeps in the arena.
size_t RowWorker::slot_bytes(int number, bool leads) const {
  const Slot& slot = walk_.program.slots[number];
  int64_t elements = 0;
  if (slot.kind == SlotKind::Tile) {
    elements = !slot.kept ? tile_capacity(walk_) : leads ? walk_.width * walk_.row.numel : 0;
  } else if (slot.kind == SlotKind::Row && leads) {
    elements = walk_.width * walk_.wide;
  }
  return static_cast<size_t>(elements) * walk_.slot_item(number);
}

size_t RowWorker::arena_bytes(bool leads) const {
  size_t nbytes = Arena::rounded(walk_.program.steps.size() * sizeof(*scalars_));
  for (const RowOperand& operand : walk_.operands) {
    nbytes += buffer_bytes(operand.view, tile_capacity(walk_));
  }
  for (size_t s = 0; s < walk_.program.slots.size(); ++s) {
    nbytes += Arena::rounded(slot_bytes(static_cast<int>(s), leads));
  }
  if (leads) {
    for (const RowResult& result : walk_.results) nbytes += buffer_bytes(result.view, walk_.width);
  }
  if (walk_.row.numel > walk_.fold) {
    const auto folds = static_cast<uint64_t>(walk_.row.numel / walk_.fold);
    size_t most = 0;
    for (const PassPlan& pass : walk_.passes) most = std::max(most, walk_.state_bytes(pass));
    nbytes += Arena::rounded((static_cast<size_t>(std::bit_width(folds)) + 1) * most);
  }
  return nbytes;
}

RowWorker::RowWorker(const RowWalk& walk, const RowWorker* leader)
    : walk_(walk), arena_(arena_bytes(leader == nullptr)) {
  for (size_t i = 0; i < walk.operands.size(); ++i) {
    buffers_[i] = give_buffer(walk.operands[i].view, tile_capacity(walk), arena_);
    origins_[i] = bases_[i] = walk.operands[i].view.base;
  }
  for (size_t s = 0; s < walk.program.slots.size(); ++s) {
    const int number = static_cast<int>(s);
    const size_t nbytes = slot_bytes(number, !leader);
    values_[s] = leader ? leader->values_[s] : nullptr;
    if (nbytes) at_[s] = values_[s] = arena_.take(nbytes);
  }
  for (size_t i = 0; i < walk.results.size(); ++i) {
    result_origins_[i] = walk.results[i].view.base;
  }
  if (leader) {
    count_ = leader->count_;
    outer_ = leader->outer_;
  } else {
    for (size_t i = 0; i < walk.results.size(); ++i) {
      result_buffers_[i] = give_buffer(walk.results[i].view, walk.width, arena_);
    }
  }
  const size_t steps = walk.program.steps.size();
  scalars_ = reinterpret_cast<ScalarSlot(*)[kMaxScalars]>(arena_.take(steps * sizeof(*scalars_)));
  for (size_t i = 0; i < steps; ++i) {
    for (int k = 0; k < kFirstAttribute + walk.program.attribute_count; ++k) {
      scalars_[i][k] = walk.scalars[k];
    }
  }
  levels_ = arena_.take(0);  // the end of the arena: as much as arena_bytes() said
}

void RowWorker::move(int slot, char* base) {
  if (!walk_.is_row_slot(slot)) {
    const int i = walk_.operand_of[slot];
    origins_[i] = bases_[i] = base;
    buffers_[i].cached = nullptr;
    return;
  }
  for (size_t i = 0; i < walk_.results.size(); ++i) {
    if (walk_.results[i].slot == slot) result_origins_[i] = base;
  }
}

void RowWorker::run(int64_t begin, int64_t end) {
  while (begin < end) {
    int64_t count = std::min(walk_.width, end - begin);
    if (walk_.vertical) {
      Cursor at;
      at.seek(walk_.outer, begin);
      count = walk_.passes[0].rule.next(walk_.outer, at, count);
    }
    open(begin, count);
    for (const PassPlan& pass : walk_.passes) {
      if (pass.tile_steps.size()) tile_pass(pass);
      row_steps(pass);
    }
    close();
    begin += count;
  }
}

void RowWorker::open(int64_t first, int64_t count) {
  count_ = count;
  outer_.seek(walk_.outer, first);
  for (size_t i = 0; i < walk_.results.size(); ++i) {
    const RowResult& result = walk_.results[i];
    values_[result.slot] = static_cast<char*>(
        target(result.view, result_buffers_[i], result_origins_[i], walk_.outer, outer_, count));
  }
  for (size_t s = 0; s < walk_.program.slots.size(); ++s) {
    const Slot& slot = walk_.program.slots[s];
    if (slot.kind == SlotKind::Row && slot.per_row) read_given(static_cast<int>(s));
  }
}

// Row values that are an operand's elements.
void RowWorker::read_given(int slot) {
  const uint8_t number = walk_.operand_of[walk_.program.slots[slot].index];
  const RowOperand& operand = walk_.operands[number];
  const size_t item = walk_.slot_item(slot);
  // Values that lie as rows follow each other: short rows would take as long as these one by one.
  if (operand.outer.size() == 1 && operand.outer[0] == static_cast<int64_t>(item) &&
      !operand.view.convert) {
    const char* from = origins_[number] + outer_.offset(operand.outer);
    std::memcpy(values_[slot], from, static_cast<size_t>(count_) * item);
    return widen(slot);
  }
  Cursor place = outer_;
  for (int64_t row = 0; row < count_; ++row, place.advance(walk_.outer, 1)) {
    void* const both[] = {values_[slot] + static_cast<size_t>(row) * item,
                          origins_[number] + place.offset(operand.outer)};
    if (operand.view.convert) {
      operand.view.convert(both, 1, nullptr);
    } else {
      copy_item(both[0], both[1], item);
    }
  }
  widen(slot);
}

void RowWorker::close() {
  for (size_t i = 0; i < walk_.results.size(); ++i) {
    const View& view = walk_.results[i].view;
    store(view, result_buffers_[i], result_origins_[i], walk_.outer, outer_, count_);
  }
}

void RowWorker::row_steps(const PassPlan& pass) {
  for (const BoundStep& bound : pass.row_steps) {
    const Step& step = *bound.step;
    void* operands[2 * kMaxOperands];
    int n = 0;
    for (int i = 0; i < step.operand_count; ++i) operands[n++] = values_[step.operands[i]];
    for (int i = 0; i < step.row_read_count; ++i) operands[n++] = values_[step.row_reads[i]];
    bound.kernel(operands, count_, walk_.scalars);
    for (int i = 0; i < step.operand_count; ++i) {
      if (walk_.program.slots[step.operands[i]].kind == SlotKind::Row) widen(step.operands[i]);
    }
  }
  for (const State& state : pass.states) widen(state.slot);
}

void RowWorker::tile_pass(const PassPlan& pass) {
  if (pass.one_tile) return one_tile_rows(pass);
  const int64_t entries = walk_.vertical ? 1 : count_;
  for (int64_t row = 0; row < entries; ++row) {
    enter_row(pass, row);
    fold(pass, 0, walk_.row.numel);
  }
  narrow(pass);
}

bool RowWorker::is_repeated(uint8_t operand) const {
  const View& view = walk_.operands[operand].view;
  return view.in_place() && !view.linear;
}

// A row of the value that lies there, which all steps of the row share.
void* RowWorker::repeat(uint8_t operand, const void* from) {
  Buffer& buffer = buffers_[operand];
  if (buffer.cached == from && buffer.cached_count >= walk_.row.numel) return buffer.tile;
  const auto* value = static_cast<const char*>(from);
  strided::move<strided::Direction::Gather>(buffer.tile, const_cast<char*>(value),
                                            walk_.operands[operand].view.item, 1, walk_.row.numel,
                                            0, 0);
  buffer.cached = value;
  buffer.cached_count = walk_.row.numel;
  return buffer.tile;
}

// Rows that are one tile each, used where they lie: nothing but kernel calls.
void RowWorker::one_tile_rows(const PassPlan& pass) {
  for (const State& state : pass.states) at_[state.slot] = values_[state.slot];
  identity(pass, count_);
  if (walk_.outer.sizes.size() == 1 && pass.tile_steps.size() <= kFewSteps) {
    return evenly_spaced_rows(pass);
  }
  Cursor place = outer_;
  for (int64_t row = 0; row < count_; ++row) {
    lane_ = row;
    for_each_bit(pass.reads | pass.writes, [&](int slot) {
      const uint8_t i = walk_.operand_of[slot];
      const RowOperand& operand = walk_.operands[i];
      at_[slot] = origins_[i] + place.offset(operand.across);
      if (is_repeated(i)) at_[slot] = repeat(i, at_[slot]);
    });
    point_at_kept(pass, 0);
    read_row_values(pass, row);
    run_steps(pass, 0, walk_.row.numel);
    place.advance(walk_.outer, 1);
  }
}

// Where the step's operands and row values of the block's first row lie, and how far on those of
// the next.
void RowWorker::space(const PassPlan& pass, const BoundStep& bound, Spaced& spaced) const {
  const Step& step = *bound.step;
  for (int k = 0; k < step.operand_count; ++k) {
    const int slot = step.operands[k];
    const auto item = static_cast<int64_t>(walk_.slot_item(slot));
    spaced.at[k] = static_cast<char*>(at_[slot]);
    if (k < step.states) {
      spaced.stride[k] = item;
    } else if (((pass.reads | pass.writes) >> slot) & 1u) {
      const uint8_t number = walk_.operand_of[slot];
      const RowOperand& operand = walk_.operands[number];
      spaced.at[k] = origins_[number] + outer_.offset(operand.across);
      spaced.stride[k] = operand.across[0];
      if (is_repeated(number)) spaced.repeated.emplace_back(k, number);
    } else if ((pass.kept >> slot) & 1u) {
      spaced.at[k] = values_[slot];
      spaced.stride[k] = walk_.row.numel * item;
    } else {
      spaced.stride[k] = 0;  // a temporary of the row
    }
  }
  ScalarSlot* scalars = scalars_[bound.number];
  set_int(scalars[kPositionSlot], 0);
  for (int i = 0; i < step.row_read_count; ++i) {
    const int slot = step.row_reads[i];
    spaced.value[i] = values_[slot];
    spaced.value_item[i] = walk_.slot_item(slot);
    spaced.value_to[i] = scalars[kFirstAttribute + walk_.program.attribute_count + i].bytes;
  }
}

void RowWorker::evenly_spaced_rows(const PassPlan& pass) {
  Spaced spaced[kFewSteps];
  const size_t steps = pass.tile_steps.size();
  for (size_t s = 0; s < steps; ++s) space(pass, pass.tile_steps[s], spaced[s]);
  for (int64_t row = 0; row < count_; ++row) {
    for (size_t s = 0; s < steps; ++s) {
      const BoundStep& bound = pass.tile_steps[s];
      const Step& step = *bound.step;
      Spaced& place = spaced[s];
      for (int i = 0; i < step.row_read_count; ++i) {
        copy_item(place.value_to[i], place.value[i], place.value_item[i]);
        place.value[i] += place.value_item[i];
      }
      void* operands[kMaxOperands];
      for (int k = 0; k < step.operand_count; ++k) {
        operands[k] = place.at[k];
        place.at[k] += place.stride[k];
      }
      for (const auto& [k, number] : place.repeated) {
        operands[k] = repeat(number, operands[k]);
      }
      bound.kernel(operands, walk_.row.numel, scalars_[bound.number]);
    }
  }
}

// Points slots at the row (horizontal) or block of rows (vertical) and reads its row values.
void RowWorker::enter_row(const PassPlan& pass, int64_t row) {
  lane_ = row;
  if (!walk_.vertical) {
    Cursor place = outer_;
    if (row > 0) place.advance(walk_.outer, row);
    for (size_t i = 0; i < walk_.operands.size(); ++i) {
      const RowOperand& operand = walk_.operands[i];
      bases_[i] = origins_[i] + place.offset(operand.across);
    }
  }
  read_row_values(pass, row);
}

void RowWorker::read_row_values(const PassPlan& pass, int64_t row) {
  for (const State& state : pass.states) {
    at_[state.slot] = values_[state.slot] + row * state.item;
  }
  for (const BoundStep& bound : pass.tile_steps) {
    for (int i = 0; i < bound.step->row_read_count; ++i) {
      const int slot = bound.step->row_reads[i];
      const size_t item = walk_.slot_item(slot);
      char* value = values_[slot] + static_cast<size_t>(row) * item;
      at_[slot] = value;
      if (walk_.vertical) continue;
      const int at = kFirstAttribute + walk_.program.attribute_count + i;
      copy_item(scalars_[bound.number][at].bytes, value, item);
    }
  }
}

void RowWorker::identity(const PassPlan& pass, int64_t lanes) {
  for (const BoundStep& bound : pass.tile_steps) {
    if (bound.step->states == 0) continue;
    void* operands[kMaxOperands];
    for (int i = 0; i < bound.step->states; ++i) operands[i] = at_[bound.step->operands[i]];
    bound.identity(operands, lanes, walk_.scalars);
  }
}

void RowWorker::state_pointers(const PassPlan& pass, void** states) const {
  for (size_t i = 0; i < pass.states.size(); ++i) states[i] = at_[pass.states[i].slot];
}

void RowWorker::fold(const PassPlan& pass, int64_t begin, int64_t end) {
  identity(pass, lanes_now());
  if (end - begin <= walk_.fold || pass.states.size() == 0 || !pass.mergeable) {
    return fold_directly(pass, begin, end);
  }
  void* states[kMaxStates];
  state_pointers(pass, states);
  cascade_.open(walk_, pass, lanes_now(), levels_);
  while (begin < end) {
    const int64_t stop = std::min(begin + walk_.fold, end);
    fold_directly(pass, begin, stop);
    cascade_.push(states);
    identity(pass, lanes_now());
    begin = stop;
  }
  cascade_.finish(states);
}

void RowWorker::fold_directly(const PassPlan& pass, int64_t begin, int64_t end) {
  if (begin == end) return;
  if (walk_.vertical) {
    vertical(pass, begin, end);
  } else {
    horizontal(pass, begin, end);
  }
}

void RowWorker::horizontal(const PassPlan& pass, int64_t begin, int64_t end) {
  position_.seek(walk_.row, begin);
  while (true) {
    const int64_t n = pass.rule.next(walk_.row, position_, end - begin);
    tile(pass, position_, begin, n);
    begin += n;
    if (begin == end) return;
    position_.advance(walk_.row, n);
  }
}

// Whether a vertical pass is one kernel over operands that are used where they lie, at one distance
// from one place in the row to the next.
bool RowWorker::strides_only(const PassPlan& pass) const {
  if (pass.tile_steps.size() != 1 || pass.kept || walk_.wide > 1) return false;
  bool plain = walk_.row.sizes.size() == 1 && outer_.index[0] + count_ <= walk_.outer.sizes[0];
  for_each_bit(pass.reads | pass.writes, [&](int slot) {
    const View& view = walk_.operands[walk_.operand_of[slot]].view;
    plain = plain && view.in_place() && view.unit();
  });
  return plain;
}

void RowWorker::vertical_strides(const PassPlan& pass, int64_t begin, int64_t end) {
  const BoundStep& bound = pass.tile_steps[0];
  const Step& step = *bound.step;
  void* operands[2 * kMaxOperands];
  int64_t strides[2 * kMaxOperands] = {};
  int count = 0;
  for (int i = 0; i < step.operand_count; ++i, ++count) {
    const int slot = step.operands[i];
    operands[count] = at_[slot];
    if (!(((pass.reads | pass.writes) >> slot) & 1u)) continue;
    const uint8_t number = walk_.operand_of[slot];
    const RowOperand& operand = walk_.operands[number];
    strides[count] = operand.across[0];
    operands[count] =
        origins_[number] + outer_.offset(operand.view.strides) + begin * strides[count];
  }
  for (int i = 0; i < step.row_read_count; ++i) operands[count++] = at_[step.row_reads[i]];
  ScalarSlot* scalars = scalars_[bound.number];
  for (; begin < end; ++begin) {
    set_int(scalars[kPositionSlot], begin);
    bound.kernel(operands, count_, scalars);
    for (int i = 0; i < count; ++i) operands[i] = static_cast<char*>(operands[i]) + strides[i];
  }
}

void RowWorker::vertical(const PassPlan& pass, int64_t begin, int64_t end) {
  if (strides_only(pass)) return vertical_strides(pass, begin, end);
  const bool is_strip = walk_.wide > 1;
  const Cursor start{Dims{0}};
  position_.seek(walk_.row, begin);
  while (true) {
    for (size_t i = 0; i < walk_.operands.size(); ++i) {
      const RowOperand& operand = walk_.operands[i];
      bases_[i] = origins_[i] + position_.offset(operand.across);
      if (is_strip) bases_[i] += outer_.offset(operand.outer);
    }
    const int64_t left = std::min(end - begin, walk_.row.sizes[0] - position_.index[0]);
    const int64_t step = std::min(walk_.wide, left);
    tile(pass, is_strip ? start : outer_, begin, count_ * step);
    begin += step;
    if (begin == end) return;
    position_.advance(walk_.row, step);
  }
}

void RowWorker::point_at_kept(const PassPlan& pass, int64_t position) {
  for_each_bit(pass.kept, [&](int slot) {
    const int64_t element =
        walk_.vertical ? position * walk_.width : lane_ * walk_.row.numel + position;
    at_[slot] = values_[slot] + element * static_cast<int64_t>(walk_.slot_item(slot));
  });
}

// One tile: n elements of the tiled space at the cursor; `position` is its place in the row.
void RowWorker::tile(const PassPlan& pass, const Cursor& at, int64_t position, int64_t n) {
  const Space& space = walk_.tiled();
  for_each_bit(pass.reads, [&](int slot) {
    const int i = walk_.operand_of[slot];
    if (walk_.program.slots[slot].kind == SlotKind::Output) buffers_[i].cached = nullptr;
    at_[slot] = load(walk_.operands[i].view, buffers_[i], bases_[i], space, at, n);
  });
  for_each_bit(pass.writes, [&](int slot) {
    const int i = walk_.operand_of[slot];
    at_[slot] = target(walk_.operands[i].view, buffers_[i], bases_[i], space, at, n);
  });
  point_at_kept(pass, position);
  run_steps(pass, position, n);
  for_each_bit(pass.writes, [&](int slot) {
    const int i = walk_.operand_of[slot];
    store(walk_.operands[i].view, buffers_[i], bases_[i], space, at, n);
  });
}

void RowWorker::run_steps(const PassPlan& pass, int64_t position, int64_t n) {
  for (const BoundStep& bound : pass.tile_steps) {
    const Step& step = *bound.step;
    void* operands[2 * kMaxOperands];
    int count = 0;
    for (int i = 0; i < step.operand_count; ++i) operands[count++] = at_[step.operands[i]];
    if (walk_.vertical) {
      for (int i = 0; i < step.row_read_count; ++i) operands[count++] = at_[step.row_reads[i]];
    }
    ScalarSlot* scalars = scalars_[bound.number];
    set_int(scalars[kPositionSlot], position);
    bound.kernel(operands, n, scalars);
  }
}

void RowWorker::part(const PassPlan& pass, int64_t begin, int64_t end, char* partial) {
  enter_row(pass, 0);
  for (const State& state : pass.states) at_[state.slot] = partial + state.offset;
  fold(pass, begin, end);
}

}  // namespace weft::tile
