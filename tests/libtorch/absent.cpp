// Functions that weft has not, and that compile: each says its name when it is called.
#include <torch/script.h>
#include <torch/torch.h>

#include <iostream>

#include "words.h"

namespace absent {

template <class Call>
void attempt(Call&& call) {
  try {
    call();
  } catch (const c10::NotImplementedError& error) {
    std::cout << error.what() << "\n";
  }
}

void program(const Words&) {
  const torch::Tensor x = torch::ones({2});
  attempt([&] { torch::Tensor made = torch::_add_relu(x, x); });
  attempt([&] {
    auto outputs = torch::_fused_dropout(x, 0.5, c10::nullopt);
    new torch::Tensor(std::get<1>(outputs));
  });
  attempt([&] {
    auto outputs = torch::_foreach_add(std::vector<torch::Tensor>{x}, 1);
    for (size_t i = 0; i < outputs.size(); ++i) new torch::Tensor(outputs[i]);
  });
  attempt([&] { return x.coalesce().values(); });
  attempt([&] { return x.q_scale() + static_cast<double>(x.sparse_dim()); });
  attempt([&] { return x._version(); });
  attempt([&] { return at::detail::getDefaultCPUGenerator().get_state(); });
  attempt([&] { return torch::jit::compile("def f(x): return x"); });
  attempt([&] { torch::Tensor(x).uniform_(0, 1, at::detail::createCPUGenerator(3)); });
}

}  // namespace absent
