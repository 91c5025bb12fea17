// Modules of modules: AnyModule, Sequential, lists and dicts.
#pragma once

#include <any>

#include "nn_module.h"

namespace torch::nn {
inline namespace over_weft {

namespace detail {

// Types of the arguments of forward, and its result.
template <class Method>
struct Signature;
template <class Class, class Result, class... Args>
struct Signature<Result (Class::*)(Args...)> {
  using Returned = std::decay_t<Result>;
  using Given = std::tuple<Args...>;
};
template <class Class, class Result, class... Args>
struct Signature<Result (Class::*)(Args...) const> : Signature<Result (Class::*)(Args...)> {};

template <class T>
decltype(auto) argument(std::any& value) {
  auto* found = std::any_cast<std::decay_t<T>>(&value);
  TORCH_CHECK_TYPE(found, "forward: expected an argument of type ",
                   torch::detail::type_name(typeid(std::decay_t<T>)), ", got ",
                   torch::detail::type_name(value.type()));
  return static_cast<std::decay_t<T>&>(*found);
}

}  // namespace detail

// Any module: its forward takes and gives values whose types are checked when it runs.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
  explicit AnyModule(std::shared_ptr<M> module) : module_(module) {
    forward_ = [module](std::vector<std::any> args) {
      using Given = typename detail::Signature<decltype(&M::forward)>::Given;
      return run<Given>(*module, args, std::make_index_sequence<std::tuple_size_v<Given> + 1>());
    };
    again_ = [](const std::shared_ptr<Module>& copy) {
      return AnyModule(std::dynamic_pointer_cast<M>(copy));
    };
  }
  template <class M, std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>, int> = 0>
  explicit AnyModule(M&& module)
      : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  template <class Result = at::Tensor, class... Args>
  Result forward(Args&&... args) {
    std::any found = any_forward({std::any(std::forward<Args>(args))...});
    return detail::argument<Result>(found);
  }
  std::any any_forward(std::vector<std::any> args) {
    TORCH_CHECK(forward_, "forward: expected a module, got an empty AnyModule");
    return forward_(std::move(args));
  }
  template <class T, std::enable_if_t<std::is_base_of_v<Module, T>, int> = 0>
  T& get() const {
    const auto found = std::dynamic_pointer_cast<T>(module_);
    TORCH_CHECK_TYPE(found, "get: expected a module of ", torch::detail::type_name(typeid(T)));
    return *found;
  }
  template <class T, class Contained = typename T::ContainedType>
  T get() const {
    return T(std::dynamic_pointer_cast<Contained>(module_));
  }
  const std::shared_ptr<Module>& ptr() const { return module_; }
  template <class T>
  std::shared_ptr<T> ptr() const {
    return std::dynamic_pointer_cast<T>(module_);
  }
  bool is_empty() const { return module_ == nullptr; }
  const std::type_info& type_info() const { return typeid(*module_); }
  AnyModule clone(const std::optional<at::Device>& device = std::nullopt) const {
    return is_empty() ? AnyModule() : again_(module_->clone(device));
  }

 private:
  // With as many arguments as were given, where forward takes that many.
  template <class Given, class M, size_t... Count>
  static std::any run(M& module, std::vector<std::any>& args, std::index_sequence<Count...>) {
    std::any found;
    const bool known = ((args.size() == Count &&
                         call<Given>(module, args, std::make_index_sequence<Count>(), found)) ||
                        ...);
    TORCH_CHECK(known, module.name(), "'s forward: expected ", sizeof...(Count) - 1,
                " arguments, got ", args.size());
    return found;
  }
  template <class Given, class M, size_t... I>
  static bool call(M& module, std::vector<std::any>& args, std::index_sequence<I...>,
                   std::any& found) {
    const auto forward =
        [](auto& each,
           auto&&... given) -> decltype(each.forward(std::forward<decltype(given)>(given)...)) {
      return each.forward(std::forward<decltype(given)>(given)...);
    };
    if constexpr (std::is_invocable_v<decltype(forward), M&, std::tuple_element_t<I, Given>...>) {
      found = forward(module, static_cast<std::tuple_element_t<I, Given>&&>(
                                  detail::argument<std::tuple_element_t<I, Given>>(args[I]))...);
      return true;
    }
    return false;
  }

  std::shared_ptr<Module> module_;
  std::function<std::any(std::vector<std::any>)> forward_;
  std::function<AnyModule(const std::shared_ptr<Module>&)> again_;
};

class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, M&& module)
      : name_(std::move(name)), module_(std::forward<M>(module)) {}
  const std::string& name() const { return name_; }
  AnyModule& module() { return module_; }
  const AnyModule& module() const { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

// Modules by numbers: what Sequential and ModuleList have in common. Stored is what they keep.
template <class Derived, class Stored>
class ListOfModules : public Cloneable<Derived> {
 public:
  using Iterator = typename std::vector<Stored>::iterator;
  void reset() override {}
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::shared_ptr<Module> ptr(size_t index) const { return this->children_[index].value(); }
  template <class T>
  std::shared_ptr<T> ptr(size_t index) const {
    return std::dynamic_pointer_cast<T>(ptr(index));
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  template <class T, std::enable_if_t<std::is_base_of_v<Module, T>, int> = 0>
  T& at(size_t index) const {
    const auto found = ptr<T>(index);
    TORCH_CHECK_TYPE(found, "at: expected a module of ", torch::detail::type_name(typeid(T)));
    return *found;
  }
  template <class T, class Contained = typename T::ContainedType>
  Contained& at(size_t index) const {
    return at<Contained>(index);
  }

 protected:
  void add(std::string name, std::shared_ptr<Module> module, Stored stored) {
    this->register_module(std::move(name), std::move(module));
    items_.push_back(std::move(stored));
  }
  template <class M>
  static auto shared(M&& module) {
    using T = std::decay_t<M>;
    if constexpr (std::is_base_of_v<Module, T>) {
      return std::make_shared<T>(std::forward<M>(module));
    } else {
      return pointer(module);
    }
  }

 private:
  template <class T>
  static std::shared_ptr<T> pointer(const std::shared_ptr<T>& module) {
    return module;
  }
  template <class T>
  static std::shared_ptr<T> pointer(const ModuleHolder<T>& holder) {
    return holder.ptr();
  }

  std::vector<Stored> items_;
};

class SequentialImpl : public ListOfModules<SequentialImpl, AnyModule> {
 public:
  SequentialImpl() = default;
  template <class... Modules>
  explicit SequentialImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (const NamedAnyModule& each : modules) push_back(each.name(), each.module());
  }
  SequentialImpl(const SequentialImpl&) = default;
  SequentialImpl& operator=(const SequentialImpl&) = default;
  SequentialImpl(SequentialImpl& other) : SequentialImpl(std::as_const(other)) {}

  template <class Result = at::Tensor, class... Args>
  Result forward(Args&&... args) {
    TORCH_CHECK(!is_empty(), "Sequential: expected modules, got none");
    std::any value = begin()->any_forward({std::any(std::forward<Args>(args))...});
    for (auto each = begin() + 1; each != end(); ++each) value = each->any_forward({value});
    return detail::argument<Result>(value);
  }
  template <class M>
  void push_back(M&& module) {
    push_back(std::to_string(size()), std::forward<M>(module));
  }
  template <class M>
  void push_back(std::string name, M&& module) {
    if constexpr (std::is_same_v<std::decay_t<M>, AnyModule>) {
      add(std::move(name), module.ptr(), module);
    } else {
      const auto shared = this->shared(std::forward<M>(module));
      add(std::move(name), shared, AnyModule(shared));
    }
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& each : container) push_back(each);
  }
  std::shared_ptr<Module> clone(
      const std::optional<at::Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<SequentialImpl>();
    for (size_t i = 0; i < size(); ++i) {
      copy->push_back(children_[i].key(),
                      (begin() + static_cast<std::ptrdiff_t>(i))->clone(device));
    }
    return copy;
  }
  void pretty_print(std::ostream& out) const override { out << "torch::nn::Sequential"; }
};
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using Impl = SequentialImpl;
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> modules)
      : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

