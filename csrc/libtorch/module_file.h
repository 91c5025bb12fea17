// Files of modules: torch::jit::load, and Module::save, which writes the file with the state of
// now.
#pragma once

#include "module.h"
#include "zip.h"

namespace caffe2::serialize {
inline namespace over_weft {

// Bytes that a host reads from where it likes.
struct ReadAdapterInterface {
  virtual ~ReadAdapterInterface() = default;
  virtual size_t size() const = 0;
  virtual size_t read(uint64_t place, void* to, size_t bytes, const char* what = "") const = 0;
};

}  // namespace over_weft
}  // namespace caffe2::serialize
namespace torch::serialize {
using caffe2::serialize::ReadAdapterInterface;
}

namespace torch::jit {
inline namespace over_weft {
namespace detail {

inline std::string bytes_of(const caffe2::serialize::ReadAdapterInterface& adapter) {
  std::string bytes(adapter.size(), '\0');
  size_t place = 0;
  while (place < bytes.size()) {
    const size_t got = adapter.read(place, &bytes[place], bytes.size() - place, "module");
    TORCH_CHECK(got > 0, "load: expected ", bytes.size(), " bytes, got ", place);
    place += got;
  }
  return bytes;
}
inline std::string bytes_of(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Where a module came from: a file, or bytes. Of these it keeps all but the tensors' records, which
// the module has.
struct Origin {
  std::string path, rest;
  std::vector<std::pair<size_t, std::string>> left_out;  // places in the rest, names of records

  static Origin of_bytes(std::string_view bytes) {
    Origin origin;
    size_t from = 0;
    for (const auto& [name, record] : serialize::detail::records_of(bytes)) {
      if (name.rfind("data/", 0) != 0) continue;
      origin.left_out.emplace_back(static_cast<size_t>(record.data() - bytes.data()), name);
    }
    std::sort(origin.left_out.begin(), origin.left_out.end());
    for (auto& [place, name] : origin.left_out) {
      origin.rest.append(bytes.substr(from, place - from));
      from = place + serialize::detail::records_of(bytes).at(name).size();
      place = origin.rest.size();
    }
    origin.rest.append(bytes.substr(from));
    return origin;
  }
  std::string bytes(weft_module* module) const {
    if (!path.empty()) {
      std::ifstream file(path, std::ios::binary);
      TORCH_CHECK(file, "Module::save: expected the file that the module was loaded from, '", path,
                  "', which is not there");
      return bytes_of(file);
    }
    std::string made;
    size_t from = 0;
    for (const auto& [place, name] : left_out) {
      made.append(rest, from, place - from);
      from = place;
      const void* data = nullptr;
      size_t size = 0;
      c10::detail::check(weft_module_record(module, name.c_str(), &data, &size));
      made.append(static_cast<const char*>(data), size);
    }
    return made.append(rest, from, std::string::npos);
  }
};

inline Module loaded(weft_module* made, Origin origin, std::optional<at::Device> device,
                     ExtraFilesMap* extra) {
  std::shared_ptr<weft_module> file(made, weft_module_release);
  Module module(file, "", std::make_shared<const Origin>(std::move(origin)));
  if (device) module.to(*device);
  for (auto& [name, text] : extra ? *extra : ExtraFilesMap()) {
    const void* data = nullptr;
    size_t bytes = 0;
    if (weft_module_record(made, ("extra/" + name).c_str(), &data, &bytes) != WEFT_OK) continue;
    (*extra)[name].assign(static_cast<const char*>(data), bytes);
  }
  return module;
}
inline Module loaded(const std::string& bytes, std::optional<at::Device> device,
                     ExtraFilesMap* extra) {
  weft_module* made = nullptr;
  c10::detail::check(weft_module_load_memory(bytes.data(), bytes.size(), &made));
  return loaded(made, Origin::of_bytes(bytes), device, extra);
}

// Calls function(tensor, the same one of the other module) for parameters and buffers.
template <class Function>
void with_states(const Module& module, const Module& other, Function&& function) {
  const auto walk = [&](const std::vector<NameTensor>& from, const std::vector<NameTensor>& to) {
    for (size_t i = 0; i < from.size(); ++i) function(from[i], to.at(i).value);
  };
  walk(module.named_parameters(), other.named_parameters());
  walk(module.named_buffers(), other.named_buffers());
}

// Writes a tensor's elements over those that the file has. `loaded` is the file's own.
inline void overwrite(std::string& file, weft_module* module, const NameTensor& named,
                      const at::Tensor& loaded) {
  const at::Tensor now = named.value.detach();
  TORCH_CHECK_NOT_IMPLEMENTED(now.scalar_type() == loaded.scalar_type() &&
                                  now.sizes() == loaded.sizes() && loaded.is_contiguous(),
                              "Module::save: expected '", named.name, "' as the file has it, of ",
                              loaded.scalar_type(), " and sizes ", loaded.sizes(), ", got ",
                              now.scalar_type(), " and ", now.sizes());
  const at::Tensor whole = now.contiguous();
  const char* const place = static_cast<const char*>(loaded.data_ptr());
  if (loaded.nbytes() == 0 || std::memcmp(whole.data_ptr(), place, loaded.nbytes()) == 0) return;
  const void* packed = nullptr;
  size_t size = 0;
  TORCH_CHECK_NOT_IMPLEMENTED(
      weft_module_record(module, "weft/packed", &packed, &size) != WEFT_OK,
      "Module::save: expected a file without packed weights for a state that has changed");
  for (size_t i = 0;; ++i) {
    const std::string name = "data/" + std::to_string(i);
    const void* data = nullptr;
    c10::detail::check(weft_module_record(module, name.c_str(), &data, &size));
    const char* const first = static_cast<const char*>(data);
    if (std::less<>()(place, first) || !std::less<>()(place, first + size)) continue;
    serialize::detail::overwrite(file, name, static_cast<size_t>(place - first),
                                 {static_cast<const char*>(whole.data_ptr()), whole.nbytes()});
    return;
  }
}

}  // namespace detail

// ---- loading ----

// Loads a file that `weft compile` made; one whose name ends in .pt is PyTorch's archive, too.
// Throws c10::Error for others. `extra_files`: names of files of the archive, whose contents are
// put in.
inline Module load(const std::string& path, std::optional<at::Device> device,
                   ExtraFilesMap& extra_files, bool = true, bool = false) {
  weft_module* made = nullptr;
  c10::detail::check(weft_module_load(path.c_str(), &made));
  return detail::loaded(made, {path, "", {}}, device, &extra_files);
}
inline Module load(const std::string& path, std::optional<at::Device> device = std::nullopt,
                   bool = true) {
  ExtraFilesMap none;
  return load(path, device, none);
}
inline Module load(std::istream& in, std::optional<at::Device> device, ExtraFilesMap& extra_files,
                   bool = true, bool = false) {
  return detail::loaded(detail::bytes_of(in), device, &extra_files);
}
inline Module load(std::istream& in, std::optional<at::Device> device = std::nullopt, bool = true) {
  return detail::loaded(detail::bytes_of(in), device, nullptr);
}
inline Module load(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> adapter,
                   std::optional<at::Device> device = std::nullopt, bool = true) {
  return detail::loaded(detail::bytes_of(*adapter), device, nullptr);
}
inline Module load(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> adapter,
                   std::optional<at::Device> device, ExtraFilesMap& extra_files, bool = true,
                   bool = false) {
  return detail::loaded(detail::bytes_of(*adapter), device, &extra_files);
}

// Files of the interpreter for phones are the same files here.
namespace mobile {
using over_weft::Method;
using over_weft::Module;
}  // namespace mobile
template <class Source>
Module _load_for_mobile(const Source& source, std::optional<at::Device> device = std::nullopt) {
  return load(source, device);
}
template <class Source>
Module _load_for_mobile(const Source& source, std::optional<at::Device> device,
                        ExtraFilesMap& extra_files) {
  return load(source, device, extra_files);
}
inline Module _load_for_mobile(std::unique_ptr<caffe2::serialize::ReadAdapterInterface> adapter,
                               std::optional<at::Device> device = std::nullopt) {
  return load(std::shared_ptr<caffe2::serialize::ReadAdapterInterface>(std::move(adapter)), device);
}
inline void _load_extra_only_for_mobile(const std::string& path, std::optional<at::Device> device,
                                        ExtraFilesMap& extra_files) {
  load(path, device, extra_files);
}
inline std::map<std::string, at::Tensor> _load_parameters(
    const std::string& path, std::optional<at::Device> device = std::nullopt) {
  std::map<std::string, at::Tensor> found;
  for (const NameTensor& each : load(path, device).named_parameters()) {
    found[each.name] = each.value;
  }
  return found;
}

// ---- saving ----

inline Module Module::deepcopy() const {
  TORCH_CHECK_NOT_IMPLEMENTED(path_.empty() && origin_,
                              "Module::deepcopy: expected a module that "
                              "torch::jit::load gave, got one below it");
  const Module made = detail::loaded(origin_->bytes(expect()), std::nullopt, nullptr);
  detail::with_states(*this, made, [](const NameTensor& from, const at::Tensor& to) {
    const at::Tensor copied = from.value.detach().clone();
    c10::detail::check(weft_tensor_set_data(to.get(), copied.get()));
  });
  made.train(is_training());
  return made;
}
inline void Module::save(std::ostream& out, const ExtraFilesMap& extra) const {
  TORCH_CHECK_NOT_IMPLEMENTED(path_.empty() && origin_,
                              "Module::save: expected a module that "
                              "torch::jit::load gave, got one below it");
  TORCH_CHECK_NOT_IMPLEMENTED(extra.empty(), "Module::save: expected no extra files, got '",
                              extra.begin()->first, "'");
  std::string file = origin_->bytes(expect());
  const Module before = detail::loaded(file, std::nullopt, nullptr);
  TORCH_CHECK_NOT_IMPLEMENTED(is_training() == before.is_training(),
                              "Module::save: expected the mode that the file has, which is ",
                              before.is_training() ? "training" : "evaluation");
  detail::with_states(*this, before, [&](const NameTensor& now, const at::Tensor& loaded) {
    detail::overwrite(file, before.get(), now, loaded);
  });
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  TORCH_CHECK(out.flush(), "Module::save: expected a stream that takes ", file.size(), " bytes");
}
inline void Module::save(const std::string& path, const ExtraFilesMap& extra) const {
  std::ostringstream made;
  save(made, extra);
  std::ofstream file(path, std::ios::binary);
  file << made.str();
  TORCH_CHECK(file.flush(), "Module::save: expected a file that can be written, got '", path, "'");
}

// ---- settings ----

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
inline bool& tensor_expr_fuser() {
  static bool enabled = true;
  return enabled;
}
inline bool setTensorExprFuserEnabled(bool enabled) {
  return std::exchange(tensor_expr_fuser(), enabled);
}
inline bool tensorExprFuserEnabled() { return tensor_expr_fuser(); }
struct GraphOptimizerEnabledGuard {
  explicit GraphOptimizerEnabledGuard(bool) {}
};
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

}  // namespace over_weft
}  // namespace torch::jit
