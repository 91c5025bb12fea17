// Convolution where every group has one input channel: too thin for a matrix product, so the taps
// are walked directly, line by line.
#pragma once

#include "ops/conv.h"

namespace weft::native::conv {

template <class T>
void depthwise_forward(const Geometry& g, const T* input, const T* weight, const T* bias, T* out);
template <class T>
void depthwise_backward_input(const Geometry& g, const T* grad, const T* weight, T* out);
template <class T>
void depthwise_backward_weight(const Geometry& g, const T* grad, const T* input, T* out);

}  // namespace weft::native::conv
