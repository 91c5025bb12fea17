// at:: functions of networks that weft's table has no operator of: said in terms of those it has.
#pragma once

#include "autograd.h"

namespace at {
inline namespace over_weft {

namespace detail {

using OptionalTensor = std::optional<Tensor>;

inline const OptionalTensor& defined(const OptionalTensor& tensor) {
  static const OptionalTensor none;
  return tensor && tensor->defined() ? tensor : none;
}
inline Tensor reduced(const Tensor& loss, int64_t reduction) {
  return reduction == 0 ? loss : reduction == 1 ? loss.mean() : loss.sum();
}
// Entries of a padded dim by window: [kernel, windows], flattened.
inline Tensor windows(int64_t size, int64_t kernel, int64_t dilation, int64_t stride) {
  const int64_t count = (size - dilation * (kernel - 1) - 1) / stride + 1;
  TORCH_CHECK(size > dilation * (kernel - 1), "conv3d: expected a kernel within the input, got ",
              kernel, " of ", size);
  return ((arange(kernel) * dilation).unsqueeze(1) + arange(count) * stride).flatten();
}
inline IntArrayRef rest(IntArrayRef numbers) { return numbers.slice(1); }

}  // namespace detail

// ---- convolutions ----

// The windows along the depth become channels of a convolution in two dims.
inline Tensor conv3d(const Tensor& input, const Tensor& weight,
                     const std::optional<Tensor>& bias = std::nullopt,
                     IntArrayRef stride = {1, 1, 1}, IntArrayRef padding = {0, 0, 0},
                     IntArrayRef dilation = {1, 1, 1}, int64_t groups = 1) {
  if (input.dim() == 4) {
    return conv3d(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0);
  }
  const int64_t n = input.size(0), channels = input.size(1), kernel = weight.size(2);
  const Tensor padded = constant_pad_nd(input, {0, 0, 0, 0, padding[0], padding[0]});
  const Tensor places = detail::windows(padded.size(2), kernel, dilation[0], stride[0]);
  const int64_t depth = places.numel() / kernel, h = input.size(3), w = input.size(4);
  const Tensor planes = padded.index_select(2, places)
                            .reshape({n, channels, kernel, depth, h, w})
                            .permute({0, 3, 1, 2, 4, 5})
                            .reshape({n * depth, channels * kernel, h, w});
  const Tensor made = conv2d(planes, weight.flatten(1, 2), bias, detail::rest(stride),
                             detail::rest(padding), detail::rest(dilation), groups);
  return made.reshape({n, depth, made.size(1), made.size(2), made.size(3)})
      .transpose(1, 2)
      .contiguous();
}
inline Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias = std::nullopt,
                               IntArrayRef stride = {1}, IntArrayRef padding = {0},
                               IntArrayRef output_padding = {0}, int64_t groups = 1,
                               IntArrayRef dilation = {1}) {
  return conv_transpose2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, {1, stride[0]},
                          {0, padding[0]}, {0, output_padding[0]}, groups, {1, dilation[0]})
      .squeeze(-2);
}
// Each plane of the input adds to as many planes of the result as the kernel is deep.
inline Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                               const std::optional<Tensor>& bias = std::nullopt,
                               IntArrayRef stride = {1, 1, 1}, IntArrayRef padding = {0, 0, 0},
                               IntArrayRef output_padding = {0, 0, 0}, int64_t groups = 1,
                               IntArrayRef dilation = {1, 1, 1}) {
  const int64_t n = input.size(0), depth = input.size(2), kernel = weight.size(2),
                channels = weight.size(1) * groups;
  Tensor made = conv_transpose2d(input.transpose(1, 2).flatten(0, 1), weight.flatten(1, 2), {},
                                 detail::rest(stride), detail::rest(padding),
                                 detail::rest(output_padding), groups, detail::rest(dilation));
  const int64_t h = made.size(-2), w = made.size(-1);
  made = made.reshape({n, depth, channels, kernel, h, w}).permute({0, 2, 3, 1, 4, 5}).flatten(2, 3);
  const int64_t size =
      (depth - 1) * stride[0] - 2 * padding[0] + dilation[0] * (kernel - 1) + output_padding[0] + 1;
  const Tensor places =
      ((arange(kernel) * dilation[0]).unsqueeze(1) + arange(depth) * stride[0]).flatten();
  made = zeros({n, channels, size + 2 * padding[0], h, w}, input.options())
             .index_add(2, places, made)
             .narrow(2, padding[0], size);
  const auto& added = detail::defined(bias);
  return (added ? made + added->reshape({-1, 1, 1, 1}) : made).contiguous();
}

