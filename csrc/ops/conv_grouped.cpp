#include "ops/conv_grouped.h"

#include <cstring>
#include <numeric>

#include "core/thread_pool.h"
#include "ops/conv_channels.h"
#include "ops/packed_weight.h"
#include "ops/scratch.h"
#include "ops/shuffle.h"

namespace weft::native::conv {
namespace {

template <int Lanes>
using Channels = Vector<float, Lanes * sizeof(float)>;

// The given channel of each group, in all lanes of the group.
template <int Group, int Channel>
struct OfGroup {
  static constexpr int at(int lane) { return lane / Group * Group + Channel; }
};
template <int Group, int Channel, class Vector>
WEFT_INLINE void spread(const Vector& from, Vector& to) {
  if constexpr (Group == 1) {
    to = from;
  } else {
    shuffles::shuffle<OfGroup<Group, Channel>, float>(from, from, to);
  }
}

// What one line of the result reads: `taps` lie [tap][channel of a group][channel of the result],
// the image [line][column][channel].
struct ChannelLine {
  const float *image, *taps;
  blas::Sink sink;
  float* out;
  int64_t out_step;               // from a column of the result to the next
  int64_t first_row, begin, end;  // the first tap's row in the image; taps [begin, end) are inside
};

// sums += values * taps, channels of a group in turn from `Channel` on.
template <int Group, int Channel, int Count, class Vector>
WEFT_INLINE void add_tap(const Vector (&values)[Count], const float* taps, int64_t channels,
                         Vector (&sums)[Count]) {
  Vector tap, of;
  load(tap, taps + Channel * channels);
  for (int k = 0; k < Count; ++k) {
    spread<Group, Channel>(values[k], of);
    sums[k] += of * tap;
  }
  if constexpr (Channel + 1 < Group) add_tap<Group, Channel + 1>(values, taps, channels, sums);
}

// Count neighbours from column x on, of which taps [left, right) of a line lie inside.
template <int Lanes, int Group, int Count>
WEFT_INLINE void channel_columns(const Geometry& g, const ChannelLine& line, int64_t x,
                                 int64_t left, int64_t right) {
  using Vector = Channels<Lanes>;
  const int64_t channels = g.in_channels, step = g.stride_w * channels;
  const float* image = line.image + (x * g.stride_w - g.pad_w) * channels;
  for (int64_t next = 0; next < channels; next += Lanes) {
    // The last vector starts early enough to be whole; what it writes again is the same.
    const int64_t c = std::min(next, channels - Lanes);
    Vector sums[Count], values[Count], more;
    for (Vector& sum : sums) sum = Vector{};
    if (line.sink.bias) load(sums[0], line.sink.bias + c);
    for (int k = 1; k < Count; ++k) sums[k] = sums[0];
    for (int64_t i = line.begin; i < line.end; ++i) {
      const float* row = image + (line.first_row + i * g.dilation_h) * g.width * channels + c;
      for (int64_t j = left; j < right; ++j) {
        const float* from = row + j * g.dilation_w * channels;
        for (int k = 0; k < Count; ++k) load(values[k], from + k * step);
        add_tap<Group, 0>(values, line.taps + (i * g.kernel_w + j) * Group * channels + c, channels,
                          sums);
      }
    }
    for (int k = 0; k < Count; ++k) {
      const int64_t at = (x + k) * line.out_step + c;
      if (line.sink.residual) {
        load(more, line.sink.residual + at);
        sums[k] += more;
      }
      if (line.sink.relu) blas::hold(sums[k], line.sink.high);
      store(sums[k], line.out + at);
    }
  }
}

// The first place from 0 to `count` whose distance, `step` apart from `start`, is at least 0.
WEFT_INLINE int64_t first_inside(int64_t start, int64_t step, int64_t count) {
  return std::clamp<int64_t>(start >= 0 ? 0 : (-start + step - 1) / step, 0, count);
}

template <int Lanes, int Group>
WEFT_INLINE void channel_line_body(const Geometry& g, const ChannelLine& line) {
  constexpr int kColumns = 4;
  // Columns [low, high) meet all taps.
  const int64_t reach = (g.kernel_w - 1) * g.dilation_w;
  const int64_t low = first_inside(-g.pad_w, g.stride_w, g.out_width);
  const int64_t high =
      std::max(low, first_inside(reach - g.pad_w - g.width, g.stride_w, g.out_width));
  for (int64_t x = 0; x < g.out_width;) {
    if (x >= low && x + kColumns <= high) {
      channel_columns<Lanes, Group, kColumns>(g, line, x, 0, g.kernel_w);
      x += kColumns;
      continue;
    }
    const int64_t column = x * g.stride_w - g.pad_w;
    const int64_t left = first_inside(column, g.dilation_w, g.kernel_w);
    const int64_t right = first_inside(column - g.width, g.dilation_w, g.kernel_w);
    channel_columns<Lanes, Group, 1>(g, line, x++, left, right);
  }
}

// A line of the result's gradient, and the line of the image that it meets at a line of the kernel;
// sums: the gradients of its taps, as a ChannelLine's lie.
struct WeightLine {
  const float *grad, *image;
  float* sums;
};

// sums[channel of a group] += grad * values.
template <int Group, int Channel, class Vector>
WEFT_INLINE void add_products(const Vector& grad, const Vector& values, Vector* sums) {
  Vector of;
  spread<Group, Channel>(values, of);
  sums[Channel] += grad * of;
  if constexpr (Channel + 1 < Group) add_products<Group, Channel + 1>(grad, values, sums);
}

// Adds columns [begin, end) to `Count` taps from `first` on; all lie inside.
template <int Lanes, int Group, int Count>
WEFT_INLINE void add_columns(const Geometry& g, const WeightLine& line, int64_t first,
                             int64_t begin, int64_t end) {
  using Vector = Channels<Lanes>;
  if (begin >= end) return;
  const int64_t step = g.stride_w * g.in_channels, tap_stride = g.dilation_w * g.in_channels;
  const float* grad = line.grad + begin * g.in_channels;
  const float* image =
      line.image + (begin * g.stride_w + first * g.dilation_w - g.pad_w) * g.in_channels;
  float* to = line.sums + first * Group * g.in_channels;
  Vector sums[Count * Group], with, values;
  // Unrolled, or the sums would lie in memory.
#pragma GCC unroll 16
  for (int k = 0; k < Count * Group; ++k) load(sums[k], to + k * g.in_channels);
  for (int64_t x = begin; x < end; ++x, image += step, grad += g.in_channels) {
    load(with, grad);
    for (int k = 0; k < Count; ++k) {
      load(values, image + k * tap_stride);
      add_products<Group, 0>(with, values, sums + k * Group);
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < Count * Group; ++k) store(sums[k], to + k * g.in_channels);
}

// Vectors of channels from c on, as many as are whole; returns the channel after them.
template <int Lanes, int Group>
WEFT_INLINE int64_t weight_line_body(const Geometry& g, const WeightLine& whole, int64_t c) {
  constexpr int kTaps = Group <= 4 ? 3 : 1;  // whose sums fill the registers
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
      add_columns<Lanes, Group, kTaps>(g, line, tap, low, high);
      for (int64_t k = tap; k < stop; ++k) {
        const Range own = hits(k);
        add_columns<Lanes, Group, 1>(g, line, k, own.first, std::min(low, own.last));
        add_columns<Lanes, Group, 1>(g, line, k, high, own.last);
      }
    }
  }
  return c;
}

constexpr int kGroupLanes = 16;
template <int Group>
using ChannelsEach = std::integral_constant<int, Group>;

// fn(ChannelsEach) of a group's channels.
template <class Fn>
void with_group(const Geometry& g, Fn&& fn) {
  switch (g.group_in()) {
    case 2:
      return fn(ChannelsEach<2>{});
    case 4:
      return fn(ChannelsEach<4>{});
    case 8:
      return fn(ChannelsEach<8>{});
    default:
      return fn(ChannelsEach<1>{});
  }
}
// The channels of a register, or of a group that has more.
template <int Bytes, int Group>
constexpr int kLanesOf = std::max<int>(Bytes / sizeof(float), Group);

void channel_line(const Geometry& g, const ChannelLine& line) {
  with_group(g, [&]<int Group>(ChannelsEach<Group>) {
    at_level([&](auto bytes) WEFT_INLINED {
      constexpr int kLanes = kLanesOf<bytes(), Group>;
      if (Group > 1 || g.in_channels >= kLanes) return channel_line_body<kLanes, Group>(g, line);
      if (g.in_channels >= 4) return channel_line_body<4, 1>(g, line);
      channel_line_body<1, 1>(g, line);
    });
  });
}
void weight_line(const Geometry& g, const WeightLine& line) {
  with_group(g, [&]<int Group>(ChannelsEach<Group>) {
    at_level([&](auto bytes) WEFT_INLINED {
      const int64_t c = weight_line_body<kLanesOf<bytes(), Group>, Group>(g, line, 0);
      if constexpr (Group == 1) {
        weight_line_body<1, 1>(g, line, weight_line_body<4, 1>(g, line, c));
      }
    });
  });
}

// Where the results of a convolution lie: from a column, a line, an image to the next.
struct Steps {
  int64_t column, line, image;
};

// out = sink(convolution of input); taps as a ChannelLine's lie.
void correlate(const Geometry& g, const float* input, const float* taps, const blas::Sink& sink,
               float* out, const Steps& steps) {
  const int64_t work = g.depth() * g.out_width * g.in_channels;
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

// What leads from the input to the results or, turned, from these to the input.
void pack_taps(const Geometry& g, const Tensor& weight, bool turned, const TapRun& lines,
               const TapRun& columns, float* to) {
  const Taps t = taps_of(g, weight);
  const int64_t each = g.group_in();
  for (int64_t tap = 0; tap < lines.count * columns.count; ++tap) {
    const float* from = t.data + (lines.first + tap / columns.count * lines.step) * t.row +
                        (columns.first + tap % columns.count * columns.step) * t.column;
    for (int64_t k = 0; k < each; ++k, to += g.in_channels) {
      for (int64_t c = 0; c < g.in_channels; ++c) {
        const int64_t first = c / each * each, own = c % each;
        to[c] = turned ? from[(first + k) * t.out + own * t.in] : from[c * t.out + k * t.in];
      }
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
    float* const taps = sums + i * g.kernel_w * g.group_in() * g.in_channels;
    weight_line(g, {grad, image + row * line, taps});
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
    const int64_t candidates = std::min(step, kernel);
    int64_t first = 0;
    while (first < candidates && (start + pad - first * dilated) % stride != 0) ++first;
    if (first == candidates) return;  // no tap meets them
    const int64_t many = (kernel - 1 - first) / step + 1;
    taps = {first + (many - 1) * step, -step, many};
    padding = (many - 1) * dilation - (start + pad - first * dilated) / stride;
  }
};

}  // namespace

bool fits_grouped(const Geometry& g) {
  const int64_t each = g.group_in();
  if (g.groups == 1 || each != g.group_out()) return false;
  return each == 1 || ((each == 2 || each == 4 || each == 8) && g.in_channels % kGroupLanes == 0);
}

void grouped_forward(const Geometry& g, const float* input, const Tensor& weight,
                     const blas::Sink& sink, float* out) {
  const int64_t line = g.out_width * g.in_channels;
  const auto taps = packed_weight(
      weight, PackedForm::Grouped, g.groups, g.depth() * g.in_channels,
      [&](float* to) { pack_taps(g, weight, false, {0, 1, g.kernel_h}, {0, 1, g.kernel_w}, to); });
  correlate(g, input, taps->data(), sink, out, {g.in_channels, line, g.out_height * line});
}

void grouped_backward_input(const Geometry& g, const float* grad, const Tensor& weight,
                            float* out) {
  Scratch<float> taps(g.depth() * g.in_channels);
  const int64_t line = g.width * g.in_channels;
  for (int64_t y = 0; y < std::min(g.stride_h, g.height); ++y) {
    const Phase lines(y, g.height, g.kernel_h, g.stride_h, g.pad_h, g.dilation_h);
    for (int64_t x = 0; x < std::min(g.stride_w, g.width); ++x) {
      const Phase columns(x, g.width, g.kernel_w, g.stride_w, g.pad_w, g.dilation_w);
      pack_taps(g, weight, true, lines.taps, columns.taps, taps.data());
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

void grouped_backward_weight(const Geometry& g, const float* grad, const float* input, float* out) {
  const int64_t lines = g.batch * g.out_height, line = g.out_width * g.in_channels;
  const int64_t elements = g.depth() * g.in_channels;
  // As many sums as the sizes say, so that they do not depend on the number of threads.
  constexpr int64_t kWork = int64_t{1} << 20, kMost = 32;
  const int64_t pieces = std::clamp<int64_t>(lines * line * g.depth() / kWork, 1, kMost);
  Scratch<float> sums(pieces * elements);
  std::fill_n(sums.data(), pieces * elements, 0.0f);
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t r = lines * p / pieces; r < lines * (p + 1) / pieces; ++r) {
        add_line(g, r, grad + r * line, input, sums.data() + p * elements);
      }
    }
  });
  float* const sum = sums.data();
  for (int64_t p = 1; p < pieces; ++p) {
    const float* more = sum + p * elements;
    for (int64_t i = 0; i < elements; ++i) sum[i] += more[i];
  }
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t tap = i / g.in_channels / g.group_in(), own = i / g.in_channels % g.group_in();
    out[(i % g.in_channels * g.group_in() + own) * g.taps() + tap] = sum[i];
  }
}

}  // namespace weft::native::conv
