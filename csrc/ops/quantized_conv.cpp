// Convolution of quantised numbers in one to three dimensions: products of unrolled rows, whose
// channels lie together, or one channel at a time over vectors of channels.
#include <climits>

#include "core/thread_pool.h"
#include "native_quantized.h"
#include "ops/byte_quads.h"
#include "ops/conv.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/vector.h"
#include "ops/views.h"

namespace weft::native {
namespace quantized {
namespace {

constexpr size_t kDims = 3;  // of an image; those in front have one row

// One direction of images, kernels and results.
struct Axis {
  int64_t size = 1, kernel = 1, stride = 1, padding = 0, dilation = 1, out = 1;
};

struct Images {
  int64_t batch, channels, groups, group_channels;  // group_channels: filled up to whole words
  Axis axes[kDims];

  int64_t positions() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t places() const { return axes[0].size * axes[1].size * axes[2].size; }
  int64_t line() const { return groups * group_channels; }  // bytes of a place
  bool is_pointwise() const {
    return std::ranges::all_of(
        axes, [](const Axis& a) { return a.kernel == 1 && a.stride == 1 && a.padding == 0; });
  }
};

Images images_of(const char* op, const Tensor& input, const Weight& w, IntList stride,
                 IntList padding, IntList dilation) {
  const auto dims = static_cast<size_t>(w.values.dim()) - 2;
  WEFT_CHECK(dims >= 1 && dims <= kDims && input.dim() == w.values.dim(), op,
             ": expected images and a weight of 3 to 5 dims, got ", AsTuple{input.sizes()}, " and ",
             AsTuple{w.values.sizes()});
  WEFT_CHECK(input.sizes()[1] == w.channels() * w.groups, op, ": expected ",
             w.channels() * w.groups, " channels, got ", AsTuple{input.sizes()});
  WEFT_CHECK(stride.size() == dims && padding.size() == dims && dilation.size() == dims, op,
             ": expected ", dims, " values of stride, padding and dilation, got ", AsTuple{stride},
             ", ", AsTuple{padding}, " and ", AsTuple{dilation});
  Images g{input.sizes()[0], input.sizes()[1], w.groups, w.aligned_channels(), {}};
  for (size_t i = 0; i < dims; ++i) {
    Axis& axis = g.axes[kDims - dims + i];
    axis = {input.sizes()[i + 2], w.values.sizes()[i + 2], stride[i], padding[i], dilation[i], 0};
    for (const int64_t each : {axis.stride, axis.dilation, axis.padding + 1, axis.kernel}) {
      WEFT_CHECK(each >= 1 && each <= INT_MAX, op,
                 ": expected strides and dilations >= 1 and "
                 "paddings >= 0, got ",
                 AsTuple{stride}, ", ", AsTuple{dilation}, " and ", AsTuple{padding});
    }
    axis.out = conv::output_size(axis.size, axis.kernel, axis.stride, axis.padding, axis.dilation);
    WEFT_CHECK(axis.out > 0 && axis.size > 0, op,
               ": expected a kernel no larger than the padded input, got ", AsTuple{input.sizes()},
               " and ", AsTuple{w.values.sizes()});
  }
  return g;
}

// The images with channels together, `line` of them for each place: those of a group are filled up
// to `aligned` with `zero`. Those that lie so are read where they lie.
Tensor by_places(const Images& g, const Tensor& input, int32_t zero, int64_t aligned,
                 int64_t line) {
  const Dims& sizes = input.sizes();
  const int64_t channels = g.channels, of_group = channels / g.groups;
  const Dims& strides = input.strides();
  bool lies_so = line == channels && strides[1] == 1 && input.offset() % 4 == 0;
  int64_t step = channels;
  for (size_t i = sizes.size() - 1; i >= 2; step *= sizes[i--]) lies_so &= strides[i] == step;
  if (lies_so && (strides[0] == step || sizes[0] == 1)) return input;
  const Tensor dense = in_order(input);
  const int64_t places = g.places(), flat[] = {g.batch, places, line};
  const Tensor out = Tensor::empty(flat, DType::U8, input.device());
  const auto* from = dense.data_as<const uint8_t>();
  auto* to = out.data_as<uint8_t>();
  if (line > channels) std::memset(to, zero, static_cast<size_t>(out.numel()));
  constexpr int64_t kBlock = 256;  // places that are written channel by channel
  const int64_t blocks = (places + kBlock - 1) / kBlock;
  parallel_for(g.batch * blocks, grain_of(line * kBlock), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kBlock, count = std::min(kBlock, places - first);
      for (int64_t c = 0; c < channels; ++c) {
        const uint8_t* plane = from + (b / blocks * channels + c) * places + first;
        uint8_t* place = to + (b / blocks * places + first) * line;
        place += c / of_group * aligned + c % of_group;
        for (int64_t p = 0; p < count; ++p) place[p * line] = plane[p];
      }
    }
  });
  return out;
}

// Copies n bytes, 16 at a time where so many may be read.
WEFT_INLINE void copy_bytes(const uint8_t* from, int64_t n, const uint8_t* behind, uint8_t* to) {
  if (behind - from < n + 16) {
    std::copy_n(from, n, to);
    return;
  }
  for (int64_t i = 0; i < n; i += 16) std::memcpy(to + i, from + i, 16);
}

// The rows that a group multiplies at positions [first, first + count); up to 16 bytes are written
// behind each.
void unroll(const Images& g, const uint8_t* images, int64_t group, int32_t zero, int64_t first,
            int64_t count, uint8_t* to) {
  const Axis &d = g.axes[0], &h = g.axes[1], &w = g.axes[2];
  const int64_t line = g.line(), channels = g.group_channels;
  const uint8_t* const behind = images + g.batch * g.places() * line;
  const bool runs = g.groups == 1 && w.dilation == 1;  // taps beside each other are one run
  int64_t at_x = first % w.out, at_y = first / w.out % h.out, at_z = first / w.out / h.out % d.out;
  const uint8_t* image = images + first / g.positions() * g.places() * line + group * channels;
  for (int64_t p = 0; p < count; ++p) {
    const int64_t x = at_x * w.stride - w.padding, y = at_y * h.stride - h.padding,
                  z = at_z * d.stride - d.padding;
    for (int64_t i = 0; i < d.kernel; ++i) {
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t slice = z + i * d.dilation, row = y + j * h.dilation;
        const bool hit = slice >= 0 && slice < d.size && row >= 0 && row < h.size;
        const uint8_t* const from = hit ? image + (slice * h.size + row) * w.size * line : images;
        if (hit && runs) {
          const int64_t low = std::clamp<int64_t>(-x, 0, w.kernel),
                        high = std::clamp<int64_t>(w.size - x, low, w.kernel);
          if (low > 0) std::memset(to, zero, static_cast<size_t>(low * channels));
          copy_bytes(from + (x + low) * line, (high - low) * channels, behind, to + low * channels);
          if (high < w.kernel) {
            std::memset(to + high * channels, zero,
                        static_cast<size_t>((w.kernel - high) * channels));
          }
          to += w.kernel * channels;
          continue;
        }
        for (int64_t k = 0; k < w.kernel; ++k, to += channels) {
          const int64_t column = x + k * w.dilation;
          if (hit && column >= 0 && column < w.size) {
            copy_bytes(from + column * line, channels, behind, to);
          } else {
            std::memset(to, zero, static_cast<size_t>(channels));
          }
        }
      }
    }
    if (++at_x < w.out) continue;
    at_x = 0;
    if (++at_y < h.out) continue;
    at_y = 0;
    if (++at_z == d.out) at_z = 0, image += g.places() * line;
  }
}

