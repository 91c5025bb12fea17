// Layers, losses and functions: their names, parameters, values and gradients, as sums by weights.
// The text beside this file is what PyTorch's own library prints.
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

#include "words.h"

namespace layers {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;
void show(const std::string& name, const Tensor& y) {
  auto w = torch::arange(y.numel(), torch::kDouble).reshape(y.sizes()).sin();
  std::cout << name << " " << y.sizes() << " "
            << (y.to(torch::kDouble).detach() * w).sum().item<double>() << "\n";
}
template <class Holder, class... In>
void layer(Holder h, In... in) {
  std::cout << h << "\n";
  for (auto& each : h->named_parameters()) show("  " + each.key(), each.value());
  auto y = h->forward(in...);
  show("  out", y);
  if (y.requires_grad()) {
    y.sum().backward();
    for (auto& each : h->named_parameters()) show("  grad " + each.key(), each.value().grad());
  }
  for (auto& each : h->named_buffers()) show("  " + each.key(), each.value());
}
void program(const Words&) {
  torch::manual_seed(7);
  std::cout << std::fixed << std::setprecision(3);
  auto x2 = torch::randn({4, 6}), x3 = torch::randn({2, 4, 9}), x4 = torch::randn({2, 4, 8, 6}),
       x5 = torch::randn({2, 4, 6, 6, 5});
  layer(nn::Linear(6, 3), x2);
  layer(nn::Linear(nn::LinearOptions(6, 3).bias(false)), x2);
  layer(nn::Bilinear(nn::BilinearOptions(6, 6, 2)), x2, x2);
  layer(nn::Identity(), x2);
  layer(nn::Flatten(), x4);
  layer(nn::Flatten(nn::FlattenOptions().start_dim(2)), x4);
  layer(nn::Conv1d(4, 6, 3), x3);
  layer(nn::Conv1d(nn::Conv1dOptions(4, 6, 3).stride(2).padding(1).dilation(2).groups(2)), x3);
  layer(nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 2}).stride({2, 1}).padding({1, 0})), x4);
  layer(nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(torch::kSame).bias(false)), x4);
  layer(nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(1).padding_mode(torch::kReflect)), x4);
  layer(nn::Conv2d(nn::Conv2dOptions(4, 6, 3).padding(2).padding_mode(torch::kCircular)), x4);
  layer(nn::Conv3d(nn::Conv3dOptions(4, 6, 3).stride(2).padding(1)), x5);
  layer(nn::Conv3d(nn::Conv3dOptions(4, 6, {2, 3, 1}).dilation({2, 1, 1}).groups(2)), x5);
  layer(nn::ConvTranspose1d(
            nn::ConvTranspose1dOptions(4, 6, 3).stride(2).padding(1).output_padding(1)),
        x3);
  layer(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 6, 3).stride(2).padding(1)), x4);
  layer(nn::ConvTranspose3d(
            nn::ConvTranspose3dOptions(4, 6, 3).stride({2, 1, 2}).padding(1).output_padding(
                {1, 0, 1})),
        x5);
  layer(nn::BatchNorm1d(4), x3);
  layer(nn::BatchNorm1d(nn::BatchNorm1dOptions(6).momentum(torch::nullopt)), x2);
  layer(nn::BatchNorm2d(nn::BatchNorm2dOptions(4).eps(1e-3).momentum(0.2)), x4);
  layer(nn::BatchNorm2d(nn::BatchNorm2dOptions(4).affine(false).track_running_stats(false)), x4);
  layer(nn::BatchNorm3d(4), x5);
  layer(nn::InstanceNorm1d(4), x3);
  layer(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(4).affine(true).track_running_stats(true)),
        x4);
  layer(nn::LayerNorm(nn::LayerNormOptions({8, 6})), x4);
  layer(nn::GroupNorm(nn::GroupNormOptions(2, 4)), x4);
  layer(nn::Dropout(0.3), x4);
  layer(nn::Dropout2d(nn::Dropout2dOptions(0.4)), x4);
  layer(nn::Dropout3d(), x5);
  layer(nn::AlphaDropout(0.2), x4);
  layer(nn::Embedding(10, 3), torch::tensor({1, 5, 2}));
  layer(nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(2)), torch::tensor({1, 5, 2}));
  layer(nn::MaxPool1d(2), x3);
  layer(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), x4);
  layer(nn::MaxPool2d(nn::MaxPool2dOptions({2, 3}).ceil_mode(true)), x4);
  layer(nn::MaxPool3d(2), x5);
  layer(nn::AvgPool1d(2), x3);
  layer(nn::AvgPool2d(nn::AvgPool2dOptions(3).stride(1).padding(1)), x4);
  layer(nn::AvgPool3d(nn::AvgPool3dOptions({2, 2, 3})), x5);
  layer(nn::AdaptiveAvgPool1d(2), x3);
  layer(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, 2})), x4);
  layer(nn::AdaptiveAvgPool3d(2), x5);
  layer(nn::AdaptiveMaxPool1d(2), x3);
  layer(nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({3, 2})), x4);
  layer(nn::ReLU(), x2);
  layer(nn::ReLU(nn::ReLUOptions(true)), x2.clone());
  layer(nn::ReLU6(), x2);
  layer(nn::SELU(), x2);
  layer(nn::CELU(nn::CELUOptions().alpha(0.7)), x2);
  layer(nn::ELU(nn::ELUOptions().alpha(0.5)), x2);
  layer(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), x2);
  layer(nn::GELU(), x2);
  layer(nn::GLU(), x2);
  layer(nn::Tanh(), x2);
  layer(nn::Sigmoid(), x2);
  layer(nn::Softmax(1), x2);
  layer(nn::LogSoftmax(nn::LogSoftmaxOptions(0)), x2);
  layer(nn::Softmin(1), x2);
  layer(nn::Softplus(), x2);
  layer(nn::SiLU(), x2);
  layer(nn::Mish(), x2);
  layer(nn::Hardtanh(), x2);
  layer(nn::Hardshrink(), x2);
  layer(nn::Softshrink(), x2);
  layer(nn::Softsign(), x2);
  layer(nn::Tanhshrink(), x2);
  layer(nn::LogSigmoid(), x2);
  layer(nn::PReLU(), x2);
  layer(nn::Threshold(0.1, 2.0), x2);
  layer(nn::Upsample(
            nn::UpsampleOptions().scale_factor(std::vector<double>({2, 3})).mode(torch::kNearest)),
        x4);
  layer(nn::Upsample(nn::UpsampleOptions()
                         .size(std::vector<int64_t>({5, 9}))
                         .mode(torch::kBilinear)
                         .align_corners(true)),
        x4);
  layer(nn::Upsample(nn::UpsampleOptions()
                         .size(std::vector<int64_t>({5, 9}))
                         .mode(torch::kBilinear)
                         .align_corners(false)),
        x4);
  layer(nn::PixelShuffle(2), x4);
  layer(nn::ReflectionPad2d(2), x4);
  layer(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({3, 1})), x3);
  layer(nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 2, 3, 0})), x4);
  layer(nn::ConstantPad2d(1, 3.5), x4);
  auto logits = torch::randn({5, 4}).requires_grad_(), classes = torch::tensor({1, 0, 3, 2, 1});
  auto other = torch::rand({5, 4}), prob = torch::rand({5, 4});
  show("ce", nn::CrossEntropyLoss()(logits, classes));
  show("ce", nn::CrossEntropyLoss(nn::CrossEntropyLossOptions()
                                      .reduction(torch::kNone)
                                      .label_smoothing(0.1)
                                      .weight(torch::tensor({1., 2., 3., 4.}, torch::kFloat)))(
                 logits, classes));
  show("nll",
       F::nll_loss(F::log_softmax(logits, 1), classes, F::NLLLossFuncOptions().ignore_index(1)));
  show("mse", nn::MSELoss(nn::MSELossOptions(torch::kSum))(logits, other));
  show("mse", F::mse_loss(logits, other));
  show("l1", nn::L1Loss()(logits, other));
  show("smooth", nn::SmoothL1Loss()(logits, other));
  show("huber", nn::HuberLoss(nn::HuberLossOptions().delta(0.5))(logits, other));
  show("bce", nn::BCELoss()(prob, other));
  show("bcel", nn::BCEWithLogitsLoss()(logits, other));
  show("kl", nn::KLDivLoss(nn::KLDivLossOptions().reduction(torch::kBatchMean))(
                 logits.log_softmax(1), other.softmax(1)));
  show("cos", F::cosine_similarity(logits, other));
  show("pd", F::pairwise_distance(logits, other));
  show("tri", F::triplet_margin_loss(logits, other, prob));
  show("soft", nn::SoftMarginLoss()(logits, other.sign()));
  show("margin", nn::MarginRankingLoss()(logits, other, other.sign()));
  show("cosemb", F::cosine_embedding_loss(logits, other, torch::tensor({1, -1, 1, 1, -1})));
  show("hinge", nn::HingeEmbeddingLoss()(logits, (other - 0.5).sign()));
  show("norm", F::normalize(x2));
  show("norm1", F::normalize(x2, F::NormalizeFuncOptions().p(1).dim(0)));
  show("pad", F::pad(x4, F::PadFuncOptions({1, 2, 3, 1}).mode(torch::kCircular)));
  show("pad", F::pad(x4, F::PadFuncOptions({1, 2}).value(4)));
  show("grid", F::grid_sample(x4, torch::rand({2, 3, 3, 2}) * 2 - 1,
                              F::GridSampleFuncOptions().align_corners(true)));
  show("interp", F::interpolate(x4, F::InterpolateFuncOptions()
                                        .scale_factor(std::vector<double>{0.5, 0.5})
                                        .mode(torch::kBilinear)
                                        .align_corners(false)));
  show("area",
       F::interpolate(
           x4, F::InterpolateFuncOptions().size(std::vector<int64_t>{3, 3}).mode(torch::kArea)));
  show("drop", F::dropout(x4, F::DropoutFuncOptions().p(0.2)));
  show("conv",
       F::conv2d(x4, torch::ones({2, 4, 3, 3}), F::Conv2dFuncOptions().stride(2).padding(1)));
  show("maxp", F::max_pool2d(x4, F::MaxPool2dFuncOptions(2)));
  show("onehot", F::one_hot(classes, 5));
  auto seq = torch::randn({5, 3, 4});
  nn::LSTM lstm(nn::LSTMOptions(4, 6).num_layers(2).bidirectional(true));
  std::cout << lstm << "\n";
  auto [out, state] = lstm(seq);
  show("lstm", out);
  show("h", std::get<0>(state));
  show("c", std::get<1>(state));
  out.sum().backward();
  for (auto& each : lstm->named_parameters()) show(each.key(), each.value().grad());
  auto [out2, state2] = lstm->forward(seq, state);
  show("lstm2", out2);
  nn::GRU gru(nn::GRUOptions(4, 6).batch_first(true));
  std::cout << gru << "\n";
  auto [go, gh] = gru->forward(seq);
  show("gru", go);
  show("gh", gh);
  nn::RNN rnn(nn::RNNOptions(4, 6).nonlinearity(torch::kReLU));
  std::cout << rnn << "\n";
  auto [ro, rh] = rnn->forward(seq);
  show("rnn", ro);
  show("rh", rh);
  nn::LSTMCell cell(4, 6);
  auto [ch, cc] = cell(seq[0]);
  show("cell", ch);
  show("cell", cc);
  std::cout << cell << "\n";
  nn::GRUCell gcell(4, 6);
  show("gcell", gcell(seq[0]));
  nn::RNNCell rcell(4, 6);
  show("rcell", rcell(seq[0]));
  nn::MultiheadAttention mha(nn::MultiheadAttentionOptions(4, 2));
  auto [ao, aw] = mha(seq, seq, seq);
  show("mha", ao);
  show("mhaw", aw);
  nn::TransformerEncoderLayer tel(
      nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0.0));
  show("tel", tel(seq));
  auto w = torch::empty({4, 6, 3});
  show("xu", nn::init::xavier_uniform_(w));
  show("xn", nn::init::xavier_normal_(w, 2.0));
  show("ku", nn::init::kaiming_uniform_(w));
  show("kn", nn::init::kaiming_normal_(w, 0.0, torch::kFanOut, torch::kReLU));
  show("or", nn::init::orthogonal_(torch::empty({4, 6})));
  show("eye", nn::init::eye_(torch::empty({3, 4})));
  show("con", nn::init::constant_(w, 3));
  show("n", nn::init::normal_(w, 1, 2));
  show("u", nn::init::uniform_(w, 1, 2));
  auto ps = mha->parameters();
  ao.pow(2).sum().backward();
  std::cout << nn::utils::clip_grad_norm_(ps, 0.5) << "\n";
  show("clip", ps[0].grad());
  nn::utils::clip_grad_value_(ps, 0.01);
  show("clip", ps[0].grad());
  show("vec", nn::utils::parameters_to_vector(ps));
  show("seqs", nn::utils::rnn::pad_sequence({torch::ones({3, 2}), torch::ones({5, 2})}, true, 7));
}

}  // namespace layers
