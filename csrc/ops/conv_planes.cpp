// Convolution in planes, and its gradients: unroll each image, then one matrix product.
#include "ops/conv_planes.h"

#include "core/thread_pool.h"
#include "ops/blas.h"
#include "ops/conv_depthwise.h"
#include "ops/conv_plane.h"
#include "ops/gemm.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"

namespace weft::native::conv {
namespace {

template <class T>
blas::Matrix<const T> rows(const T* data, int64_t columns) {
  return {data, columns, 1};
}

// The output in blocks of whole lines whose unrolled image stays in the second-level cache, unless
// that makes them so narrow that the kernel, which each block reads, is what takes the time.
struct Blocks {
  int64_t lines, count;

  explicit Blocks(const Geometry& g) {
    constexpr int64_t kElements = 128 * 1024, kPositions = 64;
    const int64_t line = std::max<int64_t>(1, g.depth() * g.out_width);
    const int64_t least = (kPositions + g.out_width - 1) / g.out_width;
    lines = std::min(std::max({kElements / line, least, int64_t{1}}), g.out_height);
    count = (g.out_height + lines - 1) / lines;
  }
  LineRange range(const Geometry& g, int64_t block) const {
    return {block * lines, std::min((block + 1) * lines, g.out_height)};
  }
  int64_t scratch(const Geometry& g) const {
    return g.depth() * lines * g.out_width + blas::kSlack;
  }
};

int64_t grain(const Geometry& g, int64_t positions) {
  const int64_t work = std::max<int64_t>(1, g.group_out() * g.depth() * positions);
  return (int64_t{1} << 17) / work + 1;
}

// Start of one group of one image, in the input and in the output.
int64_t in_start(const Geometry& g, int64_t image, int64_t group) {
  return (image * g.in_channels + group * g.group_in()) * g.in_plane();
}
int64_t out_start(const Geometry& g, int64_t image, int64_t group) {
  return (image * g.out_channels + group * g.group_out()) * g.positions();
}

template <class T>
void start_from_bias(const Geometry& g, int64_t group, int64_t count, const T* bias, T* out) {
  for (int64_t o = 0; o < g.group_out(); ++o) {
    std::fill_n(out + o * g.positions(), count, bias[group * g.group_out() + o]);
  }
}

// A pointwise kernel: the image is its own unrolled form.
template <class T>
void forward_pointwise(const Geometry& g, const T* input, const T* weight, const T* bias, T* out) {
  const int64_t n = g.positions(), images = g.batch * g.groups;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / g.groups, group = i % g.groups;
      T* to = out + out_start(g, image, group);
      if (bias) start_from_bias(g, group, n, bias, to);
      blas::gemm<T>(g.group_out(), n, g.depth(), T(1),
                    rows(weight + group * g.group_out() * g.depth(), g.depth()),
                    rows(input + in_start(g, image, group), n), T(bias ? 1 : 0), to, n);
    }
  };
  // A lone image leaves the threads to the product.
  images < num_threads() ? body(0, images) : parallel_for(images, grain(g, n), body);
}

// Lines of one group of one image: `columns` is what they are unrolled into. Inside of a parallel
// region on one thread, else the threads take channels, in whole tiles of the product.
template <class T>
void forward_lines(const Geometry& g, LineRange lines, const T* image, const T* weight,
                   const T* bias, T* out, T* columns) {
  constexpr int64_t kUnit = 12;
  const int64_t n = (lines.end - lines.begin) * g.out_width, depth = g.depth();
  unroll(g, lines, image, columns);
  parallel_for((g.group_out() + kUnit - 1) / kUnit, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kUnit, count = std::min(end * kUnit, g.group_out()) - first;
    T* to = out + first * g.positions() + lines.begin * g.out_width;
    for (int64_t o = 0; bias && o < count; ++o) {
      std::fill_n(to + o * g.positions(), n, bias[first + o]);
    }
    blas::gemm_in_place<T>(count, n, depth, rows(weight + first * depth, depth), columns, n,
                           blas::kSlack, T(bias ? 1 : 0), to, g.positions());
  });
}

template <class T>
void forward_unrolled(const Geometry& g, const T* input, const T* weight, const T* bias, T* out) {
  const Blocks blocks(g);
  const int64_t count = g.batch * g.groups * blocks.count;
  auto body = [&](int64_t begin, int64_t end) {
    Scratch<T> columns(blocks.scratch(g));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / blocks.count % g.groups, image = i / blocks.count / g.groups;
      forward_lines(g, blocks.range(g, i % blocks.count), input + in_start(g, image, group),
                    weight + group * g.group_out() * g.depth(),
                    bias ? bias + group * g.group_out() : nullptr, out + out_start(g, image, group),
                    columns.data());
    }
  };
  // Few blocks leave the threads to their products, if those are worth it.
  const int64_t least = grain(g, blocks.lines * g.out_width);
  count < num_threads() && least == 1 ? body(0, count) : parallel_for(count, least, body);
}

template <class T>
void forward(const Geometry& g, const T* input, const T* weight, const T* bias, T* out) {
  if (g.is_depthwise() || (has_planes<T> && g.stride_w == 1 && g.is_thin())) {
    return depthwise_forward(g, input, weight, bias, out);
  }
  if (g.is_pointwise()) return forward_pointwise(g, input, weight, bias, out);
  forward_unrolled(g, input, weight, bias, out);
}

