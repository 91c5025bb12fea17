// torch::jit: compiled files as modules.
#pragma once

#include <atomic>
#include <fstream>
#include <iterator>

#include "autograd.h"
#include "ivalue.h"
#include "print.h"

namespace c10 {
inline namespace over_weft {

class Argument final {
 public:
  Argument(std::string name, std::string type) : name_(std::move(name)), type_(std::move(type)) {}
  const std::string& name() const { return name_; }
  TypePtr type() const { return std::make_shared<Type>(type_); }

 private:
  std::string name_, type_;
};

class FunctionSchema final {
 public:
  FunctionSchema(std::string name, std::vector<Argument> arguments)
      : name_(std::move(name)), arguments_(std::move(arguments)) {}
  const std::string& name() const { return name_; }
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  std::string name_;
  std::vector<Argument> arguments_;
};

}  // namespace over_weft
}  // namespace c10

namespace torch::jit {
inline namespace over_weft {

using ExtraFilesMap = std::unordered_map<std::string, std::string>;
using Kwargs = std::unordered_map<std::string, IValue>;

struct NameTensor {
  std::string name;
  at::Tensor value;
};
struct NameModule;
struct NameValue {
  std::string name;
  IValue value;
};

class Method;

// A module of a compiled file, or one below it: `path` says which.
class Module {
 public:
  Module() = default;
  explicit Module(std::string) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "Module: expected a module that torch::jit::load gives");
  }
  Module(std::shared_ptr<weft_module> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  IValue forward(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const {
    return run("forward", std::move(inputs), kwargs);
  }
  IValue operator()(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const {
    return forward(std::move(inputs), kwargs);
  }
  template <class... Args>
  IValue run_method(const std::string& name, Args&&... args) const {
    return run(name, {IValue(std::forward<Args>(args))...}, {});
  }
  IValue run(const std::string& name, std::vector<IValue> inputs, const Kwargs& kwargs) const {
    TORCH_CHECK_NOT_IMPLEMENTED(
        path_.empty(), name, ": expected a method of the module that was loaded, got one of '",
        path_, "', which the file has not; weft compile --method adds methods");
    inputs = with(name, std::move(inputs), kwargs);
    std::vector<const weft_value*> handles;
    for (const IValue& each : inputs) handles.push_back(each.shared().get());
    return IValue(c10::detail::made([&](weft_value** out) {
      return weft_module_call(expect(), name.c_str(), handles.data(), handles.size(), out);
    }));
  }
  Method get_method(const std::string& name) const;
  std::optional<Method> find_method(const std::string& name) const;
  std::vector<Method> get_methods() const;
  c10::FunctionSchema schema_of(const std::string& name) const {
    std::vector<c10::Argument> arguments{{"self", type()->str()}};
    for (size_t i = 0;; ++i) {
      const char* found = weft_module_method_argument(expect(), name.c_str(), i);
      if (!found) return {name, std::move(arguments)};
      const std::string text = found;
      const size_t colon = text.find(": ");
      arguments.emplace_back(text.substr(0, colon), text.substr(colon + 2));
    }
  }
  bool has_method(const std::string& name) const {
    for (size_t i = 0; path_.empty() && i < weft_module_method_count(expect()); ++i) {
      if (name == weft_module_method_name(file_.get(), i)) return true;
    }
    return false;
  }

  void train(bool on = true) const { c10::detail::check(weft_module_train(expect(), on)); }
  void eval() const { train(false); }
  bool is_training() const { return hasattr("training") && attr("training").toBool(); }
  // There is one device, so that only the type of parameters and buffers changes: in place.
  void to(at::Device device, bool non_blocking = false) const {
    at::empty({0}, at::TensorOptions(device));  // refuses a device that weft has not
    static_cast<void>(non_blocking);
  }
  void to(at::Device device, at::ScalarType dtype, bool non_blocking = false) const {
    to(device, non_blocking);
    to(dtype, non_blocking);
  }
  void to(at::ScalarType dtype, bool = false) const {
    for (const auto& list : {named_parameters(), named_buffers()}) {
      for (const auto& each : list) {
        TORCH_CHECK_NOT_IMPLEMENTED(
            !at::isFloatingType(each.value.scalar_type()) || each.value.scalar_type() == dtype,
            "Module::to: expected the dtype that the file has, got ", dtype, " for '", each.name,
            "' of ", each.value.scalar_type(), "; convert the module before weft compile");
      }
    }
  }
  void cuda() const { to(at::Device(at::kCUDA)); }
  void cpu() const {}

  bool hasattr(const std::string& name) const { return !name.empty() && find(name).has_value(); }
  IValue attr(const std::string& name) const {
    return with_module(name, c10::detail::made([&](weft_value** out) {
                         return weft_module_attribute(expect(), below(name).c_str(), out);
                       }));
  }
  IValue attr(const std::string& name, IValue otherwise) const {
    return find(name).value_or(std::move(otherwise));
  }
  c10::TypePtr type() const { return attr("").type(); }

  std::vector<at::Tensor> parameters(bool recurse = true) const {
    return values_of(named_parameters(recurse));
  }
  std::vector<at::Tensor> buffers(bool recurse = true) const {
    return values_of(named_buffers(recurse));
  }
  std::vector<NameTensor> named_parameters(bool recurse = true) const {
    return listed(weft_module_parameter_count(expect()), weft_module_parameter, recurse);
  }
  std::vector<NameTensor> named_buffers(bool recurse = true) const {
    return listed(weft_module_buffer_count(expect()), weft_module_buffer, recurse);
  }
  std::vector<NameValue> named_attributes(bool recurse = true) const;
  std::vector<NameModule> named_children() const;
  std::vector<NameModule> named_modules() const;
  std::vector<Module> children() const;
  std::vector<Module> modules() const;

  // Copies share what they are handles of.
  Module copy() const { return *this; }
  void save(const std::string& path, const ExtraFilesMap& = {}) const {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "Module::save: expected a state to save, got '", path,
                                "': weft_module_save_state writes parameters and buffers");
  }
  weft_module* get() const { return file_.get(); }
  // As a pointer: torch::jit::load gave one before PyTorch 1.2.
  Module* operator->() { return this; }
  const Module* operator->() const { return this; }

 private:
  weft_module* expect() const {
    TORCH_CHECK(file_, "expected a module that torch::jit::load gave, got an empty one");
    return file_.get();
  }
  std::string below(const std::string& name) const {
    return path_.empty() || name.empty() ? path_ + name : path_ + "." + name;
  }
  std::optional<IValue> find(const std::string& name) const {
    weft_value* out = nullptr;
    if (weft_module_attribute(expect(), below(name).c_str(), &out) != WEFT_OK) return std::nullopt;
    return with_module(name, c10::detail::Shared(out, weft_value_release));
  }
  // A module below knows its place in the file.
  IValue with_module(const std::string& name, c10::detail::Shared value) const {
    IValue found(std::move(value));
    if (found.isModule()) found.set_module(std::make_shared<Module>(file_, below(name)));
    return found;
  }
  // Keyword arguments behind the others, by the names of the method.
  std::vector<IValue> with(const std::string& name, std::vector<IValue> inputs,
                           const Kwargs& kwargs) const {
    for (size_t found = 0; found < kwargs.size(); ++found) {
      const char* text = weft_module_method_argument(expect(), name.c_str(), inputs.size());
      TORCH_CHECK(text, name, ": expected keyword arguments of the method, got others");
      const std::string argument(text, std::string(text).find(": "));
      const auto each = kwargs.find(argument);
      TORCH_CHECK(each != kwargs.end(), name, ": expected a value for argument '", argument,
                  "' before those given by name");
      inputs.push_back(each->second);
    }
    return inputs;
  }
  template <class Read>
  std::vector<NameTensor> listed(size_t count, Read read, bool recurse) const {
    std::vector<NameTensor> found;
    const std::string prefix = path_.empty() ? "" : path_ + ".";
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      weft_tensor* tensor = nullptr;
      c10::detail::check(read(file_.get(), i, &name, &tensor));
      at::Tensor held(tensor);
      const std::string text = name;
      if (text.compare(0, prefix.size(), prefix) != 0) continue;
      const std::string rest = text.substr(prefix.size());
      if (recurse || rest.find('.') == std::string::npos) found.push_back({rest, held});
    }
    return found;
  }
  static std::vector<at::Tensor> values_of(const std::vector<NameTensor>& named) {
    std::vector<at::Tensor> values;
    for (const NameTensor& each : named) values.push_back(each.value);
    return values;
  }

  std::shared_ptr<weft_module> file_;
  std::string path_;
};

struct NameModule {
  std::string name;
  Module value;
};

// A method of a module.
class Method {
 public:
  Method(Module owner, std::string name) : owner_(std::move(owner)), name_(std::move(name)) {}
  IValue operator()(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const {
    return owner_.run(name_, std::move(inputs), kwargs);
  }
  const std::string& name() const { return name_; }
  const Module& owner() const { return owner_; }
  const Method& function() const { return *this; }
  c10::FunctionSchema getSchema() const { return owner_.schema_of(name_); }
  size_t num_inputs() const { return getSchema().arguments().size(); }

 private:
  Module owner_;
  std::string name_;
};

inline Method Module::get_method(const std::string& name) const {
  TORCH_CHECK(has_method(name), "get_method: expected a method of the module, got '", name, "'");
  return Method(*this, name);
}
inline std::optional<Method> Module::find_method(const std::string& name) const {
  if (!has_method(name)) return std::nullopt;
  return Method(*this, name);
}
inline std::vector<Method> Module::get_methods() const {
  std::vector<Method> methods;
  for (size_t i = 0; path_.empty() && i < weft_module_method_count(expect()); ++i) {
    methods.emplace_back(*this, weft_module_method_name(file_.get(), i));
  }
  return methods;
}

inline std::vector<NameValue> Module::named_attributes(bool recurse) const {
  std::vector<NameValue> found;
  const IValue own = attr("");
  for (size_t i = 0; i < weft_value_attribute_count(own.shared().get()); ++i) {
    const std::string name = weft_value_attribute_name(own.shared().get(), i);
    const IValue value = attr(name);
    found.push_back({name, value});
    if (!recurse || !value.isModule()) continue;
    for (NameValue& each : value.toModule().named_attributes()) {
      found.push_back({name + "." + each.name, std::move(each.value)});
    }
  }
  return found;
}
inline std::vector<NameModule> Module::named_children() const {
  std::vector<NameModule> found;
  for (const NameValue& each : named_attributes(false)) {
    if (each.value.isModule()) found.push_back({each.name, each.value.toModule()});
  }
  return found;
}
inline std::vector<NameModule> Module::named_modules() const {
  std::vector<NameModule> found{{"", *this}};
  for (const NameModule& child : named_children()) {
    for (const NameModule& each : child.value.named_modules()) {
      found.push_back({each.name.empty() ? child.name : child.name + "." + each.name, each.value});
    }
  }
  return found;
}
inline std::vector<Module> Module::children() const {
  std::vector<Module> found;
  for (const NameModule& each : named_children()) found.push_back(each.value);
  return found;
}
inline std::vector<Module> Module::modules() const {
  std::vector<Module> found;
  for (const NameModule& each : named_modules()) found.push_back(each.value);
  return found;
}

// ---- loading ----

namespace detail {

inline Module loaded(weft_module* made, std::optional<at::Device> device, ExtraFilesMap* extra) {
  std::shared_ptr<weft_module> file(made, weft_module_release);
  Module module(file, "");
  if (device) module.to(*device);
  for (auto& [name, text] : extra ? *extra : ExtraFilesMap()) {
    const void* data = nullptr;
    size_t bytes = 0;
    if (weft_module_record(made, ("extra/" + name).c_str(), &data, &bytes) != WEFT_OK) continue;
    (*extra)[name].assign(static_cast<const char*>(data), bytes);
  }
  return module;
}

}  // namespace detail

// Loads a file that `weft compile` made; one whose name ends in .pt is PyTorch's archive, too.
// Throws c10::Error for others. `extra_files`: names of files of the archive, whose contents are
// put in.
inline Module load(const std::string& path, std::optional<at::Device> device,
                   ExtraFilesMap& extra_files, bool = true, bool = false) {
  weft_module* made = nullptr;
  c10::detail::check(weft_module_load(path.c_str(), &made));
  return detail::loaded(made, device, &extra_files);
}
inline Module load(const std::string& path, std::optional<at::Device> device = std::nullopt,
                   bool = true) {
  ExtraFilesMap none;
  return load(path, device, none);
}
inline Module load(std::istream& in, std::optional<at::Device> device, ExtraFilesMap& extra_files,
                   bool = true, bool = false) {
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  weft_module* made = nullptr;
  c10::detail::check(weft_module_load_memory(bytes.data(), bytes.size(), &made));
  return detail::loaded(made, device, &extra_files);
}
inline Module load(std::istream& in, std::optional<at::Device> device = std::nullopt, bool = true) {
  ExtraFilesMap none;
  return load(in, device, none);
}

// Files are optimised when they are compiled (weft compile --freeze), so that these change nothing.
inline Module freeze(const Module& module, const std::optional<std::vector<std::string>>& = {},
                     bool = true) {
  return module;
}
inline Module optimize_for_inference(const Module& module, const std::vector<std::string>& = {}) {
  return module;
}
inline void setGraphExecutorOptimize(bool) {}
inline bool getGraphExecutorOptimize() { return true; }
inline bool setTensorExprFuserEnabled(bool) { return true; }
inline std::atomic<bool>& getProfilingMode() {
  static std::atomic<bool> mode{true};
  return mode;
}
inline std::atomic<size_t>& getBailoutDepth() {
  static std::atomic<size_t> depth{1};
  return depth;
}
inline void overrideCanFuseOnCPU(bool) {}
inline void overrideCanFuseOnGPU(bool) {}
inline std::atomic<bool>& getExecutorMode() {
  static std::atomic<bool> mode{true};
  return mode;
}
enum class FusionBehavior { STATIC, DYNAMIC };
using FusionStrategy = std::vector<std::pair<FusionBehavior, size_t>>;
inline FusionStrategy setFusionStrategy(const FusionStrategy& strategy) { return strategy; }

using JITException = c10::Error;
using ErrorReport = c10::Error;

namespace script {
using over_weft::Method;
using over_weft::Module;
}  // namespace script

}  // namespace over_weft
}  // namespace torch::jit

namespace c10 {
inline namespace over_weft {
inline IValue::IValue(const torch::jit::Module& module) : value_(module.attr("").shared()) {}
inline torch::jit::Module IValue::toModule() const {
  TORCH_CHECK_TYPE(module_, "toModule: expected a module that Module::attr gave, got ", *type());
  return *module_;
}
}  // namespace over_weft
}  // namespace c10
