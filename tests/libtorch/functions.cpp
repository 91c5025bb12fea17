// A function of its own gradient, and the gradient of that.
#include <torch/torch.h>

#include <iostream>

#include "words.h"

namespace functions {

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list grads) {
    const at::Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * 3 * x * x};
  }
};

void program(const Words&) {
  const at::Tensor x = torch::tensor({1.0, 2.0}, torch::requires_grad());
  const at::Tensor y = Cube::apply(x).sum();
  const auto first = torch::autograd::grad({y}, {x}, {}, true, true);
  const auto second = torch::autograd::grad({first[0].sum()}, {x});
  std::cout << y.item<double>() << ' ' << first[0][1].item<double>() << ' '
            << second[0][1].item<double>() << std::endl;
}

}  // namespace functions
