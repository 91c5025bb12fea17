// torch::nn::functional: functions of layers, with their options.
#pragma once

#include "autograd.h"
#include "nn_options.h"

namespace torch::nn {
inline namespace over_weft {
namespace functional {

using at::Tensor;
using nn::DropoutFuncOptions;
using nn::GridSampleFuncOptions;
using nn::InterpolateFuncOptions;
using nn::NormalizeFuncOptions;
using nn::PadFuncOptions;
using nn::detail::reduction_of;

// Options of functions that are those of the layers.
#define WEFT_FUNC_OPTIONS(Name) using Name##FuncOptions = Name##Options

// ---- activations ----

#define WEFT_ACTIVATION(name, Options, value) \
  inline Tensor name(const Tensor& x, const Options& options = {}) { return value; }
#define WEFT_CHOSEN_ACTIVATION(name, Options, value) \
  inline Tensor name(const Tensor& x, const Options& options) { return value; }
#define WEFT_INPLACE(name) (options.inplace() ? const_cast<Tensor&>(x).name##_() : x.name())
// Writes what a function gives over its argument, where the options say so.
inline Tensor kept(const Tensor& x, bool inplace, const Tensor& made) {
  if (!inplace) return made;
  return const_cast<Tensor&>(x).copy_(made);
}
WEFT_ACTIVATION(relu, InplaceOptions, WEFT_INPLACE(relu))
WEFT_ACTIVATION(relu6, InplaceOptions, kept(x, options.inplace(), at::relu6(x)))
WEFT_ACTIVATION(selu, InplaceOptions, kept(x, options.inplace(), at::selu(x)))
WEFT_ACTIVATION(elu, AlphaOptions, kept(x, options.inplace(), at::elu(x, options.alpha())))
WEFT_ACTIVATION(celu, AlphaOptions, kept(x, options.inplace(), at::celu(x, options.alpha())))
WEFT_ACTIVATION(leaky_relu, LeakyReLUOptions,
                kept(x, options.inplace(), at::leaky_relu(x, options.negative_slope())))
WEFT_ACTIVATION(hardtanh, HardtanhOptions,
                kept(x, options.inplace(), at::hardtanh(x, options.min_val(), options.max_val())))
WEFT_ACTIVATION(gelu, GELUOptions, at::gelu(x, options.approximate()))
WEFT_ACTIVATION(glu, GLUOptions, at::glu(x, options.dim()))
WEFT_ACTIVATION(hardshrink, LambdaOptions, at::hardshrink(x, options.lambda()))
WEFT_ACTIVATION(softshrink, LambdaOptions, at::softshrink(x, options.lambda()))
WEFT_ACTIVATION(softplus, SoftplusOptions, at::softplus(x, options.beta(), options.threshold()))
WEFT_CHOSEN_ACTIVATION(threshold, ThresholdOptions,
                       kept(x, options.inplace(),
                            at::threshold(x, options.threshold(), options.value())))
WEFT_CHOSEN_ACTIVATION(softmax, DimOptions, at::softmax(x, options.dim(), options.dtype()))
WEFT_CHOSEN_ACTIVATION(softmin, DimOptions, at::softmax(-x, options.dim(), options.dtype()))
WEFT_CHOSEN_ACTIVATION(log_softmax, DimOptions, at::log_softmax(x, options.dim(), options.dtype()))
#undef WEFT_ACTIVATION
#undef WEFT_CHOSEN_ACTIVATION
#undef WEFT_INPLACE
inline Tensor tanh(const Tensor& x) { return x.tanh(); }
inline Tensor sigmoid(const Tensor& x) { return x.sigmoid(); }
inline Tensor silu(const Tensor& x) { return at::silu(x); }
inline Tensor mish(const Tensor& x) { return at::mish(x); }
inline Tensor hardsigmoid(const Tensor& x) { return at::hardsigmoid(x); }
inline Tensor hardswish(const Tensor& x) { return at::hardswish(x); }
inline Tensor logsigmoid(const Tensor& x) { return at::log_sigmoid(x); }
inline Tensor softsign(const Tensor& x) { return x / (x.abs() + 1); }
inline Tensor tanhshrink(const Tensor& x) { return x - x.tanh(); }
inline Tensor prelu(const Tensor& x, const Tensor& weight) { return at::prelu(x, weight); }
using ReLUFuncOptions = InplaceOptions;
using ReLU6FuncOptions = InplaceOptions;
using SELUFuncOptions = InplaceOptions;
using ELUFuncOptions = AlphaOptions;
using CELUFuncOptions = AlphaOptions;
using SoftmaxFuncOptions = DimOptions;
using SoftminFuncOptions = DimOptions;
using LogSoftmaxFuncOptions = DimOptions;
using HardshrinkFuncOptions = LambdaOptions;
using SoftshrinkFuncOptions = LambdaOptions;
WEFT_FUNC_OPTIONS(LeakyReLU);
WEFT_FUNC_OPTIONS(Hardtanh);
WEFT_FUNC_OPTIONS(GELU);
WEFT_FUNC_OPTIONS(GLU);
WEFT_FUNC_OPTIONS(Softplus);
WEFT_FUNC_OPTIONS(Threshold);

// ---- padding ----

inline Tensor pad(const Tensor& x, const PadFuncOptions& options) {
  if (options.mode() == kConstant) return at::constant_pad_nd(x, options.pad(), options.value());
  const Word mode = options.mode();
  return at::pad(x, options.pad(),
                 mode == kReflect     ? "reflect"
                 : mode == kReplicate ? "replicate"
                                      : "circular");
}

// ---- products and convolutions ----

inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}) {
  return at::linear(x, weight, bias);
}
inline Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight,
                       const Tensor& bias = {}) {
  return at::bilinear(x1, x2, weight, bias);
}
inline Tensor embedding(const Tensor& indices, const Tensor& weight,
                        std::optional<int64_t> padding_idx = std::nullopt) {
  return at::embedding(weight, indices, padding_idx.value_or(-1));
}
using at::one_hot;

