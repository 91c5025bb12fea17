// Operators of extensions, behind weft_register_composed_operator, and their calls by name.
//
// An operator has a schema and kernels by dispatch keys, which come in any order and from any file
// of a library. A call takes the kernel of Autograd first, then that of the CPU, then one made of
// other operators.
#pragma once

#include "kernel.h"

namespace c10 {
inline namespace over_weft {

// Keys of devices that weft has not, and of what it does by itself, are kept and never called.
#define WEFT_TORCH_KEYS(X)     \
  X(Undefined)                 \
  X(CPU)                       \
  X(CUDA)                      \
  X(HIP)                       \
  X(XLA)                       \
  X(MPS)                       \
  X(XPU)                       \
  X(Meta)                      \
  X(PrivateUse1)               \
  X(QuantizedCPU)              \
  X(QuantizedCUDA)             \
  X(SparseCPU)                 \
  X(SparseCUDA)                \
  X(MkldnnCPU)                 \
  X(BackendSelect)             \
  X(Tracer)                    \
  X(FuncTorchBatched)          \
  X(ADInplaceOrView)           \
  X(AutogradOther)             \
  X(AutogradCUDA)              \
  X(AutogradXLA)               \
  X(AutogradMPS)               \
  X(AutogradXPU)               \
  X(Autocast)                  \
  X(AutocastCPU)               \
  X(CompositeExplicitAutograd) \
  X(CompositeImplicitAutograd) \
  X(Autograd)
enum class DispatchKey : uint8_t {
#define X(name) name,
  WEFT_TORCH_KEYS(X)
#undef X
      AutocastCUDA = Autocast,
  AutogradCPU = Autograd,
  CatchAll = CompositeImplicitAutograd,
  Math = CompositeImplicitAutograd,
  DefaultBackend = CompositeExplicitAutograd,
};
inline const char* toString(DispatchKey key) {
  static const char* const names[] = {
#define X(name) #name,
      WEFT_TORCH_KEYS(X)
#undef X
  };
  return names[static_cast<size_t>(key)];
}

enum class AliasAnalysisKind { INTERNAL_SPECIAL_CASE, CONSERVATIVE, FROM_SCHEMA, PURE_FUNCTION };

namespace detail {

// Whether kernels of Autograd are passed over in this thread.
inline int& below_autograd() {
  static thread_local int depth = 0;
  return depth;
}

// One operator: its schema, where it is defined already, and its kernels.
class OperatorEntry {
 public:
  explicit OperatorEntry(std::string name) : name_(std::move(name)) {}

  void define(const std::string& schema) {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!schema_, name_, ": expected an operator that is defined once, got ", schema);
    SchemaParts parts(schema);
    for (const auto& [key, kernel] : kernels_) kernel->check(name_, parts);
    check(weft_register_composed_operator(schema.c_str(), called, nullptr, this));
    schema_ = std::make_unique<SchemaParts>(std::move(parts));
  }
  void add(DispatchKey key, std::shared_ptr<const Kernel> kernel) {
    const std::lock_guard lock(mutex_);
    if (schema_) kernel->check(name_, *schema_);
    kernels_[key] = std::move(kernel);
  }

  Shared call(const Values& args) const {
    if (below_autograd() == 0) {
      if (const auto kernel = find(DispatchKey::Autograd)) return kernel->call(args);
    }
    const DispatchKey device = device_of(args);
    for (const DispatchKey key : {device, DispatchKey::CompositeExplicitAutograd}) {
      if (const auto kernel = find(key)) return call_plain(*kernel, args);
    }
    const auto kernel = find(DispatchKey::CompositeImplicitAutograd);
    TORCH_CHECK_NOT_IMPLEMENTED(kernel, name_, ": expected a kernel for ", toString(device),
                                ", got ", known(), "; TORCH_LIBRARY_IMPL(",
                                name_.substr(0, name_.find(':')), ", ", toString(device),
                                ", m) gives it one");
    return kernel->call(args);
  }
  const std::string& name() const { return name_; }

 private:
  static weft_status called(const weft_value* const* args, size_t count, weft_value** out,
                            void* context) {
    return guarded([&] {
      Values given;
      for (size_t i = 0; i < count; ++i) {
        given.push_back(made([&](weft_value** each) { return weft_value_share(args[i], each); }));
      }
      const Shared result = static_cast<const OperatorEntry*>(context)->call(given);
      if (result) check(weft_value_share(result.get(), out));
    });
  }

  std::shared_ptr<const Kernel> find(DispatchKey key) const {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(key);
    return found == kernels_.end() ? nullptr : found->second;
  }

  // Where the tensors are: some on another device than the CPU decide.
  static DispatchKey device_of(const Values& args) {
    std::vector<at::Tensor> tensors;
    for (const Shared& each : args) add_tensors(each, tensors);
    for (const at::Tensor& each : tensors) {
      if (!each.is_cpu()) return each.is_meta() ? DispatchKey::Meta : DispatchKey::PrivateUse1;
    }
    return DispatchKey::CPU;
  }

  std::string known() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& each : kernels_)
      text += text_of(text.empty() ? "" : ", ", toString(each.first));
    return text.empty() ? "none" : "those for " + text;
  }

