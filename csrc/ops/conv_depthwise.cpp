#include "ops/conv_depthwise.h"

#include "core/thread_pool.h"
#include "ops/conv_plane.h"
#include "ops/scratch.h"

namespace weft::native::conv {
namespace {

// One tap over one pair of lines: input positions first_in + x * stride for x in [0, count).
struct Line {
  int64_t weight;   // tap within the kernel
  int64_t in, out;  // first elements within the planes
  int64_t count;
};

// Calls fn(Line) for every tap of every output line that meets the input.
template <class Fn>
void for_each_line(const Geometry& g, Fn&& fn) {
  for (int64_t i = 0; i < g.kernel_h; ++i) {
    for (int64_t j = 0; j < g.kernel_w; ++j) {
      const int64_t shift = j * g.dilation_w - g.pad_w;
      const auto [first, last] = inside(shift, g.stride_w, g.width, g.out_width);
      if (first >= last) continue;
      for (int64_t y = 0; y < g.out_height; ++y) {
        const int64_t from = y * g.stride_h + i * g.dilation_h - g.pad_h;
        if (from < 0 || from >= g.height) continue;
        fn(Line{i * g.kernel_w + j, from * g.width + first * g.stride_w + shift,
                y * g.out_width + first, last - first});
      }
    }
  }
}

int64_t grain(const Geometry& g) {
  return (int64_t{1} << 16) / std::max<int64_t>(1, g.taps() * g.positions()) + 1;
}

// Forward by planes: each input plane is padded once for all kernels of its group.
template <class T>
void forward_planes(const Geometry& g, const T* input, const T* weight, const T* bias, T* out) {
  const int64_t kernels = g.group_out(), channels = g.group_in();
  const PaddedPlane padded{g.height, g.width, g.pad_h, g.pad_w};
  const PlaneTaps taps{g.kernel_h, g.kernel_w,   g.dilation_h, g.dilation_w,
                       g.stride_h, g.out_height, g.out_width};
  parallel_for(
      g.batch * g.groups, grain(g) / (kernels * channels) + 1, [&](int64_t p, int64_t end) {
        Scratch<T> plane(padded.elements());
        std::fill_n(plane.data(), padded.elements(), T(0));
        for (; p < end; ++p) {
          for (int64_t c = 0; c < channels; ++c) {
            fill_plane(padded, input + (p * channels + c) * g.in_plane(), plane.data());
            for (int64_t k = 0; k < kernels; ++k) {
              const int64_t o = p % g.groups * kernels + k;
              correlate_plane(
                  taps, padded.line(), plane.data(), weight + (o * channels + c) * g.taps(),
                  bias && c == 0 ? bias[o] : T(0), c > 0, out + (p * kernels + k) * g.positions());
            }
          }
        }
      });
}

// The gradient of the input by planes: of a stride of 1 it is such a convolution of the gradient,
// with the kernel turned by 180 degrees and the border that the kernel's reach leaves.
template <class T>
void backward_input_planes(const Geometry& g, const T* grad, const T* weight, T* out) {
  const int64_t multiplier = g.group_out();
  const PaddedPlane padded{g.out_height, g.out_width, (g.kernel_h - 1) * g.dilation_h - g.pad_h,
                           (g.kernel_w - 1) * g.dilation_w - g.pad_w};
  const PlaneTaps taps{g.kernel_h, g.kernel_w, g.dilation_h, g.dilation_w, 1, g.height, g.width};
  parallel_for(g.batch * g.in_channels, grain(g) / multiplier + 1, [&](int64_t begin, int64_t end) {
    Scratch<T> plane(padded.elements()), turned(g.taps());
    std::fill_n(plane.data(), padded.elements(), T(0));
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p % g.in_channels * multiplier;
      for (int64_t k = 0; k < multiplier; ++k) {
        fill_plane(padded, grad + (p * multiplier + k) * g.positions(), plane.data());
        const T* kernel = weight + (first + k) * g.taps();
        std::reverse_copy(kernel, kernel + g.taps(), turned.data());
        correlate_plane(taps, padded.line(), plane.data(), turned.data(), T(0), k > 0,
                        out + p * g.in_plane());
      }
    }
  });
}

}  // namespace

template <class T>
void depthwise_forward(const Geometry& g, const T* input, const T* weight, const T* bias, T* out) {
  if constexpr (has_planes<T>) {
    if (g.stride_w == 1) return forward_planes(g, input, weight, bias, out);
  }
  const int64_t multiplier = g.group_out();
  parallel_for(g.batch * g.out_channels, grain(g), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t o = p % g.out_channels;
      const T* plane = input + p / multiplier * g.in_plane();
      T* to = out + p * g.positions();
      const T* taps = weight + o * g.taps();
      std::fill_n(to, g.positions(), bias ? bias[o] : T(0));
      for_each_line(g, [&](const Line& line) {
        const T w = taps[line.weight];
        const T* x = plane + line.in;
        T* y = to + line.out;
        if (g.stride_w == 1) {
          for (int64_t i = 0; i < line.count; ++i) y[i] += w * x[i];
        } else {
          for (int64_t i = 0; i < line.count; ++i) y[i] += w * x[i * g.stride_w];
        }
      });
    }
  });
}

template <class T>
void depthwise_backward_input(const Geometry& g, const T* grad, const T* weight, T* out) {
  if constexpr (has_planes<T>) {
    const bool borders =
        (g.kernel_h - 1) * g.dilation_h >= g.pad_h && (g.kernel_w - 1) * g.dilation_w >= g.pad_w;
    if (g.stride_h == 1 && g.stride_w == 1 && borders) {
      return backward_input_planes(g, grad, weight, out);
    }
  }
  const int64_t multiplier = g.group_out();
  parallel_for(g.batch * g.in_channels, grain(g), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / g.in_channels, c = p % g.in_channels;
      T* plane = out + p * g.in_plane();
      std::fill_n(plane, g.in_plane(), T(0));
      for (int64_t o = c * multiplier; o < (c + 1) * multiplier; ++o) {
        const T* from = grad + (n * g.out_channels + o) * g.positions();
        for_each_line(g, [&](const Line& line) {
          const T w = weight[o * g.taps() + line.weight];
          T* x = plane + line.in;
          for (int64_t i = 0; i < line.count; ++i) x[i * g.stride_w] += w * from[line.out + i];
        });
      }
    }
  });
}

template <class T>
void depthwise_backward_weight(const Geometry& g, const T* grad, const T* input, T* out) {
  const int64_t multiplier = g.group_out();
  std::fill_n(out, g.out_channels * g.taps(), T(0));
  parallel_for(g.out_channels, grain(g), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t n = 0; n < g.batch; ++n) {
        const T* plane = input + (n * g.in_channels + o / multiplier) * g.in_plane();
        const T* from = grad + (n * g.out_channels + o) * g.positions();
        for_each_line(g, [&](const Line& line) {
          T sum(0);
          for (int64_t i = 0; i < line.count; ++i) {
            sum += from[line.out + i] * plane[line.in + i * g.stride_w];
          }
          out[o * g.taps() + line.weight] += sum;
        });
      }
    }
  });
}

#define INSTANTIATE(T)                                                                   \
  template void depthwise_forward<T>(const Geometry&, const T*, const T*, const T*, T*); \
  template void depthwise_backward_input<T>(const Geometry&, const T*, const T*, T*);    \
  template void depthwise_backward_weight<T>(const Geometry&, const T*, const T*, T*);
WEFT_CONV_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace weft::native::conv
