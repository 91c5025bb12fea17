// torch::save and torch::load of modules, tensors and optimizers.
#pragma once

#include "optim.h"
#include "serialize_archive.h"

namespace torch::serialize {
inline namespace over_weft {

class OutputArchive {
 public:
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false) {
    node_->entries.insert(key, detail::Node::Entry{tensor, {}, !is_buffer, is_buffer});
  }
  void write(const std::string& key, const c10::IValue& value) {
    node_->entries.insert(key, detail::Node::Entry{value, {}, false, false});
  }
  void write(const std::string& key, OutputArchive& below) {
    node_->entries.insert(key, detail::Node::Entry{{}, below.node_, false, false});
  }
  void save_to(std::ostream& out) const { out << detail::Writer().archive_of(*node_); }
  // Calls writer(data, bytes), which says how many it took.
  void save_to(const std::function<size_t(const void*, size_t)>& writer) const {
    const std::string bytes = detail::Writer().archive_of(*node_);
    size_t place = 0;
    while (place < bytes.size()) {
      const size_t took = writer(bytes.data() + place, bytes.size() - place);
      TORCH_CHECK(took > 0, "save: expected a writer that takes ", bytes.size(), " bytes, got ",
                  place);
      place += took;
    }
  }
  void save_to(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    save_to(file);
    TORCH_CHECK(file.flush(), "save: expected a file that can be written, got '", path, "'");
  }

 private:
  std::shared_ptr<detail::Node> node_ = std::make_shared<detail::Node>();
};

class InputArchive {
 public:
  void load_from(const std::string& path, std::optional<at::Device> = std::nullopt) {
    std::ifstream file(path, std::ios::binary);
    TORCH_CHECK(file, "load: expected a file that opens, got '", path, "'");
    load_from(file);
  }
  void load_from(std::istream& in, std::optional<at::Device> = std::nullopt) {
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    node_ = detail::Reader(bytes).root();
  }
  void load_from(const char* data, size_t bytes, std::optional<at::Device> = std::nullopt) {
    node_ = detail::Reader({data, bytes}).root();
  }
  // Calls read(place, to, bytes), which says how many there were, for as many as size() says.
  void load_from(const std::function<size_t(uint64_t, void*, size_t)>& read,
                 const std::function<size_t()>& size, std::optional<at::Device> = std::nullopt) {
    std::string bytes(size(), '\0');
    size_t place = 0;
    while (place < bytes.size()) {
      const size_t got = read(place, &bytes[place], bytes.size() - place);
      TORCH_CHECK(got > 0, "load: expected ", bytes.size(), " bytes, got ", place);
      place += got;
    }
    node_ = detail::Reader(bytes).root();
  }
  std::vector<std::string> keys() const { return node_->entries.keys(); }
  bool try_read(const std::string& key, c10::IValue& value) {
    const auto* found = node_->entries.find(key);
    if (!found || found->child) return false;
    value = found->value;
    return true;
  }
  // A tensor that is there becomes that of the archive, under all of its handles.
  bool try_read(const std::string& key, Tensor& tensor, bool = false) {
    c10::IValue value;
    if (!try_read(key, value) || !value.isTensor()) return false;
    if (!tensor.defined()) return tensor = value.toTensor(), true;
    at::NoGradGuard no_grad;
    tensor.set_data(value.toTensor());
    return true;
  }
  bool try_read(const std::string& key, InputArchive& below) {
    const auto* found = node_->entries.find(key);
    if (!found || !found->child) return false;
    below.node_ = found->child;
    return true;
  }
  template <class Value>
  void read(const std::string& key, Value& value, bool = false) {
    TORCH_CHECK(try_read(key, value), "read: expected a value '", key,
                "' in the archive, got none");
  }

 private:
  std::shared_ptr<detail::Node> node_ = std::make_shared<detail::Node>();
};

}  // namespace over_weft
}  // namespace torch::serialize

namespace torch::nn {
inline namespace over_weft {

inline void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& each : named_parameters(false)) archive.write(each.key(), each.value());
  for (const auto& each : named_buffers(false)) archive.write(each.key(), each.value(), true);
  for (const auto& each : children_) {
    if (!each.value()->is_serializable()) continue;
    serialize::OutputArchive below;
    each.value()->save(below);
    archive.write(each.key(), below);
  }
}
inline void Module::load(serialize::InputArchive& archive) {
  for (auto& each : named_parameters(false)) archive.read(each.key(), each.value());
  for (auto& each : named_buffers(false)) archive.read(each.key(), each.value(), true);
  for (const auto& each : children_) {
    if (!each.value()->is_serializable()) continue;
    serialize::InputArchive below;
    archive.read(each.key(), below);
    each.value()->load(below);
  }
}

}  // namespace over_weft
}  // namespace torch::nn

