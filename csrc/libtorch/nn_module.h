// torch::nn::Module: parameters, buffers and modules by name, and the holders that share one.
#pragma once

#include <cxxabi.h>

#include <typeinfo>

#include "nn_options.h"
#include "print.h"

namespace torch {
inline namespace over_weft {

// Entries in the order in which they came, found by key.
template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const { return pair_.first; }
    Value& value() { return pair_.second; }
    const Value& value() const { return pair_.second; }
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const std::pair<Key, Value>& pair() const { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  OrderedDict() = default;
  explicit OrderedDict(std::string) {}  // of what kind the keys are
  OrderedDict(std::initializer_list<Item> items) {
    for (const Item& each : items) insert(each.key(), each.value());
  }

  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const std::vector<Item>& items() const { return items_; }
  Item& operator[](size_t index) { return items_.at(index); }
  const Item& operator[](size_t index) const { return items_.at(index); }
  Value& operator[](const Key& key) { return expect(find(key), key); }
  const Value& operator[](const Key& key) const { return expect(find(key), key); }
  Value* find(const Key& key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  const Value* find(const Key& key) const {
    for (const Item& each : items_) {
      if (each.key() == key) return &each.value();
    }
    return nullptr;
  }
  bool contains(const Key& key) const { return find(key) != nullptr; }
  template <class K, class V>
  Value& insert(K&& given, V&& value) {
    Key key(std::forward<K>(given));
    TORCH_CHECK(!contains(key), "OrderedDict: expected a key that is not there, got '", key, "'");
    items_.emplace_back(std::move(key), Value(std::forward<V>(value)));
    return items_.back().value();
  }
  void update(const OrderedDict& other) {
    for (const Item& each : other) insert(each.key(), each.value());
  }
  void erase(const Key& key) {
    items_.erase(std::remove_if(items_.begin(), items_.end(),
                                [&](const Item& each) { return each.key() == key; }),
                 items_.end());
  }
  void clear() { items_.clear(); }
  std::vector<Key> keys() const {
    std::vector<Key> found;
    for (const Item& each : items_) found.push_back(each.key());
    return found;
  }
  std::vector<Value> values() const {
    std::vector<Value> found;
    for (const Item& each : items_) found.push_back(each.value());
    return found;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> found;
    for (const Item& each : items_) found.push_back(each.pair());
    return found;
  }

 private:
  template <class Found>
  static Found& expect(Found* found, const Key& key) {
    TORCH_CHECK(found, "OrderedDict: expected a key that is there, got '", key, "'");
    return *found;
  }

  std::vector<Item> items_;
};

namespace detail {

inline void set_grad(const at::Tensor& tensor, const at::Tensor& grad) {
  c10::detail::check(weft_tensor_set_grad(tensor.get(), grad.get()));
}
inline void zero_grads(const std::vector<at::Tensor>& tensors, bool set_to_none) {
  for (const at::Tensor& each : tensors) {
    if (set_to_none) {
      set_grad(each, {});
    } else if (each.grad().defined()) {
      each.grad().detach().zero_();
    }
  }
}
inline std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? text.get() : type.name();
  const std::string inner = "over_weft::";
  for (size_t at = name.find(inner); at != std::string::npos; at = name.find(inner)) {
    name.erase(at, inner.size());
  }
  return name;
}

}  // namespace detail

}  // namespace over_weft
}  // namespace torch

namespace torch::serialize {
inline namespace over_weft {
class OutputArchive;
class InputArchive;
}  // namespace over_weft
}  // namespace torch::serialize

