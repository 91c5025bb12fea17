// Convolution of few channels a group, as many in the input as in the result, where the channels of
// an image lie together: vectors over the channels of all groups. A matrix product of each group
// would be too thin. Images are (N, H, W, C).
#pragma once

#include "ops/conv.h"
#include "ops/packed_gemm.h"

namespace weft::native::conv {

// Whether groups are of 1, 2, 4 or 8 channels.
bool fits_grouped(const Geometry& g);
// out = sink(convolution of input).
void grouped_forward(const Geometry& g, const float* input, const Tensor& weight,
                     const blas::Sink& sink, float* out);
// The gradients; that of the weight (O, I, kH, kW).
void grouped_backward_input(const Geometry& g, const float* grad, const Tensor& weight, float* out);
void grouped_backward_weight(const Geometry& g, const float* grad, const float* input, float* out);

}  // namespace weft::native::conv
