// Pointwise programs: planning of a call, and its threads.
#include <algorithm>
#include <cstdlib>

#include "core/thread_pool.h"
#include "ops/copy.h"
#include "ops/tile_drivers.h"
#include "ops/tile_walk.h"

namespace weft::tile {
namespace {

void add_view(Walk& walk, const Tensor& tensor, const Dims& strides, const Dims& order,
              DType kernel, bool output) {
  View& view = walk.views.emplace_back();
  view.base = static_cast<char*>(tensor.address());
  set_types(view, tensor.dtype(), kernel, output);
  view.strides.resize(order.size());
  for (size_t d = 0; d < order.size(); ++d) view.strides[d] = strides[order[d]];
}

bool is_row_major(const Dims& order) {
  for (size_t d = 0; d < order.size(); ++d) {
    if (order[d] != static_cast<int64_t>(order.size() - 1 - d)) return false;
  }
  return true;
}

// Whether gathering the operand along the walk would touch a cache line for each element, while it
// is contiguous along another dimension: then a blocked transpose first is several times faster.
bool lies_across(const Dims& shape, const Dims& strides, int64_t fastest, const Tensor& tensor) {
  constexpr int64_t kLine = 64, kLong = 16, kLarge = 16384;
  if (std::abs(strides[fastest]) < kLine || shape[fastest] < kLong || tensor.numel() < kLarge) {
    return false;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool unit = strides[d] == static_cast<int64_t>(tensor.item_size());
    if (unit && shape[d] >= kLong) return true;
  }
  return false;
}

// A copy whose dimensions lie in the order of the walk.
Tensor copy_along(const char* op, const Tensor& tensor, const Dims& order) {
  const auto lead = static_cast<int64_t>(order.size()) - tensor.dim();
  Dims own;
  for (int64_t d : order) {
    if (d >= lead) own.push_back(d - lead);
  }
  Tensor copy = make_result(op, tensor.sizes(), own, tensor.dtype(), tensor.device());
  copy_into(copy, tensor, op);
  return copy;
}

// Lays out the walk: order of dimensions, new results, views. Results are last checked, then made.
void lay_out(Walk& walk, const Call& call, const Dims& shape, Inputs& inputs,
             std::span<Tensor> results, DType promoted) {
  const Program& program = walk.program;
  FixedVector<Dims, kMaxCallOperands> known;  // strides: given results, then inputs
  for (const Tensor& result : results) {
    if (result.defined()) known.emplace_back(broadcast_strides(result, shape));
  }
  const size_t first_input = known.size();
  for (int i = 0; i < program.input_count; ++i) {
    known.emplace_back(broadcast_strides(*inputs.tensors[i], shape));
  }
  const Dims order = walk_order(shape, known);
  const bool row_major = program.row_major || is_row_major(order);
  for (int i = 0; i < program.input_count && !order.empty(); ++i) {
    Dims& strides = known[first_input + static_cast<size_t>(i)];
    if (!lies_across(shape, strides, order[0], *inputs.tensors[i])) continue;
    Tensor copy = copy_along(program.name, *inputs.tensors[i], order);
    inputs.tensors[i] = &inputs.copies.emplace_back(std::move(copy));
    strides = broadcast_strides(*inputs.tensors[i], shape);
  }

  for (int i = 0; i < program.output_count; ++i) {
    const DType dtype = slot_dtype(output_slot(program, i).type, promoted);
    if (results[i].defined()) {
      results[i].check_writable(program.name);
    } else {
      if (row_major) results[i] = donated_result(program, call, shape, dtype);
      if (results[i].defined()) continue;
      results[i] = make_result(program.name, shape, row_major ? IntList{} : IntList(order), dtype,
                               call_device(call, results));
    }
  }
  for (int i = 0; i < program.output_count; ++i) {
    const DType kernel = slot_dtype(output_slot(program, i).type, walk.compute);
    add_view(walk, results[i], broadcast_strides(results[i], shape), order, kernel, true);
  }
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    const auto number = static_cast<uint8_t>(s);
    if (slot.kind == SlotKind::Output) {
      walk.writes.emplace_back(SlotView{number, slot.index});
    } else if (slot.kind == SlotKind::Input) {
      walk.reads.emplace_back(SlotView{number, static_cast<uint8_t>(walk.views.size())});
      add_view(walk, *inputs.tensors[slot.index], known[first_input + slot.index], order,
               slot_dtype(slot.type, walk.compute), false);
    }
  }

  Dims sizes(order.size());
  for (size_t d = 0; d < order.size(); ++d) sizes[d] = shape[order[d]];
  FixedVector<Dims*, kMaxCallOperands> lists;
  for (View& view : walk.views) lists.emplace_back(&view.strides);
  coalesce(sizes, std::span<Dims* const>(lists.data(), lists.size()));
  walk.space = make_space(std::move(sizes));
  for (View& view : walk.views) describe(view, walk.space);
}

// Whether some result lies over an input; those in scratch have no place yet.
bool lie_over(std::span<const Placed> results, std::span<const Placed> inputs) {
  return std::ranges::any_of(results, [&](const Placed& result) {
    return result.base && std::ranges::any_of(inputs, [&](const Placed& input) {
             return input.base == result.base;
           });
  });
}

}  // namespace