  // A kernel over elements: its results have no gradient, and backward says so.
  Shared call_plain(const Kernel& kernel, const Values& args) const {
    std::vector<at::Tensor> inputs;
    for (const Shared& each : args) add_tensors(each, inputs);
    const bool records = at::GradMode::is_enabled() &&
                         std::any_of(inputs.begin(), inputs.end(), [](const at::Tensor& each) {
                           return each.defined() && each.requires_grad();
                         });
    if (!records) return kernel.call(args);
    Shared result;
    {
      const at::NoGradGuard guard;
      result = kernel.call(args);
    }
    return without_gradient(result, args, inputs);
  }

  Shared without_gradient(const Shared& result, const Values& args,
                          const std::vector<at::Tensor>& inputs) const {
    std::vector<at::Tensor> written, outputs;
    for (size_t i = 0; i < args.size(); ++i) {
      if (schema_->arguments[i].is_written) add_tensors(args[i], written);
    }
    if (result) add_tensors(result, outputs);
    const size_t count = outputs.size();
    for (const at::Tensor& each : written) {
      if (!is_among(each, outputs)) outputs.push_back(each);
    }
    if (outputs.empty()) return result;
    FunctionRecord record;
    record.name = name_;
    record.inputs = inputs;
    record.written = written;
    auto owner = std::make_unique<std::string>(name_);
    outputs = record.run(
        outputs,
        [](const weft_tensor* const*, const weft_tensor* const*, const int*, weft_tensor**,
           void* name) {
          const std::string text = *static_cast<std::string*>(name) +
                                   ": expected a kernel of Autograd in backward, got none; "
                                   "TORCH_LIBRARY_IMPL(..., Autograd, m) gives it one";
          return weft_fail(WEFT_NOT_IMPLEMENTED, text.c_str());
        },
        [](void* name) { delete static_cast<std::string*>(name); }, owner.get());
    owner.release();
    outputs.resize(count);
    size_t next = 0;
    return result ? with_tensors(result, outputs, next) : result;
  }

  const std::string name_;
  mutable std::mutex mutex_;
  std::unique_ptr<const SchemaParts> schema_;  // null: not defined yet
  std::map<DispatchKey, std::shared_ptr<const Kernel>> kernels_;
};

// The entry of a name, which lives as long as the process. Without `make`: null where there is
// none.
inline OperatorEntry* entry_of(const std::string& name, bool make) {
  static std::mutex mutex;
  static auto* const entries = new std::map<std::string, std::unique_ptr<OperatorEntry>>;
  const std::lock_guard lock(mutex);
  if (!make && entries->count(name) == 0) return nullptr;
  std::unique_ptr<OperatorEntry>& entry = (*entries)[name];
  if (!entry) entry = std::make_unique<OperatorEntry>(name);
  return entry.get();
}

// Registers while a library is loaded, where nobody catches: what fails is told by load_library.
template <class Body>
void while_loading(const char* what, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    const std::string text = text_of("TORCH_LIBRARY: ", what, ": ", error.what());
    std::cerr << text << std::endl;
    weft_fail(WEFT_RUNTIME_ERROR, text.c_str());
  }
}

}  // namespace detail

// ---- calls by name ----

