// torch::autograd::Function: functions that give their own gradient.
#pragma once

#include <cxxabi.h>

#include <typeinfo>

#include "function_record.h"

namespace torch::autograd {
inline namespace over_weft {

using tensor_list = std::vector<at::Tensor>;

// Whether a call of an operator on these is recorded.
inline bool any_variable_requires_grad(const variable_list& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& each) { return each.defined() && each.requires_grad(); });
}

namespace detail {
template <class T>
class FunctionState;
}

// What forward leaves for backward.
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  // Numbers, strings, lists: what is no tensor. Tensors go to save_for_backward.
  std::unordered_map<std::string, c10::IValue> saved_data;

  void save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
  // In backward: what was saved. RuntimeError in calls of backward through a freed graph.
  variable_list get_saved_variables() const {
    TORCH_CHECK(in_backward_,
                "get_saved_variables: expected a call of backward, got one outside of it");
    return saved_;
  }
  // Inputs that forward has written to, and gives back.
  void mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
  // Outputs without a gradient.
  void mark_non_differentiable(const variable_list& outputs) { constants_ = outputs; }
  // Whether backward gets zeros for outputs without a gradient, or undefined tensors.
  void set_materialize_grads(bool value) { fills_gradients_ = value; }
  // Of tensors among the arguments, those of lists one by one.
  bool needs_input_grad(size_t index) const {
    TORCH_CHECK_INDEX(index < wanted_.size(), "needs_input_grad: expected an index below ",
                      wanted_.size(), ", got ", index);
    return wanted_[index];
  }
  bool needs_input_grad(std::initializer_list<std::pair<size_t, size_t>> ranges) const {
    for (const auto& [first, last] : ranges) {
      for (size_t i = first; i < last; ++i) {
        if (needs_input_grad(i)) return true;
      }
    }
    return false;
  }

 private:
  template <class T>
  friend class detail::FunctionState;

  variable_list to_save_, saved_, dirty_, constants_;
  std::vector<bool> wanted_;
  bool fills_gradients_ = true, in_backward_ = false;
};

namespace detail {

// Whether each argument is a tensor, and those that are. Lists of tensors count one by one.
struct FunctionInputs {
  std::vector<bool> is_tensor;
  variable_list tensors;

  template <class T>
  void add(const T& argument) {
    if constexpr (std::is_convertible_v<const T&, at::Tensor>) {
      is_tensor.push_back(true);
      tensors.push_back(argument);
    } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
      add(argument.value_or(at::Tensor()));
    } else if constexpr (std::is_same_v<T, variable_list> || std::is_same_v<T, at::TensorList>) {
      for (const at::Tensor& each : argument) add(each);
    } else {
      is_tensor.push_back(false);
    }
  }
};

inline std::string name_of_type(const std::type_info& type) {
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), std::free);
  return text ? text.get() : type.name();
}

// One call: what the node of its results owns.
template <class T>
class FunctionState {
 public:
  template <class... Args>
  static auto apply(Args&&... args) {
    auto state = std::make_unique<FunctionState>();
    (state->inputs_.add(args), ...);
    const bool records = state->find_wanted();
    using Output =
        std::decay_t<decltype(T::forward(&state->context_, std::forward<Args>(args)...))>;
    Output output;
    {
      const at::NoGradGuard guard;
      output = T::forward(&state->context_, std::forward<Args>(args)...);
    }
    if constexpr (std::is_same_v<Output, variable_list>) {
      return records ? record(std::move(state), output) : output;
    } else {
      static_assert(std::is_same_v<Output, at::Tensor>,
                    "Function: expected forward to give a Tensor or a variable_list");
      return records ? record(std::move(state), {output})[0] : output;
    }
  }

 private:
  // Whether the call is recorded.
  bool find_wanted() {
    bool any = false;
    const bool enabled = at::GradMode::is_enabled();
    for (const at::Tensor& each : inputs_.tensors) {
      const bool wanted = enabled && each.defined() && each.requires_grad();
      context_.wanted_.push_back(wanted);
      any = any || wanted;
    }
    return any;
  }

  static variable_list record(std::unique_ptr<FunctionState> state, const variable_list& outputs) {
    AutogradContext& context = state->context_;
    c10::detail::FunctionRecord record;
    record.name = name_of_type(typeid(T));
    record.inputs = std::move(state->inputs_.tensors);
    record.saved = std::move(context.to_save_);
    record.written = std::move(context.dirty_);
    record.constants = std::move(context.constants_);
    record.fills_gradients = context.fills_gradients_;
    state->input_count_ = record.inputs.size();
    state->output_count_ = outputs.size();
    state->saved_count_ = record.saved.size();
    context.to_save_.clear();
    context.dirty_.clear();
    context.constants_.clear();
    const variable_list finished = record.run(
        outputs, backward, [](void* owned) { delete static_cast<FunctionState*>(owned); },
        state.get());
    state.release();
    return finished;
  }

  static weft_status backward(const weft_tensor* const* gradients, const weft_tensor* const* saved,
                              const int* wanted, weft_tensor** out, void* given) {
    return c10::detail::guarded([&] {
      FunctionState& state = *static_cast<FunctionState*>(given);
      AutogradContext& context = state.context_;
      context.saved_ = shared(saved, state.saved_count_);
      context.wanted_.assign(wanted, wanted + state.input_count_);
      context.in_backward_ = true;
      const std::unique_ptr<AutogradContext, void (*)(AutogradContext*)> ended(
          &context, [](AutogradContext* each) {
            each->saved_.clear();
            each->in_backward_ = false;
          });
      state.give(T::backward(&context, shared(gradients, state.output_count_)), out);
    });
  }

  // Gradients come for arguments, and go to tensors.
  void give(const variable_list& found, weft_tensor** out) const {
    const std::vector<bool>& is_tensor = inputs_.is_tensor;
    const size_t count = is_tensor.size();
    for (size_t i = 0; i < found.size(); ++i) {
      TORCH_CHECK(!found[i].defined() || (i < count && is_tensor[i]),
                  "backward: expected an "
                  "undefined tensor as gradient of argument ",
                  i, ", which is no tensor, got one");
    }
    TORCH_CHECK(found.size() >= count, "backward: expected ", count, " gradients, got ",
                found.size());
    for (size_t i = 0; i < count; ++i) {
      if (!is_tensor[i]) continue;
      if (found[i].defined()) c10::detail::check(weft_tensor_share(found[i].get(), out));
      ++out;
    }
  }

  static variable_list shared(const weft_tensor* const* handles, size_t count) {
    variable_list tensors(count);
    for (size_t i = 0; i < count; ++i) {
      if (!handles[i]) continue;
      weft_tensor* more = nullptr;
      c10::detail::check(weft_tensor_share(handles[i], &more));
      tensors[i] = at::Tensor(more);
    }
    return tensors;
  }

  FunctionInputs inputs_;
  AutogradContext context_;
  size_t input_count_ = 0, output_count_ = 0, saved_count_ = 0;
};

}  // namespace detail

// A function by the class T that derives from this one: static forward(AutogradContext*, ...) and
// backward(AutogradContext*, variable_list), which gives a gradient for each argument of forward.
template <class T>
struct Function {
  template <class... Args>
  static auto apply(Args&&... args) {
    return detail::FunctionState<T>::apply(std::forward<Args>(args)...);
  }
};

}  // namespace over_weft
}  // namespace torch::autograd
