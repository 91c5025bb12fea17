// Gradients: their modes, and torch::autograd.
#pragma once

#include "factories.h"

namespace at {
inline namespace over_weft {

namespace detail {
void backward_to(const Tensor& root, const Tensor& gradient, std::optional<bool> retain_graph,
                 bool create_graph, TensorList inputs);
}

inline void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph,
                             bool create_graph, std::optional<TensorList> inputs) const {
  if (inputs) return detail::backward_to(*this, gradient, retain_graph, create_graph, *inputs);
  const int flags = (retain_graph.value_or(create_graph) ? WEFT_RETAIN_GRAPH : 0) |
                    (create_graph ? WEFT_CREATE_GRAPH : 0);
  c10::detail::check(
      weft_tensor_backward(expect(), gradient.defined() ? gradient.get() : nullptr, flags));
}

struct GradMode {
  static bool is_enabled() {
    const int enabled = weft_set_grad_enabled(1);
    weft_set_grad_enabled(enabled);
    return enabled != 0;
  }
  static void set_enabled(bool enabled) { weft_set_grad_enabled(enabled); }
};

// While it lives the thread records gradients, or none.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : before_(weft_set_grad_enabled(enabled)) {}
  ~AutoGradMode() { weft_set_grad_enabled(before_); }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  int before_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};

}  // namespace over_weft
}  // namespace at

namespace c10 {
inline namespace over_weft {

struct InferenceMode : at::AutoGradMode {
  explicit InferenceMode(bool enabled = true)
      : at::AutoGradMode(!enabled && at::GradMode::is_enabled()) {}
  static bool is_enabled() { return !at::GradMode::is_enabled(); }
};
using at::AutoGradMode;
using at::GradMode;

}  // namespace over_weft
}  // namespace c10

namespace torch {
using at::AutoGradMode;
using at::GradMode;
using at::NoGradGuard;
using c10::InferenceMode;

namespace autograd {
using at::AutoGradMode;
using at::GradMode;

inline namespace over_weft {

using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;

namespace detail {
inline std::vector<const weft_tensor*> handles_of(const variable_list& tensors) {
  std::vector<const weft_tensor*> handles;
  for (const at::Tensor& each : tensors) handles.push_back(each.get());
  return handles;
}
}  // namespace detail

// Gradients of outputs with respect to inputs; undefined where an input is not reached, which
// `allow_unused` permits.
inline variable_list grad(const variable_list& outputs, const variable_list& inputs,
                          const variable_list& grad_outputs = {},
                          std::optional<bool> retain_graph = std::nullopt,
                          bool create_graph = false, bool allow_unused = false) {
  TORCH_CHECK(grad_outputs.empty() || grad_outputs.size() == outputs.size(), "grad: expected ",
              outputs.size(), " gradients of outputs, got ", grad_outputs.size());
  const auto roots = detail::handles_of(outputs), wanted = detail::handles_of(inputs),
             given = detail::handles_of(grad_outputs);
  const int flags = (retain_graph.value_or(create_graph) ? WEFT_RETAIN_GRAPH : 0) |
                    (create_graph ? WEFT_CREATE_GRAPH : 0) | (allow_unused ? WEFT_ALLOW_UNUSED : 0);
  std::vector<weft_tensor*> found(inputs.size());
  c10::detail::check(weft_grad(roots.data(), roots.size(), given.empty() ? nullptr : given.data(),
                               wanted.data(), wanted.size(), flags, found.data()));
  variable_list gradients;
  for (weft_tensor* each : found) gradients.push_back(each ? at::Tensor(each) : at::Tensor());
  return gradients;
}

// With inputs, the gradients of these alone are added to.
inline void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                     std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                     const variable_list& inputs = {}) {
  const auto given = inputs.empty() ? std::optional<at::TensorList>() : at::TensorList(inputs);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_last = i + 1 == tensors.size();
    tensors[i].backward(i < grad_tensors.size() ? grad_tensors[i] : at::Tensor(),
                        is_last ? retain_graph : std::optional<bool>(true), create_graph, given);
  }
}

}  // namespace over_weft
}  // namespace autograd
}  // namespace torch

namespace at {
inline namespace over_weft {

// The gradients of some leaves alone are added to.
inline void detail::backward_to(const Tensor& root, const Tensor& gradient,
                                std::optional<bool> retain_graph, bool create_graph,
                                TensorList inputs) {
  std::vector<Tensor> given;
  if (gradient.defined()) given.push_back(gradient);
  const auto found =
      torch::autograd::grad({root}, inputs.vec(), given, retain_graph, create_graph, true);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) continue;
    const Tensor before = inputs[i].grad();
    const Tensor sum = before.defined() ? before + found[i] : found[i];
    c10::detail::check(weft_tensor_set_grad(inputs[i].get(), sum.get()));
  }
}

}  // namespace over_weft
}  // namespace at
