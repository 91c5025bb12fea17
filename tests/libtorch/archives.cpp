// Saves modules, tensors and optimizers in one folder, and goes on from what another folder has.
#include <torch/torch.h>

#include <iostream>
#include <sstream>

#include "words.h"

namespace archives {

namespace nn = torch::nn;

nn::Sequential make() {
  return nn::Sequential(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2), nn::Functional(torch::relu),
                        nn::Flatten(), nn::Linear(nn::LinearOptions(18, 2).bias(false)));
}

void program(const Words& words) {
  const std::string folder = words.at(0), from = words.at(1);
  torch::manual_seed(1);
  nn::Sequential net = make(), other = make();
  const auto options = torch::optim::AdamOptions(0.05).betas({0.8, 0.9});
  torch::optim::Adam optimizer(net->parameters(), options), next(other->parameters(), 0.1);
  const auto x = torch::randn({4, 1, 5, 5});
  const auto step = [&](nn::Sequential& each, torch::optim::Optimizer& its) {
    its.zero_grad();
    auto loss = each->forward(x).pow(2).sum();
    loss.backward();
    its.step();
    return loss.item<float>();
  };
  for (int i = 0; i < 3; ++i) step(net, optimizer);
  torch::save(net, folder + "/net.pt");
  torch::save(optimizer, folder + "/optimizer.pt");
  torch::save(x, folder + "/x.pt");
  torch::save({torch::arange(3), torch::tensor({true, false}), torch::rand({2}, torch::kDouble)},
              folder + "/list.pt");

  torch::load(other, from + "/net.pt");
  torch::load(next, from + "/optimizer.pt");
  for (int i = 0; i < 3; ++i) {
    const float a = step(net, optimizer), b = step(other, next);
    std::cout << (std::abs(a - b) < 1e-4 * a) << ' ';
  }
  torch::Tensor read;
  torch::load(read, from + "/x.pt");
  std::vector<torch::Tensor> list;
  torch::load(list, from + "/list.pt");
  std::cout << read.allclose(x) << ' ' << list.size() << ' ' << list[0].sum().item<int64_t>() << ' '
            << list[1][0].item<bool>() << '\n';

  std::stringstream stream;
  torch::save(net, stream);
  nn::Linear wrong(2, 2);
  for (const std::string& text : {stream.str(), stream.str().substr(0, 900), std::string("none")}) {
    std::istringstream in(text);
    try {
      torch::load(wrong, in);
    } catch (const c10::Error& error) {
      const std::string message = error.what();
      std::cout << message.substr(0, message.find(" (")) << '\n';
    }
  }
}

}  // namespace archives
