// Convolution of float32 images whose channels lie together (N, H, W, C), with weights packed in
// strips: an unrolled image has a row for each position, in which the taps of a line of the kernel
// lie side by side.
#pragma once

#include "ops/conv.h"
#include "ops/packed_gemm.h"

namespace weft::native::conv {

// Whether images in the order of channels_last are worth it: enough channels to share what is read.
bool fits_channels(const Geometry& g);

// out = sink(convolution of input), both (N, H, W, C).
void channels_forward(const Geometry& g, const float* input, const Tensor& weight,
                      const blas::Sink& sink, float* out);
// The same for bfloat16 images and weights of an even number of channels a group, where the
// processor multiplies pairs; the images lie at whole pairs.
void channel_pairs_forward(const Geometry& g, const BFloat16* input, const Tensor& weight,
                           const blas::Sink& sink, float* out);
// The same for images (N, C, H, W), in a copy of each in the other order.
void planes_forward(const Geometry& g, const float* input, const Tensor& weight, const float* bias,
                    float* out);
// The gradient of the input, (N, C, H, W), where Winograd's way fits.
void planes_backward_input(const Geometry& g, const float* grad, const Tensor& weight, float* out);

// Elements of a weight. Those of output o, input i of a group and tap (y, x) lie at
// data[group * of_group + o * out + i * in + y * row + x * column].
struct Taps {
  const float* data;
  int64_t of_group, out, in, row, column;
};
Taps taps_of(const Geometry& g, const Tensor& weight);

}  // namespace weft::native::conv
