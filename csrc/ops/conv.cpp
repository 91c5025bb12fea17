// Convolution in two dimensions and its gradients: unroll each image, then one matrix product.
//
// The three operators here are each other's gradients, so second derivatives need nothing more.
#include "ops/conv.h"

#include "core/thread_pool.h"
#include "native_convolution.h"
#include "ops/blas.h"
#include "ops/conv_depthwise.h"
#include "ops/conv_plane.h"
#include "ops/conv_source.h"
#include "ops/conv_winograd.h"
#include "ops/heads.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"
#include "ops/views.h"

namespace weft::native {
namespace {

using conv::Geometry;
using conv::LineRange;
using conv::Source;

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
// The output as a matrix with a row for each channel of each image.
int64_t out_row(const Geometry& g, int64_t image, int64_t group) {
  return image * g.out_channels + group * g.group_out();
}
int64_t out_start(const Geometry& g, int64_t image, int64_t group) {
  return out_row(g, image, group) * g.positions();
}

template <class T>
void start_from_bias(const Geometry& g, int64_t group, int64_t count, const T* bias, T* out) {
  for (int64_t o = 0; o < g.group_out(); ++o) {
    std::fill_n(out + o * g.positions(), count, bias[group * g.group_out() + o]);
  }
}

// A pointwise kernel: the image is its own unrolled form.
template <class T>
void forward_pointwise(const Geometry& g, const T* input, const T* weight, const T* bias, T* out,
                       const Finish& finish) {
  const int64_t n = g.positions(), images = g.batch * g.groups;
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / g.groups, group = i % g.groups;
      T* to = out + out_start(g, image, group);
      if (bias) start_from_bias(g, group, n, bias, to);
      blas::gemm<T>(g.group_out(), n, g.depth(), T(1),
                    rows(weight + group * g.group_out() * g.depth(), g.depth()),
                    rows(input + in_start(g, image, group), n), T(bias ? 1 : 0), to, n,
                    finish.at(out_row(g, image, group), 0));
    }
  };
  // A lone image leaves the threads to the product.
  images < num_threads() ? body(0, images) : parallel_for(images, grain(g, n), body);
}

// The same for an image that is made while it is multiplied: as many columns as stay in the
// second-level cache, which meet the whole kernel at once.
int64_t part_columns(const Geometry& g) {
  constexpr int64_t kElements = 256 * 1024, kUnit = 2 * blas::kSlack, kLeast = 8 * kUnit;
  const int64_t n = g.positions(), columns = kElements / g.depth() / kUnit * kUnit;
  const int64_t parts = (n + std::max(kLeast, columns) - 1) / std::max(kLeast, columns);
  return ((n + parts - 1) / parts + kUnit - 1) / kUnit * kUnit;
}

// Whether parts of a pointwise kernel's image are made while they are multiplied.
bool takes_columns(const Geometry& g) {
  const int64_t n = g.positions(), width = g.depth() ? part_columns(g) : n;
  return g.batch * g.groups * ((n + width - 1) / width) >= 2 * num_threads() &&
         blas::goes_by_tiles(g.group_out(), n, g.depth(), rows<float>(nullptr, n));
}

// Whether an image is made part by part, not as a whole: a thread has one group of an image at a
// time, which is to be in a cache still when it is read; or some columns of a pointwise kernel's.
bool takes_parts(const Geometry& g, DType dtype) {
  if (dtype != DType::F32 && dtype != DType::F64) return false;
  if (g.is_pointwise() && !g.is_single_channel()) return takes_columns(g);
  constexpr int64_t kMost = int64_t{1} << 19;  // elements
  return g.batch * g.groups >= 2 * num_threads() && g.group_in() * g.in_plane() <= kMost;
}

