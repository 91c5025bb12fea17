// Gradients of convolution of images whose channels lie together (N, H, W, C): float32, or bfloat16
// where the processor multiplies pairs, with an even number of outputs a group. Sums are float32.
#pragma once

#include "ops/conv.h"

namespace weft::native::conv {

// The gradient of the input, (N, H, W, C) as `grad` is. False: too few channels.
bool channels_backward_input(const Geometry& g, const Tensor& grad, const Tensor& weight,
                             float* out);

// Whether the gradient of the weight fits: channels in whole strips.
bool fits_weight_gradient(const Geometry& g);
// The gradient of the weight, (O, kH, kW, I). Input: (N, H, W, C); grad: the same, or float32
// planes, (N, C, H, W).
void channels_backward_weight(const Geometry& g, const Tensor& grad, const Tensor& input,
                              float* out);

}  // namespace weft::native::conv
