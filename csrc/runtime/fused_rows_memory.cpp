// Where the values of a group with row operators lie: in results, or in scratch of each thread.
#include <algorithm>
#include <span>

#include "ops/donation.h"
#include "runtime/fused_rows_run.h"
#include "runtime/sole.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using tile::Placed;

Dims byte_strides(const Dims& sizes, DType dtype) {
  Dims strides = contiguous_strides(sizes);
  for (size_t d = 0; d < strides.size(); ++d) {
    strides[d] = sizes[d] == 1 ? 0 : strides[d] * static_cast<int64_t>(item_size(dtype));
  }
  return strides;
}

}  // namespace

bool FusedRows::Stage::reads(uint8_t input) const {
  const std::vector<FusedOperand>& operands = is_row ? step->tensors : inputs;
  return std::ranges::any_of(operands, [&](const FusedOperand& one) {
    return one.kind == Kind::Input && one.index == input;
  });
}

// Those of the operands that die here whose memory nobody else can see. To be asked before plans
// hold the operands too.
uint64_t FusedRowsRun::unique_among(uint64_t donated) const {
  for (uint8_t i = 0; i < group_.spec_.input_count; ++i) {
    const bool asked = donated & group_.tensor_inputs_ & bit(i);
    if (!asked || !is_sole(args_[i].to_tensor())) donated &= ~bit(i);
  }
  return donated;
}

// Memory for a result of the stage that is planned last: that of an operand which dies here and
// which no later stage reads. Blocks of rows do not meet, so that one block's results lie over
// nothing but its own elements.
Tensor FusedRowsRun::donate(DType dtype) {
  if (rows_ * length_ < tile::least_donated()) return {};
  const size_t at = planned_.size() - 1;
  const Stage& stage = group_.stages_[at];
  const auto later = std::span(group_.stages_).subspan(at + 1);
  for (uint8_t i = 0; i < group_.spec_.input_count; ++i) {
    if (!(donated_ & bit(i))) continue;
    const Tensor& tensor = args_[i].to_tensor();
    if (tensor.dtype() != dtype || !(tensor.sizes() == shape_) || !tensor.is_contiguous()) continue;
    const bool order_fits =
        !stage.is_row || !stage.reads(i) || tile::reads_before_it_writes(*stage.program);
    if (!order_fits || std::ranges::any_of(later, [&](const Stage& s) { return s.reads(i); })) {
      continue;
    }
    donated_ &= ~bit(i);
    return {tensor.storage(), Layout::contiguous(shape_), dtype};
  }
  return {};
}

void FusedRowsRun::set_dtype(uint8_t value, DType dtype) {
  Place& place = places_[value];
  place.dtype = dtype;
  const Extent extent = group_.values_[value].extent;
  if (leaves_[value]) {
    const Dims sizes = extent == Extent::All        ? Dims()
                       : extent == Extent::Elements ? shape_
                                                    : row_shape_;
    if (extent == Extent::Elements) place.tensor = donate(dtype);
    if (!place.tensor.defined()) place.tensor = Tensor::empty(sizes, dtype, {}, "fused");
  } else {
    const int64_t elements = !is_element(value) ? block_
                             : group_.over_all_ ? tile::kFoldHorizontal
                                                : block_ * length_;
    place.block_bytes = tile::Arena::rounded(static_cast<size_t>(elements) * item_size(dtype));
    scratch_bytes_ += place.block_bytes;
  }
}

Placed FusedRowsRun::place_value(uint8_t value) const {
  const Place& place = places_[value];
  char* base = leaves_[value] ? static_cast<char*>(place.tensor.data()) : nullptr;
  return {base, byte_strides(is_element(value) ? shape_ : row_shape_, place.dtype), place.dtype};
}

Placed FusedRowsRun::place(const FusedOperand& one, const Dims& shape) const {
  if (one.kind == Kind::Step) return place_value(one.index);
  const Tensor& tensor = args_[one.index].to_tensor();
  return {static_cast<char*>(tensor.data()), tile::broadcast_strides(tensor, shape),
          tensor.dtype()};
}

// A tensor that stands for a value where only sizes, strides and dtype count.
Tensor FusedRowsRun::row_operand(uint8_t value) {
  if (leaves_[value]) return places_[value].tensor;
  const Dims& sizes = is_element(value) ? shape_ : row_shape_;
  return Tensor(Storage::wrap(nullptr, 0, nullptr, nullptr), Layout::contiguous(sizes),
                places_[value].dtype);
}

}  // namespace weft
