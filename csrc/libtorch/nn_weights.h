// Layers that learn: products, convolutions, normalisation.
#pragma once

#include "nn_layers.h"

namespace torch::nn {
inline namespace over_weft {
namespace detail {

// The bounds that linear layers and convolutions begin with.
inline void reset_weights(const at::Tensor& weight, const at::Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound = 1 / std::sqrt(static_cast<double>(init::fans_of(weight).first));
  init::uniform_(bias, -bound, bound);
}

}  // namespace detail

struct LinearImpl : Cloneable<LinearImpl> {
  WEFT_LAYER_BEGIN(Linear, LinearOptions);
  void reset() override {
    weight =
        register_parameter("weight", at::empty({options.out_features(), options.in_features()}));
    bias = register_parameter("bias", options.bias() ? at::empty({options.out_features()}) : bias,
                              options.bias());
    reset_parameters();
  }
  void reset_parameters() { detail::reset_weights(weight, bias); }
  at::Tensor forward(const at::Tensor& x) { return F::linear(x, weight, bias); }
  WEFT_PRETTY(Linear, "in_features=", o.in_features(), ", out_features=", o.out_features(),
              ", bias=", o.bias())
  at::Tensor weight, bias;
};
TORCH_MODULE(Linear);

struct BilinearImpl : Cloneable<BilinearImpl> {
  WEFT_LAYER_BEGIN(Bilinear, BilinearOptions);
  void reset() override {
    const double bound = 1 / std::sqrt(static_cast<double>(options.in1_features()));
    weight = register_parameter("weight", at::empty({options.out_features(), options.in1_features(),
                                                     options.in2_features()}));
    bias = register_parameter("bias", options.bias() ? at::empty({options.out_features()}) : bias,
                              options.bias());
    init::uniform_(weight, -bound, bound);
    if (bias.defined()) init::uniform_(bias, -bound, bound);
  }
  at::Tensor forward(const at::Tensor& x1, const at::Tensor& x2) {
    return F::bilinear(x1, x2, weight, bias);
  }
  WEFT_PRETTY(Bilinear, "in1_features=", o.in1_features(), ", in2_features=", o.in2_features(),
              ", out_features=", o.out_features(), ", bias=", o.bias())
  at::Tensor weight, bias;
};
TORCH_MODULE(Bilinear);

struct EmbeddingImpl : Cloneable<EmbeddingImpl> {
  WEFT_LAYER_BEGIN(Embedding, EmbeddingOptions);
  void reset() override {
    const bool is_given = options._weight().defined();
    weight = register_parameter(
        "weight", is_given ? options._weight()
                           : at::empty({options.num_embeddings(), options.embedding_dim()}));
    if (!is_given) init::normal_(weight);
    at::NoGradGuard no_grad;
    if (options.padding_idx() && !is_given) weight[place()].fill_(0);
  }
  at::Tensor forward(const at::Tensor& indices) {
    return F::embedding(indices, weight,
                        options.padding_idx() ? std::optional<int64_t>(place()) : std::nullopt);
  }
  WEFT_PRETTY(Embedding, "num_embeddings=", o.num_embeddings(),
              ", embedding_dim=", o.embedding_dim(),
              o.padding_idx() ? c10::detail::text_of(", padding_idx=", *o.padding_idx()) : "")
  at::Tensor weight;

 private:
  int64_t place() const {
    const int64_t given = *options.padding_idx();
    return given < 0 ? given + options.num_embeddings() : given;
  }
};
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using Impl = EmbeddingImpl;
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  static Embedding from_pretrained(const at::Tensor& weight, bool freeze = true) {
    Embedding made(EmbeddingOptions(weight.size(0), weight.size(1))._weight(weight));
    made->weight.set_requires_grad(!freeze);
    return made;
  }
};

struct PReLUImpl : Cloneable<PReLUImpl> {
  WEFT_LAYER_BEGIN(PReLU, PReLUOptions);
  void reset() override {
    weight = register_parameter("weight", at::full({options.num_parameters()}, options.init()));
  }
  at::Tensor forward(const at::Tensor& x) { return F::prelu(x, weight); }
  WEFT_PRETTY(PReLU, "num_parameters=", o.num_parameters())
  at::Tensor weight;
};
TORCH_MODULE(PReLU);

// Convolutions of D dims; of the transposed the weight's first dim is the input's.
template <class Derived, size_t D, bool Transposed>
struct ConvLayer : Cloneable<Derived> {
  using Options = ConvOptions<D, Transposed>;
  explicit ConvLayer(const Options& given) : options(given) {}
  void reset() override {
    TORCH_CHECK(options.in_channels() % options.groups() == 0 &&
                    options.out_channels() % options.groups() == 0,
                this->name(), ": expected channels divisible by groups, got ",
                options.in_channels(), ", ", options.out_channels(), " and ", options.groups());
    std::vector<int64_t> sizes{options.out_channels(), options.in_channels() / options.groups()};
    if (Transposed) sizes = {options.in_channels(), options.out_channels() / options.groups()};
    sizes.insert(sizes.end(), options.kernel_size()->begin(), options.kernel_size()->end());
    weight = this->register_parameter("weight", at::empty(sizes));
    bias = this->register_parameter(
        "bias", options.bias() ? at::empty({options.out_channels()}) : bias, options.bias());
    reset_parameters();
  }
  void reset_parameters() { detail::reset_weights(weight, bias); }
  at::Tensor forward(const at::Tensor& x) {
    if constexpr (Transposed) {
      return F::detail::spread<D>(x, weight, bias, options.stride(), options.padding().numbers,
                                  options.output_padding(), options.groups(), options.dilation());
    } else if (options.padding_mode() == kZeros) {
      return convolved(x, options.padding());
    }
    std::vector<int64_t> sides;
    for (const int64_t side : *options.padding().numbers) sides.insert(sides.begin(), {side, side});
    return convolved(F::pad(x, PadFuncOptions(sides).mode(options.padding_mode())), 0);
  }
  void pretty_print(std::ostream& out) const override {
    const auto unless = [&](const char* name, const ExpandingArray<D>& numbers, int64_t usual) {
      if (*numbers != *ExpandingArray<D>(usual)) out << name << numbers;
    };
    out << "torch::nn::Conv" << (Transposed ? "Transpose" : "") << D << "d("
        << options.in_channels() << ", " << options.out_channels()
        << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride();
    if (options.padding().word) {
      out << (options.padding().word == kSame ? ", padding='same'" : ", padding='valid'");
    } else {
      unless(", padding=", options.padding().numbers, 0);
    }
    unless(", dilation=", options.dilation(), 1);
    unless(", output_padding=", options.output_padding(), 0);
    if (options.groups() != 1) out << ", groups=" << options.groups();
    if (!options.bias()) out << ", bias=false";
    if (options.padding_mode() != kZeros) {
      out << ", padding_mode=" << enumtype::get_enum_name(options.padding_mode());
    }
    out << ')';
  }
  Options options;
  at::Tensor weight, bias;

