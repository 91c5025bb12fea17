// Runs the program of a package, which is told nothing but its inputs in their order.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

#include <algorithm>
#include <iostream>

#include "words.h"

namespace packages {

template <class Function>
void print_error(Function&& function) {
  try {
    function();
    std::cout << "no error\n";
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::cout << text.substr(0, text.find_first_of("(\n")) << '\n';
  }
}

void program(const Words& words) {
  torch::inductor::AOTIModelPackageLoader loader(words.at(0));
  const std::vector<at::Tensor> inputs = {torch::arange(6.).view({2, 3}), torch::ones({1})};
  const auto total = [&] {
    std::vector<at::Tensor> taken = inputs;
    const auto results = loader.boxed_run(std::move(taken));
    return results.at(0).sum().item<double>();
  };
  const auto results = loader.run(inputs);
  std::cout << results.size() << ' ' << results.at(0).sizes() << results.at(1).sizes() << ' '
            << results.at(0).requires_grad() << ' ' << loader.get_metadata().at("kind") << '\n';
  for (const std::string& each : loader.get_call_spec()) std::cout << each.substr(0, 30) << '\n';
  std::vector<std::string> names = loader.get_constant_fqns();
  std::sort(names.begin(), names.end());
  for (const std::string& each : names) std::cout << each << ' ';
  std::cout << total() << ' ';

  at::Tensor bias = torch::full({2}, 10.);
  std::unordered_map<std::string, at::Tensor> values = {{"linear.bias", bias}};
  loader.load_constants(values, false, false);
  bias.add_(5);  // the program has a copy
  std::cout << total() << ' ';
  loader.update_constant_buffer(values, false, false, true);
  std::cout << total() << ' ';
  bias.add_(5);  // it has the same memory
  std::cout << total() << '\n';

  print_error([&] { loader.load_constants(values, false, true); });
  print_error([&] { loader.load_constants(values, true, false); });
  values = {{"linear.bias", torch::ones({1})}};
  print_error([&] { loader.load_constants(values, false, false); });
  values = {{"other", bias}};
  print_error([&] { loader.load_constants(values, false, false); });
  print_error([&] { loader.run({inputs[0]}); });
  print_error([&] { torch::inductor::AOTIModelPackageLoader other(words.at(1)); });
}

}  // namespace packages
