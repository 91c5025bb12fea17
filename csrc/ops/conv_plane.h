// Convolution of one plane with one kernel, for kernels that see a single channel each (depthwise
// convolution, the first layer on grey images): too little work for a matrix product.
#pragma once

#include "ops/conv.h"

namespace weft::native::conv {

// Steps of one output position are one input position: stride 1 along lines, in float or double.
template <class T>
inline constexpr bool has_planes = std::is_same_v<T, float> || std::is_same_v<T, double>;

// A plane with its border of zeros around it, so that every tap of every position can be read.
struct PaddedPlane {
  int64_t height, width, pad_h, pad_w;  // of the plane; the borders may not be negative
  int64_t lines() const { return height + 2 * pad_h; }
  int64_t line() const { return width + 2 * pad_w; }
  // With room to read whole vectors from anywhere.
  int64_t elements() const { return lines() * line() + 16; }
};

// Copies a plane to the middle of `padded`, whose border must be 0 already.
template <class T>
void fill_plane(const PaddedPlane& p, const T* plane, T* padded);

struct PlaneTaps {
  int64_t kernel_h, kernel_w, dilation_h, dilation_w, stride_h, out_height, out_width;
};

// out[y, x] = start + sum over taps (i, j) of taps[i, j] * padded[y * stride_h + i * dilation_h,
// x + j * dilation_w]; with `add`, out[y, x] += it.
template <class T>
void correlate_plane(const PlaneTaps& t, int64_t line, const T* padded, const T* taps, T start,
                     bool add, T* out);

}  // namespace weft::native::conv
