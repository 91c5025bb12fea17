// The gradient of recurrent layers. Where it is itself to be differentiated, the layer runs again,
// step by step, of operators that have second gradients.
#include "ops/recurrent.h"

#include "autograd/double_backward.h"
#include "autograd/node.h"
#include "native_recurrent.h"
#include "ops_activations.h"
#include "ops_arithmetic.h"
#include "ops_factories.h"
#include "ops_indexing.h"
#include "ops_linalg.h"
#include "ops_unary.h"
#include "ops_views.h"

namespace weft::recurrent {
namespace {

struct State {
  Tensor hidden, memory;
};

State next_state(const Layer& l, const Tensor& steps, const State& state) {
  const Tensor gates = ops::linear(state.hidden, l.weight, l.bias);
  if (l.mode.keeps_apart) {
    const TensorList x = ops::chunk(steps, 3, -1), h = ops::chunk(gates, 3, -1);
    const Tensor reset = ops::sigmoid(ops::add(x[0], h[0]));
    const Tensor update = ops::sigmoid(ops::add(x[1], h[1]));
    const Tensor fresh = ops::tanh(ops::add(x[2], ops::mul(reset, h[2])));
    return {ops::add(fresh, ops::mul(update, ops::sub(state.hidden, fresh))), {}};
  }
  const Tensor sum = ops::add(steps, gates);
  if (!l.mode.has_memory) {
    return {std::string(l.mode.name) == "RNN_RELU" ? ops::relu(sum) : ops::tanh(sum), {}};
  }
  const TensorList parts = ops::chunk(sum, 4, -1);
  const auto [hidden, memory] =
      ops::_lstm_cell(parts[0], parts[1], parts[2], parts[3], state.memory);
  return {l.projection.defined() ? ops::linear(hidden, l.projection) : hidden, memory};
}

// The first rows replaced by others.
Tensor with_first(const Tensor& all, const Tensor& first) {
  const int64_t rest = all.sizes()[0] - first.sizes()[0];
  return rest == 0 ? first : ops::cat({first, ops::narrow(all, 0, first.sizes()[0], rest)}, 0);
}

// output, last hidden state and last memory, as _recurrent_steps gives them.
TensorList run(const Layer& l) {
  const Steps order = steps_of(l.steps, l.batch_sizes, l.hidden.sizes()[0], l.backwards);
  const int64_t flat[] = {order.rows, l.steps.sizes().back()};
  const Tensor data = ops::reshape(l.steps, flat);
  State state{l.hidden, l.memory};
  TensorList outputs(order.sizes.size());
  for (int64_t turn = 0; turn < order.count(); ++turn) {
    const size_t t = order.at(turn);
    const auto first = [&](const Tensor& all) {
      return all.defined() ? ops::narrow(all, 0, 0, order.sizes[t]) : all;
    };
    const State next = next_state(l, ops::narrow(data, 0, order.starts[t], order.sizes[t]),
                                  {first(state.hidden), first(state.memory)});
    outputs[t] = next.hidden;
    state.hidden = with_first(state.hidden, next.hidden);
    if (l.memory.defined()) state.memory = with_first(state.memory, next.memory);
  }
  Dims sizes = l.steps.sizes();
  sizes.back() = l.hidden.sizes()[1];
  return {ops::reshape(ops::cat(outputs, 0), sizes), state.hidden, state.memory};
}

Gradients differentiable(const Layer& l, const TensorList& grads) {
  const TensorList g = autograd::differentiable_gradients(
      {l.steps, l.hidden, l.memory, l.weight, l.bias, l.projection}, grads,
      [&](const TensorList& own) {
        return run(
            {own[0], l.batch_sizes, own[1], own[2], own[3], own[4], own[5], l.mode, l.backwards});
      });
  return {g[0], g[1], g[2], g[3], g[4], g[5]};
}

}  // namespace
}  // namespace weft::recurrent

namespace weft::native {

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> _recurrent_steps_backward(
    const Tensor& grad_output, const Tensor& grad_hidden, const Tensor& grad_memory,
    const Tensor& steps, const Tensor& batch_sizes, const Tensor& hidden, const Tensor& memory,
    const Tensor& weight, const Tensor& bias, const Tensor& projection, const Tensor& output,
    const Tensor& gates, const Tensor& memories, const Tensor& states, const std::string& mode,
    bool backwards) {
  const recurrent::Layer layer{steps,    batch_sizes, hidden,     memory,
                               weight,   bias,        projection, recurrent::mode_of(mode),
                               backwards};
  const recurrent::Gradients g =
      autograd::grad_enabled()
          ? recurrent::differentiable(layer, {grad_output, grad_hidden, grad_memory})
          : recurrent::backward(layer, {output, gates, memories, states}, grad_output, grad_hidden,
                                grad_memory);
  return {g.steps, g.hidden, g.memory, g.weight, g.bias, g.projection};
}

}  // namespace weft::native
