// Functions of hosts that give their own gradients.
#include "autograd/function.h"

#include <memory>

#include "capi/handles.h"

namespace weft::capi {
namespace {

// Tensors as functions of the host take them: NULL for undefined ones.
class Handles {
 public:
  explicit Handles(TensorList tensors) {
    held_.reserve(tensors.size());
    for (Tensor& tensor : tensors) {
      held_.push_back({std::move(tensor)});
      handles_.push_back(held_.back().tensor.defined() ? &held_.back() : nullptr);
    }
  }
  const weft_tensor* const* data() const { return handles_.data(); }

 private:
  std::vector<weft_tensor> held_;
  std::vector<const weft_tensor*> handles_;
};

class HostFunction final : public autograd::FunctionNode {
 public:
  explicit HostFunction(const weft_function& function)
      : name_(function.name), backward_(function.backward), context_(function.context) {
    fill_missing = function.fills_gradients != 0;
  }
  ~HostFunction() override {
    if (release_) release_(context_);
  }
  void own(void (*release)(void*)) { release_ = release; }

  const char* name() const override { return name_.c_str(); }

  TensorList apply(TensorList grads) override {
    fill(grads);
    const Handles given(std::move(grads)), saved(unpack_saved());
    std::vector<int> wanted;
    for (size_t i = 0; i < edges.size(); ++i) wanted.push_back(wants(i));
    std::vector<weft_tensor*> out(edges.size());
    const auto free = [&](void*) {
      for (weft_tensor* each : out) weft_tensor_release(each);
    };
    const std::unique_ptr<void, decltype(free)> freed(this, free);
    call_host(name_, [&] {
      return backward_(given.data(), saved.data(), wanted.data(), out.data(), context_);
    });
    TensorList found;
    for (const weft_tensor* each : out) found.push_back(each ? each->tensor : Tensor());
    return found;
  }

 private:
  std::string name_;
  weft_backward_call backward_;
  void (*release_)(void*) = nullptr;
  void* context_;
};

TensorList listed(const weft_tensor* const* handles, size_t count) {
  WEFT_CHECK_VALUE(handles || count == 0,
                   "weft_record_function: expected an array of tensors, got NULL");
  TensorList tensors;
  for (size_t i = 0; i < count; ++i) tensors.push_back(handles[i] ? handles[i]->tensor : Tensor());
  return tensors;
}

autograd::FunctionCall call_of(const weft_function& function) {
  autograd::FunctionCall call;
  call.inputs = listed(function.inputs, function.input_count);
  call.outputs = listed(function.outputs, function.output_count);
  call.saved = listed(function.saved, function.saved_count);
  for (size_t i = 0; function.output_flags && i < call.outputs.size(); ++i) {
    if (!call.outputs[i].defined()) continue;
    const int flags = function.output_flags[i];
    if (flags & WEFT_OUTPUT_WRITTEN) {
      call.outputs[i].check_writable(function.name);  // counts the write, before anything is saved
      call.dirty.push_back(call.outputs[i]);
    }
    if (flags & WEFT_OUTPUT_CONSTANT) call.constants.push_back(call.outputs[i]);
  }
  return call;
}

}  // namespace
}  // namespace weft::capi

using namespace weft;

weft_status weft_record_function(const weft_function* function, weft_tensor** out) {
  return capi::guarded([&] {
    const char* op = "weft_record_function";
    const weft_function& given = capi::handle(op, function);
    WEFT_CHECK_VALUE(given.name && given.backward, op,
                     ": expected a name and a function of the gradient, got NULL");
    const autograd::FunctionCall call = capi::call_of(given);
    const auto node = make_ref<capi::HostFunction>(given);
    const TensorList finished = autograd::record_function(node, call);
    std::vector<std::unique_ptr<weft_tensor>> made;
    for (const Tensor& each : finished) {
      made.emplace_back(each.defined() ? new weft_tensor{each} : nullptr);
    }
    for (size_t i = 0; i < made.size(); ++i) out[i] = made[i].release();
    node->own(given.release);
  });
}
