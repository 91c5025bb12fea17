// Convolution with a 3x3 kernel and stride 1 by Winograd's F(2x2, 3x3): a tile of 2x2 results costs
// 16 multiplications a channel instead of 36. Images are (N, H, W, C): transforms go along
// channels.
//
// The greatest error is about twice that of the direct sum (3e-6 against 1.6e-6 of the result for
// 64 channels), which is why float64 does not come here. Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015, section 4.1.
#pragma once

#include "ops/conv.h"
#include "ops/packed_gemm.h"
#include "ops/packed_weight.h"

namespace weft::native::conv {

// Whether the transforms pay: enough channels on both sides, enough tiles for the kernel's own.
bool fits_winograd(const Geometry& g);

// The weight, transformed; of the convolution that leads from the gradient of g's results to that
// of its input, with a kernel turned by 180 degrees; and that convolution.
Ref<PackedWeight> winograd_weight(const Geometry& g, const Tensor& weight);
Ref<PackedWeight> winograd_turned_weight(const Geometry& g, const Tensor& weight);
Geometry turned(const Geometry& g);

// out = sink(convolution of input with a transformed weight).
void winograd_forward(const Geometry& g, const float* input, const float* weight,
                      const blas::Sink& sink, float* out);

}  // namespace weft::native::conv