// ---- pooling: a dim of size 1 is added, or two of three pooled after the other ----

inline Tensor max_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                         IntArrayRef padding = {0}, IntArrayRef dilation = {1},
                         bool ceil_mode = false) {
  return max_pool2d(self.unsqueeze(-2), {1, kernel_size[0]},
                    {1, stride.empty() ? kernel_size[0] : stride[0]}, {0, padding[0]},
                    {1, dilation[0]}, ceil_mode)
      .squeeze(-2);
}
inline Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                         IntArrayRef padding = {0}, bool ceil_mode = false,
                         bool count_include_pad = true) {
  return avg_pool2d(self.unsqueeze(-2), {1, kernel_size[0]},
                    {1, stride.empty() ? kernel_size[0] : stride[0]}, {0, padding[0]}, ceil_mode,
                    count_include_pad)
      .squeeze(-2);
}
inline Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size) {
  return adaptive_avg_pool2d(self.unsqueeze(-2), {1, output_size[0]}).squeeze(-2);
}

namespace detail {

// [.., d, h, w]: `planes` pools [x, h, w], `columns` pools [x, d, h w] along d alone.
template <class Planes, class Columns>
Tensor pool_volumes(const Tensor& self, Planes&& planes, Columns&& columns) {
  const int64_t depth = self.size(-3);
  std::vector<int64_t> sizes(self.sizes().begin(), self.sizes().end() - 3);
  const Tensor flat = planes(self.reshape({-1, self.size(-2), self.size(-1)}));
  const Tensor pooled = columns(flat.reshape({-1, depth, flat.size(1) * flat.size(2)}));
  sizes.insert(sizes.end(), {pooled.size(1), flat.size(1), flat.size(2)});
  return pooled.reshape(sizes);
}
// The largest of the parts that a dim is divided into.
inline Tensor adaptive_max(const Tensor& self, int64_t dim, int64_t count) {
  std::vector<Tensor> found;
  const int64_t size = self.size(dim);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = i * size / count, to = ((i + 1) * size + count - 1) / count;
    found.push_back(self.narrow(dim, from, to - from).amax({dim}, true));
  }
  return cat(found, dim);
}

}  // namespace detail

inline Tensor max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                         IntArrayRef padding = {0, 0, 0}, IntArrayRef dilation = {1, 1, 1},
                         bool ceil_mode = false) {
  const IntArrayRef step = stride.empty() ? kernel_size : stride;
  return detail::pool_volumes(
      self,
      [&](const Tensor& x) {
        return max_pool2d(x, detail::rest(kernel_size), detail::rest(step), detail::rest(padding),
                          detail::rest(dilation), ceil_mode);
      },
      [&](const Tensor& x) {
        return max_pool2d(x, {kernel_size[0], 1}, {step[0], 1}, {padding[0], 0}, {dilation[0], 1},
                          ceil_mode);
      });
}
inline Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},
                         IntArrayRef padding = {0, 0, 0}, bool ceil_mode = false,
                         bool count_include_pad = true) {
  const IntArrayRef step = stride.empty() ? kernel_size : stride;
  return detail::pool_volumes(
      self,
      [&](const Tensor& x) {
        return avg_pool2d(x, detail::rest(kernel_size), detail::rest(step), detail::rest(padding),
                          ceil_mode, count_include_pad);
      },
      [&](const Tensor& x) {
        return avg_pool2d(x, {kernel_size[0], 1}, {step[0], 1}, {padding[0], 0}, ceil_mode,
                          count_include_pad);
      });
}
inline Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  return detail::pool_volumes(
      self, [&](const Tensor& x) { return adaptive_avg_pool2d(x, detail::rest(output_size)); },
      [&](const Tensor& x) { return adaptive_avg_pool2d(x, {output_size[0], x.size(-1)}); });
}

