#include "ops/tile_plan.h"

#include <algorithm>
#include <cstring>

#include "ops/copy.h"
#include "ops/donation.h"
#include "ops/overlap.h"

namespace weft::tile {
namespace {

bool outside_promotion(const Program& program, size_t input) {
  return ((program.bool_inputs | program.int_inputs) >> input) & 1u;
}

struct Found {
  bool any = false;
  DType dtype = DType::Bool;
  void add(DType other) {
    dtype = !any || dtype == other ? other : promote(dtype, other);
    any = true;
  }
};

// `lower` counts against `higher` only when its category is higher.
Found combine(Found higher, Found lower) {
  if (!higher.any) return lower;
  if (!lower.any || category(lower.dtype) <= category(higher.dtype)) return higher;
  if (is_complex(lower.dtype) && is_floating(higher.dtype)) {
    return {true, complex_of(higher.dtype)};
  }
  return lower;
}

DType natural_dtype(const Program& program, const Call& call) {
  Found dims, zero_dims, numbers;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (outside_promotion(program, i)) continue;
    const Tensor& input = *call.inputs[i];
    (input.dim() > 0 ? dims : zero_dims).add(input.dtype());
  }
  for (size_t i = 0; i < call.attributes.size(); ++i) {
    if ((program.weak_attributes >> i) & 1u) continue;
    if (program.attribute_types[i] == SlotType::Compute) numbers.add(call.attributes[i].dtype());
  }
  const Found all = combine(combine(dims, zero_dims), numbers);
  return all.any ? all.dtype : default_dtype();
}

// Beside other numbers, too.
void refuse_masks(const Program& program, const Call& call) {
  bool found = false;
  for (const Tensor* input : call.inputs) found |= input->dtype() == DType::Bool;
  for (size_t i = 0; i < call.attributes.size(); ++i) {
    const bool weak = (program.weak_attributes >> i) & 1u;
    found |= !weak && call.attributes[i].category() == DTypeCategory::Bool;
  }
  WEFT_CHECK(!found, program.name,
             ": expected numbers, got bool; use ^ or logical_xor() for masks, ~ to invert one");
}

void check_inputs(const Program& program, const Call& call) {
  WEFT_INTERNAL_ASSERT(call.inputs.size() == program.input_count, "in ", program.name);
  WEFT_INTERNAL_ASSERT(call.attributes.size() == program.attribute_count, "in ", program.name);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = *call.inputs[i];
    WEFT_CHECK(input.defined(), program.name, ": expected a tensor as operand ", i, ", got None");
    if ((program.bool_inputs >> i) & 1u) {
      WEFT_CHECK(input.dtype() == DType::Bool || input.dtype() == DType::U8, program.name,
                 ": expected a mask of dtype bool, got ", input.dtype());
    }
    if ((program.int_inputs >> i) & 1u) {
      WEFT_CHECK(is_integral(input.dtype()), program.name,
                 ": expected indices of an integer dtype, got ", input.dtype());
    }
  }
  if (program.no_masks) refuse_masks(program, call);
}

bool has_kernels(const Program& program, DType compute) {
  for (const Step& step : program.steps) {
    for (const KernelSet* set : {step.horizontal, step.vertical, step.identity, step.merge}) {
      if (set && !set->get(compute)) return false;
    }
  }
  return true;
}

std::string supported_dtypes(const Program& program) {
  std::string names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (!has_kernels(program, compute_type(dtype))) continue;
    if (!names.empty()) names += ", ";
    names += dtype_name(dtype);
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Types call_types(const Program& program, const Call& call) {
  check_inputs(program, call);
  if (call.dtype) {
    // A sum that knows no complex numbers would lose their imaginary parts without a word.
    if (program.promotion == Promotion::Sum && !has_kernels(program, DType::C64)) {
      const DType given = natural_dtype(program, call);
      WEFT_CHECK(!is_complex(given), program.name, ": expected dtype ", supported_dtypes(program),
                 ", got ", given);
    }
    return {*call.dtype, compute_type(*call.dtype)};
  }
  DType dtype = natural_dtype(program, call);
  if (category(dtype) <= DTypeCategory::Integral) {
    if (program.promotion == Promotion::Floating) dtype = default_dtype();
    if (program.promotion == Promotion::Sum) dtype = DType::I64;
  }
  return {dtype, compute_type(dtype)};
}

DType result_dtype(const Program& program, const Call& call, int output) {
  const DType promoted = call_types(program, call).promoted;
  return slot_dtype(output_slot(program, output).type, promoted);
}

const Slot& output_slot(const Program& program, int index) {
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::Output && slot.index == index) return slot;
  }
  WEFT_INTERNAL_ASSERT(false, "in ", program.name);
  __builtin_unreachable();
}

Dims common_shape(const Program& program, const Call& call, std::span<const Tensor> results) {
  if (call.inputs.empty()) {
    WEFT_INTERNAL_ASSERT(!results.empty() && results[0].defined(), "in ", program.name);
    return results[0].sizes();
  }
  Dims shape = call.inputs[0]->sizes();
  for (const Tensor* input : call.inputs.subspan(1)) {
    if (!(input->sizes() == shape)) shape = broadcast_sizes(program.name, shape, input->sizes());
  }
  return shape;
}