class ModuleListImpl : public ListOfModules<ModuleListImpl, std::shared_ptr<Module>> {
 public:
  ModuleListImpl() = default;
  template <class... Modules>
  explicit ModuleListImpl(Modules&&... modules) {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  ModuleListImpl(const ModuleListImpl&) = default;
  ModuleListImpl& operator=(const ModuleListImpl&) = default;
  ModuleListImpl(ModuleListImpl& other) : ModuleListImpl(std::as_const(other)) {}
  template <class M>
  void push_back(M&& module) {
    const std::shared_ptr<Module> shared = this->shared(std::forward<M>(module));
    add(std::to_string(size()), shared, shared);
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& each : container) push_back(each);
  }
  std::shared_ptr<Module> clone(
      const std::optional<at::Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ModuleListImpl>();
    for (const auto& each : *this) copy->push_back(each->clone(device));
    return copy;
  }
  void pretty_print(std::ostream& out) const override { out << "torch::nn::ModuleList"; }
};
TORCH_MODULE(ModuleList);

class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Item = std::pair<std::string, std::shared_ptr<Module>>;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<Item>& modules) { update(modules); }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
    update(modules.pairs());
  }
  void reset() override {}
  void update(const std::vector<Item>& modules) {
    for (const auto& [name, module] : modules) {
      children_.erase(name);
      register_module(name, module);
    }
  }
  void insert(const std::string& name, std::shared_ptr<Module> module) {
    update({{name, std::move(module)}});
  }
  size_t size() const { return children_.size(); }
  bool empty() const { return children_.is_empty(); }
  bool contains(const std::string& name) const { return children_.contains(name); }
  std::vector<std::string> keys() const { return children_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  std::vector<Item> items() const { return children_.pairs(); }
  auto begin() const { return children_.begin(); }
  auto end() const { return children_.end(); }
  void clear() { children_.clear(); }
  std::shared_ptr<Module> operator[](const std::string& name) const { return children_[name]; }
  template <class T>
  T& at(const std::string& name) const {
    const auto found = std::dynamic_pointer_cast<T>(children_[name]);
    TORCH_CHECK_TYPE(found, "at: expected a module of ", torch::detail::type_name(typeid(T)));
    return *found;
  }
  std::shared_ptr<Module> clone(
      const std::optional<at::Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ModuleDictImpl>();
    for (const auto& each : children_) copy->insert(each.key(), each.value()->clone(device));
    return copy;
  }
  void pretty_print(std::ostream& out) const override { out << "torch::nn::ModuleDict"; }
};
TORCH_MODULE(ModuleDict);

class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  template <class... Tensors>
  explicit ParameterListImpl(Tensors&&... tensors) {
    (append(std::forward<Tensors>(tensors)), ...);
  }
  ParameterListImpl(const ParameterListImpl&) = default;
  ParameterListImpl& operator=(const ParameterListImpl&) = default;
  ParameterListImpl(ParameterListImpl& other) : ParameterListImpl(std::as_const(other)) {}
  void reset() override {}
  void append(const at::Tensor& tensor) {
    register_parameter(std::to_string(size()), tensor, tensor.requires_grad());
  }
  size_t size() const { return parameters_.size(); }
  bool is_empty() const { return parameters_.is_empty(); }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  at::Tensor& at(size_t index) { return parameters_[index].value(); }
  at::Tensor& operator[](size_t index) { return at(index); }
  void pretty_print(std::ostream& out) const override { out << "torch::nn::ParameterList"; }
};
TORCH_MODULE(ParameterList);

}  // namespace over_weft
}  // namespace torch::nn

// Arguments with defaults may be left out of AnyModule's forward without it.
#define FORWARD_HAS_DEFAULT_ARGS(...) static_assert(true, "")
