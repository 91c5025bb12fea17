// Contiguous conversion kernels between dtypes.
#pragma once

#include "ops/tile.h"

namespace weft::tile {

// operands: destination, source; no scalars are read (null may be passed). Never null; from == to
// copies. Defined by the generated kernel tables.
KernelFn convert_kernel(DType to, DType from);

}  // namespace weft::tile
