// The shapes of what a fusion group reads and gives, and its numbers.
#pragma once

#include <optional>
#include <vector>

#include "runtime/fused.h"

namespace weft {

// What those of `tensors` (places among the arguments) broadcast to that `reads` names (bit i:
// argument i). Null where they do not broadcast: parts of a group may have nothing to do with each
// other.
std::optional<Dims> shape_of(const Value* args, const std::vector<uint8_t>& tensors,
                             uint64_t reads);

// What two shapes broadcast to; null where they do not.
std::optional<Dims> broadcast_shape(const Dims& a, const Dims& b);

// Whether every output has the shape that all operands broadcast to. `reads`: of each output.
bool outputs_are_full(const Value* args, const std::vector<uint8_t>& tensors,
                      const std::vector<uint64_t>& reads);

// What FusedOperand::Kind::Length stands for.
int64_t length_of(const Dims& shape, uint8_t index);

// A number that a step of a group reads, for elements of this shape.
Scalar number_of(const FusedSpec& spec, const FusedOperand& one, const Value* args,
                 const Dims& shape);

}  // namespace weft
