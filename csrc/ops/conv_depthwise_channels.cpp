// Depthwise convolution of images whose channels lie together, and its gradients: vectors over
// channels.
#include <cstring>
#include <numeric>

#include "core/thread_pool.h"
#include "ops/conv_channels.h"
#include "ops/conv_depthwise.h"
#include "ops/levels.h"
#include "ops/packed_weight.h"
#include "ops/scratch.h"

namespace weft::native::conv {
namespace {

template <int Lanes>
struct ChannelsOf {
  typedef float type __attribute__((vector_size(Lanes * sizeof(float))));
};

// What one line of the result reads: `taps` lie [tap][channel], the image [line][column][channel].
struct ChannelLine {
  const float *image, *taps;
  blas::Sink sink;
  float* out;
  int64_t out_step;               // from a column of the result to the next
  int64_t first_row, begin, end;  // the first tap's row in the image; taps [begin, end) are inside
};

// Count neighbours from column x on, of which taps [left, right) of a line lie inside.
template <int Lanes, int Count>
WEFT_INLINE void channel_columns(const Geometry& g, const ChannelLine& line, int64_t x,
                                 int64_t left, int64_t right) {
  using Vector = typename ChannelsOf<Lanes>::type;
  const int64_t channels = g.in_channels, step = g.stride_w * channels;
  const float* image = line.image + (x * g.stride_w - g.pad_w) * channels;
  for (int64_t next = 0; next < channels; next += Lanes) {
    // The last vector starts early enough to be whole; what it writes again is the same.
    const int64_t c = std::min(next, channels - Lanes);
    Vector sums[Count], tap, values;
    for (Vector& sum : sums) sum = Vector{};
    if (line.sink.bias) std::memcpy(&sums[0], line.sink.bias + c, sizeof(Vector));
    for (int k = 1; k < Count; ++k) sums[k] = sums[0];
    for (int64_t i = line.begin; i < line.end; ++i) {
      const float* row = image + (line.first_row + i * g.dilation_h) * g.width * channels + c;
      for (int64_t j = left; j < right; ++j) {
        std::memcpy(&tap, line.taps + (i * g.kernel_w + j) * channels + c, sizeof(tap));
        const float* from = row + j * g.dilation_w * channels;
        for (int k = 0; k < Count; ++k) {
          std::memcpy(&values, from + k * step, sizeof(values));
          sums[k] += values * tap;
        }
      }
    }
    for (int k = 0; k < Count; ++k) {
      const int64_t at = (x + k) * line.out_step + c;
      if (line.sink.residual) {
        std::memcpy(&values, line.sink.residual + at, sizeof(values));
        sums[k] += values;
      }
      if (line.sink.relu) sums[k] = sums[k] <= Vector{} ? Vector{} : sums[k];
      std::memcpy(line.out + at, &sums[k], sizeof(Vector));
    }
  }
}

// The first place from 0 to `count` whose distance, `step` apart from `start`, is at least 0.
WEFT_INLINE int64_t first_inside(int64_t start, int64_t step, int64_t count) {
  return std::clamp<int64_t>(start >= 0 ? 0 : (-start + step - 1) / step, 0, count);
}

template <int Lanes>
WEFT_INLINE void channel_line_body(const Geometry& g, const ChannelLine& line) {
  constexpr int kColumns = 4;
  // Columns [low, high) meet all taps.
  const int64_t reach = (g.kernel_w - 1) * g.dilation_w;
  const int64_t low = first_inside(-g.pad_w, g.stride_w, g.out_width);
  const int64_t high =
      std::max(low, first_inside(reach - g.pad_w - g.width, g.stride_w, g.out_width));
  for (int64_t x = 0; x < g.out_width;) {
    if (x >= low && x + kColumns <= high) {
      channel_columns<Lanes, kColumns>(g, line, x, 0, g.kernel_w);
      x += kColumns;
      continue;
    }
    const int64_t column = x * g.stride_w - g.pad_w;
    const int64_t left = first_inside(column, g.dilation_w, g.kernel_w);
    const int64_t right = first_inside(column - g.width, g.dilation_w, g.kernel_w);
    channel_columns<Lanes, 1>(g, line, x++, left, right);
  }
}

// A line of the result's gradient, and the line of the image that it meets at a line of the kernel;
// sums: the gradients of its taps, [tap][channel].
struct WeightLine {
  const float *grad, *image;
  float* sums;
};

// Adds columns [begin, end) to `Count` taps from `first` on; all lie inside.
template <int Lanes, int Count>
WEFT_INLINE void add_columns(const Geometry& g, const WeightLine& line, int64_t first,
                             int64_t begin, int64_t end) {
  using Vector = typename ChannelsOf<Lanes>::type;
  if (begin >= end) return;
  const int64_t step = g.stride_w * g.in_channels, apart = g.dilation_w * g.in_channels;
  const float* grad = line.grad + begin * g.in_channels;
  const float* image =
      line.image + (begin * g.stride_w + first * g.dilation_w - g.pad_w) * g.in_channels;
  float* to = line.sums + first * g.in_channels;
  Vector sums[Count], with, values;
  for (int k = 0; k < Count; ++k) std::memcpy(&sums[k], to + k * g.in_channels, sizeof(Vector));
  for (int64_t x = begin; x < end; ++x, image += step, grad += g.in_channels) {
    std::memcpy(&with, grad, sizeof(with));
    for (int k = 0; k < Count; ++k) {
      std::memcpy(&values, image + k * apart, sizeof(values));
      sums[k] += with * values;
    }
  }
  for (int k = 0; k < Count; ++k) std::memcpy(to + k * g.in_channels, &sums[k], sizeof(Vector));
}

// Vectors of channels from c on, as many as are whole; returns the channel after them.
template <int Lanes>
WEFT_INLINE int64_t weight_line_body(const Geometry& g, const WeightLine& whole, int64_t c) {
  constexpr int kTaps = 3;
  const auto hits = [&](int64_t tap) {
    return inside(tap * g.dilation_w - g.pad_w, g.stride_w, g.width, g.out_width);
  };
  for (; c + Lanes <= g.in_channels; c += Lanes) {
    const WeightLine line{whole.grad + c, whole.image + c, whole.sums + c};
    for (int64_t tap = 0; tap < g.kernel_w; tap += kTaps) {
      const int64_t stop = std::min(tap + kTaps, g.kernel_w);
      // Columns [low, high) meet all of the taps, of which there must be kTaps; the first of them
      // is the last to come inside.
      const int64_t low = hits(tap).first;
      const int64_t high = stop - tap < kTaps ? low : std::max(low, hits(stop - 1).last);
      add_columns<Lanes, kTaps>(g, line, tap, low, high);
      for (int64_t k = tap; k < stop; ++k) {
        const Range own = hits(k);
        add_columns<Lanes, 1>(g, line, k, own.first, std::min(low, own.last));
        add_columns<Lanes, 1>(g, line, k, std::max(high, own.first), own.last);
      }
    }
  }
  return c;
}

#define DEFINE(level, target, width)                                             \
  target void channel_line_##level(const Geometry& g, const ChannelLine& line) { \
    if (g.in_channels >= 16) return channel_line_body<16>(g, line);              \
    if (g.in_channels >= 4) return channel_line_body<4>(g, line);                \
    channel_line_body<1>(g, line);                                               \
  }                                                                              \
  target void weight_line_##level(const Geometry& g, const WeightLine& line) {   \
    const int64_t c = weight_line_body<16>(g, line, 0);                          \
    weight_line_body<1>(g, line, weight_line_body<4>(g, line, c));               \
  }
