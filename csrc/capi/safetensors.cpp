// The state of a module as a safetensors file: the size of a JSON header, the header, the bytes of
// the tensors. The format: https://github.com/huggingface/safetensors#format
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include "autograd/mode.h"
#include "capi/handles.h"
#include "capi/safetensors_header.h"
#include "core/mapped_file.h"
#include "ops_copying.h"

namespace weft::capi {
namespace {

std::string_view format_name(DType dtype) {
  const std::string_view name = info_of(dtype).safetensors;
  WEFT_CHECK_VALUE(!name.empty(), "weft_module_save_state: expected a dtype of safetensors, got ",
                   dtype);
  return name;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

size_t bytes_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.numel()) * tensor.item_size();
}

std::string header_of(const CompiledModule::NamedTensors& tensors) {
  std::string text = "{";
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const int64_t size : tensor.sizes()) shape += (shape.empty() ? "" : ",") + str(size);
    const size_t end = at + bytes_of(tensor);
    text += str(at || text.size() > 1 ? "," : "", quoted(name), ":{\"dtype\":\"",
                format_name(tensor.dtype()), "\",\"shape\":[", shape, "],\"data_offsets\":[", at,
                ",", end, "]}");
    at = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

class OutFile {
 public:
  explicit OutFile(const char* path) : path_(path), file_(std::fopen(path, "wb"), std::fclose) {
    WEFT_CHECK(file_, "weft_module_save_state: expected a file that can be written, got '", path,
               "'");
  }
  void write(const void* data, size_t bytes) {
    WEFT_CHECK(bytes == 0 || std::fwrite(data, 1, bytes, file_.get()) == bytes,
               "weft_module_save_state: expected room for '", path_, "', got none");
  }
  void close() {
    WEFT_CHECK(std::fclose(file_.release()) == 0, "weft_module_save_state: expected room for '",
               path_, "', got none");
  }

 private:
  const char* path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

CompiledModule::NamedTensors state_of(const weft_module& module) {
  CompiledModule::NamedTensors tensors = module.module->parameters();
  for (auto& buffer : module.module->buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

void save(const weft_module& module, const std::string& path) {
  CompiledModule::NamedTensors tensors = state_of(module);
  // Larger elements first: so all are aligned.
  std::ranges::stable_sort(tensors, std::ranges::greater{},
                           [](const auto& named) { return named.second.item_size(); });
  const std::string header = header_of(tensors);
  const uint64_t size = header.size();
  // The old file stays whole until the new one is.
  const std::string made = path + ".tmp";
  OutFile file(made.c_str());
  file.write(&size, sizeof(size));
  file.write(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    file.write(ops::contiguous(tensor).data(), bytes_of(tensor));
  }
  file.close();
  WEFT_CHECK(std::rename(made.c_str(), path.c_str()) == 0,
             "weft_module_save_state: expected a path that can be written, got '", path, "'");
}

// A safetensors file in memory.
class StateFile {
 public:
  explicit StateFile(const std::string& path) {
    const Ref<MappedFile> mapped = MappedFile::open(kLoad, path, MapMode::Private, -1);
    file_ = mapped->storage(kLoad, 0, static_cast<int64_t>(mapped->nbytes()));
    uint64_t header = 0;
    const char* start = static_cast<const char*>(file_->data());
    const size_t size = file_->nbytes();
    if (size >= sizeof(header)) std::memcpy(&header, start, sizeof(header));
    WEFT_CHECK_VALUE(size >= sizeof(header) && header <= size - sizeof(header), kLoad,
                     ": expected a safetensors file, got '", path, "'");
    for (StateEntry& entry : read_state_header({start + sizeof(header), header})) {
      const std::string name = entry.name;
      WEFT_CHECK_VALUE(entries_.emplace(name, std::move(entry)).second, kLoad,
                       ": expected each name once, got '", name, "' twice");
    }
    data_ = {start + sizeof(header) + header, size - sizeof(header) - header};
  }

  size_t size() const { return entries_.size(); }

  // The tensor of a name, as large as the one that it is for.
  Tensor read(const std::string& name, const Tensor& target) const {
    const auto found = entries_.find(name);
    WEFT_CHECK_AS(Key, found != entries_.end(), kLoad, ": expected a tensor '", name,
                  "', got none");
    const StateEntry& entry = found->second;
    WEFT_CHECK_VALUE(std::ranges::equal(entry.sizes, target.sizes()), kLoad, ": expected sizes ",
                     AsTuple(target.sizes()), " of '", name, "', got ", AsTuple(entry.sizes));
    Tensor made = Tensor::empty(entry.sizes, entry.dtype, {}, kLoad);
    WEFT_CHECK_VALUE(entry.begin <= entry.end && entry.end <= data_.size() &&
                         entry.end - entry.begin == bytes_of(made),
                     kLoad, ": expected ", bytes_of(made), " bytes of '", name, "' in the file");
    if (entry.end > entry.begin) {
      std::memcpy(made.data(), data_.data() + entry.begin, entry.end - entry.begin);
    }
    return made;
  }

 private:
  static constexpr const char* kLoad = "weft_module_load_state";
  Ref<Storage> file_;
  std::map<std::string, StateEntry> entries_;
  std::string_view data_;
};

// All tensors are read before the first is changed.
void load(const weft_module& module, const std::string& path) {
  const StateFile file(path);
  const CompiledModule::NamedTensors targets = state_of(module);
  std::vector<Tensor> values;
  for (const auto& [name, target] : targets) values.push_back(file.read(name, target));
  WEFT_CHECK_AS(Key, file.size() == targets.size(), "weft_module_load_state: expected ",
                targets.size(), " tensors, got ", file.size());
  for (size_t i = 0; i < values.size(); ++i) {
    Tensor target = targets[i].second;
    ops::copy_(target, values[i]);
  }
}

}  // namespace
}  // namespace weft::capi

weft_status weft_module_load_state(weft_module* module, const char* path) {
  return weft::capi::guarded([&] {
    const char* op = "weft_module_load_state";
    WEFT_CHECK_VALUE(path, op, ": expected a path, got NULL");
    const weft::autograd::NoGradGuard no_grad;
    weft::capi::load(weft::capi::handle(op, module), path);
  });
}

weft_status weft_module_save_state(const weft_module* module, const char* path) {
  return weft::capi::guarded([&] {
    const char* op = "weft_module_save_state";
    WEFT_CHECK_VALUE(path, op, ": expected a path, got NULL");
    const weft::autograd::NoGradGuard no_grad;
    weft::capi::save(weft::capi::handle(op, module), path);
  });
}
