// Convolution with a 3x3 kernel and stride 1 by Winograd's F(2x2, 3x3): a tile of 2x2 results costs
// 16 multiplications a channel instead of 36.
//
// The greatest error is about twice that of the direct sum (3e-6 against 1.6e-6 of the result for
// 64 channels), which is why float64 does not come here. Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015, section 4.1.
#pragma once

#include "ops/conv.h"

namespace weft::native::conv {

// Whether the transforms pay: enough channels on both sides, enough tiles for the kernel's own.
bool fits_winograd(const Geometry& g);

// out = convolution of input with weight, plus bias unless null.
void winograd_forward(const Geometry& g, const float* input, const float* weight, const float* bias,
                      float* out);
// The gradient of the input: a convolution of `grad` with the kernel turned by 180 degrees.
void winograd_backward_input(const Geometry& g, const float* grad, const float* weight, float* out);

}  // namespace weft::native::conv
