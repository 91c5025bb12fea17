#include "runtime/fused_epilogue.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "ops/tile_plan.h"
#include "runtime/fused_assembly.h"
#include "runtime/fused_rows.h"
#include "runtime/fused_shapes.h"

namespace weft {
namespace {

// Below it the whole result stays in a cache, and a call less is worth more.
constexpr int64_t kWorthIt = 16384;
// Rows are complete in blocks of them. Longer ones have left the caches by then, and drive the
// operands of the product out of them.
constexpr int64_t kMostColumns = 512;

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
  columns_ = columns;
  FusedGroup::Operands operands;
  if (group_.classify(args_.data(), operands) && !operands.wanting) {
    has_begun_ =
        group_.rows_ ? begin_rows(operands.key, result) : begin_elements(operands.key, result);
  }
  if (!has_begun_) product_ = Value();  // so that what runs behind it may take over its memory
  return has_begun_;
}

bool FusedEpilogue::begin_rows(const FusedKey& key, const Tensor& result) {
  if (result.sizes().back() != columns_) return false;  // parts may end within a row
  if (columns_ > kMostColumns) return false;
  const std::optional<Dims> shape = group_.rows_->shape_for(key, args_.data(), nullptr);
  if (!shape || *shape != result.sizes()) return false;
  const uint64_t given = keeps_ ? 0 : uint64_t{1} << (group_.spec().input_count - 1);
  rows_.emplace(*group_.rows_, key, args_.data(), *shape, 0, given);
  if (rows_->sums_over_all() || !rows_->prepare(false)) return false;
  const auto blocks = (rows_->row_count() + rows_->block() - 1) / rows_->block();
  missing_ = std::vector<std::atomic<int64_t>>(static_cast<size_t>(blocks));
  for (int64_t block = 0; block < blocks; ++block) {
    missing_[static_cast<size_t>(block)] = rows_of_block(block) * columns_;
  }
  return true;
}

bool FusedEpilogue::begin_elements(const FusedKey& key, const Tensor& result) {
  const auto [program, binding] = group_.ready(key);
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
  walk_->compute = compute_type(key.compute);
  const tile::Call call{.inputs = {tensors.data(), tensors.size()},
                        .attributes = {numbers, binding->attributes.size()}};
  tile::store_attributes(*program, call, walk_->compute, walk_->scalars);
  tile::lay_out_in_order(*walk_, shape, outputs, inputs);
  return true;
}

bool FusedEpilogue::is_of(const Tensor& product) const {
  if (!has_begun_) return false;
  const Tensor& seen = product_.to_tensor();
  return seen.storage() == product.storage() && seen.sizes() == product.sizes() &&
         seen.strides() == product.strides() && seen.offset() == product.offset();
}

int64_t FusedEpilogue::rows_of_block(int64_t block) const {
  return std::min(rows_->block(), rows_->row_count() - block * rows_->block());
}

// Rows that are complete with this part run at once. Where threads take columns, the one that comes
// last would run all rows alone: they wait for finish().
void FusedEpilogue::count(const Part& part) {
  const int64_t block = rows_->block(), end = part.row + part.rows;
  const bool at_once = part.columns == columns_ || num_threads() == 1;
  int64_t first = -1;  // of complete rows that are still to be run
  for (int64_t row = part.row; row < end;) {
    const int64_t at = row / block, next = std::min((at + 1) * block, end);
    std::atomic<int64_t>& missing = missing_[static_cast<size_t>(at)];
    const int64_t elements = (next - row) * part.columns;
    const bool complete = missing.fetch_sub(elements, std::memory_order_acq_rel) == elements;
    if (complete && at_once) {
      missing.store(kDone, std::memory_order_relaxed);
      if (first < 0) first = at * block;
    } else if (first >= 0) {
      rows_->rows(first, at * block);
      first = -1;
    }
    row = next;
  }
  if (first >= 0)
    rows_->rows(first, std::min((end - 1) / block * block + block, rows_->row_count()));
}

void FusedEpilogue::finish(Value* results) {
  if (!rows_) {
    for (size_t i = 0; i < results_.size(); ++i) results[i] = Value(std::move(results_[i]));
    return;
  }
  std::vector<int64_t> waiting;
  for (size_t at = 0; at < missing_.size(); ++at) {
    if (missing_[at].load(std::memory_order_acquire) != kDone) {
      waiting.push_back(static_cast<int64_t>(at));
    }
  }
  const int64_t grain = std::max<int64_t>(1, tile::kGrain / (rows_->block() * columns_));
  parallel_for(static_cast<int64_t>(waiting.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = waiting[static_cast<size_t>(i)], first = at * rows_->block();
      rows_->rows(first, first + rows_of_block(at));
    }
  });
  rows_->give(results);
}

void FusedEpilogue::part(const Part& part) {
  if (rows_) return count(part);
  tile::Worker worker(*walk_);
  const int64_t begin = part.row * columns_ + part.column;
  if (part.columns == columns_) return worker.run(begin, begin + part.rows * columns_);
  for (int64_t i = 0; i < part.rows; ++i) {
    worker.run(begin + i * columns_, begin + i * columns_ + part.columns);
  }
}

}  // namespace weft
