// Operators made of other operators: autograd follows the calls inside, so they have no gradient
// formula of their own.
#include "native_convolution.h"
#include "native_indexing.h"
#include "ops.h"
#include "ops/conv.h"
#include "ops/donation.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// A vector of channels in the shape that broadcasts against (N, C, ...).
Tensor per_channel(const Tensor& vector, int64_t dims) {
  Dims sizes(static_cast<size_t>(dims), 1);
  sizes[1] = vector.numel();
  return ops::view(vector, sizes);
}

// All dimensions but the channels.
Dims other_dims(int64_t dims) {
  Dims result;
  for (int64_t d = 0; d < dims; ++d) {
    if (d != 1) result.push_back(d);
  }
  return result;
}

Tensor channel_sum(const Tensor& tensor) {
  return ops::sum(tensor, IntList(other_dims(tensor.dim())), true, std::nullopt);
}

// Nothing to normalise, and no statistics; as in PyTorch even without channels. Weight and bias
// take part, for their gradients are zeros.
Tensor batch_norm_of_nothing(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  Tensor out = ops::clone(input);
  if (weight.defined() && weight.numel() > 0) out = ops::mul(out, ops::select(weight, 0, 0));
  if (bias.defined() && bias.numel() > 0) out = ops::add(out, ops::select(bias, 0, 0), Scalar(1));
  return out;
}

// Vectors are of the input's dtype; of float32 all may be beside 16 bits.
void check_dtypes_of_vectors(const Tensor& input, std::initializer_list<const Tensor*> vectors) {
  WEFT_CHECK_AS(NotImplemented, is_floating(input.dtype()),
                "batch_norm: expected a floating dtype, got ", input.dtype());
  const bool narrow = input.dtype() == DType::F16 || input.dtype() == DType::BF16;
  std::optional<DType> first;
  for (const Tensor* vector : vectors) {
    if (!vector->defined()) continue;
    const DType found = vector->dtype();
    const bool fits = found == input.dtype() || (narrow && found == DType::F32);
    WEFT_CHECK(fits && found == first.value_or(found), "batch_norm: expected vectors of dtype ",
               input.dtype(), narrow ? " or all of float32" : "", ", got ", found);
    first = found;
  }
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, bool) {
  if (input.numel() == 0) return batch_norm_of_nothing(input, weight, bias);
  WEFT_CHECK(input.dim() >= 2, "batch_norm: expected an input of shape (N, C, ...), got ",
             AsTuple{input.sizes()});
  check_dtypes_of_vectors(input, {&running_mean, &running_var, &weight, &bias});
  if (training) {
    const tile::Donation none(nullptr);  // the input is read again behind its first result
    return std::get<0>(
        ops::_batch_norm_train(input, weight, bias, running_mean, running_var, momentum, eps));
  }
  WEFT_CHECK(running_mean.defined() && running_var.defined(),
             "batch_norm: expected running_mean and running_var when not training, got none");
  const int64_t channels[] = {input.sizes()[1]};
  for (const Tensor* vector : {&running_mean, &running_var, &weight, &bias}) {
    WEFT_CHECK(!vector->defined() || same(vector->sizes(), channels),
               "batch_norm: expected vectors of shape (", channels[0], ",), got ",
               AsTuple{vector->sizes()});
  }
  // Of 16 bits, too, in float32: input * scale and shift may be far larger than their sum.
  const DType wide = compute_type(input.dtype());
  Tensor scale = ops::rsqrt(ops::add(ops::to(running_var, wide), Scalar(eps), Scalar(1)));
  if (weight.defined()) scale = ops::mul(scale, ops::to(weight, wide));
  Tensor shift = ops::neg(ops::mul(ops::to(running_mean, wide), scale));
  if (bias.defined()) shift = ops::add(shift, ops::to(bias, wide), Scalar(1));
  const int64_t dims = input.dim();
  const Tensor laid =
      ops::contiguous(input, static_cast<int64_t>(input.layout().suggested_format()));
  const Tensor out =
      ops::addcmul(per_channel(shift, dims), laid, per_channel(scale, dims), Scalar(1));
  return ops::to(out, input.dtype());
}