WEFT_LEVELS(DEFINE)
#undef DEFINE

void channel_line(const Geometry& g, const ChannelLine& line) { WEFT_PICK(channel_line, g, line); }
void weight_line(const Geometry& g, const WeightLine& line) { WEFT_PICK(weight_line, g, line); }

// Where the results of a convolution lie: from a column, a line, an image to the next.
struct Steps {
  int64_t column, line, image;
};

// out = sink(convolution of input), taps [line][column][channel].
void correlate(const Geometry& g, const float* input, const float* taps, const blas::Sink& sink,
               float* out, const Steps& steps) {
  const int64_t work = g.taps() * g.out_width * g.in_channels;
  const int64_t least = (int64_t{1} << 16) / std::max<int64_t>(1, work) + 1;
  parallel_for(g.batch * g.out_height, least, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t row = r % g.out_height * g.stride_h - g.pad_h;
      const int64_t at = r / g.out_height * steps.image + r % g.out_height * steps.line;
      channel_line(g,
                   {input + r / g.out_height * g.in_plane() * g.in_channels, taps, sink.at(at, 0),
                    out + at, steps.column, row, first_inside(row, g.dilation_h, g.kernel_h),
                    first_inside(row - g.height, g.dilation_h, g.kernel_h)});
    }
  });
}

// Taps of a kernel in one direction: the first, the distance from each to the next, how many.
struct TapRun {
  int64_t first, step, count;
};

void pack_taps(const Geometry& g, const Tensor& weight, const TapRun& lines, const TapRun& columns,
               float* to) {
  const Taps t = taps_of(g, weight);
  for (int64_t i = 0; i < lines.count; ++i) {
    for (int64_t j = 0; j < columns.count; ++j, to += g.in_channels) {
      const float* from = t.data + (lines.first + i * lines.step) * t.row +
                          (columns.first + j * columns.step) * t.column;
      for (int64_t c = 0; c < g.in_channels; ++c) to[c] = from[c * t.of_group];
    }
  }
}

