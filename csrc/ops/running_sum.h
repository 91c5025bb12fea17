// Running sums of float32.
#pragma once

#include <cstdint>

namespace weft {

// out[i] = in[0] + ... + in[i] for each of `lines` contiguous lines of `size`, in float64, rounded
// once each.
void running_sum(int64_t lines, int64_t size, const float* in, float* out);

}  // namespace weft