void by_products(const Images& g, const Tensor& input, const Steps& in, const Weight& weight,
                 const Result& result, uint8_t* out) {
  const Tensor x = by_places(g, input, in.zero_point, g.group_channels, g.line());
  const int64_t n = weight.group_rows(), words = weight.words(), rows = g.batch * g.positions();
  const int64_t size = blas::packed_size(words, n) + blas::strips_of(n) * blas::kStrip;
  const Ref<PackedWeight> strips = packed(weight);
  const float* const b = strips->data();
  const Sinks sinks(weight, in, result, [&](int64_t group) {
    return reinterpret_cast<const int32_t*>(b + group * size + blas::packed_size(words, n));
  });
  const auto* images = x.data_as<const uint8_t>();
  for (int64_t group = 0; group < g.groups; ++group) {
    multiply(
        rows, n, words,
        [&](int64_t first, int64_t count, float* room) -> Rows {
          if (g.is_pointwise()) {
            const uint8_t* at = images + first * g.line() + group * g.group_channels;
            return {reinterpret_cast<const float*>(at), g.line() / 4};
          }
          unroll(g, images, group, in.zero_point, first, count, reinterpret_cast<uint8_t*>(room));
          return {room, words};
        },
        b + group * size, sinks.of(group), out + group * n, weight.rows());
  }
}

