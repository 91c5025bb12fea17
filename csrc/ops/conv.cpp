// Convolution in two dimensions and its gradients: which way each takes.
//
// The three operators here are each other's gradients, so second derivatives need nothing more.
#include "ops/conv.h"

#include "native_convolution.h"
#include "ops/blas.h"
#include "ops/conv_channels.h"
#include "ops/conv_gradients.h"
#include "ops/conv_grouped.h"
#include "ops/conv_planes.h"
#include "ops/conv_winograd.h"
#include "ops/factory.h"
#include "ops/gemm.h"
#include "ops/views.h"
#include "ops_activations.h"
#include "ops_arithmetic.h"
#include "ops_clamp_where.h"
#include "ops_copying.h"

namespace weft::native {
namespace {

using conv::Geometry;

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

// By channels; small numbers at whole words.
Tensor by_rows(const Tensor& images) {
  const bool is_aligned = images.offset() * images.item_size() % sizeof(float) == 0;
  if (goes_by_channels(images) && is_aligned) return images;
  return ops::clone(images, static_cast<int64_t>(MemoryFormat::ChannelsLast));
}

// Whether the result lies by channels: where one of the operands does, and is no signal.
bool keeps_channels(const Geometry& g, const Tensor& images, const Tensor& weight) {
  const bool has_lines = images.dim() == 4 && (g.height > 1 || g.kernel_h > 1);
  return has_lines && (goes_by_channels(images) || goes_by_channels(weight));
}

// What the loops over planes gave, in the order of the operands.
Tensor laid_out(const Geometry& g, const Tensor& out, const Tensor& images, const Tensor& weight) {
  return keeps_channels(g, images, weight) ? by_rows(out) : out;
}

// Whether the product goes over channels that lie together. A pointwise kernel multiplies planes
// where they lie.
bool multiplies_channels(const Geometry& g, const Tensor& input, const Tensor& weight) {
  if (input.dtype() != DType::F32 || !conv::fits_channels(g)) return false;
  return goes_by_channels(input) || goes_by_channels(weight) ||
         !(g.is_pointwise() || (g.stride_w == 1 && g.is_single_channel()));
}

// Whether groups have vectors over all channels.
bool fits_grouped(const Geometry& g, const Tensor& images) {
  return images.dtype() == DType::F32 && images.dim() == 4 && conv::fits_grouped(g);
}
// Whether images in planes are worth a copy for that. Planes have vectors of their own over columns
// beside each other for groups of one channel.
bool regroups(const Geometry& g, const Tensor& images) {
  return fits_grouped(g, images) && (g.stride_w > 1 || !g.is_depthwise());
}

// Whether the loops over channels make a result that lies so.
bool gives_channels(const Geometry& g, const Tensor& input, const Tensor& weight) {
  return keeps_channels(g, input, weight) &&
         (fits_grouped(g, input) || multiplies_channels(g, input, weight));
}

// float32, uninitialised.
Tensor empty_in(const char* op, IntList sizes, MemoryFormat format, Device device) {
  return make_empty(op, sizes, {DType::F32, {}, device, {}, static_cast<int64_t>(format)});
}

Tensor by_channels(const Geometry& g, const Tensor& input, const Tensor& weight,
                   const blas::Sink& sink) {
  const Tensor x = by_rows(input);
  const Dims sizes{g.batch, g.out_channels, g.out_height, g.out_width};
  Tensor out = empty_in("conv2d", sizes, MemoryFormat::ChannelsLast, input.device());
  if (out.numel() == 0) return out;
  (conv::fits_grouped(g) ? conv::grouped_forward : conv::channels_forward)(
      g, x.data_as<const float>(), weight, sink, out.data_as<float>());
  return out;
}

// Whether bfloat16 channels that lie together are multiplied in pairs.
bool multiplies_channel_pairs(const Geometry& g, const Tensor& input) {
  return multiplies_in_pairs(input.dtype()) && input.dim() == 4 && g.group_in() % 2 == 0 &&
         conv::fits_channels(g) && !conv::fits_grouped(g);
}

Tensor by_channel_pairs(const Geometry& g, const Tensor& input, const Tensor& weight,
                        const float* bias) {
  const Tensor x = by_rows(input);
  const Dims sizes{g.batch, g.out_channels, g.out_height, g.out_width};
  const Tensor sums = empty_in("conv2d", sizes, MemoryFormat::ChannelsLast, input.device());
  if (sums.numel() > 0) {
    conv::channel_pairs_forward(g, x.data_as<const BFloat16>(), weight, {bias},
                                sums.data_as<float>());
  }
  const Tensor out = as_dtype(sums, input.dtype());
  return keeps_channels(g, input, weight) ? out : in_order(out);
}

// The checked geometry of conv2d.
Geometry checked(const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const conv::Window& window) {
  const Geometry g = conv::geometry("conv2d", input.sizes(), weight.sizes(), window);
  check_dtypes("conv2d", input, weight);
  if (!std::ranges::all_of(window.dilation, [](int64_t step) { return step == 1; })) {
    conv::check_not_short("conv2d", input, "a dilation");
  }
  if (bias.defined()) {
    check_dtypes("conv2d", input, bias);
    WEFT_CHECK(bias.dim() == 1 && bias.numel() == g.out_channels,
               "conv2d: expected a bias of shape (", g.out_channels, ",), got ",
               AsTuple{bias.sizes()});
  }
  return g;
}

// What a convolution adds up in, to be cast back: integers of one or two bytes in 32 bits, whose
// overflow wraps as theirs would.
DType sums_type(DType dtype) {
  const bool narrow = dtype == DType::U8 || dtype == DType::I8 || dtype == DType::I16;
  return narrow ? DType::I32 : compute_type(dtype);
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  const Geometry g = checked(input, weight, bias, {stride, padding, dilation, groups});
  const Tensor b = bias.defined() ? operand(bias) : Tensor();
  const bool keeps = gives_channels(g, input, weight);
  if (keeps || regroups(g, input)) {
    const Tensor out =
        by_channels(g, input, weight, {b.defined() ? b.data_as<const float>() : nullptr});
    return keeps ? out : in_order(out);
  }
  if (multiplies_channel_pairs(g, input)) {
    return by_channel_pairs(g, input, weight, b.defined() ? b.data_as<const float>() : nullptr);
  }
  if (const DType compute = sums_type(input.dtype()); compute != input.dtype()) {
    const Tensor own = b.defined() ? as_dtype(b, compute) : b;
    const Tensor sums = conv2d(as_dtype(input, compute), as_dtype(weight, compute), own, stride,
                               padding, dilation, groups);
    return as_dtype(sums, input.dtype());
  }
  Dims sizes{g.batch, g.out_channels, g.out_height, g.out_width};
  if (input.dim() == 3) sizes.erase(0);
  const Tensor x = operand(input);
  Tensor out = Tensor::empty(sizes, x.dtype(), x.device(), "conv2d");
  if (multiplies_channels(g, input, weight)) {
    const float* start = b.defined() ? b.data_as<const float>() : nullptr;
    conv::planes_forward(g, x.data_as<const float>(), weight, start, out.data_as<float>());
    return out;
  }
  conv::unrolled_planes_forward("conv2d", g, x, operand(weight), b, out);
  return laid_out(g, out, input, weight);
}

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// conv2d plus the residual, held between 0 and `high` where there is one.
Tensor sum_of(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& residual,
              std::optional<double> high, const conv::Window& window) {
  const Geometry g = checked(input, weight, bias, window);
  const Dims sizes{g.batch, g.out_channels, g.out_height, g.out_width};
  const bool lies_so =
      !residual.defined() || (residual.layout().has_format(MemoryFormat::ChannelsLast) &&
                              residual.sizes() == sizes && residual.dtype() == DType::F32);
  if (lies_so && gives_channels(g, input, weight)) {
    const Tensor b = bias.defined() ? operand(bias) : Tensor();
    return by_channels(g, input, weight,
                       {b.defined() ? b.data_as<const float>() : nullptr,
                        residual.defined() ? residual.data_as<const float>() : nullptr,
                        high.has_value(), static_cast<float>(high.value_or(0))});
  }
  Tensor out =
      conv2d(input, weight, bias, window.stride, window.padding, window.dilation, window.groups);
  if (residual.defined()) out = ops::add(out, residual);
  if (high) out = ops::relu(out);
  return high && *high < kNoLimit ? ops::clamp_max(out, *high) : out;
}

}  // namespace

Tensor _conv2d_sum(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const Tensor& residual, bool relu, IntList stride, IntList padding,
                   IntList dilation, int64_t groups) {
  return sum_of(input, weight, bias, residual, relu ? std::optional(kNoLimit) : std::nullopt,
                {stride, padding, dilation, groups});
}
Tensor _conv2d_sum_high(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        const Tensor& residual, double high, IntList stride, IntList padding,
                        IntList dilation, int64_t groups) {
  return sum_of(input, weight, bias, residual, high, {stride, padding, dilation, groups});
}

namespace {

// Whether gradients of bfloat16 images are sums of products of pairs.
bool multiplies_gradient_pairs(const Geometry& g, const Tensor& images) {
  return multiplies_in_pairs(images.dtype()) && images.dim() == 4 && g.group_out() % 2 == 0 &&
         !conv::fits_grouped(g);
}

}  // namespace

Tensor _conv2d_backward_input(const Tensor& grad_output, const Tensor& weight, IntList input_size,
                              IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const char* op = "_conv2d_backward_input";
  const Geometry g =
      conv::geometry(op, input_size, weight.sizes(), {stride, padding, dilation, groups});
  check_dtypes(op, grad_output, weight);
  check_grad(op, g, grad_output, input_size.size());
  const DType dtype = grad_output.dtype();
  const bool in_pairs = multiplies_gradient_pairs(g, grad_output);
  if (in_pairs || regroups(g, grad_output) ||
      (dtype == DType::F32 && goes_by_channels(grad_output))) {
    const Tensor grad = by_rows(grad_output);
    const Tensor out = empty_in(op, input_size, MemoryFormat::ChannelsLast, grad.device());
    if (conv::channels_backward_input(g, grad, weight, out.data_as<float>())) {
      const Tensor result = as_dtype(out, dtype);
      return goes_by_channels(grad_output) || goes_by_channels(weight) ? result : in_order(result);
    }
  }
  if (const DType compute = compute_type(dtype); compute != dtype) {
    const Tensor sums =
        _conv2d_backward_input(as_dtype(grad_output, compute), as_dtype(weight, compute),
                               input_size, stride, padding, dilation, groups);
    return as_dtype(sums, dtype);
  }
  const Tensor grad = operand(grad_output);
  Tensor out = Tensor::empty(input_size, dtype, grad.device(), op);
  if (dtype == DType::F32 && conv::fits_winograd(g)) {
    conv::planes_backward_input(g, grad.data_as<const float>(), weight, out.data_as<float>());
    return laid_out(g, out, grad_output, weight);
  }
  conv::unrolled_planes_backward_input(op, g, grad, operand(weight), out);
  return laid_out(g, out, grad_output, weight);
}

namespace {

// By channels: for a weight in that order, too, where the input lies so.
Tensor weight_gradient(const char* op, const Geometry& g, const Tensor& grad_output,
                       const Tensor& input, IntList weight_size) {
  const bool keeps_planes = !goes_by_channels(grad_output) && grad_output.dtype() == DType::F32;
  const Tensor grad = keeps_planes ? in_order(grad_output) : by_rows(grad_output);
  const Tensor x = by_rows(input);
  const Tensor out = empty_in(op, weight_size, MemoryFormat::ChannelsLast, grad.device());
  conv::channels_backward_weight(g, grad, x, out.data_as<float>());
  const Tensor result = as_dtype(out, input.dtype());
  return goes_by_channels(input) ? result : in_order(result);
}

}  // namespace

Tensor _conv2d_backward_weight(const Tensor& grad_output, const Tensor& input, IntList weight_size,
                               IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const char* op = "_conv2d_backward_weight";
  const Geometry g =
      conv::geometry(op, input.sizes(), weight_size, {stride, padding, dilation, groups});
  check_dtypes(op, grad_output, input);
  check_grad(op, g, grad_output, input.sizes().size());
  const bool in_rows = goes_by_channels(input) || (g.taps() > 1 && g.group_out() >= 128);
  const bool fits = (input.dtype() == DType::F32 && input.dim() == 4 && in_rows) ||
                    multiplies_gradient_pairs(g, input);
  if (fits && conv::fits_weight_gradient(g)) {
    return weight_gradient(op, g, grad_output, input, weight_size);
  }
  const DType compute = compute_type(input.dtype());
  if (compute == DType::F32 && input.dim() == 4 && conv::fits_grouped(g)) {
    const Tensor grad = by_rows(as_dtype(grad_output, compute)),
                 x = by_rows(as_dtype(input, compute));
    const Tensor out = Tensor::empty(weight_size, compute, grad.device(), op);
    conv::grouped_backward_weight(g, grad.data_as<const float>(), x.data_as<const float>(),
                                  out.data_as<float>());
    return as_dtype(laid_out(g, out, input, grad_output), input.dtype());
  }
  const Tensor grad = operand(grad_output), x = operand(input);
  Tensor out = Tensor::empty(weight_size, grad.dtype(), grad.device(), op);
  conv::unrolled_planes_backward_weight(op, g, grad, x, out);
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
