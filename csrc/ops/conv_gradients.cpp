#include "ops/conv_gradients.h"

#include "core/thread_pool.h"
#include "ops/conv_channels.h"
#include "ops/conv_winograd.h"
#include "ops/levels.h"
#include "ops/packed_product.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"

namespace weft::native::conv {
namespace {

constexpr int64_t kStrip = blas::kStrip;

// Positions [first, last) of a line of results whose tap at `shift` lies in the image.
struct Inside {
  int64_t first, last;

  Inside(const Geometry& g, int64_t shift) {
    const int64_t reach = g.width - shift;
    first = shift >= 0 ? 0 : (-shift + g.stride_w - 1) / g.stride_w;
    last = reach <= 0 ? 0 : (reach - 1) / g.stride_w + 1;
  }
};

// A strip of the unrolled image of a group: kStrip channels of a tap at positions [begin, ...).
WEFT_INLINE void pack_strip_body(const Geometry& g, const float* image, int64_t begin,
                                 int64_t count, int64_t column, float* __restrict to) {
  const int64_t tap = column / g.group_in();
  const int64_t down = tap / g.kernel_w * g.dilation_h - g.pad_h;
  const int64_t shift = tap % g.kernel_w * g.dilation_w - g.pad_w;
  const int64_t step = g.stride_w * g.in_channels;
  const Inside inside(g, shift);
  image += column % g.group_in();
  for (const int64_t end = begin + count; begin < end;) {
    const int64_t x = begin % g.out_width, line = begin / g.out_width;
    const int64_t stop = std::min(g.out_width, x + end - begin);
    const int64_t row = line % g.out_height * g.stride_h + down;
    const bool hit = row >= 0 && row < g.height;
    const int64_t first = hit ? std::clamp(inside.first, x, stop) : stop;
    const int64_t last = hit ? std::clamp(inside.last, first, stop) : stop;
    std::memset(to, 0, static_cast<size_t>(first - x) * kStrip * sizeof(float));
    to += (first - x) * kStrip;
    const float* from = image +
                        ((line / g.out_height * g.height + row) * g.width + shift) * g.in_channels +
                        first * step;
    for (int64_t i = first; i < last; ++i, from += step, to += kStrip) {
      std::memcpy(to, from, kStrip * sizeof(float));
    }
    std::memset(to, 0, static_cast<size_t>(stop - last) * kStrip * sizeof(float));
    to += (stop - last) * kStrip;
    begin += stop - x;
  }
}

#define DEFINE(level, target, width)                                                   \
  target void pack_strip_##level(const Geometry& g, const float* image, int64_t begin, \
                                 int64_t count, int64_t column, float* to) {           \
    pack_strip_body(g, image, begin, count, column, to);                               \
  }
WEFT_LEVELS(DEFINE)
#undef DEFINE

void pack_strip(const Geometry& g, const float* image, int64_t begin, int64_t count, int64_t column,
                float* to) {
  WEFT_PICK(pack_strip, g, image, begin, count, column, to);
}

// The gradient of a group's results, turned, times its unrolled images.
struct WeightGradient final : blas::Factors {
  const Geometry& g;
  const float *grad, *image;
  const bool has_planes;

  WeightGradient(const Geometry& g, const float* grad, const float* image, bool has_planes)
      : g(g), grad(grad), image(image), has_planes(has_planes) {}

  void rows(int64_t first, int64_t count, int64_t begin, int64_t depth, float* to,
            int64_t line) const override {
    if (!has_planes) {
      const float* from = grad + begin * g.out_channels + first;
      return blas::pack_rows<float>({from, 1, g.out_channels}, count, depth, to, line);
    }
    for (const int64_t end = begin + depth; begin < end;) {
      const int64_t at = begin % g.positions(), taken = std::min(g.positions() - at, end - begin);
      const float* from = grad + (begin / g.positions() * g.out_channels + first) * g.positions();
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(from + i * g.positions() + at, taken, to + i * line);
      }
      begin += taken, to += taken;
    }
  }

  void strips(int64_t begin, int64_t depth, int64_t column, int64_t columns,
              float* to) const override {
    for (int64_t j = 0; j < columns; j += kStrip, to += depth * kStrip) {
      pack_strip(g, image, begin, depth, column + j, to);
    }
  }
};

}  // namespace

namespace {

// The weight of each group and tap in strips: what leads from its results to its input.
class TurnedTaps {
 public:
  TurnedTaps(const Geometry& g, const Tensor& weight)
      : g_(g),
        size_(blas::packed_size(g.group_out(), g.group_in())),
        strips_(g.groups * g.taps() * size_) {
    const Taps t = taps_of(g, weight);
    for (int64_t i = 0; i < g.groups * g.taps(); ++i) {
      const int64_t tap = i % g.taps();
      const float* from = t.data + i / g.taps() * t.of_group + tap / g.kernel_w * t.row +
                          tap % g.kernel_w * t.column;
      blas::pack_matrix({from, t.out, t.in}, g.group_out(), g.group_in(),
                        strips_.data() + i * size_);
    }
  }

