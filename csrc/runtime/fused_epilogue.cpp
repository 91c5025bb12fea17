#include "runtime/fused_epilogue.h"

#include "ops/tile_plan.h"
#include "runtime/fused_assembly.h"
#include "runtime/fused_shapes.h"

namespace weft {
namespace {

// Below it the whole result stays in a cache, and a call less is worth more.
constexpr int64_t kWorthIt = 16384;

}  // namespace

// Whether every operand lies in the order of the product, or is repeated along it: then operators
// would lay out their results so too.
bool FusedEpilogue::lays_as_rows(const Dims& shape, const FusedBinding& binding) const {
  for (uint8_t input : binding.tensors) {
    const Dims strides = tile::broadcast_strides(args_[input].to_tensor(), shape);
    const Dims order = tile::walk_order(shape, {&strides, 1});
    for (size_t d = 0; d < order.size(); ++d) {
      if (order[d] != static_cast<int64_t>(order.size() - 1 - d)) return false;
    }
  }
  return true;
}

// One of the results takes the place of the product.
void FusedEpilogue::make_results(const Tensor& product, const tile::Program& program) {
  bool taken = keeps_;
  for (int i = 0; i < program.output_count; ++i) {
    const tile::SlotType type = tile::output_slot(program, i).type;
    if (!taken && type == tile::SlotType::Compute) {
      results_.push_back(product);
      taken = true;
    } else {
      const DType dtype = tile::slot_dtype(type, product.dtype());
      results_.push_back(tile::make_result(program.name, product.sizes(), {}, dtype));
    }
  }
}

bool FusedEpilogue::begin(const Tensor& result, int64_t columns) {
  if (result.numel() < kWorthIt) return false;
  product_ = Value(result);
  args_.set(group_.spec().input_count - size_t{1}, product_);
  FusedGroup::Operands operands;
  if (!group_.classify(args_.data(), operands) || operands.wanting) return false;
  const auto [program, binding] = group_.ready(operands.key);
  if (!program) return false;
  const Dims& shape = result.sizes();
  const bool fits = shape_of(args_.data(), binding->tensors, ~uint64_t{0}) == shape &&
                    outputs_are_full(args_.data(), binding->tensors, binding->reads) &&
                    lays_as_rows(shape, *binding);
  Scalar numbers[tile::kMaxAttributes];
  if (!fits || !group_.numbers(args_.data(), *binding, *program, &shape, numbers)) return false;

  make_results(result, *program);
  std::vector<tile::Placed> outputs, inputs;
  for (const Tensor& one : results_) {
    // A later step may read what an earlier one would write over.
    const bool buffered = one.data() == result.data() && program->steps.size() > 1;
    outputs.push_back({static_cast<char*>(one.data()), tile::broadcast_strides(one, shape),
                       one.dtype(), buffered});
  }
  std::vector<const Tensor*> tensors;
  for (uint8_t input : binding->tensors) {
    const Tensor& one = *tensors.emplace_back(&args_[input].to_tensor());
    inputs.push_back(
        {static_cast<char*>(one.data()), tile::broadcast_strides(one, shape), one.dtype(), false});
  }
  walk_.emplace(*program);
  walk_->compute = compute_type(operands.key.compute);
  const tile::Call call{.inputs = {tensors.data(), tensors.size()},
                        .attributes = {numbers, binding->attributes.size()}};
  tile::store_attributes(*program, call, walk_->compute, walk_->scalars);
  tile::lay_out_in_order(*walk_, shape, outputs, inputs);
  columns_ = columns;
  return has_begun_ = true;
}

void FusedEpilogue::part(const Part& part) {
  tile::Worker worker(*walk_);
  const int64_t begin = part.row * columns_ + part.column;
  if (part.columns == columns_) return worker.run(begin, begin + part.rows * columns_);
  for (int64_t i = 0; i < part.rows; ++i) {
    worker.run(begin + i * columns_, begin + i * columns_ + part.columns);
  }
}

}  // namespace weft
