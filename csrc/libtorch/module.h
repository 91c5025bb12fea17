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
  const std::vector<Argument>& returns() const {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "returns: expected arguments of '", name_,
                                "' to be asked for, as weft.h tells no types of results");
  }

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
using parameter_list = std::vector<at::Tensor>;
using buffer_list = std::vector<at::Tensor>;
using named_parameter_list = std::vector<NameTensor>;
using named_buffer_list = std::vector<NameTensor>;
using named_attribute_list = std::vector<NameValue>;
using named_module_list = std::vector<NameModule>;

class Method;
struct Graph;

namespace detail {

struct Origin;

}  // namespace detail

// A module of a compiled file, or one below it: `path` says which.
class Module {
 public:
  Module() = default;
  explicit Module(std::string) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "Module: expected a module that torch::jit::load gives");
  }
  Module(std::shared_ptr<weft_module> file, std::string path,
         std::shared_ptr<const detail::Origin> origin = nullptr)
      : file_(std::move(file)), path_(std::move(path)), origin_(std::move(origin)) {}

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
      for (const NameTensor& each : list) {
        const at::Tensor converted = each.value.detach().to(dtype);
        c10::detail::check(weft_tensor_set_data(each.value.get(), converted.get()));
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

  // A tensor of the module gets the memory of another.
  void setattr(const std::string& name, const IValue& value) const {
    const IValue before = attr(name);
    TORCH_CHECK_NOT_IMPLEMENTED(before.isTensor() && value.isTensor(),
                                "setattr: expected a tensor for a tensor '", name, "', got ",
                                *value.type(), " for ", *before.type());
    c10::detail::check(
        weft_tensor_set_data(before.toTensor().get(), value.toTensor().detach().get()));
  }
  c10::intrusive_ptr<c10::ivalue::Object> _ivalue() const { return attr("").toObject(); }

  // Copies share what they are handles of.
  Module copy() const { return *this; }
  // Of a file that is loaded once more, with the state that this one has.
  Module deepcopy() const;
  Module clone() const { return deepcopy(); }
  // The file that it was loaded from, with the state that it has now.
  void save(std::ostream& out, const ExtraFilesMap& extra = {}) const;
  void save(const std::string& path, const ExtraFilesMap& extra = {}) const;
  // Files are optimised when they are compiled.
  bool is_optimized() const { return true; }
  void set_optimized(bool) const {}

  // What changes a program, which a compiled file does not let be changed.
#define WEFT_TORCH_FIXED(name)                                                                 \
  template <class... Given>                                                                    \
  IValue name(Given&&...) const {                                                              \
    TORCH_CHECK_NOT_IMPLEMENTED(false,                                                         \
                                "Module::" #name ": expected a program that is not compiled"); \
  }
  WEFT_TORCH_FIXED(create_class)
  WEFT_TORCH_FIXED(define)
  WEFT_TORCH_FIXED(register_attribute)
  WEFT_TORCH_FIXED(register_buffer)
  WEFT_TORCH_FIXED(register_module)
  WEFT_TORCH_FIXED(register_parameter)
  WEFT_TORCH_FIXED(dump)
  WEFT_TORCH_FIXED(dump_to_str)
#undef WEFT_TORCH_FIXED
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
    if (found.isModule()) found.set_module(std::make_shared<Module>(file_, below(name), origin_));
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
  std::shared_ptr<const detail::Origin> origin_;
};

struct NameModule {
  std::string name;
  Module value;
};

// What a method or a compilation unit has: a name, a schema, and the call.
class Function {
 public:
  using Call = std::function<IValue(std::vector<IValue>)>;
  Function(c10::FunctionSchema schema, Call call)
      : schema_(std::move(schema)), call_(std::move(call)) {}
  IValue operator()(std::vector<IValue> inputs, const Kwargs& = {}) const {
    return call_(std::move(inputs));
  }
  const std::string& name() const { return schema_.name(); }
  const c10::FunctionSchema& getSchema() const { return schema_; }
  size_t num_inputs() const { return schema_.arguments().size(); }
  std::shared_ptr<Graph> graph() const;

 private:
  c10::FunctionSchema schema_;
  Call call_;
};

// A method of a module.
class Method {
 public:
  Method(const Module& owner, std::string name)
      : owner_(owner),
        name_(std::move(name)),
        function_(std::make_shared<Function>(owner.schema_of(name_),
                                             [owner, name = name_](std::vector<IValue> inputs) {
                                               // Behind the module itself.
                                               inputs.erase(inputs.begin());
                                               return owner.run(name, std::move(inputs), {});
                                             })) {}
  IValue operator()(std::vector<IValue> inputs, const Kwargs& kwargs = {}) const {
    return owner_.run(name_, std::move(inputs), kwargs);
  }
  const std::string& name() const { return name_; }
  const Module& owner() const { return owner_; }
  Function& function() const { return *function_; }
  const c10::FunctionSchema& getSchema() const { return function_->getSchema(); }
  size_t num_inputs() const { return function_->num_inputs(); }
  std::shared_ptr<Graph> graph() const { return function_->graph(); }

 private:
  Module owner_;
  std::string name_;
  std::shared_ptr<Function> function_;
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
