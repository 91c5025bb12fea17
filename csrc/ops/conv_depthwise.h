// Convolution where every group has one input channel: too thin for a matrix product, so the taps
// are walked directly, line by line.
#pragma once

#include "ops/conv.h"
#include "ops/packed_gemm.h"

namespace weft::native::conv {

template <class T>
void depthwise_forward(const Geometry& g, const T* input, const T* weight, const T* bias, T* out);
template <class T>
void depthwise_backward_input(const Geometry& g, const T* grad, const T* weight, T* out);
template <class T>
void depthwise_backward_weight(const Geometry& g, const T* grad, const T* input, T* out);

// Whether images in the order of channels_last have vectors over channels: one kernel for each.
bool fits_depthwise_channels(const Geometry& g);
// out = sink(convolution of input), both (N, H, W, C).
void depthwise_channels_forward(const Geometry& g, const float* input, const Tensor& weight,
                                const blas::Sink& sink, float* out);
// The gradients; that of the weight (O, 1, kH, kW).
void depthwise_channels_backward_input(const Geometry& g, const float* grad, const Tensor& weight,
                                       float* out);
void depthwise_channels_backward_weight(const Geometry& g, const float* grad, const float* input,
                                        float* out);

}  // namespace weft::native::conv