// The gradient of _batch_norm_backward to (grad_output, input, weight), given the gradients to its
// results. With n values a channel, x' the normalised input, r = invstd and <.> the channel mean:
//   grad_input = w r (g - <g> - x' <g x'>), grad_weight = n <g x'>, grad_bias = n <g>,
// where x' and r depend on the input themselves.
std::tuple<Tensor, Tensor, Tensor> _batch_norm_double_backward(
    const Tensor& ggi, const Tensor& ggw, const Tensor& ggb, const Tensor& grad_output,
    const Tensor& input, const Tensor& weight, const Tensor& mean, const Tensor& invstd) {
  const int64_t dims = input.dim();
  const Tensor &g = grad_output, r = per_channel(invstd, dims);
  const Tensor normalised = ops::mul(ops::sub(input, per_channel(mean, dims), Scalar(1)), r);
  const Scalar per_count(1.0 /
                         std::max(1.0, static_cast<double>(input.numel() / input.sizes()[1])));
  auto mean_of = [&](const Tensor& tensor) { return ops::mul(channel_sum(tensor), per_count); };
  auto plus = [](const Tensor& a, const Tensor& b) {
    return a.defined() ? ops::add(a, b, Scalar(1)) : b;
  };
  auto minus = [](const Tensor& a, const Tensor& b) { return ops::sub(a, b, Scalar(1)); };
  // a - <a> - x' <a x'>: what normalising does to a direction.
  auto centred = [&](const Tensor& a, const Tensor& along) {
    return minus(minus(a, mean_of(a)), ops::mul(normalised, along));
  };
  const Tensor gx = mean_of(ops::mul(g, normalised));
  const Tensor scale = weight.defined() ? ops::mul(per_channel(weight, dims), r) : r;
  Tensor to_grad, to_normalised, to_input, to_weight;
  if (ggi.defined()) {
    const Tensor ux = mean_of(ops::mul(ggi, normalised));
    const Tensor centred_grad = centred(g, gx);
    to_grad = ops::mul(scale, centred(ggi, ux));
    const Tensor product = channel_sum(ops::mul(ggi, centred_grad));  // per channel
    to_weight = ops::mul(product, r);
    to_normalised = ops::neg(ops::mul(scale, plus(ops::mul(ggi, gx), ops::mul(g, ux))));
    // Through the factor r in front.
    const Tensor through_r = ops::mul(ops::mul(ops::mul(scale, r), product), per_count);
    to_input = ops::neg(ops::mul(normalised, through_r));
  }
  if (ggw.defined()) {
    const Tensor along = per_channel(ggw, dims);
    to_grad = plus(to_grad, ops::mul(along, normalised));
    to_normalised = plus(to_normalised, ops::mul(along, g));
  }
  if (ggb.defined()) {
    to_grad = plus(to_grad, ops::expand(per_channel(ggb, dims), input.sizes(), false));
  }
  if (to_normalised.defined()) {
    const Tensor along = mean_of(ops::mul(to_normalised, normalised));
    to_input = plus(to_input, ops::mul(r, centred(to_normalised, along)));
  }
  if (to_weight.defined() && weight.defined()) to_weight = ops::view(to_weight, weight.sizes());
  return {to_grad, to_input, to_weight};
}

Tensor _embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                  bool scale_grad_by_freq) {
  Tensor rows = ops::embedding(grad, indices, padding_idx, false, false);
  if (scale_grad_by_freq) {
    const int64_t all[] = {-1};
    const Tensor flat = ops::reshape(indices, all);
    const Tensor uses = ops::index_select(ops::bincount(flat, {}, 0), 0, flat);
    rows = ops::div(rows, ops::unsqueeze(ops::reshape(uses, indices.sizes()), -1));
  }
  if (padding_idx < 0) return rows;
  const Tensor padding = ops::unsqueeze(ops::eq(indices, Scalar(padding_idx)), -1);
  return ops::masked_fill(rows, padding, Scalar(0));
}

