#include "runtime/fused_prologue.h"

#include "runtime/fused_assembly.h"
#include "runtime/fused_rows.h"
#include "runtime/fused_shapes.h"

namespace weft {
namespace {

// Whether an operand lies in the order of the result, or is repeated along it.
bool lies_in_order(const Tensor& tensor, const Dims& shape) {
  const Dims strides = tile::broadcast_strides(tensor, shape);
  const Dims order = tile::walk_order(shape, {&strides, 1});
  for (size_t d = 0; d < order.size(); ++d) {
    if (order[d] != static_cast<int64_t>(order.size() - 1 - d)) return false;
  }
  return true;
}

}  // namespace

FusedPrologue::FusedPrologue(FusedGroup& group, const Value* args, uint64_t dying)
    : group_(group), args_(args), dying_(dying) {
  FusedGroup::Operands operands;
  if (!group_.classify(args_, operands) || operands.wanting) return;
  key_ = operands.key;
  std::optional<Dims> shape;
  if (group_.rows_) {
    shape = group_.rows_->shape_for(key_, args_, nullptr);
  } else if (const auto [program, binding] = group_.ready(key_, false); program) {
    const bool fits = tile::output_slot(*program, 0).type == tile::SlotType::Compute &&
                      outputs_are_full(args_, binding->tensors, binding->reads);
    if (fits) shape = shape_of(args_, binding->tensors, ~uint64_t{0});
  }
  if (!shape) return;
  const auto nbytes = static_cast<size_t>(checked_numel("fused", *shape)) * item_size(key_.compute);
  stand_in_ = Tensor(Storage::wrap(nullptr, nbytes, nullptr, nullptr), Layout::contiguous(*shape),
                     key_.compute);
}

bool FusedPrologue::begin(int64_t columns) {
  columns_ = columns;
  if (!group_.rows_) return begin_elements();
  if (stand_in_.sizes().back() != columns) return false;  // parts may not be whole rows
  rows_.emplace(*group_.rows_, key_, args_, stand_in_.sizes(), 0);
  return rows_->prepare(true);
}

bool FusedPrologue::begin_elements() {
  const auto [program, binding] = group_.ready(key_);
  const Dims& shape = stand_in_.sizes();
  Scalar numbers[tile::kMaxAttributes];
  if (!group_.numbers(args_, *binding, *program, &shape, numbers)) return false;
  std::vector<tile::Placed> inputs;
  std::vector<const Tensor*> tensors;
  for (uint8_t input : binding->tensors) {
    const Tensor& one = *tensors.emplace_back(&args_[input].to_tensor());
    if (!lies_in_order(one, shape)) return false;
    inputs.push_back(
        {static_cast<char*>(one.data()), tile::broadcast_strides(one, shape), one.dtype(), false});
  }
  const tile::Placed result{nullptr, tile::broadcast_strides(stand_in_, shape), key_.compute,
                            false};
  walk_.emplace(*program);
  walk_->compute = key_.compute;
  const tile::Call call{.inputs = {tensors.data(), tensors.size()},
                        .attributes = {numbers, binding->attributes.size()}};
  tile::store_attributes(*program, call, walk_->compute, walk_->scalars);
  tile::lay_out_in_order(*walk_, shape, {&result, 1}, inputs);
  return true;
}

void FusedPrologue::part(const Part& part, void* out) {
  if (rows_) return rows_->rows(part.row, part.row + part.rows, static_cast<char*>(out));
  const auto item = static_cast<int64_t>(item_size(key_.compute));
  tile::Worker worker(*walk_);
  // Result elements lie as if all of them did.
  const auto run = [&](int64_t begin, int64_t count, int64_t at) {
    const auto to = reinterpret_cast<uintptr_t>(out) + static_cast<uintptr_t>(at * item);
    worker.move(0, reinterpret_cast<char*>(to - static_cast<uintptr_t>(begin * item)));
    worker.run(begin, begin + count);
  };
  const int64_t begin = part.row * columns_ + part.column;
  if (part.columns == columns_) return run(begin, part.rows * columns_, 0);
  for (int64_t i = 0; i < part.rows; ++i) {
    run(begin + i * columns_, part.columns, i * part.columns);
  }
}

Tensor FusedPrologue::whole() {
  Value result;
  if (!group_.run(args_, &result, nullptr, dying_)) group_.run_operators(args_, &result);
  const Tensor& made = result.to_tensor();
  for (uint8_t i = 0; i < group_.spec().input_count; ++i) {
    if (args_[i].tag() != ValueTag::Tensor) continue;
    took_over_ |= args_[i].to_tensor().storage() == made.storage();
  }
  return made;
}

}  // namespace weft