template <class T>
void forward_by_columns(const Geometry& g, Prologue& before, const T* weight, const T* bias, T* out,
                        const Finish& finish) {
  const int64_t n = g.positions(), width = part_columns(g), depth = g.depth();
  const int64_t parts = (n + width - 1) / width;
  parallel_for(g.batch * g.groups * parts, grain(g, width), [&](int64_t begin, int64_t end) {
    Scratch<T> panel(depth * width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % parts * width, columns = std::min(width, n - first);
      const int64_t group = i / parts % g.groups, image = i / parts / g.groups;
      T* to = out + out_start(g, image, group) + first;
      if (bias) start_from_bias(g, group, columns, bias, to);
      before.part({image * g.in_channels + group * depth, depth, first, columns}, panel.data());
      blas::tiled_gemm<T>(g.group_out(), columns, depth, T(1),
                          rows(weight + group * g.group_out() * depth, depth),
                          rows<T>(panel.data(), columns), T(bias ? 1 : 0), to, n,
                          finish.at(out_row(g, image, group), first));
    }
  });
}

template <class T>
void forward_unrolled(const Geometry& g, const Source<T>& input, const T* weight, const T* bias,
                      T* out, const Finish& finish) {
  const Blocks blocks(g);
  const int64_t count = g.batch * g.groups * blocks.count;
  const int64_t least = input.before ? blocks.count : 1;  // threads make units of their own
  const int64_t each = std::max(least, grain(g, blocks.lines * g.out_width));
  parallel_for(count, each, [&](int64_t begin, int64_t end) {
    Scratch<T> columns(blocks.scratch(g));
    conv::SourceReader<T> reader(input, g.group_in(), g.in_plane());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / blocks.count % g.groups, image = i / blocks.count / g.groups;
      const LineRange lines = blocks.range(g, i % blocks.count);
      const int64_t n = (lines.end - lines.begin) * g.out_width;
      conv::unroll(g, lines, reader.unit(image * g.groups + group), columns.data());
      T* to = out + out_start(g, image, group) + lines.begin * g.out_width;
      if (bias) start_from_bias(g, group, n, bias, to);
      blas::gemm_in_place<T>(g.group_out(), n, g.depth(),
                             rows(weight + group * g.group_out() * g.depth(), g.depth()),
                             columns.data(), n, blas::kSlack, T(bias ? 1 : 0), to, g.positions());
      finish.at(out_row(g, image, group), lines.begin * g.out_width)(g.group_out(), n);
    }
  });
}

template <class T>
void forward(const Geometry& g, const Source<T>& input, const T* weight, const T* bias, T* out,
             const Finish& finish) {
  if (g.is_depthwise() || (conv::has_planes<T> && g.stride_w == 1 && g.is_single_channel())) {
    return conv::depthwise_forward(g, input, weight, bias, out, finish);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (conv::fits_winograd(g)) return conv::winograd_forward(g, input, weight, bias, out, finish);
  }
  if constexpr (conv::has_planes<T>) {
    if (g.is_pointwise() && input.before) {
      return forward_by_columns(g, *input.before, weight, bias, out, finish);
    }
  }
  if (g.is_pointwise()) return forward_pointwise(g, input.images, weight, bias, out, finish);
  forward_unrolled(g, input, weight, bias, out, finish);
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
    conv::unroll_add(g, lines, columns, out);
  }
}

template <class T>
void backward_input(const Geometry& g, const T* grad, const T* weight, T* out) {
  if (g.is_depthwise()) return conv::depthwise_backward_input(g, grad, weight, out);
  if constexpr (std::is_same_v<T, float>) {
    if (conv::fits_winograd(g)) return conv::winograd_backward_input(g, grad, weight, out);
  }
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
  const int64_t room = blocks.lines * g.out_width * line;
  Scratch<T> columns(blocks.scratch(g)), turned(room);
  std::fill_n(turned.data(), room, T(0));
  for (int64_t i = begin * g.groups * blocks.count; i < end * g.groups * blocks.count; ++i) {
    const int64_t group = i / blocks.count % g.groups, image = i / blocks.count / g.groups;
    const LineRange lines = blocks.range(g, i % blocks.count);
    const int64_t n = (lines.end - lines.begin) * g.out_width;
    conv::unroll(g, lines, input + in_start(g, image, group), columns.data());
    const T* from = grad + out_start(g, image, group) + lines.begin * g.out_width;
    blas::pack_rows<T>(rows(from, g.positions()).transposed(), n, channels, turned.data(), line);
    blas::gemm_in_place<T>(g.depth(), channels, n, rows(columns.data(), n), turned.data(), line,
                           blas::kSlack, T(1), out + group * channels * g.depth(), channels);
  }
}

