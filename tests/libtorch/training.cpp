// Trains a small network with each optimizer on drawn data, and prints the losses.
#include <torch/torch.h>

#include <cstdio>

#include "words.h"

namespace training {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct NetImpl : nn::Module {
  NetImpl()
      : convolution(nn::Conv2dOptions(1, 4, 3).stride(2).padding(1)),
        norm(4),
        lstm(4, 5),
        head(5, 3) {
    register_module("convolution", convolution);
    register_module("norm", norm);
    register_module("lstm", lstm);
    register_module("head", head);
    scale = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = F::leaky_relu(norm(convolution(x)), F::LeakyReLUFuncOptions().negative_slope(0.1));
    x = F::max_pool2d(x, F::MaxPool2dFuncOptions(2));
    x = torch::dropout(x, 0.25, is_training());
    x = x.flatten(2).permute({2, 0, 1});
    auto [steps, state] = lstm->forward(x);
    return head(steps[-1]) * scale;
  }
  nn::Conv2d convolution;
  nn::BatchNorm2d norm;
  nn::LSTM lstm;
  nn::Linear head;
  torch::Tensor scale;
};
TORCH_MODULE(Net);

template <class Make>
void train(const char* name, Make make) {
  torch::manual_seed(3);
  Net net;
  auto optimizer = make(net->parameters());
  nn::CrossEntropyLoss criterion;
  for (int step = 0; step < 5; ++step) {
    const auto images = torch::randn({6, 1, 8, 8});
    const auto classes = torch::randint(0, 3, {6});
    optimizer.zero_grad();
    auto loss = criterion(net(images), classes);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    std::printf("%s %.9g\n", name, loss.template item<double>());
  }
}

void program(const Words&) {
  using Parameters = std::vector<torch::Tensor>;
  namespace optim = torch::optim;
  train("sgd", [](Parameters p) {
    return optim::SGD(p, optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
  });
  train("adam", [](Parameters p) {
    return optim::Adam(p, optim::AdamOptions(0.05).betas({0.8, 0.95}).amsgrad(true));
  });
  train("adamw", [](Parameters p) { return optim::AdamW(p); });
  train("rmsprop", [](Parameters p) {
    return optim::RMSprop(p, optim::RMSpropOptions(0.02).momentum(0.5).centered(true));
  });
  train("adagrad", [](Parameters p) { return optim::Adagrad(p, 0.1); });
}

}  // namespace training
