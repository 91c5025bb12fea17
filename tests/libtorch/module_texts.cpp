// What modules say about themselves.
#include <torch/torch.h>

#include <iostream>

#include "words.h"

namespace module_texts {

namespace nn = torch::nn;

struct BlockImpl : nn::Cloneable<BlockImpl> {
  explicit BlockImpl(int64_t width) : width_(width) { reset(); }
  void reset() override {
    layers = register_module("layers",
                             nn::Sequential({{"linear", nn::Linear(width_, width_)},
                                             {"norm", nn::BatchNorm1d(width_)},
                                             {"act", nn::Functional(torch::leaky_relu, 0.2)}}));
    register_buffer("seen", torch::zeros({1}, torch::kLong));
  }
  torch::Tensor forward(torch::Tensor x) { return layers->forward(x); }
  int64_t width_;
  nn::Sequential layers{nullptr};
};
TORCH_MODULE(Block);

void program(const Words&) {
  torch::manual_seed(0);
  Block block(2);
  std::cout << block << '\n';
  for (const auto& each : block->named_parameters()) std::cout << each.key() << ' ';
  for (const auto& each : block->named_buffers()) std::cout << each.key() << ' ';
  std::cout << '\n';
  for (const auto& each : block->named_modules("top")) std::cout << each.key() << ' ';
  std::cout << '\n';

  block->eval();
  block->apply([](nn::Module& module) { std::cout << module.is_training(); });
  auto copy = std::dynamic_pointer_cast<BlockImpl>(block->clone());
  {
    torch::NoGradGuard no_grad;
    copy->layers[0]->as<nn::Linear>()->weight.zero_();
  }
  std::cout << block->layers->at<nn::LinearImpl>(0).weight.any().item<bool>()
            << copy->layers->at<nn::LinearImpl>(0).weight.any().item<bool>() << '\n';

  block->forward(torch::ones({3, 2})).sum().backward();
  std::cout << block->parameters()[0].grad().defined();
  block->zero_grad();
  std::cout << block->parameters()[0].grad().defined() << '\n';
  torch::Tensor weight = block->parameters()[0];
  block->to(torch::kDouble);
  std::cout << weight.element_size() << block->forward(weight).element_size() << '\n';

  nn::AnyModule any(nn::GRU(2, 3));
  using State = std::tuple<torch::Tensor, torch::Tensor>;
  std::cout << std::get<0>(any.forward<State>(torch::ones({4, 1, 2}))).sizes() << '\n';
  nn::ModuleList list(nn::Conv1d(1, 2, 3), nn::MaxPool2d(nn::MaxPool2dOptions({2, 3}).stride(1)));
  list->push_back(nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2})));
  std::cout << list << '\n';

  std::cout << torch::tensor({-0.05, 0.015}) << '\n'
            << torch::arange(4).view({2, 2}) << '\n'
            << torch::tensor({{1e6, 0.5}}) << '\n'
            << torch::tensor(0.1, torch::kDouble) << '\n'
            << torch::arange(2).dtype() << ' ' << torch::ones({1}).dtype() << '\n';

  try {
    block->register_module("a.b", nn::ReLU());
  } catch (const c10::Error& error) {
    std::cout << error.msg().substr(0, error.msg().find(" (")) << '\n';
  }
  try {
    any.forward(1);
  } catch (const c10::Error& error) {
    std::cout << error.msg().substr(0, error.msg().find(" (")) << '\n';
  }
}

}  // namespace module_texts
