// The tile programs of the table's rows.
#pragma once

#include <string_view>

#include "ops/tile.h"

namespace weft::tile_ops {

// The program of a row, by its identifier (add_Tensor); null where there is none. Defined by the
// generated tile_ops.cpp.
const tile::Program* find(std::string_view id);

}  // namespace weft::tile_ops