namespace torch::nn {
inline namespace over_weft {

template <class Contained>
class ModuleHolder;

class Module : public std::enable_shared_from_this<Module> {
 public:
  Module() = default;
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module() = default;

  // The class, unless a name was given.
  const std::string& name() const {
    if (!name_) name_ = torch::detail::type_name(typeid(*this));
    return *name_;
  }
  virtual std::shared_ptr<Module> clone(const std::optional<at::Device>& = std::nullopt) const {
    TORCH_CHECK(false, "clone: expected a module derived from torch::nn::Cloneable<", name(),
                ">, got one of torch::nn::Module");
  }

  // ---- what it has ----

  at::Tensor& register_parameter(std::string name, at::Tensor tensor, bool requires_grad = true) {
    check_name("register_parameter", name);
    if (tensor.defined()) tensor.set_requires_grad(requires_grad);
    return parameters_.insert(std::move(name), std::move(tensor));
  }
  at::Tensor& register_buffer(std::string name, at::Tensor tensor) {
    check_name("register_buffer", name);
    return buffers_.insert(std::move(name), std::move(tensor));
  }
  template <class T>
  std::shared_ptr<T> register_module(std::string name, std::shared_ptr<T> module) {
    check_name("register_module", name);
    children_.insert(std::move(name), module);
    return module;
  }
  template <class T>
  std::shared_ptr<T> register_module(std::string name, ModuleHolder<T> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class T>
  std::shared_ptr<T> replace_module(const std::string& name, std::shared_ptr<T> module) {
    children_[name] = module;
    return module;
  }
  template <class T>
  std::shared_ptr<T> replace_module(const std::string& name, ModuleHolder<T> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name) {
    TORCH_CHECK(children_.contains(name),
                "unregister_module: expected a module that is there, got '", name, "'");
    children_.erase(name);
  }

  using NamedTensors = OrderedDict<std::string, at::Tensor>;
  using NamedModules = OrderedDict<std::string, std::shared_ptr<Module>>;
  NamedTensors named_parameters(bool recurse = true) const {
    return tensors(&Module::parameters_, recurse);
  }
  NamedTensors named_buffers(bool recurse = true) const {
    return tensors(&Module::buffers_, recurse);
  }
  std::vector<at::Tensor> parameters(bool recurse = true) const {
    return named_parameters(recurse).values();
  }
  std::vector<at::Tensor> buffers(bool recurse = true) const {
    return named_buffers(recurse).values();
  }
  const NamedModules& named_children() const { return children_; }
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  NamedModules named_modules(const std::string& prefix = "", bool include_self = true) const {
    NamedModules found;
    if (include_self) found.insert(prefix, self());
    for (const auto& child : children_) {
      const std::string name = joined(prefix, child.key());
      for (const auto& each : child.value()->named_modules(name)) {
        found.insert(each.key(), each.value());
      }
    }
    return found;
  }
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const {
    return named_modules("", include_self).values();
  }

  // Calls function(module) or function(name, module) for this and all below; a module is given as
  // Module& or as std::shared_ptr<Module>.
  template <class Function>
  void apply(const Function& function, const std::string& name = "") {
    if constexpr (std::is_invocable_v<Function, Module&>) {
      function(*this);
    } else if constexpr (std::is_invocable_v<Function, const std::string&, Module&>) {
      function(name, *this);
    } else if constexpr (std::is_invocable_v<Function, const std::shared_ptr<Module>&>) {
      function(self());
    } else {
      function(name, self());
    }
    for (auto& child : children_) child.value()->apply(function, joined(name, child.key()));
  }

  // ---- what state it is in ----

  virtual void train(bool on = true) {
    for (auto& child : children_) child.value()->train(on);
    is_training_ = on;
  }
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }
  virtual void to(at::Device device, at::ScalarType dtype, bool non_blocking = false) {
    to(device, non_blocking);
    to(dtype, non_blocking);
  }
  virtual void to(at::ScalarType dtype, bool = false) {
    for (const at::Tensor& each : states()) each.set_data(each.detach().to(dtype));
  }
  // There is one device.
  virtual void to(at::Device device, bool = false) {
    at::empty({0}, at::TensorOptions(device));  // refuses a device that weft has not
  }
  virtual void zero_grad(bool set_to_none = true) {
    torch::detail::zero_grads(parameters(), set_to_none);
  }

  template <class T>
  auto* as() noexcept {
    return dynamic_cast<typename Contained<T>::type*>(this);
  }
  template <class T>
  const auto* as() const noexcept {
    return dynamic_cast<const typename Contained<T>::type*>(this);
  }
  virtual bool is_serializable() const { return true; }
  // Inline at once: else they would be the key functions, and each file emit the table of Module.
  inline virtual void save(serialize::OutputArchive& archive) const;
  inline virtual void load(serialize::InputArchive& archive);
  virtual void pretty_print(std::ostream& out) const { out << name(); }
  friend std::ostream& operator<<(std::ostream& out, const Module& module) {
    module.print_tree(out, "");
    return out;
  }

 protected:
  NamedTensors parameters_, buffers_;
  NamedModules children_;

  // Takes over copies of what another of the same class has.
  void take_copies(const Module& other) {
    for (auto each : {&Module::parameters_, &Module::buffers_}) {
      for (auto& item : this->*each) {
        const at::Tensor& source = (other.*each)[item.key()];
        if (source.defined()) item.value().set_data(source.detach().clone());
      }
    }
    for (auto& child : children_) child.value()->clone_(*other.children_[child.key()]);
    is_training_ = other.is_training_;
  }
  // Becomes a copy, where it is: members hold it.
  virtual void clone_(const Module& other) { other.clone(); }

 private:
  friend class CloneableModule;

  // The class that a holder shares, or the class itself.
  template <class T, class = void>
  struct Contained {
    using type = T;
  };
  template <class T>
  struct Contained<T, std::void_t<typename T::ContainedType>> {
    using type = typename T::ContainedType;
  };

  static std::string joined(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }
  static void check_name(const char* op, const std::string& name) {
    TORCH_CHECK(!name.empty() && name.find('.') == std::string::npos, op,
                ": expected a name without dots, got '", name, "'");
  }
  std::shared_ptr<Module> self() const {
    const auto found = std::const_pointer_cast<Module>(weak_from_this().lock());
    TORCH_CHECK(found, "modules: expected a module in a std::shared_ptr, got one of ", name(),
                " without");
    return found;
  }
  NamedTensors tensors(NamedTensors Module::* kind, bool recurse) const {
    NamedTensors found;
    for (const auto& each : this->*kind) {
      if (each->defined()) found.insert(each.key(), each.value());
    }
    for (size_t i = 0; recurse && i < children_.size(); ++i) {
      for (const auto& each : children_[i].value()->tensors(kind, true)) {
        found.insert(joined(children_[i].key(), each.key()), each.value());
      }
    }
    return found;
  }
  std::vector<at::Tensor> states() const {
    std::vector<at::Tensor> found = parameters();
    for (const at::Tensor& each : buffers()) found.push_back(each);
    return found;
  }
  void print_tree(std::ostream& out, const std::string& margin) const {
    pretty_print(out);
    if (children_.is_empty()) return;
    out << "(\n";
    for (const auto& child : children_) {
      out << margin << "  (" << child.key() << "): ";
      child.value()->print_tree(out, margin + "  ");
      out << '\n';
    }
    out << margin << ')';
  }

  mutable std::optional<std::string> name_;
  bool is_training_ = true;
};

// A module that makes copies of itself: reset() registers all that it has.
class CloneableModule : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;
  std::shared_ptr<Module> clone(const std::optional<at::Device>& = std::nullopt) const override {
    at::NoGradGuard no_grad;
    const std::shared_ptr<CloneableModule> copy(copied());
    copy->parameters_.clear();
    copy->buffers_.clear();
    copy->children_.clear();
    copy->reset();
    TORCH_CHECK(copy->parameters_.size() == parameters_.size() &&
                    copy->buffers_.size() == buffers_.size() &&
                    copy->children_.size() == children_.size(),
                "clone: expected reset() to register all that ", this->name(), " has");
    copy->take_copies(*this);
    return copy;
  }

 private:
  virtual CloneableModule* copied() const = 0;
};

template <class Derived>
class Cloneable : public CloneableModule {
 public:
  using CloneableModule::CloneableModule;

