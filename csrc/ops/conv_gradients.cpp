#include "ops/conv_gradients.h"

#include "core/thread_pool.h"
#include "ops/conv_grouped.h"
#include "ops/conv_winograd.h"
#include "ops/levels.h"
#include "ops/packed_product.h"
#include "ops/packed_words.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"

namespace weft::native::conv {
namespace {

using blas::kStrip;

// Numbers of T, float or BFloat16, that make a word of the tiles (packed_words.h), and how those
// are multiplied.
template <class T>
constexpr int64_t kEach = sizeof(float) / sizeof(T);
template <class T>
constexpr blas::Elements kElements =
    kEach<T> == 1 ? blas::Elements::Floats : blas::Elements::BFloat16Pairs;
template <class T>
const float* words_at(const T* numbers) {
  return reinterpret_cast<const float*>(numbers);
}

// Columns of the unrolled image of a group: strips of each tap's channels, of which the last starts
// early enough to be whole.
WEFT_INLINE int64_t strip_columns(const Geometry& g) {
  return (g.group_in() + kStrip - 1) / kStrip * kStrip;
}
WEFT_INLINE int64_t first_channel(const Geometry& g, int64_t column) {
  return std::min(column, g.group_in() - kStrip);
}

// A strip: kStrip channels of a tap at positions [begin, ...).
template <class T>
WEFT_INLINE void pack_strip_body(const Geometry& g, const T* image, int64_t begin, int64_t count,
                                 int64_t column, T* __restrict to) {
  const int64_t each = strip_columns(g), tap = column / each;
  const int64_t down = tap / g.kernel_w * g.dilation_h - g.pad_h;
  const int64_t shift = tap % g.kernel_w * g.dilation_w - g.pad_w;
  const int64_t step = g.stride_w * g.in_channels;
  const Range hits = inside(shift, g.stride_w, g.width, g.out_width);
  image += first_channel(g, column % each);
  for (const int64_t end = begin + count; begin < end;) {
    const int64_t x = begin % g.out_width, line = begin / g.out_width;
    const int64_t stop = std::min(g.out_width, x + end - begin);
    const int64_t row = line % g.out_height * g.stride_h + down;
    const bool hit = row >= 0 && row < g.height;
    const int64_t first = hit ? std::clamp(hits.first, x, stop) : stop;
    const int64_t last = hit ? std::clamp(hits.last, first, stop) : stop;
    std::memset(static_cast<void*>(to), 0, static_cast<size_t>(first - x) * kStrip * sizeof(T));
    to += (first - x) * kStrip;
    const T* from = image +
                    ((line / g.out_height * g.height + row) * g.width + shift) * g.in_channels +
                    first * step;
    for (int64_t i = first; i < last; ++i, from += step, to += kStrip) {
      std::memcpy(static_cast<void*>(to), from, kStrip * sizeof(T));
    }
    std::memset(static_cast<void*>(to), 0, static_cast<size_t>(stop - last) * kStrip * sizeof(T));
    to += (stop - last) * kStrip;
    begin += stop - x;
  }
}

// Words of two rows each.
WEFT_INLINE void pair_rows_body(const uint16_t* rows, int64_t count, uint32_t* __restrict to) {
  for (int64_t p = 0; p < count; ++p, rows += 2 * kStrip, to += kStrip) {
    for (int64_t c = 0; c < kStrip; ++c) to[c] = blas::paired(rows[c], rows[kStrip + c]);
  }
}

template <class T>
void pack_strip(const Geometry& g, const T* image, int64_t begin, int64_t count, int64_t column,
                T* to) {
  at_level([&](auto) WEFT_INLINED { pack_strip_body(g, image, begin, count, column, to); });
}
void pair_rows(const uint16_t* rows, int64_t count, uint32_t* to) {
  at_level([&](auto) WEFT_INLINED { pair_rows_body(rows, count, to); });
}

// The same in words of positions that follow each other.
void pack_words(const Geometry& g, const float* image, int64_t begin, int64_t count, int64_t column,
                float* to) {
  pack_strip(g, image, begin, count, column, to);
}
void pack_words(const Geometry& g, const BFloat16* image, int64_t begin, int64_t count,
                int64_t column, float* to) {
  Scratch<BFloat16> rows(2 * count * kStrip);
  const int64_t left = std::min(2 * count, g.batch * g.positions() - 2 * begin);
  pack_strip(g, image, 2 * begin, left, column, rows.data());
  std::fill_n(rows.data() + left * kStrip, (2 * count - left) * kStrip, BFloat16());
  pair_rows(reinterpret_cast<const uint16_t*>(rows.data()), count, reinterpret_cast<uint32_t*>(to));
}

// The gradient of a group's results, turned, times its unrolled images.
template <class T>
struct WeightGradient final : blas::Factors {
  const Geometry& g;
  const blas::Matrix<const float> turned;  // or planes, where its data is null
  const T *planes, *image;