namespace detail {

template <size_t D>
Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 ExpandingArray<D> stride, const Padding<D>& padding, ExpandingArray<D> dilation,
                 int64_t groups) {
  const auto run = [&](const auto& sides) {
    if constexpr (D == 1) return at::conv1d(x, weight, bias, stride, sides, dilation, groups);
    if constexpr (D == 2) return at::conv2d(x, weight, bias, stride, sides, dilation, groups);
    if constexpr (D == 3) return at::conv3d(x, weight, bias, stride, sides, dilation, groups);
  };
  if (!padding.word) return run(at::IntArrayRef(padding.numbers));
  return run(std::string_view(padding.word == kSame ? "same" : "valid"));
}
template <size_t D>
Tensor spread(const Tensor& x, const Tensor& weight, const Tensor& bias, ExpandingArray<D> stride,
              ExpandingArray<D> padding, ExpandingArray<D> extra, int64_t groups,
              ExpandingArray<D> dilation) {
  constexpr auto function = D == 1   ? &at::conv_transpose1d
                            : D == 2 ? &at::conv_transpose2d
                                     : &at::conv_transpose3d;
  return function(x, weight, bias, stride, padding, extra, groups, dilation);
}

template <size_t D>
Tensor averaged(const Tensor& x, const AvgPoolOptions<D>& options) {
  const auto run = [&](auto function, auto... divisor) {
    return function(x, options.kernel_size(), options.stride(), options.padding(),
                    options.ceil_mode(), options.count_include_pad(), divisor...);
  };
  if constexpr (D == 1) return run(&at::avg_pool1d);
  if constexpr (D == 2) return run(&at::avg_pool2d, options.divisor_override());
  if constexpr (D == 3) return run(&at::avg_pool3d, options.divisor_override());
}

}  // namespace detail

#define WEFT_DIMS(D)                                                                              \
  using Conv##D##dFuncOptions = ConvFuncOptions<D>;                                               \
  using ConvTranspose##D##dFuncOptions = ConvFuncOptions<D, true>;                                \
  using MaxPool##D##dFuncOptions = MaxPoolOptions<D>;                                             \
  using AvgPool##D##dFuncOptions = AvgPoolOptions<D>;                                             \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptivePoolOptions<D>;                                \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptivePoolOptions<D>;                                \
  inline Tensor conv##D##d(const Tensor& x, const Tensor& weight,                                 \
                           const ConvFuncOptions<D>& options = {}) {                              \
    return detail::convolved<D>(x, weight, options.bias(), options.stride(), options.padding(),   \
                                options.dilation(), options.groups());                            \
  }                                                                                               \
  inline Tensor conv_transpose##D##d(const Tensor& x, const Tensor& weight,                       \
                                     const ConvFuncOptions<D, true>& options = {}) {              \
    return detail::spread<D>(x, weight, options.bias(), options.stride(),                         \
                             options.padding().numbers, options.output_padding(),                 \
                             options.groups(), options.dilation());                               \
  }                                                                                               \
  inline Tensor max_pool##D##d(const Tensor& x, const MaxPoolOptions<D>& options) {               \
    return at::max_pool##D##d(x, options.kernel_size(), options.stride(), options.padding(),      \
                              options.dilation(), options.ceil_mode());                           \
  }                                                                                               \
  inline Tensor avg_pool##D##d(const Tensor& x, const AvgPoolOptions<D>& options) {               \
    return detail::averaged<D>(x, options);                                                       \
  }                                                                                               \
  inline Tensor adaptive_avg_pool##D##d(const Tensor& x, const AdaptivePoolOptions<D>& options) { \
    return at::adaptive_avg_pool##D##d(x, options.output_size());                                 \
  }                                                                                               \
  inline Tensor adaptive_max_pool##D##d(const Tensor& x, const AdaptivePoolOptions<D>& options) { \
    return std::get<0>(at::adaptive_max_pool##D##d(x, options.output_size()));                    \
  }
