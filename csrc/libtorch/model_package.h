// torch::inductor: packages of compiled programs, which weft's aoti_compile_and_package made.
#pragma once

#include "autograd.h"
#include "module_file.h"

namespace torch::inductor {
inline namespace over_weft {

// The program of a package. Its inputs and results are tensors one by one: get_call_spec tells how
// they were nested in Python. Names of models, runners and devices have no effect.
class AOTIModelPackageLoader {
 public:
  explicit AOTIModelPackageLoader(const std::string& path, const std::string& = "model",
                                  bool = false, size_t = 1, c10::DeviceIndex = -1)
      : module_(jit::load(path, std::nullopt, extra_)) {
    TORCH_CHECK(!extra_["out_spec"].empty(), "AOTIModelPackageLoader: expected a package that ",
                "weft's aoti_compile_and_package made, got '", path, "'");
  }

  // Calls record no gradients.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, void* = nullptr) const {
    const at::NoGradGuard guard;
    const c10::IValue result = module_.forward({inputs.begin(), inputs.end()});
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& each : result.toTupleRef().elements()) {
      if (each.isTensor()) tensors.push_back(each.toTensor());
    }
    return tensors;
  }
  std::vector<at::Tensor> boxed_run(std::vector<at::Tensor>&& inputs, void* = nullptr) const {
    const std::vector<at::Tensor> taken = std::move(inputs);  // they go with the call
    return run(taken);
  }

  // Two texts in JSON: how arguments and how results are nested.
  std::vector<std::string> get_call_spec() const {
    return {extra_.at("in_spec"), extra_.at("out_spec")};
  }
  std::unordered_map<std::string, std::string> get_metadata() const {
    std::unordered_map<std::string, std::string> metadata;
    std::istringstream texts(extra_.at("metadata"));
    for (std::string name, text; std::getline(texts, name, '\0');) {
      std::getline(texts, text, '\0');
      metadata[name] = text;
    }
    return metadata;
  }
  static std::unordered_map<std::string, std::string> load_metadata_from_package(
      const std::string& path, const std::string& name) {
    return AOTIModelPackageLoader(path, name).get_metadata();
  }
  std::vector<std::string> get_constant_fqns() const {
    std::vector<std::string> names;
    for (const jit::NameTensor& each : held()) names.push_back(each.name);
    return names;
  }

  // Constants get new values by their names; with `user_managed` they share the memory of those.
  void load_constants(std::unordered_map<std::string, at::Tensor>& values, bool use_inactive,
                      bool check_full_update, bool user_managed = false) const {
    TORCH_CHECK_NOT_IMPLEMENTED(!use_inactive,
                                "load_constants: expected use_inactive=false, as "
                                "constants have one set of values, got true");
    size_t found = 0;
    const std::vector<jit::NameTensor> constants = held();
    for (const jit::NameTensor& each : constants) found += values.count(each.name);
    TORCH_CHECK(found == values.size() && (!check_full_update || found == constants.size()),
                "load_constants: expected values for ", constants.size(),
                " constants by their names, got ", values.size(), ", of which it has ", found);
    const at::NoGradGuard guard;
    for (const jit::NameTensor& each : constants) {
      const auto value = values.find(each.name);
      if (value == values.end()) continue;
      TORCH_CHECK(value->second.sizes() == each.value.sizes() &&
                      value->second.scalar_type() == each.value.scalar_type(),
                  "load_constants: expected ", each.value.sizes(), " of ", each.value.scalar_type(),
                  " for ", each.name, ", got ", value->second.sizes(), " of ",
                  value->second.scalar_type());
      if (user_managed) {
        c10::detail::check(weft_tensor_set_data(each.value.get(), value->second.detach().get()));
      } else {
        each.value.copy_(value->second);
      }
    }
  }
  void update_constant_buffer(std::unordered_map<std::string, at::Tensor>& values,
                              bool use_inactive, bool check_full_update,
                              bool user_managed = false) const {
    load_constants(values, use_inactive, check_full_update, user_managed);
  }

 private:
  std::vector<jit::NameTensor> held() const {
    std::vector<jit::NameTensor> all = module_.named_parameters();
    for (jit::NameTensor& each : module_.named_buffers()) all.push_back(std::move(each));
    return all;
  }

  jit::ExtraFilesMap extra_{{"in_spec", ""}, {"out_spec", ""}, {"metadata", ""}};
  jit::Module module_;
};

}  // namespace over_weft
}  // namespace torch::inductor