  WeightGradient(const Geometry& g, const blas::Matrix<const float>& turned, const T* planes,
                 const T* image)
      : g(g), turned(turned), planes(planes), image(image) {}

  void rows(int64_t first, int64_t count, int64_t begin, int64_t depth, float* to,
            int64_t line) const override {
    if (turned.data) {
      const float* from = turned.data + begin * turned.column + first * turned.row;
      return blas::pack_rows<float>({from, turned.row, turned.column}, count, depth, to, line);
    }
    for (const int64_t end = begin + depth; begin < end;) {
      const int64_t at = begin % g.positions(), taken = std::min(g.positions() - at, end - begin);
      const T* from = planes + (begin / g.positions() * g.out_channels + first) * g.positions();
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(words_at(from + i * g.positions() + at), taken, to + i * line);
      }
      begin += taken, to += taken;
    }
  }

  void strips(int64_t begin, int64_t depth, int64_t column, int64_t columns,
              float* to) const override {
    for (int64_t j = 0; j < columns; j += kStrip, to += depth * kStrip) {
      pack_words(g, image, begin, depth, column + j, to);
    }
  }
};

// The weight of each group and tap in strips: what leads from its results to its input. Words are
// of its outputs.
template <class T>
class TurnedTaps {
 public:
  TurnedTaps(const Geometry& g, const Tensor& weight)
      : g_(g),
        depth_(g.group_out() / kEach<T>),
        size_(blas::packed_size(depth_, g.group_in())),
        strips_(g.groups * g.taps() * size_) {
    const Dims& s = weight.strides();
    for (int64_t i = 0; i < g.groups * g.taps(); ++i) {
      const int64_t tap = i % g.taps();
      const T* from = weight.data_as<const T>() + i / g.taps() * g.group_out() * s[0] +
                      tap / g.kernel_w * s[2] + tap % g.kernel_w * s[3];
      pack({from, s[0], s[1]}, strips_.data() + i * size_);
    }
  }

  // c += a @ (the weight of a tap), for channels [first, first + count) of a group.
  void add(int64_t group, int64_t tap, int64_t first, int64_t count, int64_t rows, const T* a,
           float* c, int64_t c_row) {
    const float* from = strips_.data() + (group * g_.taps() + tap) * size_ + first * depth_;
    for (int64_t k = 0; k < depth_; k += blas::kBlockDepth) {
      blas::gemm_strips(rows, count, std::min(blas::kBlockDepth, depth_ - k), words_at(a) + k,
                        g_.out_channels / kEach<T>, from + k * kStrip, depth_ * kStrip, true, c,
                        c_row, {}, kElements<T>);
    }
  }

 private:
  void pack(const blas::Matrix<const T>& tap, float* to) const {
    if constexpr (kEach<T> == 1) {
      blas::pack_matrix(tap, depth_, g_.group_in(), to);
    } else {
      const auto* data = reinterpret_cast<const uint16_t*>(tap.data);
      const blas::WordMatrix<uint16_t> words({data, tap.column, tap.row}, g_.group_in(),
                                             g_.group_out());
      blas::pack_matrix(words.words().transposed(), depth_, g_.group_in(), to);
    }
  }

