// Attention and transformers: sequences [t, n, features].
#pragma once

#include "nn_recurrent.h"

namespace torch::nn {
inline namespace over_weft {

// Between the layers of a transformer: kReLU, kGELU or a function.
class Activation final {
 public:
  template <class T, std::enable_if_t<std::is_convertible_v<T, Word>, int> = 0>
  Activation(T word) : word_(word) {}
  template <class T, std::enable_if_t<
                         !std::is_convertible_v<T, Word> &&
                             std::is_convertible_v<T, std::function<at::Tensor(const at::Tensor&)>>,
                         int> = 0>
  Activation(T function) : function_(std::move(function)) {}
  at::Tensor operator()(const at::Tensor& x) const {
    if (function_) return function_(x);
    return word_ == kGELU ? at::gelu(x) : x.relu();
  }

 private:
  Word word_ = kReLU;
  std::function<at::Tensor(const at::Tensor&)> function_;
};
using activation_t = Activation;

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t dim, int64_t heads) : embed_dim_(dim), num_heads_(heads) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;
  TORCH_ARG(bool, add_zero_attn) = false;
  TORCH_ARG(std::optional<int64_t>, kdim) = std::nullopt;
  TORCH_ARG(std::optional<int64_t>, vdim) = std::nullopt;
};
#define WEFT_TRANSFORMER_LAYER(Name)                                            \
  struct Name##Options {                                                        \
    Name##Options(int64_t dim, int64_t heads) : d_model_(dim), nhead_(heads) {} \
    TORCH_ARG(int64_t, d_model);                                                \
    TORCH_ARG(int64_t, nhead);                                                  \
    TORCH_ARG(int64_t, dim_feedforward) = 2048;                                 \
    TORCH_ARG(double, dropout) = 0.1;                                           \
    TORCH_ARG(activation_t, activation) = kReLU;                                \
  }
WEFT_TRANSFORMER_LAYER(TransformerEncoderLayer);
WEFT_TRANSFORMER_LAYER(TransformerDecoderLayer);
#undef WEFT_TRANSFORMER_LAYER