// Adds the gradients that line r of all results' gives the taps.
void add_line(const Geometry& g, int64_t r, const float* grad, const float* input, float* sums) {
  const int64_t line = g.width * g.in_channels;
  const float* image = input + r / g.out_height * g.height * line;
  for (int64_t i = 0; i < g.kernel_h; ++i) {
    const int64_t row = r % g.out_height * g.stride_h + i * g.dilation_h - g.pad_h;
    if (row < 0 || row >= g.height) continue;
    weight_line(g, {grad, image + row * line, sums + i * g.kernel_w * g.in_channels});
  }
}

// The elements of the input a stride apart, from `start` on, in one direction. Input x meets tap j
// at result (x + padding - j * dilation) / stride, where that is whole: at taps a run apart, whose
// results, the kernel turned around, are those of a convolution with a stride of 1.
struct Phase {
  TapRun taps;
  int64_t dilation, padding, count;

  Phase(int64_t start, int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilated)
      : taps{}, dilation(dilated / std::gcd(stride, dilated)), padding(0), count(0) {
    count = (size - start + stride - 1) / stride;
    const int64_t step = stride / std::gcd(stride, dilated);
    int64_t first = 0;
    while (first < step && (start + pad - first * dilated) % stride != 0) ++first;
    if (first == step || first >= kernel) return;  // no tap meets them
    const int64_t many = (kernel - 1 - first) / step + 1;
    taps = {first + (many - 1) * step, -step, many};
    padding = (many - 1) * dilation - (start + pad - first * dilated) / stride;
  }
};

}  // namespace

bool fits_depthwise_channels(const Geometry& g) { return g.is_depthwise() && g.group_out() == 1; }

void depthwise_channels_forward(const Geometry& g, const float* input, const Tensor& weight,
                                const blas::Sink& sink, float* out) {
  const int64_t line = g.out_width * g.in_channels;
  const auto taps = packed_weight(
      weight, PackedForm::Unrolled, g.groups, g.taps() * g.in_channels,
      [&](float* to) { pack_taps(g, weight, {0, 1, g.kernel_h}, {0, 1, g.kernel_w}, to); });
  correlate(g, input, taps->data(), sink, out, {g.in_channels, line, g.out_height * line});
}

void depthwise_channels_backward_input(const Geometry& g, const float* grad, const Tensor& weight,
                                       float* out) {
  Scratch<float> taps(g.taps() * g.in_channels);
  const int64_t line = g.width * g.in_channels;
  for (int64_t y = 0; y < std::min(g.stride_h, g.height); ++y) {
    const Phase lines(y, g.height, g.kernel_h, g.stride_h, g.pad_h, g.dilation_h);
    for (int64_t x = 0; x < std::min(g.stride_w, g.width); ++x) {
      const Phase columns(x, g.width, g.kernel_w, g.stride_w, g.pad_w, g.dilation_w);
      pack_taps(g, weight, lines.taps, columns.taps, taps.data());
      Geometry phase = g;
      phase.height = g.out_height, phase.width = g.out_width;
      phase.out_height = lines.count, phase.out_width = columns.count;
      phase.kernel_h = lines.taps.count, phase.kernel_w = columns.taps.count;
      phase.stride_h = phase.stride_w = 1;
      phase.pad_h = lines.padding, phase.pad_w = columns.padding;
      phase.dilation_h = lines.dilation, phase.dilation_w = columns.dilation;
      correlate(phase, grad, taps.data(), {}, out + y * line + x * g.in_channels,
                {g.stride_w * g.in_channels, g.stride_h * line, g.height * line});
    }
  }
}

void depthwise_channels_backward_weight(const Geometry& g, const float* grad, const float* input,
                                        float* out) {
  const int64_t lines = g.batch * g.out_height, line = g.out_width * g.in_channels;
  const int64_t elements = g.taps() * g.in_channels;
  // As many sums as the sizes say, so that they do not depend on the number of threads.
  constexpr int64_t kWork = int64_t{1} << 18, kMost = 64;
  const int64_t pieces = std::clamp<int64_t>(lines * line * g.taps() / kWork, 1, kMost);
  Scratch<float> sums(pieces * elements);
  std::fill_n(sums.data(), pieces * elements, 0.0f);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t r = lines * p / pieces; r < lines * (p + 1) / pieces; ++r) {
        add_line(g, r, grad + r * line, input, sums.data() + p * elements);
      }
    }
  });
  for (int64_t i = 0; i < elements; ++i) {
    float sum = 0;
    for (int64_t p = 0; p < pieces; ++p) sum += sums.data()[p * elements + i];
    out[i % g.in_channels * g.taps() + i / g.in_channels] = sum;
  }
}

}  // namespace weft::native::conv
