// Programs in archives as hosts of libtorch run them. It prints; the text beside this file is what
// PyTorch's own library prints.
#include <torch/script.h>
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "words.h"

namespace modules {

template <class Body>
static void fails(const char* what, Body&& body) {
  try {
    body();
    std::cout << what << ": no error\n";
  } catch (const std::exception&) {
    std::cout << what << ": refused\n";
  }
}

static void values(torch::jit::script::Module& module) {
  c10::Dict<std::string, torch::Tensor> dict;
  dict.insert("a", torch::ones({2}));
  dict.insert_or_assign("b", torch::full({2}, 2.0));
  std::vector<torch::jit::IValue> inputs;
  inputs.push_back(dict);
  inputs.emplace_back(std::vector<int64_t>{1, 2, 3});
  inputs.push_back(std::string("name"));
  inputs.push_back(std::make_tuple(1.5, true));
  inputs.push_back(torch::optional<torch::Tensor>());
  const c10::IValue result = module.get_method("mixed")(inputs);
  const auto parts = result.toTuple();
  std::cout << parts->elements().size() << " " << parts->elements()[0].toTensor() << "\n";
  const auto entries = parts->elements()[1].toGenericDict();
  for (const auto& entry : entries) {
    std::cout << entry.key().toStringRef() << "=" << entry.value().toInt() << " ";
  }
  std::cout << entries.at("sum").toInt() << entries.contains("none") << entries.size() << "\n";
  const auto texts = parts->elements()[2].toList();
  for (size_t i = 0; i < texts.size(); ++i) std::cout << texts.get(i).toStringRef() << ",";
  std::cout << parts->elements()[3].isNone() << parts->elements()[4].toDouble() << "\n";
  std::cout << parts->elements()[5].toTensorVector().size() << parts->elements()[5].isTensorList()
            << parts->elements()[6].toIntVector() << parts->elements()[6].isIntList() << "\n";
  std::cout << result << "\n";
  std::cout << result.isTuple() << result.isTensor() << c10::IValue(2).isInt()
            << c10::IValue(2.5).isDouble() << c10::IValue("x").isString()
            << c10::IValue(true).toBool() << c10::IValue().isNone() << "\n";
  fails("a tensor of a tuple", [&] { result.toTensor(); });
  fails("a tuple of an int", [&] { c10::IValue(3).toTuple(); });
}

static void state(torch::jit::script::Module& module) {
  std::cout << module.hasattr("r_max") << module.hasattr("nothing") << " "
            << module.attr("r_max").toTensor().item<double>() << " "
            << module.attr("kinds").toListRef().size() << module.attr("scale").toDouble() << " "
            << module.attr("fixed").toInt() << "\n";
  std::cout << module.attr("nothing", 5).toInt() << "\n";
  fails("an attribute that is not there", [&] { module.attr("nothing"); });
  for (const auto& each : module.named_parameters()) {
    std::cout << each.name << each.value.sizes() << each.value.requires_grad() << " ";
  }
  std::cout << "\n";
  for (const auto& each : module.named_buffers()) std::cout << each.name << " ";
  for (const auto& each : module.named_children()) std::cout << each.name << " ";
  std::cout << module.attr("linear").toModule().hasattr("weight") << "\n";
  module.eval();
  std::cout << module.is_training();
  module.train();
  std::cout << module.is_training() << module.find_method("energy").has_value()
            << module.find_method("nothing").has_value() << "\n";
  module.eval();
  const auto schema = module.get_method("energy").function().getSchema();
  for (const auto& each : schema.arguments()) std::cout << each.name() << " ";
  std::cout << "\n";
}

static void gradients(torch::jit::script::Module& module) {
  torch::Tensor x = torch::ones({2, 3}, torch::requires_grad());
  const torch::Tensor energy = module.run_method("energy", x, 2.0).toTensor();
  const auto forces = torch::autograd::grad({energy}, {x}, {}, false, false);
  std::cout << energy.item<float>() << "\n" << -forces[0] << "\n";
  module.forward({x}).toTensor().sum().backward();
  std::cout << x.grad() << "\n";
  for (torch::Tensor each : module.parameters())
    std::cout << each.grad().abs().sum().item<float>() << "\n";
  std::unordered_map<std::string, c10::IValue> named{{"factor", 3.0}};
  std::cout << module.get_method("energy")({x}, named).toTensor().item<float>() << "\n";
}

void program(const Words& words) {
  torch::jit::script::Module module;
  std::unordered_map<std::string, std::string> files{{"config.json", ""}};
  try {
    module = torch::jit::load(words.at(0), torch::kCPU, files);
  } catch (const c10::Error& error) {
    std::cout << error.what() << "\n";
    return;
  }
  std::cout << files["config.json"] << "\n";
  module.to(torch::kCPU);
  module.eval();
  torch::NoGradGuard no_grad;
  const torch::Tensor y = module.forward({torch::ones({2, 3})}).toTensor();
  std::cout << y << "\n" << module({torch::zeros({1, 3})}).toTensor() << "\n";
  std::ifstream file(words.at(0), std::ios::binary);
  torch::jit::Module again = torch::jit::load(file);
  again.eval();
  std::cout << again.forward({torch::ones({2, 3})}).toTensor().equal(y) << "\n";
  const auto shared = std::make_shared<torch::jit::script::Module>(module);
  std::cout << shared->forward({torch::ones({2, 3})}).toTensor().allclose(y) << "\n";
  values(module);
  state(module);
  {
    torch::AutoGradMode with_gradients(true);
    gradients(module);
  }
  fails("a file that is not there", [] { torch::jit::load("/nowhere.pt"); });
  fails("a wrong type", [&] { module.forward({5}); });
  fails("a method that is not there", [&] { module.get_method("nothing"); });
  fails("too many arguments", [&] { module.forward({y, y, y}); });
}

}  // namespace modules