  // c += a @ (the weight of a tap), for channels [first, first + count) of a group.
  void add(int64_t group, int64_t tap, int64_t first, int64_t count, int64_t rows, const float* a,
           float* c, int64_t c_row) {
    const int64_t depth = g_.group_out();
    const float* from = strips_.data() + (group * g_.taps() + tap) * size_ + first * depth;
    for (int64_t k = 0; k < depth; k += blas::kBlockDepth) {
      blas::gemm_strips(rows, count, std::min(blas::kBlockDepth, depth - k), a + k, g_.out_channels,
                        from + k * kStrip, depth * kStrip, true, c, c_row, {});
    }
  }

 private:
  const Geometry& g_;
  const int64_t size_;
  Scratch<float> strips_;
};

// Channels [first, first + count) of a group of an image, which holds 0: each line of results adds
// to the lines of the image that it came from.
void add_lines(const Geometry& g, TurnedTaps& taps, int64_t group, int64_t first, int64_t count,
               const float* grad, float* image) {
  for (int64_t line = 0; line < g.out_height * g.taps(); ++line) {
    const int64_t tap = line % g.taps(), y = line / g.taps();
    const int64_t row = y * g.stride_h + tap / g.kernel_w * g.dilation_h - g.pad_h;
    const int64_t shift = tap % g.kernel_w * g.dilation_w - g.pad_w;
    const Inside inside(g, shift);
    const int64_t rows = std::min(inside.last, g.out_width) - inside.first;
    if (row < 0 || row >= g.height || rows <= 0) continue;
    const int64_t at = row * g.width + inside.first * g.stride_w + shift;
    taps.add(group, tap, first, count, rows,
             grad + (y * g.out_width + inside.first) * g.out_channels + group * g.group_out(),
             image + at * g.in_channels + group * g.group_in() + first, g.stride_w * g.in_channels);
  }
}

void backward_lines(const Geometry& g, const float* grad, const Tensor& weight, float* out) {
  constexpr int64_t kPart = 4 * kStrip;
  TurnedTaps taps(g, weight);
  // Parts of the channels are for threads that have no image of their own.
  const int64_t parts = g.batch * g.groups < num_threads() ? (g.group_in() + kPart - 1) / kPart : 1;
  const int64_t pieces = g.batch * g.groups * parts;
  const int64_t work = g.group_out() * g.taps() * g.positions() * g.group_in() / parts;
  std::fill_n(out, g.batch * g.in_plane() * g.in_channels, 0.0f);
  parallel_for(pieces, (int64_t{1} << 17) / std::max<int64_t>(1, work) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t image = i / parts / g.groups, group = i / parts % g.groups;
                   const int64_t first = parts == 1 ? 0 : i % parts * kPart;
                   const int64_t left = g.group_in() - first;
                   add_lines(g, taps, group, first, parts == 1 ? left : std::min(kPart, left),
                             grad + image * g.positions() * g.out_channels,
                             out + image * g.in_plane() * g.in_channels);
                 }
               });
}

}  // namespace

bool channels_backward_input(const Geometry& g, const float* grad, const Tensor& weight,
                             float* out) {
  if (fits_winograd(g)) {
    winograd_forward(turned(g), grad, winograd_turned_weight(g, weight)->data(), {}, out);
    return true;
  }
  if (g.group_in() < 8 || g.group_out() < 8) return false;
  if (!g.is_pointwise() || g.groups > 1) {
    backward_lines(g, grad, weight, out);
    return true;
  }
  const blas::Matrix<const float> taps{weight.data_as<const float>(), weight.strides()[0],
                                       weight.strides()[1]};
  const int64_t rows = g.batch * g.positions();
  blas::PackedProduct{rows,
                      g.in_channels,
                      g.out_channels,
                      {grad, g.out_channels, 1},
                      taps,
                      nullptr,
                      {},
                      false,
                      blas::Elements::Floats,
                      out}
      .run();
  return true;
}

bool fits_weight_gradient(const Geometry& g) {
  return g.group_in() % kStrip == 0 && g.group_out() >= 8;
}

void channels_backward_weight(const Geometry& g, const float* grad, bool grad_has_planes,
                              const float* input, float* out) {
  const int64_t of_group = g.group_out() * g.depth();
  for (int64_t group = 0; group < g.groups; ++group, out += of_group) {
    const int64_t first = group * g.group_out() * (grad_has_planes ? g.positions() : 1);
    const WeightGradient factors(g, grad + first, input + group * g.group_in(), grad_has_planes);
    blas::PackedProduct{g.group_out(),
                        g.depth(),
                        g.batch * g.positions(),
                        {},
                        {},
                        nullptr,
                        {},
                        false,
                        blas::Elements::Floats,
                        out,
                        &factors}
        .run();
  }
}

}  // namespace weft::native::conv