struct MultiheadAttentionImpl : Cloneable<MultiheadAttentionImpl> {
  WEFT_LAYER_BEGIN(MultiheadAttention, MultiheadAttentionOptions);
  void reset() override {
    const int64_t dim = options.embed_dim(), keys = options.kdim().value_or(dim),
                  values = options.vdim().value_or(dim);
    TORCH_CHECK(dim % options.num_heads() == 0,
                "MultiheadAttention: expected embed_dim divisible by num_heads, got ", dim, " and ",
                options.num_heads());
    const bool is_one = keys == dim && values == dim;
    const auto add = [&](const char* name, at::IntArrayRef sizes, bool wanted) {
      return register_parameter(name, wanted ? at::empty(sizes) : at::Tensor(), wanted);
    };
    in_proj_weight = add("in_proj_weight", {3 * dim, dim}, is_one);
    q_proj_weight = add("q_proj_weight", {dim, dim}, !is_one);
    k_proj_weight = add("k_proj_weight", {dim, keys}, !is_one);
    v_proj_weight = add("v_proj_weight", {dim, values}, !is_one);
    in_proj_bias = add("in_proj_bias", {3 * dim}, options.bias());
    out_proj = register_module("out_proj", Linear(LinearOptions(dim, dim).bias(options.bias())));
    bias_k = add("bias_k", {1, 1, dim}, options.add_bias_kv());
    bias_v = add("bias_v", {1, 1, dim}, options.add_bias_kv());
    _reset_parameters();
  }
  void _reset_parameters() {
    for (const at::Tensor& each : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
      if (each.defined()) init::xavier_uniform_(each);
    }
    for (const at::Tensor& each : {bias_k, bias_v}) {
      if (each.defined()) init::xavier_normal_(each);
    }
    if (!options.bias()) return;
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  // Masks: of the keys [n, s], of the scores [t, s] or [n heads, t, s]; true, or a number, is added
  // to the scores as -inf, or as it is.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& value,
                                             const at::Tensor& key_padding_mask = {},
                                             bool need_weights = true,
                                             const at::Tensor& attn_mask = {},
                                             bool average_attn_weights = true) {
    const int64_t t = query.size(0), n = query.size(1), dim = options.embed_dim(),
                  heads = options.num_heads(), width = dim / heads;
    const int64_t more = int{options.add_bias_kv()} + int{options.add_zero_attn()},
                  s = key.size(0) + more;
    const auto projected = [&](const at::Tensor& x, int64_t part, const at::Tensor& own,
                               const at::Tensor& behind) {
      const at::Tensor weight = own.defined() ? own : in_proj_weight.narrow(0, part * dim, dim);
      std::vector<at::Tensor> steps = {at::linear(
          x, weight, options.bias() ? in_proj_bias.narrow(0, part * dim, dim) : in_proj_bias)};
      if (behind.defined()) steps.push_back(behind.expand({1, n, dim}));
      if (part > 0 && options.add_zero_attn()) steps.push_back(at::zeros({1, n, dim}, x.options()));
      return at::cat(steps).reshape({-1, n * heads, width}).transpose(0, 1);
    };
    const auto mask_of = [&](const at::Tensor& mask) {  // what stands behind the keys is not masked
      return more > 0 ? at::constant_pad_nd(as_numbers(mask), {0, more}) : as_numbers(mask);
    };
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    at::Tensor scores = (projected(query, 0, q_proj_weight, {}) * scale)
                            .bmm(projected(key, 1, k_proj_weight, bias_k).transpose(1, 2));
    if (attn_mask.defined()) scores = scores + mask_of(attn_mask);
    if (key_padding_mask.defined()) {
      scores = (scores.view({n, heads, t, s}) + mask_of(key_padding_mask).view({n, 1, 1, s}))
                   .view({n * heads, t, s});
    }
    const at::Tensor weights = at::dropout(scores.softmax(-1), options.dropout(), is_training());
    const at::Tensor made = weights.bmm(projected(value, 2, v_proj_weight, bias_v))
                                .transpose(0, 1)
                                .reshape({t, n, dim});
    at::Tensor shown;
    if (need_weights) shown = weights.view({n, heads, t, s});
    if (need_weights && average_attn_weights) shown = shown.mean({1});
    return {out_proj->forward(made), shown};
  }
  at::Tensor in_proj_weight, in_proj_bias, q_proj_weight, k_proj_weight, v_proj_weight, bias_k,
      bias_v;
  Linear out_proj{nullptr};

 private:
  static at::Tensor as_numbers(const at::Tensor& mask) {
    if (mask.scalar_type() != at::kBool) return mask;
    return at::zeros(mask.sizes()).masked_fill(mask, -std::numeric_limits<double>::infinity());
  }
};
TORCH_MODULE(MultiheadAttention);

struct TransformerEncoderLayerImpl : Cloneable<TransformerEncoderLayerImpl> {
  WEFT_LAYER_BEGIN(TransformerEncoderLayer, TransformerEncoderLayerOptions);
  void reset() override {
    const int64_t dim = options.d_model(), inner = options.dim_feedforward();
    self_attn = register_module(
        "self_attn",
        MultiheadAttention(
            MultiheadAttentionOptions(dim, options.nhead()).dropout(options.dropout())));
    linear1 = register_module("linear1", Linear(dim, inner));
    dropout = register_module("dropout", Dropout(options.dropout()));
    linear2 = register_module("linear2", Linear(inner, dim));
    norm1 = register_module("norm1", LayerNorm(std::vector<int64_t>{dim}));
    norm2 = register_module("norm2", LayerNorm(std::vector<int64_t>{dim}));
    dropout1 = register_module("dropout1", Dropout(options.dropout()));
    dropout2 = register_module("dropout2", Dropout(options.dropout()));
  }
  at::Tensor forward(const at::Tensor& src, const at::Tensor& src_mask = {},
                     const at::Tensor& src_key_padding_mask = {}) {
    const at::Tensor attended =
        std::get<0>(self_attn->forward(src, src, src, src_key_padding_mask, true, src_mask));
    const at::Tensor x = norm1->forward(src + dropout1->forward(attended));
    const at::Tensor inner = options.activation()(linear1->forward(x));
    return norm2->forward(x + dropout2->forward(linear2->forward(dropout->forward(inner))));
  }
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
};
TORCH_MODULE(TransformerEncoderLayer);

