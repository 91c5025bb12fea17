// Geometry checks of convolution, and the unrolled image.
#include <climits>

#include "ops/conv.h"
#include "ops/deinterleave.h"

namespace weft::native::conv {

int64_t pair_at(const char* op, const char* what, IntList values, size_t at) {
  WEFT_CHECK(values.size() == 1 || values.size() == 2, op, ": expected 1 or 2 values of ", what,
             ", got ", AsTuple{values});
  return values.size() == 1 ? values[0] : values[at];
}

int64_t output_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                    int64_t dilation) {
  const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
  return span < 0 ? 0 : span / stride + 1;
}

int64_t checked_pair(const char* op, const char* what, IntList values, size_t at, int64_t least) {
  const int64_t value = pair_at(op, what, values, at);
  WEFT_CHECK(value >= least && value <= INT_MAX, op, ": expected ", what, " >= ", least, ", got ",
             AsTuple{values});
  return value;
}

Geometry geometry(const char* op, IntList input, IntList weight, const Window& window) {
  WEFT_CHECK(input.size() == 3 || input.size() == 4, op,
             ": expected an input of shape (N, C, H, W) or (C, H, W), got ", AsTuple{input});
  WEFT_CHECK(weight.size() == 4, op, ": expected a weight of shape (O, C / groups, kH, kW), got ",
             AsTuple{weight});
  const size_t c = input.size() - 3;
  Geometry g{};
  g.batch = c == 0 ? 1 : input[0];
  g.in_channels = input[c];
  g.height = input[c + 1];
  g.width = input[c + 2];
  g.out_channels = weight[0];
  g.kernel_h = weight[2];
  g.kernel_w = weight[3];
  g.groups = window.groups;
  g.stride_h = checked_pair(op, "stride", window.stride, 0, 1);
  g.stride_w = checked_pair(op, "stride", window.stride, 1, 1);
  g.pad_h = checked_pair(op, "padding", window.padding, 0, 0);
  g.pad_w = checked_pair(op, "padding", window.padding, 1, 0);
  g.dilation_h = checked_pair(op, "dilation", window.dilation, 0, 1);
  g.dilation_w = checked_pair(op, "dilation", window.dilation, 1, 1);
  WEFT_CHECK(g.groups >= 1, op, ": expected groups >= 1, got ", g.groups);
  WEFT_CHECK(g.in_channels % g.groups == 0 && weight[1] == g.in_channels / g.groups, op,
             ": expected a weight of shape (O, C / groups, kH, kW) for input ", AsTuple{input},
             " and groups ", g.groups, ", got ", AsTuple{weight});
  WEFT_CHECK(g.out_channels % g.groups == 0, op, ": expected output channels divisible by groups ",
             g.groups, ", got ", g.out_channels);
  WEFT_CHECK(g.kernel_h > 0 && g.kernel_w > 0 && std::max(g.kernel_h, g.kernel_w) <= INT_MAX, op,
             ": expected a kernel of at least 1 x 1, got weight ", AsTuple{weight});
  g.out_height = output_size(g.height, g.kernel_h, g.stride_h, g.pad_h, g.dilation_h);
  g.out_width = output_size(g.width, g.kernel_w, g.stride_w, g.pad_w, g.dilation_w);
  WEFT_CHECK(g.out_height > 0 && g.out_width > 0, op,
             ": expected a kernel no larger than the padded input ", "(", g.height + 2 * g.pad_h,
             ", ", g.width + 2 * g.pad_w, "), got (", g.dilation_h * (g.kernel_h - 1) + 1, ", ",
             g.dilation_w * (g.kernel_w - 1) + 1, ")");
  return g;
}

Range inside(int64_t shift, int64_t stride, int64_t size, int64_t count) {
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = size - shift <= 0 ? 0 : (size - shift - 1) / stride + 1;
  return {std::min(first, count), std::clamp(last, std::min(first, count), count)};
}

namespace {

// Calls row(line of columns, line of the image or null when in the padding, columns inside, shift)
// for each line of output positions.
template <class Fn>
void for_each_line(const Geometry& g, LineRange lines, Fn&& row) {
  const int64_t positions = (lines.end - lines.begin) * g.out_width;
  for (int64_t c = 0; c < g.group_in(); ++c) {
    for (int64_t i = 0; i < g.kernel_h; ++i) {
      for (int64_t j = 0; j < g.kernel_w; ++j) {
        const int64_t line = (c * g.kernel_h + i) * g.kernel_w + j;
        const int64_t shift_h = i * g.dilation_h - g.pad_h, shift_w = j * g.dilation_w - g.pad_w;
        const Range range = inside(shift_w, g.stride_w, g.width, g.out_width);
        for (int64_t y = lines.begin; y < lines.end; ++y) {
          const int64_t from = y * g.stride_h + shift_h;
          const bool hit = from >= 0 && from < g.height;
          row(line * positions + (y - lines.begin) * g.out_width,
              hit ? c * g.in_plane() + from * g.width : -1, range, shift_w);
        }
      }
    }
  }
}

}  // namespace

namespace {

// Lines of an image are short: a call to memmove costs more than they do.
template <class T>
inline void copy_line(const T* from, int64_t count, T* to) {
  constexpr int64_t kChunk = 8;
  for (; count >= kChunk; count -= kChunk, from += kChunk, to += kChunk) {
    std::memcpy(to, from, kChunk * sizeof(T));
  }
  if (count >= kChunk / 2) {
    std::memcpy(to, from, kChunk / 2 * sizeof(T));
    from += kChunk / 2, to += kChunk / 2, count -= kChunk / 2;
  }
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i];
    asm("");  // keeps the compiler from making this a call to memcpy
  }
}

template <class T>
inline void zero_line(T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = T(0);
    asm("");
  }
}

}  // namespace

template <class T>
void unroll(const Geometry& g, LineRange lines, const T* image, T* columns) {
  for_each_line(g, lines, [&](int64_t to, int64_t from, Range range, int64_t shift) {
    T* out = columns + to;
    if (from < 0) {
      std::fill_n(out, g.out_width, T(0));
      return;
    }
    zero_line(out, range.first);
    zero_line(out + range.last, g.out_width - range.last);
    if (range.first == range.last) return;
    const T* in = image + from + range.first * g.stride_w + shift;
    const int64_t count = range.last - range.first;
    if (g.stride_w == 1) {
      copy_line(in, count, out + range.first);
    } else {
      int64_t x = 0;
      if constexpr (sizeof(T) <= 8) {  // less the last one, whose neighbour may lie outside
        if (g.stride_w == 2) deinterleave<T>(in, x = count - 1, out + range.first, nullptr);
      }
      for (; x < count; ++x) out[range.first + x] = in[x * g.stride_w];
    }
  });
}

template <class T>
void unroll_add(const Geometry& g, LineRange lines, const T* columns, T* image) {
  for_each_line(g, lines, [&](int64_t to, int64_t from, Range range, int64_t shift) {
    if (from < 0 || range.first == range.last) return;
    T* out = image + from + range.first * g.stride_w + shift;
    const T* in = columns + to + range.first;
    const int64_t count = range.last - range.first;
    if (g.stride_w == 1) {
      for (int64_t x = 0; x < count; ++x) out[x] += in[x];
    } else {
      for (int64_t x = 0; x < count; ++x) out[x * g.stride_w] += in[x];
    }
  });
}

#define INSTANTIATE(T)                                               \
  template void unroll<T>(const Geometry&, LineRange, const T*, T*); \
  template void unroll_add<T>(const Geometry&, LineRange, const T*, T*);
WEFT_CONV_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace weft::native::conv