 protected:
  void clone_(const Module& other) override {
    static_cast<Derived&>(*this) = dynamic_cast<const Derived&>(*other.clone());
  }

 private:
  CloneableModule* copied() const override {
    return new Derived(static_cast<const Derived&>(*this));
  }
};

// Shares a module: TORCH_MODULE(Net) makes Net of NetImpl.
template <class Contained>
class ModuleHolder {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(shared(new Contained())) {
    static_assert(std::is_default_constructible_v<Contained>,
                  "a module without default arguments begins as nullptr: Net net{nullptr}");
  }
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}
  template <class Head, class... Tail,
            std::enable_if_t<sizeof...(Tail) != 0 ||
                                 (!std::is_base_of_v<ModuleHolder, std::decay_t<Head>> &&
                                  !std::is_convertible_v<Head, std::shared_ptr<Contained>>),
                             int> = 0>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(shared(new Contained(std::forward<Head>(head), std::forward<Tail>(tail)...))) {}

  explicit operator bool() const noexcept { return !is_empty(); }
  bool is_empty() const noexcept { return impl_ == nullptr; }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  const std::shared_ptr<Contained>& ptr() const { return get(), impl_; }
  Contained* get() const {
    TORCH_CHECK(impl_, "expected a module, got an empty holder of ",
                torch::detail::type_name(typeid(Contained)));
    return impl_.get();
  }
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    return get()->forward(std::forward<Args>(args)...);
  }
  template <class Index>
  decltype(auto) operator[](Index&& index) {
    return (*get())[std::forward<Index>(index)];
  }
  friend std::ostream& operator<<(std::ostream& out, const ModuleHolder& holder) {
    return out << *holder;
  }

 protected:
  std::shared_ptr<Contained> impl_;

 private:
  // As a Module: what std::make_shared has for each class takes long to compile.
  static std::shared_ptr<Contained> shared(Contained* module) {
    return {std::shared_ptr<Module>(static_cast<Module*>(module)), module};
  }
};

}  // namespace over_weft
}  // namespace torch::nn

#define TORCH_MODULE_IMPL(Name, ImplType)                    \
  class Name : public ::torch::nn::ModuleHolder<ImplType> {  \
   public:                                                   \
    using ::torch::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl = ImplType;                                   \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)
