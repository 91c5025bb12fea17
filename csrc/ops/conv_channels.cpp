#include "ops/conv_channels.h"

#include "core/thread_pool.h"
#include "ops/conv_winograd.h"
#include "ops/packed_weight.h"
#include "ops/packed_words.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"
#include "ops/transpose.h"

namespace weft::native::conv {

namespace {

Taps taps_at(const Geometry& g, const float* data, const Dims& strides) {
  return {data, g.group_out() * strides[0], strides[0], strides[1], strides[2], strides[3]};
}

}  // namespace

Taps taps_of(const Geometry& g, const Tensor& weight) {
  return taps_at(g, weight.data_as<const float>(), weight.strides());
}

namespace {

// Row (i * kernel_w + j) * in + c of a group's strips is tap (i, j) of channel c.
void pack(const Geometry& g, const Taps& t, float* to) {
  constexpr int64_t kStrip = blas::kStrip;
  const int64_t strips = blas::strips_of(g.group_out()), size = g.depth() * kStrip;
  parallel_for(g.groups * strips, 4096 / size + 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = s % strips * kStrip;
      const int64_t count = std::clamp<int64_t>(g.group_out() - first, 0, kStrip);
      const float* from = t.data + s / strips * t.of_group + first * t.out;
      float* line = to + s * size;
      for (int64_t tap = 0; tap < g.taps(); ++tap) {
        const float* at = from + tap / g.kernel_w * t.row + tap % g.kernel_w * t.column;
        blas::pack_rows<float>({at, t.in, t.out}, g.group_in(), count, line, kStrip);
        for (int64_t c = 0; c < g.group_in(); ++c, line += kStrip) {
          std::fill(line + count, line + kStrip, 0.0f);
        }
      }
    }
  });
}

// The same for a bfloat16 weight, by a geometry that counts pairs of channels.
void pack_pairs(const Geometry& g, const Tensor& weight, float* to) {
  Scratch<uint32_t> pairs(g.out_channels * g.depth());
  const auto* data = reinterpret_cast<const uint16_t*>(weight.data_as<const BFloat16>());
  const Dims& s = weight.strides();
  uint32_t* pair = pairs.data();
  for (int64_t o = 0; o < g.out_channels; ++o) {
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      const uint16_t* at = data + o * s[0] + tap / g.kernel_w * s[2] + tap % g.kernel_w * s[3];
      for (int64_t c = 0; c < g.group_in(); ++c, at += 2 * s[1])
        *pair++ = blas::paired(at[0], at[s[1]]);
    }
  }
  const int64_t line = g.kernel_w * g.group_in();
  pack(g,
       taps_at(g, reinterpret_cast<const float*>(pairs.data()), {g.depth(), 1, line, g.group_in()}),
       to);
}

constexpr int64_t kChunk = 8;  // floats that are copied at once

// Copies from[begin, end) to `to`, with zeros outside of [low, high).
void copy_inside(const float* from, int64_t begin, int64_t end, int64_t low, int64_t high,
                 float* to) {
  int64_t i = begin;
  for (; i < end && i < low; ++i) *to++ = 0;
  const int64_t last = std::min(end, high);
  for (; i + kChunk <= last; i += kChunk, to += kChunk) {
    std::memcpy(to, from + i, kChunk * sizeof(float));
  }
  for (; i < last; ++i) *to++ = from[i];
  for (; i < end; ++i) *to++ = 0;
}

// Taps that lie side by side in the image are one run.
int64_t run_of(const Geometry& g) { return g.dilation_w == 1 && g.groups == 1 ? g.kernel_w : 1; }

// Copies `count` runs of `size` elements each, and up to a chunk behind each.
void copy_runs(const float* from, int64_t from_step, int64_t count, int64_t size, float* to,
               int64_t to_step) {
  for (; count > 0; --count, from += from_step, to += to_step) {
    for (int64_t e = 0; e < size; e += kChunk)
      std::memcpy(to + e, from + e, kChunk * sizeof(float));
  }
}

