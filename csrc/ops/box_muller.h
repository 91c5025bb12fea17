// Uniform numbers to normal ones, in blocks of 16 as PyTorch pairs them.
#pragma once

#include <cstdint>

namespace weft::native {

// data: blocks * 16 numbers in [0, 1). In each block, numbers j and j + 8 make the normals j and j
// + 8. Errors stay within a few units in the last place of sqrt(-2 log u) cos(2 pi v).
void box_muller(float* data, int64_t blocks, float mean, float std);

}  // namespace weft::native
