// TORCH_LIBRARY and torch::RegisterOperators: how extensions register operators.
#pragma once

#include "dispatcher.h"

namespace torch {
inline namespace over_weft {

using at::AutoNonVariableTypeMode;
using c10::DispatchKey;
// A kernel, and the key that it is for where it says so.
class CppFunction final {
 public:
  template <class Function,
            std::enable_if_t<!std::is_same_v<std::decay_t<Function>, CppFunction>, int> = 0>
  CppFunction(Function&& function)
      : kernel_(c10::detail::kernel_of(std::forward<Function>(function))) {}

  // Passes a call on to the next key: as if there were no kernel.
  static CppFunction makeFallthrough() { return CppFunction(); }
  template <c10::detail::BoxedFunction function>
  static CppFunction makeFromBoxedFunction() {
    return CppFunction(nullptr, function);
  }

  CppFunction for_key(DispatchKey key) && {
    key_ = key;
    return std::move(*this);
  }
  void add_to(const std::string& name, DispatchKey key) const {
    auto kernel = kernel_;
    if (boxed_) kernel = std::make_shared<c10::detail::BoxedKernel>(name, boxed_);
    if (kernel) c10::detail::entry_of(name, true)->add(key_.value_or(key), kernel);
  }
  // "(Tensor _0, int _1) -> Tensor"
  std::string signature() const {
    TORCH_CHECK(kernel_ && !boxed_, "def: expected a schema for a boxed function, got none");
    return kernel_->signature();
  }

 private:
  CppFunction() = default;
  CppFunction(std::nullptr_t, c10::detail::BoxedFunction boxed) : boxed_(boxed) {}

  std::shared_ptr<const c10::detail::Kernel> kernel_;
  c10::detail::BoxedFunction boxed_ = nullptr;
  std::optional<DispatchKey> key_;
};

template <class Function>
CppFunction dispatch(DispatchKey key, Function&& function) {
  return CppFunction(std::forward<Function>(function)).for_key(key);
}
template <class Function>
CppFunction dispatch(c10::DeviceType type, Function&& function) {
  static const std::map<c10::DeviceType, DispatchKey> keys = {
      {c10::kCPU, DispatchKey::CPU},  {c10::kCUDA, DispatchKey::CUDA},
      {c10::kHIP, DispatchKey::HIP},  {c10::kXLA, DispatchKey::XLA},
      {c10::kXPU, DispatchKey::XPU},  {c10::kMPS, DispatchKey::MPS},
      {c10::kMeta, DispatchKey::Meta}};
  return dispatch(keys.at(type), std::forward<Function>(function));
}

inline std::string schema(std::string text) { return text; }
inline std::string schema(std::string text, c10::AliasAnalysisKind) { return text; }

class CustomClassHolder {
 public:
  virtual ~CustomClassHolder() = default;
};
template <class T>
class class_ {
  static_assert(c10::detail::always_false<T>,
                "torch::class_: weft has operators of extensions, and no classes of them; pass "
                "tensors and numbers, or keep the state in a module");
};

// What TORCH_LIBRARY and its kin give the name `m`.
class Library final {
 public:
  enum Kind { DEF, IMPL, FRAGMENT };
  Library(Kind, std::string space, std::optional<DispatchKey> key)
      : space_(std::move(space)), key_(key) {}

  Library& def(const std::string& schema, const std::vector<at::Tag>& = {}) {
    const std::string text = qualified(schema);
    TORCH_CHECK(text.find('(') != text.npos, "def: expected a schema or a function, got '", text,
                "'");
    c10::detail::entry_of(name_in(text), true)->define(text);
    return *this;
  }
  template <class Function>
  Library& def(const std::string& schema, Function&& given, const std::vector<at::Tag>& = {}) {
    const CppFunction function(std::forward<Function>(given));
    std::string text = qualified(schema);
    if (text.find('(') == text.npos) text += function.signature();
    c10::detail::entry_of(name_in(text), true)->define(text);
    function.add_to(name_in(text), DispatchKey::CompositeImplicitAutograd);
    return *this;
  }
  template <class Function>
  Library& impl(const std::string& name, Function&& function) {
    CppFunction(std::forward<Function>(function))
        .add_to(qualified(name), key_.value_or(DispatchKey::CompositeImplicitAutograd));
    return *this;
  }
  template <class Function>
  Library& impl(const std::string& name, DispatchKey key, Function&& function) {
    return impl(name, dispatch(key, std::forward<Function>(function)));
  }
  template <class Function>
  Library& fallback(Function&&) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "fallback: expected kernels of operators, got one for all operators");
    return *this;
  }
  // Where Python has what belongs to the operators: programs import it themselves.
  Library& set_python_module(const char*, const char* = "") { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") { return *this; }
  template <class T>
  torch::class_<T> class_(const std::string&) {
    return {};
  }

 private:
  static std::string name_in(const std::string& schema) {
    return schema.substr(0, schema.find('('));
  }
  std::string qualified(std::string text) const {
    const size_t start = text.find_first_not_of(" \n\t");
    text.erase(0, std::min(start, text.size()));
    for (char& each : text) each = each == '\n' || each == '\t' ? ' ' : each;
    const std::string name = name_in(text);
    return name.find("::") == name.npos && !space_.empty() ? space_ + "::" + text : text;
  }

  std::string space_;
  std::optional<DispatchKey> key_;
};

namespace detail {

class TorchLibraryInit final {
 public:
  TorchLibraryInit(Library::Kind kind, void (*fill)(Library&), const char* space,
                   std::optional<DispatchKey> key) {
    c10::detail::while_loading(space, [&] {
      Library library(kind, space, key);
      fill(library);
    });
  }
};

}  // namespace detail

// The older way: static auto registry = torch::RegisterOperators().op("my::scale", &scale);
class RegisterOperators final {
 public:
  class Options final {
   public:
    Options&& schema(const std::string& text) && { return schema_ = text, std::move(*this); }
    template <class Function, std::remove_pointer_t<Function>* function>
    Options&& kernel(DispatchKey key) && {
      return std::move(*this).kernel(key, function);
    }
    template <class Function>
    Options&& kernel(DispatchKey key, Function&& function) && {
      kernels_.push_back(dispatch(key, std::forward<Function>(function)));
      return std::move(*this);
    }
    template <class Functor, class... Args, std::enable_if_t<std::is_class_v<Functor>, int> = 0>
    Options&& kernel(DispatchKey key, Args&&... args) && {
      return std::move(*this).kernel(key, Functor(std::forward<Args>(args)...));
    }
    template <class Function, std::remove_pointer_t<Function>* function>
    Options&& catchAllKernel() && {
      return std::move(*this).kernel(DispatchKey::CatchAll, function);
    }
    template <class Function>
    Options&& catchAllKernel(Function&& function) && {
      return std::move(*this).kernel(DispatchKey::CatchAll, std::forward<Function>(function));
    }
    Options&& aliasAnalysis(c10::AliasAnalysisKind) && { return std::move(*this); }