// Elements [begin, end) of the rows of the unrolled image for `count` positions from (y, x) on, all
// of one line of `image`, behind which lies as much as `behind` ends at. What is written behind
// `end` is no element.
void unroll_line(const Geometry& g, const float* image, const float* behind, int64_t y, int64_t x,
                 int64_t count, int64_t begin, int64_t end, float* to, int64_t line) {
  const int64_t in = g.group_in(), step = g.stride_w * g.in_channels;
  const int64_t run = run_of(g), size = run * in, runs = g.kernel_w / run;
  const int64_t first = begin / size;
  int64_t i = first / runs, j = first % runs * run;
  for (int64_t at = first * size - begin; at < end - begin; at += size) {
    const int64_t row = y * g.stride_h + i * g.dilation_h - g.pad_h;
    const int64_t left = x * g.stride_w + j * g.dilation_w - g.pad_w;
    const int64_t start = std::max(-at, int64_t{0}), stop = std::min(end - begin - at, size);
    const bool hit = row >= 0 && row < g.height, whole = hit && start == 0 && stop == size;
    const float* from = image + (row * g.width + left) * g.in_channels;
    float* run_to = to + at;
    for (int64_t p = 0, n; p < count; p += n, from += n * step, run_to += n * line) {
      // Runs from here on that lie in the image, and whose chunks lie in memory.
      const int64_t column = left + p * g.stride_w, last = g.width - run - column;
      const int64_t room = behind - from - size - kChunk;
      n = whole && column >= 0 && last >= 0 && room >= 0
              ? std::min({count - p, last / g.stride_w + 1, room / step + 1})
              : 0;
      copy_runs(from, step, n, size, run_to, line);
      if (n > 0) continue;
      n = 1;
      const int64_t low = hit ? std::clamp<int64_t>(-column, 0, run) * in : size;
      const int64_t high = hit ? std::clamp<int64_t>(last + run, 0, run) * in : size;
      copy_inside(from, start, stop, low, high, run_to + start);
    }
    if ((j += run) == g.kernel_w) j = 0, ++i;
  }
}

// Elements [begin, end) of `count` rows of it.
void unroll_rows(const Geometry& g, const float* input, int64_t first, int64_t count, int64_t begin,
                 int64_t end, float* to, int64_t line) {
  constexpr int64_t kMost = 32;  // rows that are written in several passes: they stay in the cache
  const int64_t of_image = g.in_plane() * g.in_channels;
  const float* const behind = input + g.batch * of_image - (g.in_channels - g.group_in());
  for (int64_t here; count > 0; first += here, count -= here, to += here * line) {
    const int64_t y = first / g.out_width % g.out_height, x = first % g.out_width;
    here = std::min({count, kMost, g.out_width - x});
    const float* image = input + first / g.positions() * of_image;
    unroll_line(g, image, behind, y, x, here, begin, end, to, line);
  }
}

// Elements from one row to the next of those that are multiplied: a vector may be written behind.
int64_t line_of(const Geometry& g) { return std::min(g.depth(), blas::kBlockDepth) + blas::kStrip; }

void multiply(const Geometry& g, const blas::Split::Piece& part, const float* input,
              const float* strips, const blas::Sink& sink, float* out, float* rows,
              blas::Elements of) {
  const int64_t depth = g.depth(), strip = depth * blas::kStrip, line = line_of(g);
  const int64_t blocks = (depth + blas::kBlockDepth - 1) / blas::kBlockDepth;
  const int64_t at = part.first * g.out_channels + part.group * g.group_out() + part.column;
  const float* image = input + part.group * g.group_in();
  const float* b = strips + part.group * blas::packed_size(depth, g.group_out()) +
                   part.column / blas::kStrip * strip;
  for (int64_t k = 0; k < blocks; ++k) {
    const int64_t begin = depth * k / blocks, end = depth * (k + 1) / blocks;
    const bool unrolls = rows != nullptr;
    if (unrolls) unroll_rows(g, image, part.first, part.count, begin, end, rows, line);
    const float* a = unrolls ? rows : image + part.first * g.in_channels + begin;
    blas::gemm_strips(
        part.count, part.columns, end - begin, a, unrolls ? line : g.in_channels,
        b + begin * blas::kStrip, strip, k > 0, out + at, g.out_channels,
        k + 1 == blocks ? sink.at(at, part.group * g.group_out() + part.column) : blas::Sink{}, of);
  }
}

void unrolled_forward(const Geometry& g, const float* input, const float* weight,
                      const blas::Sink& sink, float* out, blas::Elements of) {
  constexpr int64_t kRows = 192;
  const int64_t rows = g.batch * g.positions();
  const blas::Split s = blas::split_work(rows, kRows, g.group_out(), g.groups, g.depth());
  parallel_for(s.pieces(), s.grain, [&](int64_t begin, int64_t end) {
    Scratch<float> unrolled(g.is_pointwise() ? 0 : s.block * line_of(g));
    for (int64_t i = begin; i < end; ++i) {
      const blas::Split::Piece piece = s[i];
      if (piece.count <= 0) continue;
      multiply(g, piece, input, weight, sink, out, g.is_pointwise() ? nullptr : unrolled.data(),
               of);
    }
  });
}