// The gradient of one group of one image: blocks in turn, since the lines they add to overlap.
template <class T>
void backward_image(const Geometry& g, const Blocks& blocks, const T* grad, const T* weight, T* out,
                    T* columns) {
  std::fill_n(out, g.group_in() * g.in_plane(), T(0));
  for (int64_t block = 0; block < blocks.count; ++block) {
    const LineRange lines = blocks.range(g, block);
    const int64_t n = (lines.end - lines.begin) * g.out_width;
    blas::gemm_in_place<T>(g.depth(), n, g.group_out(), rows(weight, g.depth()).transposed(),
                           grad + lines.begin * g.out_width, g.positions(), 0, T(0), columns, n);
    unroll_add(g, lines, columns, out);
  }
}

template <class T>
void backward_input(const Geometry& g, const T* grad, const T* weight, T* out) {
  if (g.is_depthwise()) return depthwise_backward_input(g, grad, weight, out);
  const Blocks blocks(g);
  parallel_for(g.batch * g.groups, grain(g, g.positions()), [&](int64_t begin, int64_t end) {
    Scratch<T> columns(g.is_pointwise() ? 0 : blocks.scratch(g));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / g.groups, group = i % g.groups;
      const T* from = grad + out_start(g, image, group);
      const T* taps = weight + group * g.group_out() * g.depth();
      T* to = out + in_start(g, image, group);
      if (!g.is_pointwise()) {
        backward_image(g, blocks, from, taps, to, columns.data());
        continue;
      }
      blas::gemm<T>(g.depth(), g.positions(), g.group_out(), T(1),
                    rows(taps, g.depth()).transposed(), rows(from, g.positions()), T(0), to,
                    g.positions());
    }
  });
}

// Adds the gradients of images [begin, end) to out, [depth][out channels] of each group.
template <class T>
void backward_weight_of(const Geometry& g, int64_t begin, int64_t end, const T* grad,
                        const T* input, T* out) {
  const Blocks blocks(g);
  // The gradient with positions as rows, which are filled up to whole vectors.
  const int64_t channels = g.group_out();
  const int64_t line = (channels + blas::kSlack - 1) / blas::kSlack * blas::kSlack;
  const int64_t elements = blocks.lines * g.out_width * line;
  Scratch<T> columns(blocks.scratch(g)), turned(elements);
  std::fill_n(turned.data(), elements, T(0));
  for (int64_t i = begin * g.groups * blocks.count; i < end * g.groups * blocks.count; ++i) {
    const int64_t group = i / blocks.count % g.groups, image = i / blocks.count / g.groups;
    const LineRange lines = blocks.range(g, i % blocks.count);
    const int64_t n = (lines.end - lines.begin) * g.out_width;
    unroll(g, lines, input + in_start(g, image, group), columns.data());
    const T* from = grad + out_start(g, image, group) + lines.begin * g.out_width;
    blas::pack_rows<T>(rows(from, g.positions()).transposed(), n, channels, turned.data(), line);
    blas::gemm_in_place<T>(g.depth(), channels, n, rows(columns.data(), n), turned.data(), line,
                           blas::kSlack, T(1), out + group * channels * g.depth(), channels);
  }
}

template <class T>
void backward_weight(const Geometry& g, const T* grad, const T* input, T* out) {
  if (g.is_depthwise()) return depthwise_backward_weight(g, grad, input, out);
  const int64_t count = g.out_channels * g.depth(), of_group = g.group_out() * g.depth();
  const int64_t pieces = std::clamp<int64_t>(g.batch, 1, num_threads());
  // Each thread sums its images into memory of its own; the sums are added in order.
  Scratch<T> sums(pieces * count);
  std::fill_n(sums.data(), pieces * count, T(0));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      backward_weight_of(g, g.batch * p / pieces, g.batch * (p + 1) / pieces, grad, input,
                         sums.data() + p * count);
    }
  });
  for (int64_t p = 1; p < pieces; ++p) {
    const T* more = sums.data() + p * count;
    for (int64_t i = 0; i < count; ++i) sums.data()[i] += more[i];
  }
  for (int64_t i = 0; i < count; i += of_group) {
    blas::pack_rows<T>(rows<T>(sums.data() + i, g.group_out()).transposed(), g.group_out(),
                       g.depth(), out + i, g.depth());
  }
}

}  // namespace

void unrolled_planes_forward(const char* op, const Geometry& g, const Tensor& input,
                             const Tensor& weight, const Tensor& bias, const Tensor& out) {
  dispatch_conv(op, out.dtype(), [&]<class T>(std::type_identity<T>) {
    forward(g, input.data_as<const T>(), weight.data_as<const T>(),
            bias.defined() ? bias.data_as<const T>() : nullptr, out.data_as<T>());
  });
}

void unrolled_planes_backward_input(const char* op, const Geometry& g, const Tensor& grad,
                                    const Tensor& weight, const Tensor& out) {
  dispatch_conv(op, out.dtype(), [&]<class T>(std::type_identity<T>) {
    backward_input(g, grad.data_as<const T>(), weight.data_as<const T>(), out.data_as<T>());
  });
}

void unrolled_planes_backward_weight(const char* op, const Geometry& g, const Tensor& grad,
                                     const Tensor& input, const Tensor& out) {
  dispatch_conv(op, out.dtype(), [&]<class T>(std::type_identity<T>) {
    backward_weight(g, grad.data_as<const T>(), input.data_as<const T>(), out.data_as<T>());
  });
}

}  // namespace weft::native::conv