#if defined(__x86_64__)

// Channels beside each other are folded 64 at a time. A vector of words has those of four taps for
// every fourth four of 16 channels: so bytes that are put together and taken apart lie.
constexpr int64_t kLanes = 64;
int64_t lane_of(int64_t channel) {
  return channel / kLanes * kLanes + channel % 16 / 4 * 16 + channel % kLanes / 16 * 4 +
         channel % 4;
}
int64_t whole_lanes(int64_t channels) { return (channels + kLanes - 1) / kLanes * kLanes; }

// Taps as bytes: fours of them in words, whose places are the lanes of channels; and behind them
// their sums (int32), by channels.
Ref<PackedWeight> packed_taps(const Weight& weight) {
  const int64_t channels = weight.rows(), taps = weight.taps(), lanes = whole_lanes(channels);
  const int64_t words = (taps + 3) / 4 * lanes;
  return packed_weight(weight.values, PackedForm::Taps, 1, words + channels, [&](float* to) {
    const Tensor dense = in_order(weight.values);
    const auto* from = dense.data_as<const int8_t>();
    auto* bytes = reinterpret_cast<int8_t*>(to);
    auto* sums = reinterpret_cast<int32_t*>(to + words);
    std::memset(to, 0, static_cast<size_t>(words) * sizeof(float));
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] = 0;
      for (int64_t t = 0; t < taps; ++t) {
        const int8_t tap = from[c * taps + t];
        bytes[(t / 4 * lanes + lane_of(c)) * 4 + t % 4] = tap;
        sums[c] += tap;
      }
    }
  });
}

struct Taps {
  const float* words;
  int64_t count, fours, lanes;  // words of a four
  const int32_t* columns;
  const float *bias, *scale;
  blas::Held held;
};

// Writes channels of one position, as many as kBytes, from channel c on; at[t] + c are those that
// tap t meets.
template <int kBytes, class By>
WEFT_INLINE void fold_channels(const Taps& taps, const uint8_t* const* at, int64_t c,
                               uint8_t* out) {
  using Words = Vector<uint32_t, kBytes>;
  using Whole = Vector<int32_t, kBytes>;
  using Floats = Vector<float, kBytes>;
  const int64_t lane = c / kLanes * kLanes + c % kLanes / 4;
  Words sums[4];
  for (int q = 0; q < 4; ++q) {
    load(sums[q], reinterpret_cast<const uint32_t*>(taps.columns) + lane + q * 16);
  }
  const auto* words = reinterpret_cast<const uint32_t*>(taps.words) + lane;
  for (int64_t four = 0; four < taps.fours; ++four, at += 4, words += taps.lanes) {
    Words x[4];
    for (int t = 0; t < 4; ++t) std::memcpy(&x[t], at[t] + c, kBytes);
    Words low[2], high[2], met[4];
    for (int h = 0; h < 2; ++h) {
      blas::low_bytes(low[h], x[2 * h], x[2 * h + 1]);
      blas::high_bytes(high[h], x[2 * h], x[2 * h + 1]);
    }
    blas::low_halves(met[0], low[0], low[1]), blas::high_halves(met[1], low[0], low[1]);
    blas::low_halves(met[2], high[0], high[1]), blas::high_halves(met[3], high[0], high[1]);
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      Words by;
      load(by, words + q * 16);
      By::add(sums[q], met[q], by);
    }
  }
  Whole steps[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    Floats bias, scale, x = __builtin_convertvector(reinterpret_cast<Whole>(sums[q]), Floats);
    load(bias, taps.bias + lane + q * 16), load(scale, taps.scale + lane + q * 16);
    x = (x + bias) * scale;
    blas::rounded_words(steps[q], x, taps.held);
  }
  Whole bytes;
  blas::joined(bytes, steps);
  std::memcpy(out + c, &bytes, kBytes);
}