// ---- activations ----

inline Tensor selu(const Tensor& self) {
  return elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946);
}
inline Tensor celu(const Tensor& self, const Scalar& alpha = 1.0) {
  return elu(self, alpha, 1.0, 1.0 / alpha.toDouble());
}
inline Tensor mish(const Tensor& self) { return self * softplus(self).tanh(); }
inline Tensor prelu(const Tensor& self, const Tensor& weight) {
  std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
  if (weight.numel() > 1) sizes[1] = weight.numel();
  return where(self > 0, self, weight.reshape(sizes) * self);
}
inline Tensor glu(const Tensor& self, int64_t dim = -1) {
  const std::vector<Tensor> halves = self.chunk(2, dim);
  return halves[0] * halves[1].sigmoid();
}
inline Tensor hardshrink(const Tensor& self, const Scalar& lambd = 0.5) {
  return where(self.abs() > lambd, self, zeros_like(self));
}
inline Tensor softshrink(const Tensor& self, const Scalar& lambd = 0.5) {
  return self.sign() * (self.abs() - lambd).clamp_min(0);
}
inline Tensor threshold(const Tensor& self, const Scalar& bound, const Scalar& value) {
  return where(self > bound, self, full({}, value, self.options()));
}

// ---- random zeros ----

namespace detail {

// As many numbers as the channels of each sample are 1 / (1 - p), the others 0.
inline Tensor channel_noise(const Tensor& input, double p) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  TORCH_CHECK(input.dim() > 1, "feature_dropout: expected at least 2 dims, got ", input.dim());
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return empty(sizes, input.options()).bernoulli_(1 - p).div_(1 - p);
}

}  // namespace detail

inline Tensor& dropout_(Tensor& self, double p, bool train) {
  return self.copy_(dropout(self, p, train));
}
inline Tensor feature_dropout(const Tensor& input, double p, bool train) {
  if (!train || p == 0) return input;
  return p == 1 ? input * 0 : input * detail::channel_noise(input, p);
}
// Keeps mean and variance of what selu gives.
inline Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  if (!train || p == 0) return input;
  const double alpha = 1.7580993408473766, a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor kept = empty_like(input).bernoulli_(1 - p);
  return input * (kept * a) + (kept.add(-1).mul_(alpha * a).add_(alpha * a * p));
}

// ---- normalisation ----

namespace detail {

inline Tensor affine(Tensor x, const OptionalTensor& weight, const OptionalTensor& bias) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()) - 1, 1);
  sizes[0] = -1;
  if (defined(weight)) x = x * weight->reshape(sizes);
  return defined(bias) ? x + bias->reshape(sizes) : x;
}

}  // namespace detail

