// Small row programs over plain operands: all contiguous, of one shape and dtype, the row either
// the last dimensions or the first ones. What sums, losses and softmax of small tensors are; no
// planning.
#include <cstring>

#include "ops/tile_drivers.h"
#include "ops/tile_row.h"

namespace weft::tile {
namespace {

class PlainRows {
 public:
  PlainRows(const Program& program, const Call& call, std::span<Tensor> results)
      : program_(program), call_(call), results_(results) {}

  bool run() {
    if (!accepts_call() || !accepts_inputs() || !accepts_dims() || !accepts_program()) return false;
    const int64_t zero = 0;
    std::memcpy(scalars_[kRowLengthSlot].bytes, &length_, sizeof(length_));
    std::memcpy(scalars_[kPositionSlot].bytes, &zero, sizeof(zero));
    for (size_t i = 0; i < call_.attributes.size(); ++i) {
      call_.attributes[i].store(slot_dtype(program_.attribute_types[i], dtype_),
                                scalars_[kFirstAttribute + i].bytes);
    }
    Arena arena(arena_bytes());
    bind_slots(arena);
    for (const Pass& pass : program_.passes) run_pass(pass);
    return true;
  }

 private:
  bool accepts_call() const {
    if (call_.inputs.empty() || call_.dtype || (program_.bool_inputs | program_.int_inputs)) {
      return false;
    }
    for (const Tensor& result : results_) {
      if (result.defined()) return false;
    }
    return true;
  }

  bool accepts_inputs() {
    first_ = call_.inputs[0]->impl();
    if (!first_ || !first_->storage->on_cpu()) return false;
    dtype_ = first_->dtype;
    if (dtype_ != compute_type(dtype_)) return false;
    if (program_.promotion != Promotion::Common && !is_differentiable(dtype_)) {
      if (program_.promotion == Promotion::Floating || dtype_ != DType::I64) return false;
    }
    numel_ = first_->layout.numel();
    if (numel_ < 1 || numel_ > kMostPlain || !first_->layout.is_contiguous()) return false;
    for (const Tensor* input : call_.inputs.subspan(1)) {
      const TensorImpl* other = input->impl();
      if (!other || !other->storage->on_cpu() || other->dtype != dtype_ ||
          !(other->layout.sizes == first_->layout.sizes) || !other->layout.is_contiguous()) {
        return false;
      }
    }
    for (const Scalar& value : call_.attributes) {
      if (value.category() > category(dtype_)) return false;
    }
    return true;
  }

  // Finds length_, rows_ and vertical_.
  bool accepts_dims() {
    const Dims& sizes = first_->layout.sizes;
    const auto ndim = static_cast<int64_t>(sizes.size());
    length_ = numel_;
    if (!call_.dims.empty() && ndim > 0) {
      length_ = 1;
      if (ndim > 32) return false;
      for (int64_t d : call_.dims) {
        if (d < -ndim || d >= ndim) return false;
        if (d < 0) d += ndim;
        if ((row_mask_ >> d) & 1u) return false;
        row_mask_ |= uint32_t{1} << d;
        length_ *= sizes[d];
      }
    } else {
      for (int64_t d : call_.dims) {
        if (d != 0 && d != -1) return false;
      }
      if (call_.dims.size() > 1 || ndim > 32) return false;
      row_mask_ = ~uint32_t{0};
    }
    rows_ = numel_ / length_;
    const auto own = static_cast<uint32_t>((uint64_t{1} << ndim) - 1);
    const uint32_t mask = row_mask_ & own, other = own & ~mask;
    const bool last = other < (mask & -mask) || mask == 0 || other == 0;
    const bool first = mask < (other & -other);
    if (!last && !first) return false;
    vertical_ = !last;
    // Beyond these the full driver knows better ways.
    if (vertical_) return length_ <= (rows_ >= 16 ? kFoldVertical : 16);
    return length_ >= 16 || rows_ <= 64;
  }

  bool accepts_program() const {
    for (const Slot& slot : program_.slots) {
      if (slot.kind == SlotKind::Input && slot_dtype(slot.type, dtype_) != dtype_) return false;
    }
    for (const Step& step : program_.steps) {
      const KernelSet* set = vertical_ || is_row_step(step) ? step.vertical : step.horizontal;
      if (!set || !set->get(dtype_)) return false;
    }
    return true;
  }

  bool is_row_slot(int number) const {
    const Slot& slot = program_.slots[number];
    return slot.kind == SlotKind::Row || (slot.kind == SlotKind::Output && slot.per_row);
  }
  bool is_row_step(const Step& step) const {
    bool rows_only = step.states == 0;
    for (int i = 0; i < step.operand_count; ++i) {
      rows_only = rows_only && is_row_slot(step.operands[i]);
    }
    return rows_only;
  }
  int64_t item_of(const Slot& slot) const {
    return static_cast<int64_t>(item_size(slot_dtype(slot.type, dtype_)));
  }