// All channels of a position.
template <int kWidest, class By>
WEFT_INLINE void fold_position(const Taps& taps, const uint8_t** at, int64_t channels,
                               uint8_t* out) {
  int64_t c = 0;
  for (; c + kWidest <= channels; c += kWidest) fold_channels<kWidest, By>(taps, at, c, out);
  if constexpr (kWidest > 32) {
    if (c + 32 <= channels) fold_channels<32, By>(taps, at, c, out), c += 32;
  }
  if constexpr (kWidest > 16) {
    if (c + 16 <= channels) fold_channels<16, By>(taps, at, c, out), c += 16;
  }
  if (c == channels) return;
  uint8_t last[kLanes + 16];
  fold_channels<16, By>(taps, at, c, last - c);
  std::copy_n(last, channels - c, out + c);
}

// The positions of one line of results: y and z of a position are the same.
template <int kWidest, class By>
WEFT_INLINE void fold_line(const Images& g, const Taps& taps, const uint8_t* images, int64_t line,
                           const uint8_t* border, int64_t row, const uint8_t** at, uint8_t* out) {
  const Axis &d = g.axes[0], &h = g.axes[1], &w = g.axes[2];
  const int64_t top = row % h.out * h.stride - h.padding,
                front = row / h.out % d.out * d.stride - d.padding;
  const uint8_t* const image = images + row / h.out / d.out * g.places() * line;
  bool was_inside = false;  // all columns were: then the taps move on
  for (int64_t x = 0; x < w.out; ++x, out += g.channels) {
    const uint8_t** tap = at;
    const int64_t left = x * w.stride - w.padding;
    const bool all_inside = left >= 0 && left + (w.kernel - 1) * w.dilation < w.size;
    if (all_inside && was_inside) {
      for (int64_t t = 0; t < taps.count; ++t) at[t] += at[t] == border ? 0 : w.stride * line;
      fold_position<kWidest, By>(taps, at, g.channels, out);
      continue;
    }
    was_inside = all_inside;
    for (int64_t i = 0; i < d.kernel; ++i) {
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t slice = front + i * d.dilation, y = top + j * h.dilation;
        const bool hit = slice >= 0 && slice < d.size && y >= 0 && y < h.size;
        const uint8_t* const from = hit ? image + (slice * h.size + y) * w.size * line : image;
        int64_t column = left;
        for (int64_t k = 0; k < w.kernel; ++k, column += w.dilation) {
          const bool inside = hit && column >= 0 && column < w.size;
          *tap++ = inside ? from + column * line : border;
        }
      }
    }
    fold_position<kWidest, By>(taps, at, g.channels, out);
  }
}

