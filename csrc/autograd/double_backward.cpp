#include "autograd/double_backward.h"

#include "ops_factories.h"
#include "ops_views.h"

namespace weft::autograd {

TensorList differentiable_gradients(const TensorList& given, const TensorList& grads,
                                    FunctionRef<TensorList(const TensorList&)> run) {
  TensorList own(given.size()), inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    // Under another name: gradients stop there.
    if (given[i].defined()) own[i] = ops::alias(given[i]);
    if (given[i].defined() && needs_graph(own[i])) inputs.push_back(own[i]);
  }
  const TensorList results = run(own);
  TensorList roots, arrived;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !results[i].defined()) continue;
    roots.push_back(results[i]);
    arrived.push_back(grads[i]);
  }
  TensorList found(inputs.size());
  if (!roots.empty() && !inputs.empty()) {
    found = backward(
        roots, arrived, inputs,
        {.retain_graph = true, .create_graph = true, .accumulate = false, .allow_unused = true});
  }
  TensorList result(given.size());
  for (size_t i = 0, next = 0; i < given.size(); ++i) {
    if (!own[i].defined() || !needs_graph(own[i])) continue;
    result[i] = found[next].defined() ? found[next] : ops::zeros_like(own[i]);
    ++next;
  }
  return result;
}

}  // namespace weft::autograd
