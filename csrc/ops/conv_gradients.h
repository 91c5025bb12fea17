// Gradients of convolution of float32 images whose channels lie together (N, H, W, C).
#pragma once

#include "ops/conv.h"

namespace weft::native::conv {

// The gradient of the input, (N, H, W, C) as `grad` is. False: no way that fits.
bool channels_backward_input(const Geometry& g, const float* grad, const Tensor& weight,
                             float* out);

// Whether the gradient of the weight fits: channels in whole strips.
bool fits_weight_gradient(const Geometry& g);
// The gradient of the weight, (O, kH, kW, I). Input: (N, H, W, C); grad: the same, or planes
// (N, C, H, W).
void channels_backward_weight(const Geometry& g, const float* grad, bool grad_has_planes,
                              const float* input, float* out);

}  // namespace weft::native::conv