// to[i, j] = from[j, i], `rows` of the result.
void turn(const float* from, int64_t rows, int64_t columns, float* to) {
  constexpr int64_t kUnit = 64;
  constexpr auto item = static_cast<int64_t>(sizeof(float));
  parallel_for((rows + kUnit - 1) / kUnit, 65536 / (columns * kUnit) + 1,
               [&](int64_t begin, int64_t end) {
                 const int64_t first = begin * kUnit, count = std::min(rows, end * kUnit) - first;
                 transpose::copy(reinterpret_cast<char*>(to + first * columns),
                                 reinterpret_cast<const char*>(from + first), sizeof(float), count,
                                 columns, columns * item, rows * item);
               });
}

// Each image by fn(geometry of one, input, out) in the other order.
template <class Fn>
void by_images(const Geometry& g, const float* input, float* out, Fn&& fn) {
  Geometry one = g;
  one.batch = 1;
  auto body = [&](int64_t begin, int64_t end) {
    Scratch<float> from(g.in_channels * g.in_plane()), to(g.out_channels * g.positions());
    for (int64_t i = begin; i < end; ++i) {
      turn(input + i * g.in_channels * g.in_plane(), g.in_plane(), g.in_channels, from.data());
      fn(one, from.data(), to.data());
      turn(to.data(), g.out_channels, g.positions(), out + i * g.out_channels * g.positions());
    }
  };
  // Few images leave the threads to their parts.
  g.batch < num_threads() ? body(0, g.batch) : parallel_for(g.batch, 1, body);
}

}  // namespace

bool fits_channels(const Geometry& g) {
  return !g.is_depthwise() && g.group_out() >= 8 && g.depth() >= 8 && g.in_channels > 0;
}

namespace {

// A weight in the form in which it is multiplied.
struct Kernel {
  bool winograd;
  Ref<PackedWeight> weight;

  Kernel(const Geometry& g, const Tensor& from)
      : winograd(fits_winograd(g)),
        weight(winograd ? winograd_weight(g, from)
                        : packed_weight(from, PackedForm::Unrolled, g.groups,
                                        g.groups * blas::packed_size(g.depth(), g.group_out()),
                                        [&](float* to) { pack(g, taps_of(g, from), to); })) {}
  void operator()(const Geometry& g, const float* input, const blas::Sink& sink, float* out) const {
    if (winograd) return winograd_forward(g, input, weight->data(), sink, out);
    unrolled_forward(g, input, weight->data(), sink, out, blas::Elements::Floats);
  }
};

}  // namespace

void channels_forward(const Geometry& g, const float* input, const Tensor& weight,
                      const blas::Sink& sink, float* out) {
  Kernel(g, weight)(g, input, sink, out);
}

void channel_pairs_forward(const Geometry& g, const BFloat16* input, const Tensor& weight,
                           const blas::Sink& sink, float* out) {
  Geometry pairs = g;
  pairs.in_channels /= 2;
  const Ref<PackedWeight> packed =
      packed_weight(weight, PackedForm::UnrolledPairs, g.groups,
                    g.groups * blas::packed_size(pairs.depth(), g.group_out()),
                    [&](float* to) { pack_pairs(pairs, weight, to); });
  unrolled_forward(pairs, reinterpret_cast<const float*>(input), packed->data(), sink, out,
                   blas::Elements::BFloat16Pairs);
}

void planes_forward(const Geometry& g, const float* input, const Tensor& weight, const float* bias,
                    float* out) {
  const Kernel kernel(g, weight);
  by_images(g, input, out, [&](const Geometry& one, const float* from, float* to) {
    kernel(one, from, {bias, nullptr, false}, to);
  });
}

void planes_backward_input(const Geometry& g, const float* grad, const Tensor& weight, float* out) {
  const auto kernel = winograd_turned_weight(g, weight);
  by_images(turned(g), grad, out, [&](const Geometry& one, const float* from, float* to) {
    winograd_forward(one, from, kernel->data(), {}, to);
  });
}

}  // namespace weft::native::conv