template <class T>
void backward_weight(const Geometry& g, const T* grad, const T* input, T* out) {
  if (g.is_depthwise()) return conv::depthwise_backward_weight(g, grad, input, out);
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

void check_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, ": expected tensors of one dtype, got ", a.dtype(),
             " and ", b.dtype());
}

void check_grad(const char* op, const Geometry& g, const Tensor& grad, size_t input_dims) {
  Dims expected{g.batch, g.out_channels, g.out_height, g.out_width};
  if (input_dims == 3) expected.erase(0);
  WEFT_CHECK(grad.sizes() == expected, op, ": expected a gradient of shape ", AsTuple{expected},
             ", got ", AsTuple{grad.sizes()});
}

// An operand as the loops want it: contiguous, in the type arithmetic happens in.
Tensor operand(const Tensor& tensor) {
  return in_order(as_dtype(tensor, compute_type(tensor.dtype())));
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return conv2d(input, weight, bias, stride, padding, dilation, groups, EpilogueScope::take());
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups, const Around& around) {
  const Geometry g =
      conv::geometry("conv2d", input.sizes(), weight.sizes(), {stride, padding, dilation, groups});
  check_dtypes("conv2d", input, weight);
  if (bias.defined()) {
    check_dtypes("conv2d", input, bias);
    WEFT_CHECK(bias.dim() == 1 && bias.numel() == g.out_channels,
               "conv2d: expected a bias of shape (", g.out_channels, ",), got ",
               AsTuple{bias.sizes()});
  }
  Dims sizes{g.batch, g.out_channels, g.out_height, g.out_width};
  if (input.dim() == 3) sizes.erase(0);
  Prologue* const before = around.before;
  const bool in_parts = before && takes_parts(g, input.dtype()) && before->begin(g.in_plane());
  const Tensor x = operand(before && !in_parts ? before->whole() : input), w = operand(weight);
  const Tensor b = bias.defined() ? operand(bias) : Tensor();
  Tensor out = Tensor::empty(sizes, x.dtype(), x.device(), "conv2d");
  Epilogue* const epilogue = around.behind;
  const bool wanted =
      epilogue && out.dtype() == input.dtype() && epilogue->begin(out, g.positions());
  const Finish finish(wanted ? epilogue : nullptr);
  conv::dispatch_conv("conv2d", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *taps = w.data_as<const T>(), *start = b.defined() ? b.data_as<const T>() : nullptr;
    const Source<T> source =
        in_parts ? Source<T>{nullptr, before} : Source<T>{x.data_as<const T>()};
    forward(g, source, taps, start, out.data_as<T>(), finish);
  });
  return as_dtype(out, input.dtype());
}

Tensor _conv2d_backward_input(const Tensor& grad_output, const Tensor& weight, IntList input_size,
                              IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const char* op = "_conv2d_backward_input";
  const Geometry g =
      conv::geometry(op, input_size, weight.sizes(), {stride, padding, dilation, groups});
  check_dtypes(op, grad_output, weight);
  check_grad(op, g, grad_output, input_size.size());
  const Tensor grad = operand(grad_output), w = operand(weight);
  Tensor out = Tensor::empty(input_size, grad.dtype(), grad.device(), op);
  conv::dispatch_conv(op, grad.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    backward_input(g, grad.data_as<const T>(), w.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

Tensor _conv2d_backward_weight(const Tensor& grad_output, const Tensor& input, IntList weight_size,
                               IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const char* op = "_conv2d_backward_weight";
  const Geometry g =
      conv::geometry(op, input.sizes(), weight_size, {stride, padding, dilation, groups});
  check_dtypes(op, grad_output, input);
  check_grad(op, g, grad_output, input.sizes().size());
  const Tensor grad = operand(grad_output), x = operand(input);
  Tensor out = Tensor::empty(weight_size, grad.dtype(), grad.device(), op);
  conv::dispatch_conv(op, grad.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    backward_weight(g, grad.data_as<const T>(), x.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
