// Convolution of images in planes, (N, C, H, W): for each image a matrix product with its unrolled
// form; of single channels the taps in turn. Tensors are contiguous, of one dtype; for one that
// convolution does not compute in RuntimeError names `op`.
#pragma once

#include "ops/conv.h"

namespace weft::native::conv {

// bias: undefined for none.
void unrolled_planes_forward(const char* op, const Geometry& g, const Tensor& input,
                             const Tensor& weight, const Tensor& bias, const Tensor& out);
void unrolled_planes_backward_input(const char* op, const Geometry& g, const Tensor& grad,
                                    const Tensor& weight, const Tensor& out);
void unrolled_planes_backward_weight(const char* op, const Geometry& g, const Tensor& grad,
                                     const Tensor& input, const Tensor& out);

}  // namespace weft::native::conv