void check_kernels(const Program& program, Types types) {
  WEFT_CHECK_AS(NotImplemented, has_kernels(program, types.compute), program.name,
                ": expected dtype ", supported_dtypes(program), ", got ", types.promoted);
}

bool rounds_number(const Program& program, size_t attribute) {
  return !program.exact_number && !((program.weak_attributes >> attribute) & 1u) &&
         program.attribute_types[attribute] == SlotType::Compute;
}

void round_zero_dims(const Program& program, Types types, Inputs& inputs) {
  for (int i = 0; i < program.input_count; ++i) {
    const Tensor& input = *inputs.tensors[i];
    const bool exact = program.exact_number && i == 1;
    if (exact || input.dim() > 0 || !is_floating(input.dtype())) continue;
    if (input.dtype() == types.promoted || outside_promotion(program, i)) continue;
    Tensor rounded = Tensor::empty({}, types.promoted, input.device(), program.name);
    copy_new(rounded, input);
    inputs.tensors[i] = &inputs.copies.emplace_back(std::move(rounded));
  }
}

void store_attributes(const Program& program, const Call& call, Types types, ScalarSlot* scalars) {
  for (size_t i = 0; i < call.attributes.size(); ++i) {
    const DType dtype = slot_dtype(program.attribute_types[i], types.compute);
    const bool rounds = types.compute != types.promoted && rounds_number(program, i);
    const Scalar value = rounds ? call.attributes[i].rounded(types.promoted) : call.attributes[i];
    if (value.category() > category(dtype)) {
      // Only weak attributes get here: the others took part in promotion.
      const bool loses =
          program.converts_number
              ? value.is_complex() && dtype != DType::Bool
              : value.is_complex() || (value.is_floating() && !is_floating(dtype) &&
                                       program.attribute_types[i] == SlotType::Compute);
      WEFT_CHECK(!loses, program.name, ": expected a number that converts to ", dtype, ", got ",
                 value);
    }
    value.store(dtype, scalars[kFirstAttribute + i].bytes);
  }
}

void check_result(const Program& program, const Call& call, const Tensor& result, IntList shape,
                  DType dtype) {
  WEFT_CHECK(can_cast(dtype, result.dtype()), program.name, ": expected an output dtype that ",
             dtype, " can be cast to, got ", result.dtype());
  const auto is_result = [&](const Tensor* input) { return input->is_same(result); };
  if (call.resize && !std::ranges::any_of(call.inputs, is_result)) {
    call.resize(program.name, result, shape);
  }
  WEFT_CHECK(same(result.sizes(), shape), program.name, ": expected an output of shape ",
             AsTuple{shape}, ", got ", AsTuple{result.sizes()});
  WEFT_CHECK(result.layout().is_non_overlapping(), program.name,
             ": expected an output with distinct elements, got strides ", AsTuple{result.strides()},
             " for shape ", AsTuple{shape}, "; clone() it before writing");
}

void protect_inputs(const Call& call, std::span<const Tensor> results, bool exact_ok, Inputs& out) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    out.tensors[i] = call.inputs[i];
    for (const Tensor& result : results) {
      if (!result.defined()) continue;
      const Overlap found = overlap(result, *out.tensors[i]);
      if (found == Overlap::None) continue;
      out.aliased = true;
      if (found == Overlap::Exact && exact_ok) continue;
      out.tensors[i] = &out.copies.emplace_back(clone_preserve(*out.tensors[i]));
      break;
    }
  }
}

Tensor donated_result(const Program& program, const Call& call, IntList shape, DType dtype) {
  if (!is_given()) [[likely]]
    return {};
  return take_donation(program, call, Layout::contiguous(shape), dtype);
}

Device call_device(const Call& call, std::span<const Tensor> results) {
  return call.inputs.empty() ? results[0].device() : call.inputs[0]->device();
}

Tensor make_result(const char* op, IntList shape, IntList order, DType dtype, Device device) {
  const int64_t numel = checked_numel(op, shape);
  Layout layout;
  layout.sizes.assign(shape);
  if (order.empty()) {
    layout.strides = contiguous_strides(shape);
  } else {
    layout.strides.resize(shape.size());
    int64_t stride = 1;
    for (int64_t d : order) {
      layout.strides[d] = stride;
      stride *= std::max<int64_t>(shape[d], 1);
    }
  }
  int64_t nbytes = 0;
  const auto item = static_cast<int64_t>(item_size(dtype));
  WEFT_CHECK(!__builtin_mul_overflow(numel, item, &nbytes), op,
             ": expected fewer than 2**63 bytes, got shape ", AsTuple{shape}, " of ", dtype);
  auto storage = Storage::allocate(static_cast<size_t>(nbytes), device);
  return Tensor(std::move(storage), std::move(layout), dtype);
}

}  // namespace weft::tile