struct TransformerDecoderLayerImpl : Cloneable<TransformerDecoderLayerImpl> {
  WEFT_LAYER_BEGIN(TransformerDecoderLayer, TransformerDecoderLayerOptions);
  void reset() override {
    const int64_t dim = options.d_model(), inner = options.dim_feedforward();
    const auto attention =
        MultiheadAttentionOptions(dim, options.nhead()).dropout(options.dropout());
    const auto norm = [&](const char* name) {
      return register_module(name, LayerNorm(std::vector<int64_t>{dim}));
    };
    const auto drop = [&](const char* name) {
      return register_module(name, Dropout(options.dropout()));
    };
    self_attn = register_module("self_attn", MultiheadAttention(attention));
    dropout1 = drop("dropout1");
    norm1 = norm("norm1");
    multihead_attn = register_module("multihead_attn", MultiheadAttention(attention));
    dropout2 = drop("dropout2");
    norm2 = norm("norm2");
    linear1 = register_module("linear1", Linear(dim, inner));
    dropout = drop("dropout");
    linear2 = register_module("linear2", Linear(inner, dim));
    dropout3 = drop("dropout3");
    norm3 = norm("norm3");
  }
  at::Tensor forward(at::Tensor tgt, const at::Tensor& memory, const at::Tensor& tgt_mask = {},
                     const at::Tensor& memory_mask = {},
                     const at::Tensor& tgt_key_padding_mask = {},
                     const at::Tensor& memory_key_padding_mask = {}) {
    const at::Tensor own =
        std::get<0>(self_attn->forward(tgt, tgt, tgt, tgt_key_padding_mask, false, tgt_mask));
    tgt = norm1->forward(tgt + dropout1->forward(own));
    const at::Tensor seen = std::get<0>(
        multihead_attn->forward(tgt, memory, memory, memory_key_padding_mask, false, memory_mask));
    tgt = norm2->forward(tgt + dropout2->forward(seen));
    const at::Tensor inner = options.activation()(linear1->forward(tgt));
    return norm3->forward(tgt + dropout3->forward(linear2->forward(dropout->forward(inner))));
  }
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
};
TORCH_MODULE(TransformerDecoderLayer);

// ---- several layers, each a copy of one ----

template <class Layer>
struct TransformerLayersOptions {
  TransformerLayersOptions(Layer layer, int64_t layers)
      : layer(std::move(layer)), num_layers_(layers) {}
  template <class LayerOptions,
            std::enable_if_t<std::is_same_v<LayerOptions, decltype(Layer::Impl::options)>, int> = 0>
  TransformerLayersOptions(const LayerOptions& options, int64_t layers)
      : TransformerLayersOptions(Layer(options), layers) {}
  Layer layer;
  TORCH_ARG(int64_t, num_layers);
  TORCH_ARG(AnyModule, norm);
};
using TransformerEncoderOptions = TransformerLayersOptions<TransformerEncoderLayer>;
using TransformerDecoderOptions = TransformerLayersOptions<TransformerDecoderLayer>;

template <class Derived, class Layer>
struct TransformerLayers : Cloneable<Derived> {
  explicit TransformerLayers(TransformerLayersOptions<Layer> given) : options(std::move(given)) {
    TransformerLayers::reset();
  }
  void reset() override {
    layers = this->register_module("layers", ModuleList());
    for (int64_t i = 0; i < options.num_layers(); ++i) {
      layers->push_back(options.layer->clone());
    }
    if (options.norm().is_empty()) return;
    norm = options.norm().clone();
    this->register_module("norm", norm.ptr());
  }
  void reset_parameters() { reset(); }
  TransformerLayersOptions<Layer> options;
  ModuleList layers{nullptr};
  AnyModule norm;