template <class Signature>
class TypedOperatorHandle;
template <class Result, class... Args>
class TypedOperatorHandle<Result(Args...)> final {
 public:
  explicit TypedOperatorHandle(std::string name) : name_(std::move(name)) {}
  Result call(Args... args) const {
    const detail::Values values = {detail::boxed(args)...};
    if constexpr (std::is_reference_v<Result>) {
      detail::call_by_name(name_, values);
      return std::get<0>(std::forward_as_tuple(args...));
    } else {
      return detail::unbox<Result>(detail::call_by_name(name_, values));
    }
  }
  Result operator()(Args... args) const { return call(std::forward<Args>(args)...); }

 private:
  std::string name_;
};

// An operator of extensions or of the library.
class OperatorHandle final {
 public:
  explicit OperatorHandle(std::string name) : name_(std::move(name)) {}
  template <class Signature>
  TypedOperatorHandle<Signature> typed() const {
    return TypedOperatorHandle<Signature>(name_);
  }
  const std::string& operator_name() const { return name_; }
  void callBoxed(torch::jit::Stack* stack) const {
    detail::Values values;
    for (const IValue& each : *stack) values.push_back(each.shared());
    stack->assign(1, IValue(detail::call_by_name(name_, values)));
  }
  void callBoxed(torch::jit::Stack& stack) const { callBoxed(&stack); }

 private:
  std::string name_;
};

class Dispatcher final {
 public:
  static Dispatcher& singleton() {
    static Dispatcher dispatcher;
    return dispatcher;
  }
  static Dispatcher& realSingleton() { return singleton(); }
  OperatorHandle findSchemaOrThrow(const std::string& name, const std::string& overload) const {
    const std::string full = overload.empty() ? name : name + "." + overload;
    const weft_operator* found = nullptr;
    TORCH_CHECK(
        detail::entry_of(full, false) || weft_find_operator(full.c_str(), &found) == WEFT_OK,
        "findSchemaOrThrow: expected an operator of the library or of an extension, got ", full);
    return OperatorHandle(full);
  }

 private:
  Dispatcher() = default;
};

namespace detail {

inline Shared call_by_name(const std::string& name, const Values& args) {
  if (const OperatorEntry* entry = entry_of(name, false)) return entry->call(args);
  std::vector<const weft_value*> handles;
  for (const Shared& each : args) handles.push_back(each.get());
  const weft_operator* op = nullptr;
  check(weft_find_operator(name.c_str(), &op));
  return made([&](weft_value** out) {
    return weft_call_operator(op, handles.data(), handles.size(), out);
  });
}

using BoxedFunction = void (*)(const OperatorHandle&, torch::jit::Stack*);
// A function that takes its arguments from a stack, and leaves its results there.
class BoxedKernel final : public Kernel {
 public:
  BoxedKernel(std::string name, BoxedFunction function)
      : handle_(std::move(name)), function_(function) {}
  bool is_typed() const override { return false; }
  Shared call(const Values& args) const override {
    torch::jit::Stack stack;
    for (const Shared& each : args) stack.emplace_back(each);
    function_(handle_, &stack);
    if (stack.empty()) return nullptr;
    return stack.size() == 1 ? stack[0].shared() : IValue(ivalue::Tuple(stack)).shared();
  }

 private:
  OperatorHandle handle_;
  BoxedFunction function_;
};

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

// While it lives the thread passes over kernels of Autograd, and records no gradients.
class AutoDispatchBelowAutograd {
 public:
  AutoDispatchBelowAutograd() { ++c10::detail::below_autograd(); }
  ~AutoDispatchBelowAutograd() { --c10::detail::below_autograd(); }
  AutoDispatchBelowAutograd(const AutoDispatchBelowAutograd&) = delete;
  AutoDispatchBelowAutograd& operator=(const AutoDispatchBelowAutograd&) = delete;

 private:
  NoGradGuard no_grad_;
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;
struct AutoNonVariableTypeMode : AutoDispatchBelowAutograd {
  explicit AutoNonVariableTypeMode(bool = true) {}
};

enum class Tag { pt2_compliant_tag, needs_fixed_stride_order, flexible_layout, core };

}  // namespace over_weft
}  // namespace at
