// Layers that learn nothing: each is a function of nn_functional.h with its options.
#pragma once

#include "nn_containers.h"
#include "nn_init.h"

namespace torch::nn {
inline namespace over_weft {

namespace F = functional;

// The start of a layer: it is made of what makes its options.
#define WEFT_LAYER_BEGIN(Name, OptionsType)                                            \
 public:                                                                               \
  template <class... Given,                                                            \
            std::enable_if_t<std::is_constructible_v<OptionsType, Given...>, int> = 0> \
  explicit Name##Impl(Given&&... given) : options(std::forward<Given>(given)...) {     \
    Name##Impl::reset();                                                               \
  }                                                                                    \
  OptionsType options
// What is printed behind the name.
#define WEFT_PRETTY(Name, ...)                                     \
  void pretty_print(std::ostream& out) const override {            \
    [[maybe_unused]] const auto& o = options;                      \
    detail::write(out, "torch::nn::" #Name "(", __VA_ARGS__, ")"); \
  }
// A layer that learns nothing.
#define WEFT_PLAIN_LAYER(Name, OptionsType, parameters, value, ...) \
  struct Name##Impl : Cloneable<Name##Impl> {                       \
    WEFT_LAYER_BEGIN(Name, OptionsType);                            \
    void reset() override {}                                        \
    at::Tensor forward parameters { return value; }                 \
    WEFT_PRETTY(Name, __VA_ARGS__)                                  \
  };                                                                \
  using Name##Options = OptionsType;                                \
  TORCH_MODULE(Name)
#define WEFT_X (const at::Tensor& x)

namespace detail {

inline std::string inplace_text(bool inplace, const char* before = "") {
  return inplace ? std::string(before) + "inplace=true" : "";
}

}  // namespace detail

// ---- activations, dropout, shapes ----

WEFT_PLAIN_LAYER(Identity, NoOptions, WEFT_X, x, "");
WEFT_PLAIN_LAYER(ReLU, InplaceOptions, WEFT_X, F::relu(x, options),
                 detail::inplace_text(o.inplace()));
WEFT_PLAIN_LAYER(ReLU6, InplaceOptions, WEFT_X, F::relu6(x, options),
                 detail::inplace_text(o.inplace()));
WEFT_PLAIN_LAYER(SELU, InplaceOptions, WEFT_X, F::selu(x, options),
                 detail::inplace_text(o.inplace()));
WEFT_PLAIN_LAYER(ELU, AlphaOptions, WEFT_X, F::elu(x, options), "alpha=", o.alpha(),
                 detail::inplace_text(o.inplace(), ", "));
WEFT_PLAIN_LAYER(CELU, AlphaOptions, WEFT_X, F::celu(x, options), "alpha=", o.alpha(),
                 detail::inplace_text(o.inplace(), ", "));
WEFT_PLAIN_LAYER(LeakyReLU, nn::LeakyReLUOptions, WEFT_X, F::leaky_relu(x, options),
                 "negative_slope=", o.negative_slope(), detail::inplace_text(o.inplace(), ", "));
WEFT_PLAIN_LAYER(Hardtanh, nn::HardtanhOptions, WEFT_X, F::hardtanh(x, options),
                 "min_val=", o.min_val(), ", max_val=", o.max_val(),
                 detail::inplace_text(o.inplace(), ", "));
WEFT_PLAIN_LAYER(Threshold, nn::ThresholdOptions, WEFT_X, F::threshold(x, options),
                 "threshold=", o.threshold(), ", value=", o.value(),
                 detail::inplace_text(o.inplace(), ", "));
WEFT_PLAIN_LAYER(GELU, nn::GELUOptions, WEFT_X, F::gelu(x, options), "");
WEFT_PLAIN_LAYER(GLU, nn::GLUOptions, WEFT_X, F::glu(x, options), "dim=", o.dim());
WEFT_PLAIN_LAYER(Softplus, nn::SoftplusOptions, WEFT_X, F::softplus(x, options), "beta=", o.beta(),
                 ", threshold=", o.threshold());
WEFT_PLAIN_LAYER(Hardshrink, LambdaOptions, WEFT_X, F::hardshrink(x, options), o.lambda());
WEFT_PLAIN_LAYER(Softshrink, LambdaOptions, WEFT_X, F::softshrink(x, options), o.lambda());
WEFT_PLAIN_LAYER(Softmax, DimOptions, WEFT_X, F::softmax(x, options), "dim=", o.dim());
WEFT_PLAIN_LAYER(Softmin, DimOptions, WEFT_X, F::softmin(x, options), "dim=", o.dim());
WEFT_PLAIN_LAYER(LogSoftmax, DimOptions, WEFT_X, F::log_softmax(x, options), "dim=", o.dim());
WEFT_PLAIN_LAYER(Tanh, NoOptions, WEFT_X, x.tanh(), "");
WEFT_PLAIN_LAYER(Sigmoid, NoOptions, WEFT_X, x.sigmoid(), "");
WEFT_PLAIN_LAYER(SiLU, NoOptions, WEFT_X, F::silu(x), "");
WEFT_PLAIN_LAYER(Mish, NoOptions, WEFT_X, F::mish(x), "");
WEFT_PLAIN_LAYER(Hardswish, NoOptions, WEFT_X, F::hardswish(x), "");
WEFT_PLAIN_LAYER(Hardsigmoid, NoOptions, WEFT_X, F::hardsigmoid(x), "");
WEFT_PLAIN_LAYER(LogSigmoid, NoOptions, WEFT_X, F::logsigmoid(x), "");
WEFT_PLAIN_LAYER(Softsign, NoOptions, WEFT_X, F::softsign(x), "");
WEFT_PLAIN_LAYER(Tanhshrink, NoOptions, WEFT_X, F::tanhshrink(x), "");

#define WEFT_DROPOUT_LAYER(Name, function)                                                         \
  WEFT_PLAIN_LAYER(                                                                                \
      Name, nn::DropoutOptions, WEFT_X,                                                            \
      F::function(                                                                                 \
          x,                                                                                       \
          DropoutFuncOptions().p(options.p()).inplace(options.inplace()).training(is_training())), \
      "p=", o.p(), ", inplace=", o.inplace())
WEFT_DROPOUT_LAYER(Dropout, dropout);
WEFT_DROPOUT_LAYER(Dropout2d, dropout2d);
WEFT_DROPOUT_LAYER(Dropout3d, dropout3d);
WEFT_DROPOUT_LAYER(FeatureDropout, dropout2d);
WEFT_DROPOUT_LAYER(AlphaDropout, alpha_dropout);
#undef WEFT_DROPOUT_LAYER

WEFT_PLAIN_LAYER(Flatten, nn::FlattenOptions, WEFT_X,
                 x.flatten(options.start_dim(), options.end_dim()), "start_dim=", o.start_dim(),
                 ", end_dim=", o.end_dim());
WEFT_PLAIN_LAYER(PixelShuffle, nn::PixelShuffleOptions, WEFT_X, F::pixel_shuffle(x, options),
                 "upscale_factor=", o.upscale_factor());
WEFT_PLAIN_LAYER(Upsample, nn::UpsampleOptions, WEFT_X, F::interpolate(x, options),
                 o.scale_factor() ? c10::detail::text_of("scale_factor=",
                                                         at::ArrayRef<double>(*o.scale_factor()))
                                  : c10::detail::text_of("size=", at::ArrayRef<int64_t>(*o.size())),
                 ", mode=", enumtype::get_enum_name(o.mode()));

// ---- pooling and padding ----

#define WEFT_PAD_LAYER(Name, D, OptionsType, word, number, ...)                             \
  WEFT_PLAIN_LAYER(Name##D##d, OptionsType<D>, WEFT_X,                                      \
                   F::pad(x, PadFuncOptions(at::ArrayRef<int64_t>(options.padding()).vec()) \
                                 .mode(word)                                                \
                                 .value(number)),                                           \
                   "padding=", o.padding(), __VA_ARGS__)
#define WEFT_DIMS(D)                                                                         \
  WEFT_PLAIN_LAYER(MaxPool##D##d, MaxPoolOptions<D>, WEFT_X, F::max_pool##D##d(x, options),  \
                   "kernel_size=", o.kernel_size(), ", stride=", o.stride(),                 \
                   ", padding=", o.padding(), ", dilation=", o.dilation(),                   \
                   ", ceil_mode=", o.ceil_mode());                                           \
  WEFT_PLAIN_LAYER(AvgPool##D##d, AvgPoolOptions<D>, WEFT_X, F::avg_pool##D##d(x, options),  \
                   "kernel_size=", o.kernel_size(), ", stride=", o.stride(),                 \
                   ", padding=", o.padding());                                               \
  WEFT_PLAIN_LAYER(AdaptiveAvgPool##D##d, AdaptivePoolOptions<D>, WEFT_X,                    \
                   F::adaptive_avg_pool##D##d(x, options), "output_size=", o.output_size()); \
  WEFT_PLAIN_LAYER(AdaptiveMaxPool##D##d, AdaptivePoolOptions<D>, WEFT_X,                    \
                   F::adaptive_max_pool##D##d(x, options), "output_size=", o.output_size()); \
  WEFT_PAD_LAYER(ReflectionPad, D, PadOptions, kReflect, 0, "");                             \
  WEFT_PAD_LAYER(ReplicationPad, D, PadOptions, kReplicate, 0, "");                          \
  WEFT_PAD_LAYER(ZeroPad, D, PadOptions, kConstant, 0, "");                                  \
  WEFT_PAD_LAYER(ConstantPad, D, ConstantPadOptions, kConstant, options.value(),             \
                 ", value=", o.value())
WEFT_DIMS(1);
WEFT_DIMS(2);
WEFT_DIMS(3);
#undef WEFT_DIMS
#undef WEFT_PAD_LAYER

// ---- losses ----

#define WEFT_LOSS_LAYER(Name, OptionsType, function)                                   \
  WEFT_PLAIN_LAYER(Name, OptionsType, (const at::Tensor& x, const at::Tensor& target), \
                   F::function(x, target, options), "")
WEFT_LOSS_LAYER(MSELoss, LossOptions, mse_loss);
WEFT_LOSS_LAYER(L1Loss, LossOptions, l1_loss);
WEFT_LOSS_LAYER(SoftMarginLoss, LossOptions, soft_margin_loss);
WEFT_LOSS_LAYER(NLLLoss, ClassLossOptions, nll_loss);
WEFT_LOSS_LAYER(CrossEntropyLoss, ClassLossOptions, cross_entropy);
WEFT_LOSS_LAYER(BCELoss, WeightedLossOptions, binary_cross_entropy);
WEFT_LOSS_LAYER(BCEWithLogitsLoss, WeightedLossOptions, binary_cross_entropy_with_logits);
WEFT_LOSS_LAYER(KLDivLoss, KLDivOptions, kl_div);
WEFT_LOSS_LAYER(SmoothL1Loss, nn::SmoothL1LossOptions, smooth_l1_loss);
WEFT_LOSS_LAYER(HuberLoss, nn::HuberLossOptions, huber_loss);
WEFT_LOSS_LAYER(HingeEmbeddingLoss, HingeLossOptions, hinge_embedding_loss);
WEFT_LOSS_LAYER(CosineSimilarity, nn::CosineSimilarityOptions, cosine_similarity);
WEFT_LOSS_LAYER(PairwiseDistance, nn::PairwiseDistanceOptions, pairwise_distance);
#undef WEFT_LOSS_LAYER
#define WEFT_LOSS_LAYER(Name, OptionsType, function)                                \
  WEFT_PLAIN_LAYER(Name, OptionsType,                                               \
                   (const at::Tensor& a, const at::Tensor& b, const at::Tensor& c), \
                   F::function(a, b, c, options), "")
WEFT_LOSS_LAYER(CosineEmbeddingLoss, MarginLossOptions, cosine_embedding_loss);
WEFT_LOSS_LAYER(MarginRankingLoss, MarginLossOptions, margin_ranking_loss);
WEFT_LOSS_LAYER(TripletMarginLoss, nn::TripletMarginLossOptions, triplet_margin_loss);
#undef WEFT_LOSS_LAYER

// A function as a layer; further arguments are bound behind its first.
struct FunctionalImpl : Cloneable<FunctionalImpl> {
  using Function = std::function<at::Tensor(at::Tensor)>;
  explicit FunctionalImpl(Function given) : function(std::move(given)) {}
  template <class Given, class... Args, std::enable_if_t<(sizeof...(Args) > 0), int> = 0>
  explicit FunctionalImpl(Given given, Args... args)
      : function([=](const at::Tensor& x) { return given(x, args...); }) {}
  void reset() override {}
  at::Tensor forward(at::Tensor x) { return function(std::move(x)); }
  at::Tensor operator()(at::Tensor x) { return forward(std::move(x)); }
  void pretty_print(std::ostream& out) const override { out << "torch::nn::Functional()"; }
  bool is_serializable() const override { return false; }

 private:
  Function function;
};
TORCH_MODULE(Functional);

}  // namespace over_weft
}  // namespace torch::nn