  const Geometry& g_;
  const int64_t depth_, size_;
  Scratch<float> strips_;
};

// Channels [first, first + count) of a group of an image, which holds 0: each line of results adds
// to the lines of the image that it came from.
template <class T>
void add_lines(const Geometry& g, TurnedTaps<T>& taps, int64_t group, int64_t first, int64_t count,
               const T* grad, float* image) {
  for (int64_t line = 0; line < g.out_height * g.taps(); ++line) {
    const int64_t tap = line % g.taps(), y = line / g.taps();
    const int64_t row = y * g.stride_h + tap / g.kernel_w * g.dilation_h - g.pad_h;
    const int64_t shift = tap % g.kernel_w * g.dilation_w - g.pad_w;
    const Range hits = inside(shift, g.stride_w, g.width, g.out_width);
    const int64_t rows = hits.last - hits.first;
    if (row < 0 || row >= g.height || rows <= 0) continue;
    const int64_t at = row * g.width + hits.first * g.stride_w + shift;
    taps.add(group, tap, first, count, rows,
             grad + (y * g.out_width + hits.first) * g.out_channels + group * g.group_out(),
             image + at * g.in_channels + group * g.group_in() + first, g.stride_w * g.in_channels);
  }
}

template <class T>
void backward_lines(const Geometry& g, const T* grad, const Tensor& weight, float* out) {
  constexpr int64_t kPart = 4 * kStrip;
  TurnedTaps<T> taps(g, weight);
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

// A pointwise convolution of whole images as one of lines.
Geometry in_lines(const Geometry& g) {
  if (!g.is_pointwise()) return g;
  Geometry lines = g;
  lines.width = lines.out_width = g.positions();
  lines.height = lines.out_height = 1;
  return lines;
}

}  // namespace

bool channels_backward_input(const Geometry& g, const Tensor& grad, const Tensor& weight,
                             float* out) {
  if (grad.dtype() == DType::F32 && fits_winograd(g)) {
    winograd_forward(turned(g), grad.data_as<const float>(),
                     winograd_turned_weight(g, weight)->data(), {}, out);
    return true;
  }
  if (grad.dtype() == DType::F32 && fits_grouped(g)) {
    grouped_backward_input(g, grad.data_as<const float>(), weight, out);
    return true;
  }
  if (g.group_in() < 8 || g.group_out() < 8) return false;
  if (grad.dtype() == DType::F32) {
    backward_lines(in_lines(g), grad.data_as<const float>(), weight, out);
  } else {
    backward_lines(in_lines(g), grad.data_as<const BFloat16>(), weight, out);
  }
  return true;
}

bool fits_weight_gradient(const Geometry& g) {
  return g.group_in() >= kStrip && g.group_out() >= 8;
}

namespace {

// Each channel once: to[output][tap][channel] from columns of strips.
void take_channels(const Geometry& g, const float* strips, float* to) {
  const int64_t each = strip_columns(g);
  for (int64_t i = 0; i < g.group_out() * g.taps(); ++i, strips += each, to += g.group_in()) {
    for (int64_t c = 0; c < each; c += kStrip) {
      std::copy_n(strips + c, kStrip, to + first_channel(g, c));
    }
  }
}

template <class T>
void backward_weight(const Geometry& g, const T* grad, bool has_planes, const T* input,
                     float* out) {
  const int64_t words = (g.batch * g.positions() + kEach<T> - 1) / kEach<T>;
  const int64_t of_group = g.group_out() * g.depth(), columns = g.taps() * strip_columns(g);
  const bool is_whole = columns == g.depth();
  if (words == 0) std::fill_n(out, g.groups * of_group, 0.0f);  // a batch of no images
  Scratch<float> strips(is_whole ? 0 : g.group_out() * columns);
  auto multiply = [&](const blas::Factors& factors, float* to) {
    if (words == 0) return;
    blas::PackedProduct product{};
    product.m = g.group_out(), product.n = columns, product.k = words;
    product.of = kElements<T>, product.out = is_whole ? to : strips.data();
    product.factors = &factors;
    product.run();
    if (!is_whole) take_channels(g, strips.data(), to);
  };
  for (int64_t group = 0; group < g.groups; ++group, out += of_group) {
    const T* from = grad + group * g.group_out() * (has_planes ? g.positions() : 1);
    const T* image = input + group * g.group_in();
    if constexpr (kEach<T> == 1) {
      const blas::Matrix<const float> turned{has_planes ? nullptr : from, 1, g.out_channels};
      multiply(WeightGradient<T>(g, turned, from, image), out);
    } else {
      const blas::WordMatrix<uint16_t> turned(
          {reinterpret_cast<const uint16_t*>(from), 1, g.out_channels}, g.group_out(),
          g.batch * g.positions());
      multiply(WeightGradient<T>(g, turned.words(), nullptr, image), out);
    }
  }
}

}  // namespace

void channels_backward_weight(const Geometry& g, const Tensor& grad, const Tensor& input,
                              float* out) {
  if (grad.dtype() == DType::F32) {
    backward_weight(g, grad.data_as<const float>(), grad.is_contiguous(),
                    input.data_as<const float>(), out);
  } else {
    backward_weight(g, grad.data_as<const BFloat16>(), false, input.data_as<const BFloat16>(), out);
  }
}

}  // namespace weft::native::conv
