// The two drivers behind tile::run.
#pragma once

#include "ops/tile.h"

namespace weft::tile {

void run_pointwise(const Program& program, const Call& call, std::span<Tensor> results);
void run_row(const Program& program, const Call& call, std::span<Tensor> results);

}  // namespace weft::tile
