// Convolution in two dimensions and its gradients: unroll each image, then one matrix product.
//
// The three operators here are each other's gradients, so second derivatives need nothing more.
#include "ops/conv.h"

#include "core/thread_pool.h"
#include "native.h"
#include "ops.h"
#include "ops/blas.h"
#include "ops/conv_depthwise.h"
#include "ops/scratch.h"
#include "ops/views.h"

namespace weft::native {
namespace {

using conv::Geometry;
using conv::Window;

template <class T>
blas::Matrix<const T> rows(const T* data, int64_t columns) {
  return {data, columns, 1};
}

// The image as the product reads it: itself for a pointwise kernel, else unrolled into `columns`.
template <class T>
const T* unrolled(const Geometry& g, const T* image, T* columns) {
  if (g.is_pointwise()) return image;
  conv::unroll(g, image, columns);
  return columns;
}

template <class T>
int64_t scratch_size(const Geometry& g) {
  return g.is_pointwise() ? 0 : g.depth() * g.positions() + blas::kSlack;
}

// out = a @ b + beta * out where b is dense. One image of a batch runs on this thread; a lone one on
// all of them.
template <class T>
void product(const Geometry& g, int64_t m, int64_t k, blas::Matrix<const T> a, const T* b,
             int64_t slack, T beta, T* out) {
  const int64_t n = g.positions();
  if (g.batch * g.groups >= num_threads()) {
    blas::gemm_dense<T>(m, n, k, a, b, slack, beta, out);
  } else {
    blas::gemm<T>(m, n, k, T(1), a, rows(b, n), beta, out, n);
  }
}

// Runs body(image, group) for all images and groups: threads take whole ones when there are enough,
// else each product is cut.
template <class Fn>
void for_each_image(const Geometry& g, Fn&& body) {
  const int64_t count = g.batch * g.groups;
  auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / g.groups, i % g.groups);
  };
  if (count < num_threads()) return range(0, count);
  const int64_t work = std::max<int64_t>(1, g.group_out() * g.depth() * g.positions());
  parallel_for(count, (int64_t{1} << 17) / work + 1, range);
}

template <class T>
void forward(const Geometry& g, const T* input, const T* weight, const T* bias, T* out) {
  if (g.is_depthwise()) return conv::depthwise_forward(g, input, weight, bias, out);
  for_each_image(g, [&](int64_t n, int64_t group) {
    Scratch<T> scratch(scratch_size<T>(g));
    const int64_t first = group * g.group_out();
    const T* image = input + (n * g.in_channels + group * g.group_in()) * g.in_plane();
    T* to = out + (n * g.out_channels + first) * g.positions();
    for (int64_t o = 0; o < g.group_out() && bias; ++o) {
      std::fill_n(to + o * g.positions(), g.positions(), bias[first + o]);
    }
    product<T>(g, g.group_out(), g.depth(), rows(weight + first * g.depth(), g.depth()),
               unrolled(g, image, scratch.data()), g.is_pointwise() ? 0 : blas::kSlack,
               T(bias ? 1 : 0), to);
  });
}

template <class T>
void backward_input(const Geometry& g, const T* grad, const T* weight, T* out) {
  if (g.is_depthwise()) return conv::depthwise_backward_input(g, grad, weight, out);
  for_each_image(g, [&](int64_t n, int64_t group) {
    Scratch<T> scratch(scratch_size<T>(g));
    const int64_t first = group * g.group_out();
    T* image = out + (n * g.in_channels + group * g.group_in()) * g.in_plane();
    T* columns = g.is_pointwise() ? image : scratch.data();
    product<T>(g, g.depth(), g.group_out(),
               rows(weight + first * g.depth(), g.depth()).transposed(),
               grad + (n * g.out_channels + first) * g.positions(), 0, T(0), columns);
    if (columns == image) return;
    std::fill_n(image, g.group_in() * g.in_plane(), T(0));
    conv::unroll_add(g, columns, image);
  });
}

// Adds the gradients of images [begin, end) to out.
template <class T>
void backward_weight_of(const Geometry& g, int64_t begin, int64_t end, const T* grad, const T* input,
                        T* out) {
  Scratch<T> scratch(scratch_size<T>(g));
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t group = 0; group < g.groups; ++group) {
      const int64_t first = group * g.group_out();
      const T* image = input + (n * g.in_channels + group * g.group_in()) * g.in_plane();
      blas::gemm<T>(g.group_out(), g.depth(), g.positions(), T(1),
                    rows(grad + (n * g.out_channels + first) * g.positions(), g.positions()),
                    rows(unrolled(g, image, scratch.data()), g.positions()).transposed(), T(1),
                    out + first * g.depth(), g.depth());
    }
  }
}

template <class T>
void backward_weight(const Geometry& g, const T* grad, const T* input, T* out) {
  if (g.is_depthwise()) return conv::depthwise_backward_weight(g, grad, input, out);
  const int64_t count = g.out_channels * g.depth();
  std::fill_n(out, count, T(0));
  const int64_t pieces = std::min<int64_t>(g.batch, num_threads());
  if (pieces <= 1) return backward_weight_of(g, 0, g.batch, grad, input, out);
  // Each thread sums its images into memory of its own; the sums are added in order.
  Scratch<T> partial((pieces - 1) * count);
  std::fill_n(partial.data(), (pieces - 1) * count, T(0));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      backward_weight_of(g, g.batch * p / pieces, g.batch * (p + 1) / pieces, grad, input,
                         p == 0 ? out : partial.data() + (p - 1) * count);
    }
  });
  for (int64_t p = 1; p < pieces; ++p) {
    const T* sums = partial.data() + (p - 1) * count;
    for (int64_t i = 0; i < count; ++i) out[i] += sums[i];
  }
}

void check_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, ": expected tensors of one dtype, got ", a.dtype(), " and ",
             b.dtype());
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
  const Geometry g = conv::geometry("conv2d", input.sizes(), weight.sizes(),
                                    {stride, padding, dilation, groups});
  check_dtypes("conv2d", input, weight);
  if (bias.defined()) {
    check_dtypes("conv2d", input, bias);
    WEFT_CHECK(bias.dim() == 1 && bias.numel() == g.out_channels,
               "conv2d: expected a bias of shape (", g.out_channels, ",), got ",
               AsTuple{bias.sizes()});
  }
  Dims sizes{g.batch, g.out_channels, g.out_height, g.out_width};
  if (input.dim() == 3) sizes.erase(0);
  const Tensor x = operand(input), w = operand(weight);
  const Tensor b = bias.defined() ? operand(bias) : Tensor();
  Tensor out = Tensor::empty(sizes, x.dtype(), {}, "conv2d");
  conv::dispatch_conv("conv2d", x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    forward(g, x.data_as<const T>(), w.data_as<const T>(),
            b.defined() ? b.data_as<const T>() : nullptr, out.data_as<T>());
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
  Tensor out = Tensor::empty(input_size, grad.dtype(), {}, op);
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
  Tensor out = Tensor::empty(weight_size, grad.dtype(), {}, op);
  conv::dispatch_conv(op, grad.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    backward_weight(g, grad.data_as<const T>(), x.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