 private:
  at::Tensor convolved(const at::Tensor& x, const Padding<D>& padding) {
    return F::detail::convolved<D>(x, weight, bias, options.stride(), padding, options.dilation(),
                                   options.groups());
  }
};

// Normalisation over the batch, or over each sample, by statistics of [n, c, ...].
template <class Derived, class OptionsType>
struct NormLayer : Cloneable<Derived> {
  using Options = OptionsType;
  static constexpr bool is_batch = std::is_same_v<Options, BatchNormOptions>;
  explicit NormLayer(const Options& given) : options(given) {}
  void reset() override {
    const bool affine = options.affine(), tracks = options.track_running_stats();
    const std::vector<int64_t> sizes{options.num_features()};
    const at::Tensor none;
    weight = this->register_parameter("weight", affine ? at::ones(sizes) : none, affine);
    bias = this->register_parameter("bias", affine ? at::zeros(sizes) : none, affine);
    running_mean = this->register_buffer("running_mean", tracks ? at::zeros(sizes) : none);
    running_var = this->register_buffer("running_var", tracks ? at::ones(sizes) : none);
    num_batches_tracked = this->register_buffer(
        "num_batches_tracked", tracks ? at::zeros({}, at::TensorOptions(at::kLong)) : none);
  }
  at::Tensor forward(const at::Tensor& x) {
    const bool by_batch = this->is_training() || !running_mean.defined();
    if constexpr (is_batch) {
      double momentum = options.momentum().value_or(0);
      if (this->is_training() && num_batches_tracked.defined()) {
        num_batches_tracked.add_(1);
        if (!options.momentum()) momentum = 1 / num_batches_tracked.template item<double>();
      }
      return at::batch_norm(x, weight, bias, running_mean, running_var, by_batch, momentum,
                            options.eps(), true);
    } else {
      return at::instance_norm(x, weight, bias, running_mean, running_var, by_batch,
                               options.momentum(), options.eps(), false);
    }
  }
  void write(std::ostream& out, const char* name) const {
    const std::optional<double> momentum = options.momentum();
    detail::write(out, "torch::nn::", name, "(", options.num_features(), ", eps=", options.eps(),
                  ", momentum=");
    momentum ? out << *momentum : out << "None";
    detail::write(out, ", affine=", options.affine(),
                  ", track_running_stats=", options.track_running_stats(), ")");
  }
  Options options;
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

#define WEFT_CONV(Name, D, Transposed)                                                    \
  struct Name##Impl : ConvLayer<Name##Impl, D, Transposed> {                              \
    Name##Impl(int64_t inputs, int64_t outputs, ExpandingArray<D> kernel)                 \
        : Name##Impl(Options(inputs, outputs, kernel)) {}                                 \
    explicit Name##Impl(const Options& given) : ConvLayer(given) { Name##Impl::reset(); } \
  };                                                                                      \
  using Name##Options = ConvOptions<D, Transposed>;                                       \
  TORCH_MODULE(Name)
#define WEFT_NORM(Name, OptionsType)                                                          \
  struct Name##Impl : NormLayer<Name##Impl, OptionsType> {                                    \
    explicit Name##Impl(const OptionsType& given) : NormLayer(given) { Name##Impl::reset(); } \
    void pretty_print(std::ostream& out) const override { write(out, #Name); }                \
  };                                                                                          \
  using Name##Options = OptionsType;                                                          \
  TORCH_MODULE(Name)
#define WEFT_DIMS(D)                                \
  WEFT_CONV(Conv##D##d, D, false);                  \
  WEFT_CONV(ConvTranspose##D##d, D, true);          \
  WEFT_NORM(BatchNorm##D##d, nn::BatchNormOptions); \
  WEFT_NORM(InstanceNorm##D##d, nn::InstanceNormOptions)
WEFT_DIMS(1);
WEFT_DIMS(2);
WEFT_DIMS(3);
#undef WEFT_DIMS
#undef WEFT_CONV
#undef WEFT_NORM

struct LayerNormImpl : Cloneable<LayerNormImpl> {
  WEFT_LAYER_BEGIN(LayerNorm, LayerNormOptions);
  void reset() override {
    const bool affine = options.elementwise_affine();
    weight = register_parameter("weight", affine ? at::ones(options.normalized_shape()) : weight,
                                affine);
    bias =
        register_parameter("bias", affine ? at::zeros(options.normalized_shape()) : bias, affine);
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::layer_norm(x, options.normalized_shape(), weight, bias, options.eps());
  }
  WEFT_PRETTY(LayerNorm, at::IntArrayRef(o.normalized_shape()), ", eps=", o.eps(),
              ", elementwise_affine=", o.elementwise_affine())
  at::Tensor weight, bias;
};
TORCH_MODULE(LayerNorm);

struct GroupNormImpl : Cloneable<GroupNormImpl> {
  WEFT_LAYER_BEGIN(GroupNorm, GroupNormOptions);
  void reset() override {
    const bool affine = options.affine();
    const std::vector<int64_t> sizes{options.num_channels()};
    weight = register_parameter("weight", affine ? at::ones(sizes) : weight, affine);
    bias = register_parameter("bias", affine ? at::zeros(sizes) : bias, affine);
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::group_norm(x, options.num_groups(), weight, bias, options.eps());
  }
  WEFT_PRETTY(GroupNorm, o.num_groups(), ", ", o.num_channels(), ", eps=", o.eps(),
              ", affine=", o.affine())
  at::Tensor weight, bias;
};
TORCH_MODULE(GroupNorm);

}  // namespace over_weft
}  // namespace torch::nn