void lay_out_in_order(Walk& walk, const Dims& shape, std::span<const Placed> results,
                      std::span<const Placed> inputs) {
  const Program& program = walk.program;
  Dims sizes(shape);
  std::reverse(sizes.begin(), sizes.end());
  const auto add = [&](const Placed& placed, DType kernel, bool output) {
    View& view = walk.views.emplace_back();
    view.base = placed.base;
    set_types(view, placed.memory, kernel, output);
    view.buffered = placed.buffered;
    view.strides = placed.strides;
    std::reverse(view.strides.begin(), view.strides.end());
  };
  for (int i = 0; i < program.output_count; ++i) {
    add(results[static_cast<size_t>(i)], slot_dtype(output_slot(program, i).type, walk.compute),
        true);
  }
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    const auto number = static_cast<uint8_t>(s);
    if (slot.kind == SlotKind::Output) {
      walk.writes.emplace_back(SlotView{number, slot.index});
    } else if (slot.kind == SlotKind::Input) {
      walk.reads.emplace_back(SlotView{number, static_cast<uint8_t>(walk.views.size())});
      add(inputs[slot.index], slot_dtype(slot.type, walk.compute), false);
    }
  }
  FixedVector<Dims*, kMaxCallOperands> lists;
  for (View& view : walk.views) lists.emplace_back(&view.strides);
  coalesce(sizes, std::span<Dims* const>(lists.data(), lists.size()));
  walk.space = make_space(std::move(sizes));
  FixedVector<const View*, kMaxCallOperands> views;
  for (View& view : walk.views) {
    describe(view, walk.space);
    views.emplace_back(&view);
  }
  const bool single_step = program.steps.size() == 1;
  if (!single_step && lie_over(results, inputs)) {
    for (int i = 0; i < program.output_count; ++i) walk.views[i].buffered = true;
  }
  walk.rule = tile_rule(walk.space, views, single_step);
}

namespace {

// Into results of a wider dtype: what the operator stores is rounded to its own dtype all the same.
void run_rounded(const Program& program, Call call, std::span<Tensor> results) {
  call.resize = nullptr;
  call.in_place = false;
  std::array<Tensor, kMaxCallOperands> rounded;
  run_pointwise(program, call, std::span(rounded).first(results.size()));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined()) {
      copy_into(results[i], rounded[i], program.name);
    } else {
      results[i] = std::move(rounded[i]);
    }
  }
}

}  // namespace

void run_pointwise(const Program& program, const Call& call, std::span<Tensor> results) {
  WEFT_INTERNAL_ASSERT(results.size() == program.output_count, "in ", program.name);
  const Types types = call_types(program, call);
  check_kernels(program, types);
  const Dims shape = common_shape(program, call, results);
  Walk walk(program);
  walk.compute = types.compute;
  store_attributes(program, call, types, walk.scalars);
  bool any_given = false, widened = false;
  for (int i = 0; i < program.output_count; ++i) {
    if (!results[i].defined()) continue;
    any_given = true;
    const DType dtype = slot_dtype(output_slot(program, i).type, types.promoted);
    check_result(program, call, results[i], shape, dtype);
    widened |= dtype == types.promoted && dtype != types.compute && dtype != results[i].dtype();
  }
  if (widened) return run_rounded(program, call, results);
  Inputs inputs;
  protect_inputs(call, any_given ? results : std::span<Tensor>{}, true, inputs);
  if (types.compute != types.promoted) round_zero_dims(program, types, inputs);
  lay_out(walk, call, shape, inputs, results, types.promoted);
  if (walk.space.numel == 0) return;

  const bool single_step = program.steps.size() == 1;
  if (inputs.aliased && !single_step) {
    // A later step may read an input that an earlier one's output lies over.
    for (int i = 0; i < program.output_count; ++i) walk.views[i].buffered = true;
  }
  FixedVector<const View*, kMaxCallOperands> views;
  for (const View& view : walk.views) views.emplace_back(&view);
  walk.rule = tile_rule(walk.space, views, single_step);
  run_on(call_device(call, results), walk);
}

void run_on_cpu(const Walk& walk) {
  const int64_t numel = walk.space.numel;
  if (numel <= kGrain) return Worker(walk).run(0, numel);
  // Threads part at tile borders, which also keeps their pieces aligned.
  const int64_t row = walk.space.sizes[0];
  const int64_t unit = walk.rule.whole_rows ? std::max<int64_t>(1, kTile / row) * row : kTile;
  parallel_sweep((numel + unit - 1) / unit, kPiece / unit, [&](int64_t begin, int64_t end) {
    Worker(walk).run(begin * unit, std::min(end * unit, numel));
  });
}

}  // namespace weft::tile
