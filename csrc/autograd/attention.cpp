// The gradient of attention. Where it is itself to be differentiated, attention runs again, made of
// operators that have second gradients.
#include "ops/attention.h"

#include "autograd/double_backward.h"
#include "autograd/node.h"
#include "native_linalg.h"
#include "ops.h"

namespace weft::attention {
namespace {

Tensor of_operators(const Operands& o) {
  Tensor scores = ops::mul(ops::matmul(o.query, ops::transpose(o.key, -2, -1)), Scalar(o.scale));
  const Scalar never(-std::numeric_limits<double>::infinity());
  Tensor blind;
  if (o.is_causal) {
    const int64_t sizes[] = {scores.size(-2), scores.size(-1)};
    const Tensor all = ops::ones(sizes, DType::Bool, std::nullopt, scores.device());
    scores = ops::masked_fill(scores, ops::logical_not(ops::tril(all)), never);
  }
  if (o.mask.defined()) {
    scores = o.mask.dtype() == DType::Bool
                 ? ops::masked_fill(scores, ops::logical_not(o.mask), never)
                 : ops::add(scores, o.mask);
    const int64_t last[] = {-1};
    blind = ops::all(ops::eq(scores, never), last, true);
  }
  Tensor weights = ops::softmax(scores, -1, std::nullopt);
  if (blind.defined()) weights = ops::masked_fill(weights, blind, Scalar(0));
  return ops::matmul(weights, o.value);
}

}  // namespace
}  // namespace weft::attention

namespace weft::native {

std::tuple<Tensor, Tensor, Tensor> _attention_backward(const Tensor& grad_output,
                                                       const Tensor& query, const Tensor& key,
                                                       const Tensor& value, const Tensor& mask,
                                                       bool is_causal, double scale) {
  const attention::Operands o{query, key, value, mask, is_causal, scale};
  if (!autograd::grad_enabled()) return attention::backward(o, grad_output);
  attention::check(o);
  const TensorList grads = autograd::differentiable_gradients(
      {query, key, value}, {grad_output}, [&](const TensorList& own) -> TensorList {
        return {attention::of_operators({own[0], own[1], own[2], mask, is_causal, scale})};
      });
  return {grads[0], grads[1], grads[2]};
}

}  // namespace weft::native