namespace torch {
inline namespace over_weft {
namespace detail {

inline void put(serialize::OutputArchive& archive, const at::Tensor& tensor) {
  archive.write("0", tensor);
}
inline void put(serialize::OutputArchive& archive, const std::vector<at::Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
}
inline void put(serialize::OutputArchive& archive, const nn::Module& module) {
  module.save(archive);
}
template <class M>
void put(serialize::OutputArchive& archive, const std::shared_ptr<M>& module) {
  module->save(archive);
}
template <class M>
void put(serialize::OutputArchive& archive, const nn::ModuleHolder<M>& module) {
  module.ptr()->save(archive);
}
inline void take(serialize::InputArchive& archive, at::Tensor& tensor) {
  archive.read("0", tensor);
}
inline void take(serialize::InputArchive& archive, std::vector<at::Tensor>& tensors) {
  tensors.clear();
  at::Tensor each;
  while (archive.try_read(std::to_string(tensors.size()), each)) {
    tensors.push_back(each);
    each = at::Tensor();
  }
}
inline void take(serialize::InputArchive& archive, nn::Module& module) { module.load(archive); }
template <class M>
void take(serialize::InputArchive& archive, std::shared_ptr<M>& module) {
  module->load(archive);
}
template <class M>
void take(serialize::InputArchive& archive, nn::ModuleHolder<M>& module) {
  module->load(archive);
}
// Optimizers: states by numbers of parameters, and the groups that name these.
inline void expect_plain(const char* op, const optim::Optimizer& optimizer) {
  TORCH_CHECK_NOT_IMPLEMENTED(!dynamic_cast<const optim::LBFGS*>(&optimizer), op,
                              ": expected another optimizer than LBFGS");
}
inline void put(serialize::OutputArchive& archive, const optim::Optimizer& optimizer) {
  expect_plain("save", optimizer);
  serialize::OutputArchive states, groups;
  const auto number_of = [](const weft_tensor* parameter) {
    return std::to_string(reinterpret_cast<uintptr_t>(parameter));
  };
  for (const auto& [parameter, state] : optimizer.state()) {
    serialize::OutputArchive below;
    below.write("step", c10::IValue(state.step));
    for (const auto& each : state.tensors) below.write(each.key(), c10::IValue(each.value()));
    states.write(number_of(parameter), below);
  }
  const auto size = [](size_t count) {
    return at::full({}, static_cast<int64_t>(count), at::kLong);
  };
  groups.write("param_groups/size", size(optimizer.param_groups().size()));
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    const optim::OptimizerParamGroup& group = optimizer.param_groups()[i];
    serialize::OutputArchive below, options;
    below.write("params/size", size(group.params().size()));
    for (size_t j = 0; j < group.params().size(); ++j) {
      below.write("params/" + std::to_string(j), c10::IValue(number_of(group.params()[j].get())));
    }
    for (const auto& [name, field] :
         const_cast<optim::OptimizerOptions&>(group.options()).fields()) {
      const std::string key = name;
      std::visit([&](auto* value) { options.write(key, c10::IValue(*value)); }, field);
    }
    below.write("options", options);
    groups.write("param_groups/" + std::to_string(i), below);
  }
  archive.write("pytorch_version", c10::IValue("1.5.0"));
  archive.write("state", states);
  archive.write("param_groups", groups);
}
inline void take(serialize::InputArchive& archive, optim::Optimizer& optimizer) {
  expect_plain("load", optimizer);
  serialize::InputArchive states, groups;
  archive.read("state", states);
  archive.read("param_groups", groups);
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    optim::OptimizerParamGroup& group = optimizer.param_groups()[i];
    serialize::InputArchive below, options, saved;
    groups.read("param_groups/" + std::to_string(i), below);
    below.read("options", options);
    for (size_t j = 0; j < group.params().size(); ++j) {
      c10::IValue number;
      below.read("params/" + std::to_string(j), number);
      if (!states.try_read(number.toStringRef(), saved)) continue;
      optim::OptimizerParamState& state = optimizer.state_of(group.params()[j]);
      state = {};
      state.step = 1;  // of those that do not count, it only says that there was one
      for (const std::string& name : saved.keys()) {
        c10::IValue value;
        saved.read(name, value);
        if (value.isInt()) state.step = value.toInt();
        if (value.isTensor()) state.tensors.insert(name, value.toTensor());
      }
    }
    for (const auto& [name, field] : group.options().fields()) {
      c10::IValue value;
      options.read(name, value);
      std::visit([&](auto* to) { *to = value.to<std::decay_t<decltype(*to)>>(); }, field);
    }
  }
}

}  // namespace detail

// Writes a tensor, a list of them or a module to a path or a stream.
template <class Value, class Place>
void save(const Value& value, Place&& place) {
  serialize::OutputArchive archive;
  detail::put(archive, value);
  archive.save_to(std::forward<Place>(place));
}
inline void save(const std::vector<at::Tensor>& tensors, const std::string& path) {
  save<std::vector<at::Tensor>, const std::string&>(tensors, path);
}
// Reads what save, or libtorch's, has written; of a module, whose names have to be those. It lies
// at a path, in a stream, in memory (data, bytes), or is what functions read (read, size).
template <class Value, class... Place>
void load(Value& value, Place&&... place) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<Place>(place)...);
  detail::take(archive, value);
}

// One value as torch.save of Python writes it, and back.
inline std::vector<char> pickle_save(const c10::IValue& value) {
  const std::string bytes = serialize::detail::Writer().archive_of(value);
  return {bytes.begin(), bytes.end()};
}
inline c10::IValue pickle_load(const std::vector<char>& bytes) {
  return serialize::detail::Reader({bytes.data(), bytes.size()}).value();
}

}  // namespace over_weft

namespace jit {
using torch::pickle_load;
using torch::pickle_save;
}  // namespace jit
}  // namespace torch