inline Tensor group_norm(const Tensor& input, int64_t num_groups,
                         const std::optional<Tensor>& weight = std::nullopt,
                         const std::optional<Tensor>& bias = std::nullopt, double eps = 1e-5,
                         bool = true) {
  TORCH_CHECK(input.dim() > 1 && input.size(1) % num_groups == 0,
              "group_norm: expected groups that divide the channels of [n, c, ...], got ",
              num_groups, " for ", input.sizes());
  const Tensor groups = input.reshape({input.size(0), num_groups, -1});
  const Tensor made = layer_norm(groups, {groups.size(2)}, {}, {}, eps);
  return detail::affine(made.reshape(input.sizes()), weight, bias);
}
inline Tensor instance_norm(const Tensor& input, const std::optional<Tensor>& weight,
                            const std::optional<Tensor>& bias,
                            const std::optional<Tensor>& running_mean,
                            const std::optional<Tensor>& running_var, bool use_input_stats,
                            double momentum, double eps, bool = true) {
  if (!use_input_stats) {
    return batch_norm(input, weight, bias, running_mean, running_var, false, momentum, eps, true);
  }
  std::vector<int64_t> places;
  for (int64_t i = 2; i < input.dim(); ++i) places.push_back(i);
  if (detail::defined(running_mean)) {
    Tensor mean = *running_mean, var = *running_var;
    mean.lerp_(input.detach().mean(places).mean(0), momentum);
    var.lerp_(input.detach().var(places).mean(0), momentum);
  }
  return group_norm(input, input.size(1), weight, bias, eps);
}

// ---- losses: 0 none, 1 mean, 2 sum ----

inline Tensor binary_cross_entropy(const Tensor& self, const Tensor& target,
                                   const std::optional<Tensor>& weight = std::nullopt,
                                   int64_t reduction = 1) {
  const Tensor loss =
      (target - 1) * (-self).log1p().clamp_min(-100) - target * self.log().clamp_min(-100);
  return detail::reduced(detail::defined(weight) ? loss * *weight : loss, reduction);
}
inline Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1,
                             double beta = 1.0) {
  if (beta == 0) return l1_loss(self, target, reduction);
  const Tensor far = (self - target).abs();
  return detail::reduced(where(far < beta, far * far * (0.5 / beta), far - 0.5 * beta), reduction);
}
inline Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1,
                         double delta = 1.0) {
  const Tensor far = (self - target).abs();
  return detail::reduced(where(far < delta, far * far * 0.5, (far - 0.5 * delta) * delta),
                         reduction);
}
inline Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction = 1,
                     bool log_target = false) {
  return detail::reduced(
      log_target ? target.exp() * (target - self) : xlogy(target, target) - target * self,
      reduction);
}
inline Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction = 1) {
  return detail::reduced((-target * self).exp().log1p(), reduction);
}
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  double margin = 0.0, int64_t reduction = 1) {
  return detail::reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction);
}
inline Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1.0,
                                   int64_t reduction = 1) {
  const Tensor none = zeros_like(self);
  return detail::reduced(
      where(target != 1, (margin - self).clamp_min(0), none) + where(target != -1, self, none),
      reduction);
}
inline Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6,
                                bool keepdim = false) {
  return norm(x1 - x2 + eps, p, {-1}, keepdim);
}
inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim = 1,
                                double eps = 1e-8) {
  const auto unit = [&](const Tensor& x) { return x / norm(x, 2, {dim}, true).clamp_min(eps); };
  return (unit(x1) * unit(x2)).sum({dim});
}
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target, double margin = 0.0,
                                    int64_t reduction = 1) {
  const Tensor alike = cosine_similarity(input1, input2), none = zeros_like(alike);
  return detail::reduced(where(target == 1, 1 - alike, none) +
                             where(target == -1, (alike - margin).clamp_min(0), none),
                         reduction);
}
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative, double margin = 1.0, double p = 2.0,
                                  double eps = 1e-6, bool swap = false, int64_t reduction = 1) {
  Tensor far = pairwise_distance(anchor, negative, p, eps);
  if (swap) far = minimum(far, pairwise_distance(positive, negative, p, eps));
  return detail::reduced((pairwise_distance(anchor, positive, p, eps) - far + margin).clamp_min(0),
                         reduction);
}

}  // namespace over_weft
}  // namespace at

namespace torch {
inline namespace over_weft {
template <class... Parts>
std::string str(const Parts&... parts) {
  return c10::detail::text_of(parts...);
}
}  // namespace over_weft
}  // namespace torch
