// CompiledModule: a file that weft.jit.aot_compile wrote, ready to run without Python.
//
// The file is an archive of two programs, one for calls that may record gradients and one for those
// that cannot (a file of functions may have one for both), and of the tensors that both have as
// constants. The state is what the program's function __state__ makes; see weft/jit/aot. Version 2
// has the schemas of operators that the host registers, too.
//
// Any number of threads may call one module at a time. Changing its state meanwhile (training) is
// the caller's to order, as with any tensor.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/program.h"
#include "runtime/zip_reader.h"

namespace weft {

class CompiledModule final : public RefCounted {
 public:
  // The tensors lie over the bytes of the file where these may be written to. RuntimeError or
  // ValueError for what is no such file, or damaged.
  static Ref<CompiledModule> read(Ref<Storage> file);
  // Maps the file; its pages are read when they are used.
  static Ref<CompiledModule> load(const std::string& path);

  std::vector<std::string> methods() const;
  bool has(std::string_view method) const { return inference_->find(method) != nullptr; }
  // Runs a method: `args` behind self, the last ones may be left out where they have defaults.
  Value call(const std::string& method, std::vector<Value> args) const;
  // The type of a method's argument number `index` behind self, and of its result.
  const Function& signature(const std::string& method) const;
  bool has_state() const noexcept { return !state_.is_none(); }
  const Value& state() const noexcept { return state_; }
  // Attributes that are constants of their classes, by their paths; they are no part of the state.
  using NamedValues = std::vector<std::pair<std::string, Value>>;
  NamedValues constants() const { return named_values("__constants__"); }
  // Records of the file, by name; valid as long as the module.
  bool has_record(std::string_view name) const { return archive_.has(name); }
  ZipReader::Bytes record(std::string_view name) const { return archive_.record(name); }

  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
  NamedTensors parameters() const { return named_tensors("__parameters__"); }
  NamedTensors buffers() const { return named_tensors("__buffers__"); }
  void train(bool mode) const;

  // What layers keep packed of the storages now, and the record that tells of which; the records of
  // a file that then packs nothing (weft/jit/aot/packed.py).
  std::pair<std::string, std::vector<Tensor>> packed_weights() const;

 private:
  explicit CompiledModule(Ref<Storage> file);
  void read_tensors();
  void read_packed_weights();
  Ref<Storage> read_storage(size_t index, uint64_t nbytes) const;
  std::vector<std::shared_ptr<External>> read_operators(std::string_view record) const;
  Ref<Program> read_program(std::string_view record, const Program* classes) const;
  const Program& program_for(const std::vector<Value>& args) const;
  Value run(const Program& program, const std::string& method, std::vector<Value> values) const;
  NamedValues named_values(const char* function) const;
  NamedTensors named_tensors(const char* function) const;

  Ref<Storage> file_;
  ZipReader archive_;
  std::vector<Ref<Storage>> storages_;
  std::vector<Tensor> tensors_;
  Ref<Program> inference_;
  mutable std::mutex mutex_;
  mutable Ref<Program> gradients_;  // read when first needed; never changed afterwards
  Value state_;
};

}  // namespace weft
