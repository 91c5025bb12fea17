#include "runtime/fused_shapes.h"

#include <algorithm>

#include "ops/support.h"

namespace weft {
std::optional<Dims> broadcast_shape(const Dims& a, const Dims& b) {
  if (a == b) return a;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return std::nullopt;
  }
  return broadcast_sizes("fused", a, b);
}

std::optional<Dims> shape_of(const Value* args, const std::vector<uint8_t>& tensors,
                             uint64_t reads) {
  std::optional<Dims> shape = Dims();
  for (uint8_t input : tensors) {
    if (!(reads >> input & 1)) continue;
    shape = broadcast_shape(*shape, args[input].to_tensor().sizes());
    if (!shape) break;
  }
  return shape;
}

bool outputs_are_full(const Value* args, const std::vector<uint8_t>& tensors,
                      const std::vector<uint64_t>& reads) {
  const std::optional<Dims> all = shape_of(args, tensors, ~uint64_t{0});
  return all && std::ranges::all_of(
                    reads, [&](uint64_t part) { return shape_of(args, tensors, part) == all; });
}

int64_t length_of(const Dims& shape, uint8_t index) {
  return index ? checked_numel("fused", shape) : shape.empty() ? 1 : shape.back();
}

Scalar number_of(const FusedSpec& spec, const FusedOperand& one, const Value* args,
                 const Dims& shape) {
  switch (one.kind) {
    case FusedOperand::Kind::Input:
      return args[one.index].to_scalar();
    case FusedOperand::Kind::Length:
      return Scalar(length_of(shape, one.index));
    default:
      return spec.constants[one.index].to_scalar();
  }
}

}  // namespace weft
