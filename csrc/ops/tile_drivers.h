// The two drivers behind tile::run, and what they tell kernels.
#pragma once

#include "ops/tile.h"

namespace weft::tile {

// Or-ed to a kernel's n, asks a pointwise kernel to store past the caches what will not be read
// soon: results then begin at multiples of 64 bytes. Kernels for x86 know it. Others see such
// stores in order only after a fence.
inline constexpr int64_t kStreamed = INT64_MIN;

void run_pointwise(const Program& program, const Call& call, std::span<Tensor> results);
void run_row(const Program& program, const Call& call, std::span<Tensor> results);

}  // namespace weft::tile