namespace {

// Padding that keeps the size: half on each side, the odd one behind.
struct SamePadding {
  int64_t before, after;
};
SamePadding same_padding(int64_t kernel, int64_t dilation) {
  const int64_t total = dilation * (kernel - 1);
  return {total / 2, total - total / 2};
}

// The input with `extra` zeros behind along dim.
Tensor padded_behind(const Tensor& input, int64_t dim, int64_t extra) {
  if (extra == 0) return input;
  Dims sizes = input.sizes();
  sizes[static_cast<size_t>(input.dim() + dim)] = extra;
  return ops::cat({input, zeros_of(sizes, input.dtype(), input.device(), "conv2d")}, dim);
}

Dims both(IntList values) { return values.size() == 1 ? Dims{values[0], values[0]} : Dims(values); }

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              const std::string& padding, IntList dilation, int64_t groups) {
  if (padding == "valid") {
    return ops::conv2d(input, weight, bias, stride, Dims{0, 0}, dilation, groups);
  }
  WEFT_CHECK(padding == "same", "conv2d: expected padding \"valid\" or \"same\", got \"", padding,
             "\"");
  WEFT_CHECK(weight.dim() == 4, "conv2d: expected a weight of shape (O, C / groups, kH, kW), got ",
             AsTuple{weight.sizes()});
  WEFT_CHECK(input.dim() >= 3, "conv2d: expected an input of shape (N, C, H, W) or (C, H, W), got ",
             AsTuple{input.sizes()});
  for (int64_t step : stride) {
    WEFT_CHECK(step == 1, "conv2d: expected stride 1 with padding \"same\", got ", AsTuple{stride});
  }
  const SamePadding h =
      same_padding(weight.sizes()[2], conv::pair_at("conv2d", "dilation", dilation, 0));
  const SamePadding w =
      same_padding(weight.sizes()[3], conv::pair_at("conv2d", "dilation", dilation, 1));
  const Tensor padded =
      padded_behind(padded_behind(input, -2, h.after - h.before), -1, w.after - w.before);
  return ops::conv2d(padded, weight, bias, stride, Dims{h.before, w.before}, dilation, groups);
}

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  const char* op = "conv_transpose2d";
  WEFT_CHECK(input.dim() == 3 || input.dim() == 4, op,
             ": expected an input of shape (N, C, H, W) or (C, H, W), got ",
             AsTuple{input.sizes()});
  WEFT_CHECK(weight.dim() == 4 && weight.sizes()[0] == input.size(-3) && groups >= 1, op,
             ": expected a weight of shape (C, O / groups, kH, kW) for input ",
             AsTuple{input.sizes()}, ", got ", AsTuple{weight.sizes()});
  conv::check_not_short(op, input, "a transpose");
  const int64_t channels = weight.sizes()[1] * groups;
  WEFT_CHECK(!bias.defined() || (bias.dim() == 1 && bias.numel() == channels), op,
             ": expected a bias of shape (", channels, ",), got ", AsTuple{bias.sizes()});
  WEFT_CHECK(!bias.defined() || bias.dtype() == input.dtype(), op, ": expected a bias of dtype ",
             input.dtype(), ", got ", bias.dtype());
  Dims sizes = input.sizes();
  Tensor widened = input;
  const auto rows = static_cast<size_t>(input.dim() - 2);
  sizes[rows - 1] = channels;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t step = conv::checked_pair(op, "stride", stride, d, 1),
                  spread = conv::checked_pair(op, "dilation", dilation, d, 1),
                  extra = conv::pair_at(op, "output_padding", output_padding, d);
    WEFT_CHECK(extra >= 0 && (extra < step || extra < spread), op,
               ": expected output_padding smaller than stride or dilation, got ",
               AsTuple{output_padding});
    sizes[rows + d] = (input.sizes()[rows + d] - 1) * step -
                      2 * conv::checked_pair(op, "padding", padding, d, 0) +
                      spread * (weight.sizes()[2 + d] - 1) + extra + 1;
    WEFT_CHECK(sizes[rows + d] > 0, op, ": expected a positive output size, got ", sizes[rows + d]);
    // A whole step or more of extra output has inputs of its own: zeros.
    widened = padded_behind(widened, static_cast<int64_t>(d) - 2, extra / step);
  }
  const Tensor out = ops::_conv2d_backward_input(widened, weight, sizes, both(stride),
                                                 both(padding), both(dilation), groups);
  if (!bias.defined()) return out;
  return ops::add(out, ops::view(bias, Dims{bias.numel(), 1, 1}), Scalar(1));
}

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  WEFT_CHECK((input.dim() == 2 || input.dim() == 3) && weight.dim() == 3,
             "conv1d: expected an input of shape (N, C, L) or (C, L) and a weight (O, C / groups, "
             "k), got ",
             AsTuple{input.sizes()}, " and ", AsTuple{weight.sizes()});
  WEFT_CHECK(stride.size() == 1 && padding.size() == 1 && dilation.size() == 1,
             "conv1d: expected one value of stride, padding and dilation, got ", AsTuple{stride},
             ", ", AsTuple{padding}, " and ", AsTuple{dilation});
  const Tensor out =
      ops::conv2d(ops::unsqueeze(input, -2), ops::unsqueeze(weight, -2), bias, Dims{1, stride[0]},
                  Dims{0, padding[0]}, Dims{1, dilation[0]}, groups);
  return ops::squeeze(out, -2);
}

}  // namespace weft::native