 protected:
  template <class... Given>
  at::Tensor through(at::Tensor x, const Given&... given) {
    for (const auto& layer : *layers) {
      x = layer->template as<typename Layer::Impl>()->forward(x, given...);
    }
    return norm.is_empty() ? x : norm.forward(x);
  }
};
struct TransformerEncoderImpl : TransformerLayers<TransformerEncoderImpl, TransformerEncoderLayer> {
  explicit TransformerEncoderImpl(TransformerEncoderOptions given)
      : TransformerLayers(std::move(given)) {}
  TransformerEncoderImpl(TransformerEncoderLayer layer, int64_t count)
      : TransformerLayers({std::move(layer), count}) {}
  at::Tensor forward(const at::Tensor& src, const at::Tensor& src_mask = {},
                     const at::Tensor& src_key_padding_mask = {}) {
    return through(src, src_mask, src_key_padding_mask);
  }
};
struct TransformerDecoderImpl : TransformerLayers<TransformerDecoderImpl, TransformerDecoderLayer> {
  explicit TransformerDecoderImpl(TransformerDecoderOptions given)
      : TransformerLayers(std::move(given)) {}
  TransformerDecoderImpl(TransformerDecoderLayer layer, int64_t count)
      : TransformerLayers({std::move(layer), count}) {}
  at::Tensor forward(const at::Tensor& tgt, const at::Tensor& memory,
                     const at::Tensor& tgt_mask = {}, const at::Tensor& memory_mask = {},
                     const at::Tensor& tgt_key_padding_mask = {},
                     const at::Tensor& memory_key_padding_mask = {}) {
    return through(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                   memory_key_padding_mask);
  }
};
TORCH_MODULE(TransformerEncoder);
TORCH_MODULE(TransformerDecoder);

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t dim, int64_t heads, int64_t encoders = 6, int64_t decoders = 6)
      : d_model_(dim),
        nhead_(heads),
        num_encoder_layers_(encoders),
        num_decoder_layers_(decoders) {}
  TORCH_ARG(int64_t, d_model) = 512;
  TORCH_ARG(int64_t, nhead) = 8;
  TORCH_ARG(int64_t, num_encoder_layers) = 6;
  TORCH_ARG(int64_t, num_decoder_layers) = 6;
  TORCH_ARG(int64_t, dim_feedforward) = 2048;
  TORCH_ARG(double, dropout) = 0.1;
  TORCH_ARG(activation_t, activation) = kReLU;
  TORCH_ARG(AnyModule, custom_encoder);
  TORCH_ARG(AnyModule, custom_decoder);
};
struct TransformerImpl : Cloneable<TransformerImpl> {
  WEFT_LAYER_BEGIN(Transformer, TransformerOptions);
  void reset() override {
    const auto norm = [&] { return AnyModule(LayerNorm(std::vector<int64_t>{options.d_model()})); };
    encoder = options.custom_encoder().clone();
    if (encoder.is_empty()) {
      encoder = AnyModule(
          TransformerEncoder(TransformerEncoderOptions(like<TransformerEncoderLayerOptions>(),
                                                       options.num_encoder_layers())
                                 .norm(norm())));
    }
    decoder = options.custom_decoder().clone();
    if (decoder.is_empty()) {
      decoder = AnyModule(
          TransformerDecoder(TransformerDecoderOptions(like<TransformerDecoderLayerOptions>(),
                                                       options.num_decoder_layers())
                                 .norm(norm())));
    }
    register_module("encoder", encoder.ptr());
    register_module("decoder", decoder.ptr());
    reset_parameters();
  }
  void reset_parameters() {
    for (const at::Tensor& each : parameters()) {
      if (each.dim() > 1) init::xavier_uniform_(each);
    }
  }
  at::Tensor forward(const at::Tensor& src, const at::Tensor& tgt, const at::Tensor& src_mask = {},
                     const at::Tensor& tgt_mask = {}, const at::Tensor& memory_mask = {},
                     const at::Tensor& src_key_padding_mask = {},
                     const at::Tensor& tgt_key_padding_mask = {},
                     const at::Tensor& memory_key_padding_mask = {}) {
    const at::Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
    return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                           memory_key_padding_mask);
  }
  // Steps see none behind themselves.
  static at::Tensor generate_square_subsequent_mask(int64_t size) {
    return at::full({size, size}, -std::numeric_limits<float>::infinity()).triu(1);
  }
  AnyModule encoder, decoder;

 private:
  template <class LayerOptions>
  LayerOptions like() const {
    return LayerOptions(options.d_model(), options.nhead())
        .dim_feedforward(options.dim_feedforward())
        .dropout(options.dropout())
        .activation(options.activation());
  }
};
TORCH_MODULE(Transformer);

#undef WEFT_LAYER_BEGIN
#undef WEFT_PLAIN_LAYER
#undef WEFT_PRETTY
#undef WEFT_X

}  // namespace over_weft
}  // namespace torch::nn
