#include "runtime/fused_shapes.h"

#include <algorithm>

#include "ops/support.h"

namespace weft {
namespace {

bool can_broadcast(const Dims& a, const Dims& b) {
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

}  // namespace

std::optional<Dims> shape_of(const Value* args, const std::vector<uint8_t>& tensors,
                             uint64_t reads) {
  Dims shape;
  for (uint8_t input : tensors) {
    if (!(reads >> input & 1)) continue;
    const Dims& sizes = args[input].to_tensor().layout().sizes;
    if (sizes == shape) continue;
    if (!can_broadcast(shape, sizes)) return std::nullopt;
    shape = broadcast_sizes("fused", shape, sizes);
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

}  // namespace weft