void by_channels(const Images& g, const Tensor& input, const Steps& in, const Weight& weight,
                 const Result& result, uint8_t* out) {
  const int64_t channels = g.channels, line = (channels + 15) / 16 * 16,
                lanes = whole_lanes(channels), fours = (weight.taps() + 3) / 4;
  const Tensor x = by_places(g, input, in.zero_point, 1, line);
  const Ref<PackedWeight> words = packed_taps(weight);
  const auto* sums = reinterpret_cast<const int32_t*>(words->data() + fours * lanes);
  const Sinks sinks(weight, in, result, [&](int64_t group) { return sums + group; });
  std::vector<int32_t> columns(static_cast<size_t>(lanes));
  std::vector<float> bias(columns.size()), scale(columns.size());
  for (int64_t c = 0; c < channels; ++c) {
    const blas::Requantised of = sinks.of(c);
    const auto lane = static_cast<size_t>(lane_of(c));
    columns[lane] = *of.columns, bias[lane] = *of.bias, scale[lane] = *of.scale;
  }
  const Taps taps{words->data(),  weight.taps(), fours,        lanes,
                  columns.data(), bias.data(),   scale.data(), sinks.of(0).held};
  const std::vector<uint8_t> border(static_cast<size_t>(line), static_cast<uint8_t>(in.zero_point));
  const auto* images = x.data_as<const uint8_t>();
  const int64_t rows = g.batch * g.axes[0].out * g.axes[1].out, width = g.axes[2].out * channels;
  const bool by_fours = blas::multiplies(blas::Elements::Int8Quads);
  parallel_for(rows, grain_of(width * weight.taps() / 16), [&](int64_t begin, int64_t end) {
    std::vector<const uint8_t*> at(static_cast<size_t>(fours * 4), border.data());
    at_level(
        [](auto bytes, const Images* of, const Taps* all, const uint8_t* from, int64_t step,
           const uint8_t* outside, int64_t row, int64_t last, const uint8_t** places, uint8_t* to,
           bool fours_at_once) WEFT_INLINED {
          for (; row < last; ++row) {
            uint8_t* const here = to + row * of->axes[2].out * of->channels;
            if (bytes() == 64 && fours_at_once) {
              fold_line<bytes(), blas::ByFours>(*of, *all, from, step, outside, row, places, here);
            } else {
              fold_line<bytes(), blas::ByHalves>(*of, *all, from, step, outside, row, places, here);
            }
          }
        },
        &g, &taps, images, line, border.data(), begin, end, at.data(), out, by_fours);
  });
}

bool goes_by_channels_alone(const Images& g, const Weight& weight) {
  return g.groups > 1 && g.groups == g.channels && weight.group_rows() == 1 && !weight.has_zeros();
}
#else
bool goes_by_channels_alone(const Images&, const Weight&) { return false; }
void by_channels(const Images&, const Tensor&, const Steps&, const Weight&, const Result&,
                 uint8_t*) {}
#endif

}  // namespace
}  // namespace quantized

using quantized::by_channels;
using quantized::by_products;
using quantized::Result;
using quantized::Steps;

Tensor _quantized_conv(const Tensor& input, double scale, int64_t zero_point, const Tensor& weight,
                       const Tensor& scales, const Tensor& zero_points, const Tensor& bias,
                       IntList stride, IntList padding, IntList dilation, int64_t groups, bool relu,
                       double out_scale, int64_t out_zero_point) {
  const char* op = "_quantized_conv";
  const quantized::Weight w(op, weight, scales, zero_points, bias, groups);
  quantized::check_bytes(op, input);
  const quantized::Images g = quantized::images_of(op, input, w, stride, padding, dilation);
  Dims sizes{g.batch};
  for (size_t i = quantized::kDims - (static_cast<size_t>(input.dim()) - 2); i < quantized::kDims;
       ++i) {
    sizes.push_back(g.axes[i].out);
  }
  sizes.push_back(w.rows());  // channels lie together, behind the other dimensions
  const Tensor out = Tensor::empty(sizes, DType::U8, input.device(), op);
  const Steps in = quantized::checked_steps(op, scale, zero_point);
  const Result result{true, quantized::checked_steps(op, out_scale, out_zero_point), relu};
  const bool alone = quantized::goes_by_channels_alone(g, w);
  if (out.numel() > 0) {
    (alone ? by_channels : by_products)(g, input, in, w, result, out.data_as<uint8_t>());
  }
  return out.with_layout(views::movedim(out.layout(), -1, 1));
}

}  // namespace weft::native
