// Convolution of quantised numbers in one to three dimensions: products of unrolled rows, whose
// channels lie together, or one channel at a time over vectors of channels.
#include <climits>

#include "core/thread_pool.h"
#include "native_quantized.h"
#include "ops/conv.h"
#include "ops/packed_tile.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/vector.h"
#include "ops_views.h"

namespace weft::native {
namespace {

using quantized::Result;
using quantized::Steps;
using quantized::Weight;
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
    return std::ranges::all_of(axes, [](const Axis& a) {
      return a.kernel == 1 && a.stride == 1 && a.padding == 0;
    });
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
      WEFT_CHECK(each >= 1 && each <= INT_MAX, op, ": expected strides and dilations >= 1 and "
                 "paddings >= 0, got ", AsTuple{stride}, ", ", AsTuple{dilation}, " and ",
                 AsTuple{padding});
    }
    axis.out = conv::output_size(axis.size, axis.kernel, axis.stride, axis.padding, axis.dilation);
    WEFT_CHECK(axis.out > 0 && axis.size > 0, op,
               ": expected a kernel no larger than the padded input, got ", AsTuple{input.sizes()},
               " and ", AsTuple{w.values.sizes()});
  }
  return g;
}

// The images with channels together, those of each group filled up to whole words with `zero`.
// Those that lie so are read where they lie.
Tensor by_places(const Images& g, const Tensor& input, int32_t zero, bool is_filled) {
  const Dims& sizes = input.sizes();
  const int64_t channels = g.channels, of_group = channels / g.groups,
                aligned = is_filled ? g.group_channels : of_group, line = g.groups * aligned;
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
  parallel_for(g.batch * places, grain_of(line), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const uint8_t* at = from + p / places * channels * places + p % places;
      uint8_t* place = to + p * line;
      for (int64_t group = 0; group < g.groups; ++group, place += aligned) {
        int64_t c = 0;
        for (; c < of_group; ++c, at += places) place[c] = *at;
        for (; c < aligned; ++c) place[c] = static_cast<uint8_t>(zero);
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
  for (int64_t p = first; p < first + count; ++p) {
    const int64_t x = p % w.out * w.stride - w.padding, y = p / w.out % h.out * h.stride - h.padding,
                  z = p / w.out / h.out % d.out * d.stride - d.padding;
    const uint8_t* const image =
        images + p / g.positions() * g.places() * line + group * channels;
    for (int64_t i = 0; i < d.kernel; ++i) {
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t slice = z + i * d.dilation, row = y + j * h.dilation;
        const bool hit = slice >= 0 && slice < d.size && row >= 0 && row < h.size;
        const uint8_t* const from =
            hit ? image + (slice * h.size + row) * w.size * line : images;
        if (hit && runs) {
          const int64_t low = std::clamp<int64_t>(-x, 0, w.kernel),
                        high = std::clamp<int64_t>(w.size - x, low, w.kernel);
          if (low > 0) std::memset(to, zero, static_cast<size_t>(low * channels));
          copy_bytes(from + (x + low) * line, (high - low) * channels, behind, to + low * channels);
          if (high < w.kernel) {
            std::memset(to + high * channels, zero, static_cast<size_t>((w.kernel - high) * channels));
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
  }
}

void by_products(const Images& g, const Tensor& input, const Steps& in, const Weight& weight,
                 const Result& result, uint8_t* out) {
  const Tensor x = by_places(g, input, in.zero_point, true);
  const int64_t n = weight.group_rows(), words = weight.words(), rows = g.batch * g.positions();
  const int64_t size = blas::packed_size(words, n) + blas::strips_of(n) * blas::kStrip;
  const Ref<PackedWeight> strips = quantized::packed(weight);
  const float* const b = strips->data();
  const quantized::Sinks sinks(weight, in, result, [&](int64_t group) {
    return reinterpret_cast<const int32_t*>(b + group * size + blas::packed_size(words, n));
  });
  const auto* images = x.data_as<const uint8_t>();
  for (int64_t group = 0; group < g.groups; ++group) {
    quantized::multiply(
        rows, n, words,
        [&](int64_t first, int64_t count, float* room) -> quantized::Rows {
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

// Taps of channels as numbers whose products fit 32 bits, tap by tap, less the zero points.
std::vector<int32_t> taps_of(const Weight& weight) {
  const Tensor dense = in_order(weight.values);
  const auto* from = dense.data_as<const int8_t>();
  const int64_t channels = weight.rows(), taps = weight.taps();
  std::vector<int32_t> to(static_cast<size_t>(channels * taps + blas::kStrip));
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t t = 0; t < taps; ++t) {
      to[static_cast<size_t>(t * channels + c)] = from[c * taps + t] - weight.zero(c);
    }
  }
  return to;
}

struct Channel {
  const int32_t *taps, *columns;
  const float *bias, *scale;
};

// One position: at[t] are the channels that tap t meets.
template <int kLanes>
WEFT_INLINE void fold_position(const uint8_t* const* at, int64_t taps, int64_t channels, int64_t c,
                               const Channel& of, const blas::Requantised& to, uint8_t* out) {
  using Bytes = blas::BytesOf<kLanes>::type;
  using Whole = Vector<int32_t, kLanes * 4>;
  using Floats = Vector<float, kLanes * 4>;
  Whole sum;
  load(sum, of.columns + c);
  for (int64_t t = 0; t < taps; ++t) {
    Bytes bytes;
    Whole by;
    std::memcpy(&bytes, at[t] + c, kLanes);
    load(by, of.taps + t * channels + c);
    sum += __builtin_convertvector(bytes, Whole) * by;
  }
  Floats bias, scale;
  load(bias, of.bias + c), load(scale, of.scale + c);
  const Floats x = (__builtin_convertvector(sum, Floats) + bias) * scale;
  const auto bytes = blas::rounded(x, to.held);
  std::memcpy(out + c, &bytes, kLanes);
}

void by_channels(const Images& g, const Tensor& input, const Steps& in, const Weight& given,
                 const Result& result, uint8_t* out) {
  const Tensor x = by_places(g, input, in.zero_point, false);
  const std::vector<int32_t> taps = taps_of(given);
  const int64_t channels = g.channels, count = given.taps();
  std::vector<int32_t> sums(static_cast<size_t>(channels));
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += taps[t * channels + c];
  }
  Weight weight = given;  // whose zero points the taps have
  weight.without_zeros();
  const quantized::Sinks sinks(weight, in, result, [&](int64_t group) { return &sums[group]; });
  const quantized::Columns line = sinks.joined(channels);
  const Channel of{taps.data(), line.columns.data(), line.bias.data(), line.scale.data()};
  const std::vector<uint8_t> border(static_cast<size_t>(channels) + 64,
                                    static_cast<uint8_t>(in.zero_point));
  const auto* images = x.data_as<const uint8_t>();
  const Axis &d = g.axes[0], &h = g.axes[1], &w = g.axes[2];
  const blas::Requantised to = sinks.of(0);
  parallel_for(g.batch * g.positions(), grain_of(channels * count), [&](int64_t begin, int64_t end) {
    std::vector<const uint8_t*> at(static_cast<size_t>(count));
    for (int64_t p = begin; p < end; ++p) {
      const int64_t left = p % w.out * w.stride - w.padding,
                    top = p / w.out % h.out * h.stride - h.padding,
                    front = p / w.out / h.out % d.out * d.stride - d.padding;
      const uint8_t* const image = images + p / g.positions() * g.places() * channels;
      size_t t = 0;
      for (int64_t i = 0; i < d.kernel; ++i) {
        for (int64_t j = 0; j < h.kernel; ++j) {
          for (int64_t k = 0; k < w.kernel; ++k, ++t) {
            const int64_t slice = front + i * d.dilation, row = top + j * h.dilation,
                          column = left + k * w.dilation;
            const bool hit = slice >= 0 && slice < d.size && row >= 0 && row < h.size &&
                             column >= 0 && column < w.size;
            at[t] = hit ? image + ((slice * h.size + row) * w.size + column) * channels
                        : border.data();
          }
        }
      }
      at_level([](auto, const uint8_t* const* from, int64_t n, int64_t all, const Channel* each,
                  const blas::Requantised* into, uint8_t* result_at) WEFT_INLINED {
        int64_t c = 0;
        for (; c + 16 <= all; c += 16) fold_position<16>(from, n, all, c, *each, *into, result_at);
        if (c < all && all >= 16) {
          fold_position<16>(from, n, all, all - 16, *each, *into, result_at);
        } else {
          for (; c + 4 <= all; c += 4) fold_position<4>(from, n, all, c, *each, *into, result_at);
          if (c < all && all >= 4) fold_position<4>(from, n, all, all - 4, *each, *into, result_at);
        }
      }, at.data(), count, channels, &of, &to, out + p * channels);
    }
  });
}

}  // namespace

Tensor _quantized_conv(const Tensor& input, double scale, int64_t zero_point, const Tensor& weight,
                       const Tensor& scales, const Tensor& zero_points, const Tensor& bias,
                       IntList stride, IntList padding, IntList dilation, int64_t groups, bool relu,
                       double out_scale, int64_t out_zero_point) {
  const char* op = "_quantized_conv";
  const Weight w(op, weight, scales, zero_points, bias, groups);
  quantized::check_bytes(op, input);
  const Images g = images_of(op, input, w, stride, padding, dilation);
  // Sizes with channels last, in the order of dimensions that programs see.
  Dims dense{g.batch}, order{0, input.dim() - 1};
  for (size_t i = kDims - (static_cast<size_t>(input.dim()) - 2); i < kDims; ++i) {
    order.push_back(static_cast<int64_t>(dense.size()));
    dense.push_back(g.axes[i].out);
  }
  dense.push_back(w.rows());
  const Tensor out = Tensor::empty(dense, DType::U8, input.device(), op);
  const Steps in = quantized::checked_steps(op, scale, zero_point);
  const Result result{true, quantized::checked_steps(op, out_scale, out_zero_point), relu};
  const bool alone = groups > 1 && w.channels() == 1 && w.group_rows() == 1 && g.channels >= 4;
  if (out.numel() > 0) {
    (alone ? by_channels : by_products)(g, input, in, w, result, out.data_as<uint8_t>());
  }
  return ops::permute(out, order);
}

}  // namespace weft::native