  size_t own_bytes(const Slot& slot) const {
    if (slot.kind == SlotKind::Tile) return static_cast<size_t>(numel_ * item_of(slot));
    return slot.kind == SlotKind::Row ? static_cast<size_t>(rows_ * item_of(slot)) : 0;
  }
  size_t arena_bytes() const {
    size_t nbytes = 0;
    for (const Slot& slot : program_.slots) nbytes += Arena::rounded(own_bytes(slot));
    return nbytes;
  }

  void bind_slots(Arena& arena) {
    bool keepdim = call_.keepdim;  // see Planner::keeps_dims
    for (const Slot& slot : program_.slots) {
      keepdim = keepdim || (slot.kind == SlotKind::Output && !slot.per_row);
    }
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      const Slot& slot = program_.slots[s];
      item_[s] = item_of(slot);
      if (slot.kind == SlotKind::Input) {
        base_[s] = static_cast<char*>(call_.inputs[slot.index]->address());
      } else if (slot.kind == SlotKind::Output) {
        base_[s] = make_output(slot, keepdim);
      } else {
        base_[s] = arena.take(own_bytes(slot));
      }
    }
  }

  char* make_output(const Slot& slot, bool keepdim) {
    const Dims& sizes = first_->layout.sizes;
    Layout layout;
    if (!slot.per_row) {
      layout.sizes = sizes;
    } else {
      for (size_t d = 0; d < sizes.size(); ++d) {
        const bool in_row = (row_mask_ >> d) & 1u;
        if (!in_row || keepdim) layout.sizes.push_back(in_row ? 1 : sizes[d]);
      }
    }
    layout.strides = contiguous_strides(layout.sizes);
    const auto nbytes = static_cast<size_t>((slot.per_row ? rows_ : numel_) * item_of(slot));
    Tensor& result = results_[slot.index];
    result = Tensor(Storage::allocate(nbytes), std::move(layout), slot_dtype(slot.type, dtype_));
    return static_cast<char*>(result.address());
  }

  void run_pass(const Pass& pass) {
    const std::span<const Step> steps = program_.steps.subspan(pass.first_step, pass.step_count);
    for (const Step& step : steps) {
      if (step.states > 0) call_at(step.identity, step.operands, step.states, 0, rows_);
    }
    // Steps go tile by tile, as temporaries want: a tile is a row, or one element of all rows.
    const int64_t tiles = vertical_ ? length_ : rows_;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (const Step& step : steps) {
        if (!is_row_step(step)) run_tile_step(step, tile);
      }
    }
    for (const Step& step : steps) {
      if (is_row_step(step)) run_row_step(step);
    }
  }

  void call_at(const KernelSet* set, const uint8_t* slots, int count, int64_t row, int64_t n) {
    void* operands[kMaxOperands];
    for (int i = 0; i < count; ++i) operands[i] = base_[slots[i]] + row * item_[slots[i]];
    set->get(dtype_)(operands, n, scalars_);
  }

  void run_tile_step(const Step& step, int64_t tile) {
    const int64_t n = vertical_ ? rows_ : length_;
    void* operands[2 * kMaxOperands];
    int count = 0;
    for (int i = 0; i < step.operand_count; ++i) {
      const int slot = step.operands[i];
      const int64_t element = !is_row_slot(slot) ? tile * n : vertical_ ? 0 : tile;
      operands[count++] = base_[slot] + element * item_[slot];
    }
    for (int i = 0; i < step.row_read_count; ++i) {
      const int slot = step.row_reads[i];
      if (vertical_) {
        operands[count++] = base_[slot];
      } else {
        ScalarSlot& scalar = scalars_[kFirstAttribute + program_.attribute_count + i];
        std::memcpy(scalar.bytes, base_[slot] + tile * item_[slot],
                    static_cast<size_t>(item_[slot]));
      }
    }
    if (vertical_) std::memcpy(scalars_[kPositionSlot].bytes, &tile, sizeof(tile));
    (vertical_ ? step.vertical : step.horizontal)->get(dtype_)(operands, n, scalars_);
  }

  void run_row_step(const Step& step) {
    void* operands[2 * kMaxOperands];
    int n = 0;
    for (int i = 0; i < step.operand_count; ++i) operands[n++] = base_[step.operands[i]];
    for (int i = 0; i < step.row_read_count; ++i) operands[n++] = base_[step.row_reads[i]];
    step.vertical->get(dtype_)(operands, rows_, scalars_);
  }

  const Program& program_;
  const Call& call_;
  std::span<Tensor> results_;
  const TensorImpl* first_ = nullptr;
  DType dtype_{};
  int64_t numel_ = 0, length_ = 0, rows_ = 0;
  bool vertical_ = false;
  uint32_t row_mask_ = 0;
  char* base_[kMaxSlots];
  int64_t item_[kMaxSlots];
  ScalarSlot scalars_[kMaxScalars];
};

}  // namespace

bool run_plain_rows(const Program& program, const Call& call, std::span<Tensor> results) {
  return PlainRows(program, call, results).run();
}

}  // namespace weft::tile