   private:
    friend class RegisterOperators;
    std::string schema_;
    std::vector<CppFunction> kernels_;
  };
  static Options options() { return {}; }

  RegisterOperators() = default;
  template <class Given>
  RegisterOperators(const std::string& schema, Given&& given) {
    add(schema, std::forward<Given>(given));
  }
  template <class Given>
  RegisterOperators&& op(const std::string& schema, Given&& given) && {
    return add(schema, std::forward<Given>(given)), std::move(*this);
  }
  template <class Given>
  RegisterOperators& op(const std::string& schema, Given&& given) & {
    return add(schema, std::forward<Given>(given)), *this;
  }
  RegisterOperators&& op(Options&& options) && {
    return add(options.schema_, std::move(options)), std::move(*this);
  }

 private:
  template <class Given>
  void add(const std::string& schema, Given&& given) {
    c10::detail::while_loading(schema.c_str(), [&] {
      Library library(Library::FRAGMENT, "", std::nullopt);
      if constexpr (std::is_same_v<std::decay_t<Given>, Options>) {
        TORCH_CHECK(!given.kernels_.empty(), "op: expected a kernel, got none");
        std::string text = schema;
        if (text.find('(') == text.npos) text += given.kernels_[0].signature();
        library.def(text);
        for (const CppFunction& each : given.kernels_) {
          library.impl(text.substr(0, text.find('(')), each);
        }
      } else {
        library.def(schema, std::forward<Given>(given));
      }
    });
  }
};

}  // namespace over_weft
namespace jit {
using torch::RegisterOperators;
}
namespace autograd {
// Kernels without a gradient have it anyway: backward through them fails.
inline CppFunction autogradNotImplementedFallback() { return CppFunction::makeFallthrough(); }
}  // namespace autograd
}  // namespace torch

namespace c10 {
using torch::RegisterOperators;
}

#define WEFT_TORCH_JOIN_(a, b) a##b
#define WEFT_TORCH_JOIN(a, b) WEFT_TORCH_JOIN_(a, b)
#define WEFT_TORCH_LIBRARY(kind, space, key, m, name)                          \
  static void WEFT_TORCH_JOIN(name, _fill)(::torch::Library&);                 \
  static const ::torch::detail::TorchLibraryInit WEFT_TORCH_JOIN(name, _init)( \
      ::torch::Library::kind, &WEFT_TORCH_JOIN(name, _fill), space, key);      \
  void WEFT_TORCH_JOIN(name, _fill)([[maybe_unused]] ::torch::Library & m)
#define TORCH_LIBRARY(ns, m) WEFT_TORCH_LIBRARY(DEF, #ns, std::nullopt, m, weft_library_##ns##_def)
#define TORCH_LIBRARY_FRAGMENT(ns, m)                \
  WEFT_TORCH_LIBRARY(FRAGMENT, #ns, std::nullopt, m, \
                     WEFT_TORCH_JOIN(weft_library_##ns##_part, __COUNTER__))
#define TORCH_LIBRARY_IMPL(ns, k, m)                      \
  WEFT_TORCH_LIBRARY(IMPL, #ns, ::c10::DispatchKey::k, m, \
                     WEFT_TORCH_JOIN(weft_library_##ns##_##k, __COUNTER__))
#define TORCH_FN_TYPE(function) \
  ::c10::detail::FunctionConstant<std::remove_pointer_t<std::decay_t<decltype(function)>>, function>
#define TORCH_FN(function) TORCH_FN_TYPE(function)()
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