WEFT_DIMS(1)
WEFT_DIMS(2)
WEFT_DIMS(3)
#undef WEFT_DIMS

// ---- dropout and normalisation ----

#define WEFT_DROPOUT(name, function)                                                 \
  inline Tensor name(const Tensor& x, const DropoutFuncOptions& options = {}) {      \
    TORCH_CHECK(options.p() >= 0 && options.p() <= 1,                                \
                #name ": expected a probability from 0 to 1, got ", options.p());    \
    return kept(x, options.inplace(), function(x, options.p(), options.training())); \
  }
WEFT_DROPOUT(dropout, at::dropout)
WEFT_DROPOUT(dropout2d, at::feature_dropout)
WEFT_DROPOUT(dropout3d, at::feature_dropout)
WEFT_DROPOUT(alpha_dropout, at::alpha_dropout)
#undef WEFT_DROPOUT
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
using AlphaDropoutFuncOptions = DropoutFuncOptions;

inline Tensor normalize(const Tensor& x, const NormalizeFuncOptions& options = {}) {
  return x / at::norm(x, options.p(), {options.dim()}, true).clamp_min(options.eps());
}

// ---- resampling ----

inline Tensor interpolate(const Tensor& x, const InterpolateFuncOptions& options = {}) {
  const auto dims = static_cast<size_t>(x.dim() - 2);
  TORCH_CHECK(options.size().has_value() != options.scale_factor().has_value(),
              "interpolate: expected either size or scale_factor");
  const Word mode = options.mode();
  std::vector<int64_t> sizes;
  std::vector<double> factors;
  for (size_t i = 0; i < dims; ++i) {  // one number is that of each dim
    if (options.size()) {
      sizes.push_back(options.size()->at(options.size()->size() == 1 ? 0 : i));
      continue;
    }
    factors.push_back(options.scale_factor()->at(options.scale_factor()->size() == 1 ? 0 : i));
    if (mode != kArea && !options.recompute_scale_factor().value_or(false)) continue;
    const auto size = static_cast<double>(x.size(static_cast<int64_t>(i) + 2));
    sizes.push_back(static_cast<int64_t>(std::floor(size * factors.back())));
  }
  at::OptionalIntArrayRef size;
  std::optional<at::ArrayRef<double>> scales;
  sizes.empty() ? void(scales = factors) : void(size = sizes);
  const bool align = options.align_corners().value_or(false);
#define WEFT_RESAMPLED(wanted, count, function, ...) \
  if (mode == wanted && dims == count) return at::function##count##d(x, size, __VA_ARGS__)
  WEFT_RESAMPLED(kNearest, 1, upsample_nearest, scales);
  WEFT_RESAMPLED(kNearest, 2, upsample_nearest, scales);
  WEFT_RESAMPLED(kNearest, 3, upsample_nearest, scales);
  WEFT_RESAMPLED(kNearestExact, 1, _upsample_nearest_exact, scales);
  WEFT_RESAMPLED(kNearestExact, 2, _upsample_nearest_exact, scales);
  WEFT_RESAMPLED(kNearestExact, 3, _upsample_nearest_exact, scales);
  WEFT_RESAMPLED(kLinear, 1, upsample_linear, align, scales);
  WEFT_RESAMPLED(kBilinear, 2, upsample_bilinear, align, scales);
  WEFT_RESAMPLED(kBicubic, 2, upsample_bicubic, align, scales);
  WEFT_RESAMPLED(kTrilinear, 3, upsample_trilinear, align, scales);
#undef WEFT_RESAMPLED
  TORCH_CHECK_NOT_IMPLEMENTED(mode == kArea && dims > 0 && dims < 4,
                              "interpolate: expected a mode of so many dims, got ",
                              enumtype::get_enum_name(mode), " for ", x.sizes());
  return dims == 1   ? at::adaptive_avg_pool1d(x, sizes)
         : dims == 2 ? at::adaptive_avg_pool2d(x, sizes)
                     : at::adaptive_avg_pool3d(x, sizes);
}
inline Tensor grid_sample(const Tensor& x, const Tensor& grid,
                          const GridSampleFuncOptions& options = {}) {
  const int64_t mode = options.mode() == kBilinear ? 0 : options.mode() == kNearest ? 1 : 2;
  const Word outside = options.padding_mode();
  const int64_t padding = outside == kZeros ? 0 : outside == kBorder ? 1 : 2;
  return at::grid_sampler(x, grid, mode, padding, options.align_corners().value_or(false));
}
inline Tensor pixel_shuffle(const Tensor& x, const PixelShuffleOptions& options) {
  return at::pixel_shuffle(x, options.upscale_factor());
}
using UpsampleFuncOptions = InterpolateFuncOptions;
WEFT_FUNC_OPTIONS(PixelShuffle);

// ---- losses and distances ----

#define WEFT_LOSS(Name, name, Options, ...)                                                \
  using Name##FuncOptions = Options;                                                       \
  inline Tensor name(const Tensor& x, const Tensor& target, const Options& options = {}) { \
    const int64_t reduction = reduction_of(#name, options.reduction());                    \
    return at::__VA_ARGS__;                                                                \
  }
WEFT_LOSS(MSELoss, mse_loss, LossOptions, mse_loss(x, target, reduction))
WEFT_LOSS(L1Loss, l1_loss, LossOptions, l1_loss(x, target, reduction))
WEFT_LOSS(SoftMarginLoss, soft_margin_loss, LossOptions, soft_margin_loss(x, target, reduction))
WEFT_LOSS(NLLLoss, nll_loss, ClassLossOptions,
          nll_loss_nd(x, target, options.weight(), reduction, options.ignore_index()))
WEFT_LOSS(CrossEntropy, cross_entropy, ClassLossOptions,
          cross_entropy_loss(x, target, options.weight(), reduction, options.ignore_index(),
                             options.label_smoothing()))
WEFT_LOSS(BinaryCrossEntropy, binary_cross_entropy, WeightedLossOptions,
          binary_cross_entropy(x, target, options.weight(), reduction))
WEFT_LOSS(BinaryCrossEntropyWithLogits, binary_cross_entropy_with_logits, WeightedLossOptions,
          binary_cross_entropy_with_logits(x, target, options.weight(), options.pos_weight(),
                                           reduction))
WEFT_LOSS(SmoothL1Loss, smooth_l1_loss, SmoothL1LossOptions,
          smooth_l1_loss(x, target, reduction, options.beta().value_or(1.0)))
WEFT_LOSS(HuberLoss, huber_loss, HuberLossOptions,
          huber_loss(x, target, reduction, options.delta()))
WEFT_LOSS(HingeEmbeddingLoss, hinge_embedding_loss, HingeLossOptions,
          hinge_embedding_loss(x, target, options.margin(), reduction))
#undef WEFT_LOSS
using NLLLossFuncOptions = ClassLossOptions;
using CrossEntropyFuncOptions = ClassLossOptions;
using KLDivFuncOptions = KLDivOptions;
inline Tensor kl_div(const Tensor& x, const Tensor& target, const KLDivOptions& options = {}) {
  if (options.reduction() == kBatchMean) {
    const Tensor sum = at::kl_div(x, target, 2, options.log_target());
    return x.dim() > 0 ? sum / x.size(0) : sum;
  }
  return at::kl_div(x, target, reduction_of("kl_div", options.reduction()), options.log_target());
}
using CosineEmbeddingLossFuncOptions = MarginLossOptions;
using MarginRankingLossFuncOptions = MarginLossOptions;
inline Tensor cosine_embedding_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                                    const MarginLossOptions& options = {}) {
  return at::cosine_embedding_loss(x1, x2, target, options.margin(),
                                   reduction_of("cosine_embedding_loss", options.reduction()));
}
inline Tensor margin_ranking_loss(const Tensor& x1, const Tensor& x2, const Tensor& target,
                                  const MarginLossOptions& options = {}) {
  return at::margin_ranking_loss(x1, x2, target, options.margin(),
                                 reduction_of("margin_ranking_loss", options.reduction()));
}
WEFT_FUNC_OPTIONS(TripletMarginLoss);
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative,
                                  const TripletMarginLossOptions& options = {}) {
  return at::triplet_margin_loss(anchor, positive, negative, options.margin(), options.p(),
                                 options.eps(), options.swap(),
                                 reduction_of("triplet_margin_loss", options.reduction()));
}
WEFT_FUNC_OPTIONS(CosineSimilarity);
inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                                const CosineSimilarityOptions& options = {}) {
  return at::cosine_similarity(x1, x2, options.dim(), options.eps());
}
WEFT_FUNC_OPTIONS(PairwiseDistance);
inline Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                                const PairwiseDistanceOptions& options = {}) {
  return at::pairwise_distance(x1, x2, options.p(), options.eps(), options.keepdim());
}
#undef WEFT_FUNC_OPTIONS

}  // namespace functional
}  // namespace over_weft
}  // namespace torch::nn
