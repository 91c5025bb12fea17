// What a call means before anything runs: dtypes, shape, results, attributes, kernels.
#pragma once

#include <span>

#include "ops/fixed_vector.h"
#include "ops/tile.h"

namespace weft::tile {

// Most slots, steps and call operands (inputs plus outputs) of one program.
inline constexpr int kMaxSlots = 64;
inline constexpr int kMaxSteps = 64;
inline constexpr int kMaxCallOperands = 32;
inline constexpr int kMaxScalars = kFirstAttribute + kMaxAttributes + kMaxOperands;

struct Types {
  DType promoted;  // what Compute means for tensors
  DType compute;   // what it means for kernels: float32 for the 16-bit floats
};

// PyTorch's rule: dimensioned tensors, then 0-d tensors, then numbers; a lower class counts only
// when its category is higher.
Types call_types(const Program& program, const Call& call);

constexpr DType slot_dtype(SlotType type, DType compute) {
  switch (type) {
    case SlotType::Compute:
      return compute;
    case SlotType::Bool:
      return DType::Bool;
    case SlotType::Int64:
      return DType::I64;
    case SlotType::Real:
      return real_of(compute);
    case SlotType::Truth:
      return compute == DType::U8 ? DType::U8 : DType::Bool;
  }
  __builtin_unreachable();
}

// Common shape of the inputs (of the results when there are none).
Dims common_shape(const Program& program, const Call& call, std::span<const Tensor> results);

// Raises "<op>: expected dtype ..., got ..." unless every step has its kernels.
void check_kernels(const Program& program, Types types);

// Attributes from slot kFirstAttribute on, in the kernels' types.
void store_attributes(const Program& program, const Call& call, Types types, ScalarSlot* scalars);

// Whether a number counts as an element of the promoted dtype, which may have 16 bits.
bool rounds_number(const Program& program, size_t attribute);

// A given result must have the shape, a dtype the value can be cast to, and distinct elements. One
// that is no input is resized to the shape where the call says so.
void check_result(const Program& program, const Call& call, const Tensor& result, IntList shape,
                  DType dtype);

// The slot of a program that stands for result `index`.
const Slot& output_slot(const Program& program, int index);

// Inputs as the walk may read them: those whose memory a result overwrites in another order than
// it is read are replaced by copies.
struct Inputs {
  const Tensor* tensors[kMaxCallOperands];
  FixedVector<Tensor, 2 * kMaxCallOperands> copies;
  bool aliased = false;  // some result lies exactly over some input
};
// `exact_ok`: an input that lies exactly under a result may stay.
void protect_inputs(const Call& call, std::span<const Tensor> results, bool exact_ok, Inputs& out);
// As rounds_number, of 0-d tensors; where kernels compute in another dtype than the promoted one.
void round_zero_dims(const Program& program, Types types, Inputs& inputs);

// Memory that was given for a row-major result (donation.h); undefined where there is none.
Tensor donated_result(const Program& program, const Call& call, IntList shape, DType dtype);
// Memory for a result: dense, with the dimension order[0] fastest (empty: row-major).
Tensor make_result(const char* op, IntList shape, IntList order, DType dtype, Device device = {});
// Where the results of a call whose operands are on one device are made.
Device call_device(const Call& call, std::span<const Tensor> results);

}  // namespace weft::tile
