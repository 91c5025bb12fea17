// What the convolution operators share: the checked geometry and the unrolled image.
//
// Unrolling ("im2col") writes, for each channel and each tap of the kernel, the input values that
// meet this tap, one for each output position: convolution is then a matrix product.
#pragma once

#include "ops/support.h"

namespace weft::native::conv {

struct Geometry {
  int64_t batch, in_channels, height, width;
  int64_t out_channels, out_height, out_width;
  int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int64_t groups;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t depth() const { return group_in() * taps(); }         // rows of the unrolled image
  int64_t positions() const { return out_height * out_width; }  // its columns
  int64_t in_plane() const { return height * width; }
  bool is_depthwise() const { return groups > 1 && group_in() == 1; }
  // Every kernel sees one channel: with few taps a matrix product has too little to share.
  bool is_single_channel() const { return group_in() == 1 && (groups > 1 || taps() <= 25); }
  // The same of kernels that see few, each for itself.
  bool is_thin() const {
    return is_single_channel() || (groups > 1 && group_out() == 1 && group_in() <= 8 && taps() > 1);
  }
  // The unrolled image is the image itself.
  bool is_pointwise() const {
    return taps() == 1 && stride_h == 1 && stride_w == 1 && pad_h == 0 && pad_w == 0;
  }
};

struct Window {
  IntList stride, padding, dilation;
  int64_t groups;
};

// Sizes with a batch dimension in front: (C, H, W) counts as a batch of one.
// Raises RuntimeError naming `op`.
Geometry geometry(const char* op, IntList input, IntList weight, const Window& window);

// One value of an int[2] argument; a single one counts for both.
int64_t pair_at(const char* op, const char* what, IntList values, size_t at);
// The same for stride, padding and dilation: from `least` on, and small enough that no product
// overflows.
int64_t checked_pair(const char* op, const char* what, IntList values, size_t at, int64_t least);

// The size of the result in one direction; negative or 0 when the kernel does not fit.
int64_t output_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                    int64_t dilation);

// Lines [begin, end) of the output.
struct LineRange {
  int64_t begin, end;
};

// columns[depth][positions of the lines] from one group of one image, and its transpose, which adds
// the columns to the image.
template <class T>
void unroll(const Geometry& g, LineRange lines, const T* image, T* columns);
template <class T>
void unroll_add(const Geometry& g, LineRange lines, const T* columns, T* image);

// Output positions [first, last) of `count` whose tap at `shift` (kernel offset minus padding)
// falls inside [0, size).
struct Range {
  int64_t first, last;
};
Range inside(int64_t shift, int64_t stride, int64_t size, int64_t count);

// The types that convolution computes in; of integers the unsigned twins, whose overflow wraps.
#define WEFT_CONV_TYPES(X) \
  X(float) X(double) X(std::complex<float>) X(std::complex<double>) X(uint32_t) X(uint64_t)

// Calls fn with the one for a dtype.
template <class Fn>
void dispatch_conv(const char* op, DType dtype, Fn&& fn) {
  if (dtype == DType::I64) return fn(std::type_identity<uint64_t>{});
  if (dtype == DType::I32) return fn(std::type_identity<uint32_t>{});
  const bool known =
      dispatch_among<float, double, std::complex<float>, std::complex<double>>(dtype, fn);
  WEFT_CHECK_AS(NotImplemented, known, op, ": expected a floating or complex dtype, got ", dtype);
}

// Of integers int64 alone is convolved with a dilation, and transposed.
inline void check_not_short(const char* op, const Tensor& x, const char* what) {
  const bool is_short = is_integral(x.dtype()) && x.dtype() != DType::I64;
  WEFT_CHECK_AS(NotImplemented, !is_short, op, ": expected int64 or no integers for ", what,
                ", got ", x.dtype());
}

}  // namespace weft::native::conv
