// Optimizers: the steps of weft.optim.SGD and weft.optim.Adam over the parameters of a module.
#include <cmath>

#include "autograd/node.h"
#include "capi/handles.h"
#include "ops_arithmetic.h"
#include "ops_copying.h"
#include "ops_factories.h"
#include "ops_math.h"
#include "ops_unary.h"

// One optimizer: its parameters, and what it does with one of them and its gradient.
struct weft_optimizer {
  std::vector<weft::Tensor> parameters;
  double lr = 0;

  virtual ~weft_optimizer() = default;
  virtual void update(size_t index, const weft::Tensor& parameter, weft::Tensor grad) = 0;
};

namespace weft::capi {
namespace {

// v = momentum * v + grad; p -= lr * v. With momentum 0 v is the gradient.
struct Sgd final : weft_optimizer {
  double momentum = 0, weight_decay = 0;
  std::vector<Tensor> velocities;

  void update(size_t index, const Tensor& parameter, Tensor grad) override {
    if (weight_decay != 0) grad = ops::add(grad, parameter, Scalar(weight_decay));
    if (momentum != 0) {
      Tensor& velocity = velocities[index];
      if (velocity.defined()) {
        ops::mul_(velocity, Scalar(momentum));
        ops::add_(velocity, grad);
      } else {
        velocity = ops::clone(grad);
      }
      grad = velocity;
    }
    ops::add_(parameter, grad, Scalar(-lr));
  }
};

// Kingma and Ba, "Adam: a method for stochastic optimization" (2015), algorithm 1.
struct Adam final : weft_optimizer {
  double beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  struct State {
    int64_t step = 0;
    Tensor mean, square;
  };
  std::vector<State> states;

  void update(size_t index, const Tensor& parameter, Tensor grad) override {
    State& state = states[index];
    if (!state.mean.defined()) {
      state.mean = ops::zeros_like(parameter);
      state.square = ops::zeros_like(parameter);
    }
    const auto step = static_cast<double>(++state.step);
    if (weight_decay != 0) grad = ops::add(grad, parameter, Scalar(weight_decay));
    ops::lerp_(state.mean, grad, Scalar(1 - beta1));
    ops::mul_(state.square, Scalar(beta2));
    ops::addcmul_(state.square, grad, grad, Scalar(1 - beta2));
    const Tensor denominator = ops::sqrt(state.square);
    ops::div_(denominator, Scalar(std::sqrt(1 - std::pow(beta2, step))));
    ops::add_(denominator, Scalar(eps));
    ops::addcdiv_(parameter, state.mean, denominator, Scalar(-lr / (1 - std::pow(beta1, step))));
  }
};

void check_at_least_zero(const char* op, const char* name, double value) {
  WEFT_CHECK_VALUE(value >= 0, op, ": expected ", name, " of at least 0, got ", value);
}

void check_beta(const char* name, double value) {
  WEFT_CHECK_VALUE(value >= 0 && value < 1, "weft_adam: expected ", name, " in [0, 1), got ",
                   value);
}

template <class T>
std::unique_ptr<T> optimizer_of(const char* op, const weft_module* module, double lr) {
  check_at_least_zero(op, "a learning rate", lr);
  auto made = std::make_unique<T>();
  made->lr = lr;
  for (const auto& [name, tensor] : handle(op, module).parameters)
    made->parameters.push_back(tensor);
  return made;
}

}  // namespace
}  // namespace weft::capi

using namespace weft;
using capi::guarded;
using capi::handle;

weft_status weft_sgd(const weft_module* module, double lr, double momentum, double weight_decay,
                     weft_optimizer** out) {
  return guarded([&] {
    auto made = capi::optimizer_of<capi::Sgd>("weft_sgd", module, lr);
    capi::check_at_least_zero("weft_sgd", "a momentum", momentum);
    capi::check_at_least_zero("weft_sgd", "a weight decay", weight_decay);
    made->momentum = momentum;
    made->weight_decay = weight_decay;
    made->velocities.resize(made->parameters.size());
    *out = made.release();
  });
}

weft_status weft_adam(const weft_module* module, double lr, double beta1, double beta2, double eps,
                      double weight_decay, weft_optimizer** out) {
  return guarded([&] {
    auto made = capi::optimizer_of<capi::Adam>("weft_adam", module, lr);
    capi::check_beta("beta1", beta1);
    capi::check_beta("beta2", beta2);
    capi::check_at_least_zero("weft_adam", "an eps", eps);
    capi::check_at_least_zero("weft_adam", "a weight decay", weight_decay);
    made->beta1 = beta1;
    made->beta2 = beta2;
    made->eps = eps;
    made->weight_decay = weight_decay;
    made->states.resize(made->parameters.size());
    *out = made.release();
  });
}

weft_status weft_optimizer_step(weft_optimizer* optimizer) {
  return guarded([&] {
    weft_optimizer& given = handle("weft_optimizer_step", optimizer);
    const autograd::NoGradGuard no_grad;
    for (size_t i = 0; i < given.parameters.size(); ++i) {
      const Tensor grad = autograd::grad(given.parameters[i]);
      if (grad.defined()) given.update(i, given.parameters[i], grad);
    }
  });
}

weft_status weft_optimizer_zero_grad(weft_optimizer* optimizer) {
  return guarded([&] {
    for (const Tensor& parameter : handle("weft_optimizer_zero_grad", optimizer).parameters) {
      autograd::set_grad(parameter, {});
    }
  });
}

weft_status weft_optimizer_set_lr(weft_optimizer* optimizer, double lr) {
  return guarded([&] {
    capi::check_at_least_zero("weft_optimizer_set_lr", "a learning rate", lr);
    handle("weft_optimizer_set_lr", optimizer).lr = lr;
  });
}

void weft_optimizer_release(weft_optimizer* optimizer) { delete optimizer; }
