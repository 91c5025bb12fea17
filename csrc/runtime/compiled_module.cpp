#include "runtime/compiled_module.h"

#include <algorithm>
#include <cstring>

#include "autograd/mode.h"
#include "autograd/node.h"
#include "core/mapped_file.h"
#include "runtime/argument.h"
#include "runtime/byte_reader.h"
#include "runtime/custom_operator.h"
#include "runtime/gradient_search.h"
#include "runtime/interpreter.h"
#include "runtime/list.h"
#include "runtime/machine_code.h"
#include "runtime/tuple.h"

namespace weft {
namespace {

constexpr std::string_view kVersions[] = {"1", "2", "3"};  // with operators of the host, contexts
constexpr int64_t kMostDims = 64;
#if defined(__x86_64__)
constexpr std::string_view kMachineCode = "weft/x86-64";
#else
constexpr std::string_view kMachineCode = "weft/aarch64";
#endif

ZipReader::Bytes bytes_of(const Storage& storage) {
  return {static_cast<const std::byte*>(storage.data()), storage.nbytes()};
}

void release_file(void* file) { Ref<Storage>::adopt(static_cast<Storage*>(file)); }

DType read_dtype(ByteReader& in) {
  const std::string_view name = in.text();
  for (int i = 0; i < kDTypeCount; ++i) {
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  fail(ErrorKind::Value, str("load: expected a known dtype, got '", name, "'"));
}

// Elements from the first to one past the last that a layout reaches; -1 for more than an int64.
int64_t reach_of(const Layout& layout) {
  int64_t last = layout.offset;
  if (layout.numel() == 0) return last;
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    int64_t span = 0;
    if (__builtin_mul_overflow(layout.sizes[i] - 1, layout.strides[i], &span) ||
        __builtin_add_overflow(last, span, &last)) {
      return -1;
    }
  }
  return last == INT64_MAX ? -1 : last + 1;
}

Layout read_layout(ByteReader& in, uint32_t dims) {
  Layout layout;
  layout.offset = in.i64();
  for (uint32_t i = 0; i < dims; ++i) layout.sizes.push_back(in.i64());
  for (uint32_t i = 0; i < dims; ++i) layout.strides.push_back(in.i64());
  checked_numel("load", layout.sizes);
  for (const int64_t stride : layout.strides) in.check(stride >= 0, "a stride", stride);
  in.check(layout.offset >= 0, "an offset", layout.offset);
  return layout;
}

Tensor read_tensor(ByteReader& in, const std::vector<Ref<Storage>>& storages) {
  const DType dtype = read_dtype(in);
  const Ref<Storage>& storage = storages[in.index("a storage", storages.size())];
  const uint8_t requires_grad = in.u8();
  const uint32_t dims = in.u32();
  in.check(dims <= kMostDims, "at most 64 dims", dims);
  Layout layout = read_layout(in, dims);
  const int64_t reach = reach_of(layout);
  in.check(reach >= 0 && static_cast<uint64_t>(reach) <= storage->nbytes() / item_size(dtype),
           "a tensor inside its storage", static_cast<uint64_t>(reach));
  Tensor tensor(storage, std::move(layout), dtype);
  if (requires_grad) autograd::set_requires_grad(tensor, true);
  return tensor;
}

// Whether a function ends after as many steps as it has instructions, each of which is quick.
bool is_straight(const Function& function) {
  return std::ranges::all_of(function.code, [](const Instruction& each) {
    const OpcodeInfo& info = opcode_info(each.op);
    if (info.x == WideKind::Jump || info.x == WideKind::LiteralJump) return false;
    const bool calls = info.extra == ExtraKind::Operator || info.extra == ExtraKind::Function ||
                       info.extra == ExtraKind::Name || info.extra == ExtraKind::External ||
                       info.extra == ExtraKind::Group || each.op == Opcode::wait;
    return !calls && each.op != Opcode::print;
  });
}

// What a damaged function raises, of whatever kind, is an error of the file.
Value made_state(const Function& state) {
  try {
    return run_function(state, nullptr, 0);
  } catch (const ProgramError& error) {
    fail(ErrorKind::Runtime, str("load: expected objects that the file makes, got ", error.name(),
                                 ": ", error.message()));
  }
}

}  // namespace

Ref<CompiledModule> CompiledModule::load(const std::string& path) {
  const Ref<MappedFile> mapped = MappedFile::open("load", path, MapMode::Private, -1);
  return read(mapped->storage("load", 0, static_cast<int64_t>(mapped->nbytes())));
}

Ref<CompiledModule> CompiledModule::read(Ref<Storage> file) {
  Ref<CompiledModule> module(new CompiledModule(std::move(file)));
  module->read_tensors();
  module->read_packed_weights();
  module->inference_ = module->read_program("weft/inference", nullptr);
  if (module->archive_.has(kMachineCode)) {
    machine_code::add(module->archive_.record(kMachineCode));
  }
  // Loading and listing run these. They put values together, nothing else.
  for (const std::string_view name :
       {"__state__", "__constants__", "__parameters__", "__buffers__", "__train__"}) {
    const Function* function = module->inference_->find(name);
    WEFT_CHECK(!function || is_straight(*function), "load: expected ", name,
               " without loops and calls, got some");
  }
  if (const Function* state = module->inference_->find("__state__")) {
    WEFT_CHECK(state->params.empty(), "load: expected a state without arguments");
    module->state_ = made_state(*state);
  }
  return module;
}

CompiledModule::CompiledModule(Ref<Storage> file)
    : file_(std::move(file)), archive_(bytes_of(*file_)) {
  WEFT_CHECK(
      archive_.has("weft/version"),
      "load: expected a compiled file, got an archive without a program; `weft compile` makes "
      "one of it");
  const ZipReader::Bytes version = archive_.record("weft/version");
  const std::string_view text(reinterpret_cast<const char*>(version.data()), version.size());
  WEFT_CHECK(std::ranges::find(kVersions, text) != std::end(kVersions),
             "load: expected a compiled file of version 1 to 3, got '", text.substr(0, 20),
             "'; compile it with this version of weft");
}

void CompiledModule::read_tensors() {
  ByteReader in(archive_.record("weft/tensors"));
  const uint32_t count = in.count("a count of storages", 8);
  for (uint32_t i = 0; i < count; ++i) storages_.push_back(read_storage(i, in.read<uint64_t>()));
  const uint32_t tensors = in.count("a count of tensors", 21);
  for (uint32_t i = 0; i < tensors; ++i) tensors_.push_back(read_tensor(in, storages_));
  in.check(in.at_end(), "the end of the tensors", in.at());
}

// Over the file, of which this is the only storage that writes these bytes: layers keep weights
// packed. A copy where the file may not be written to, or lies badly.
Ref<Storage> CompiledModule::read_storage(size_t index, uint64_t nbytes) const {
  const ZipReader::Bytes bytes = archive_.record(str("data/", index));
  WEFT_CHECK(bytes.size() == nbytes, "load: expected a storage of ", nbytes, " bytes, got ",
             bytes.size());
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(std::max_align_t) == 0;
  if (!aligned || file_->has(kReadOnly)) {
    Ref<Storage> copy = Storage::allocate(bytes.size());
    if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
    return copy;
  }
  return Storage::wrap(const_cast<std::byte*>(bytes.data()), bytes.size(), release_file,
                       Ref<Storage>(file_).detach(), 0);
}

// The operators of the host that a program calls, by their schemas; none without the record.
std::vector<std::shared_ptr<External>> CompiledModule::read_operators(
    std::string_view record) const {
  if (!archive_.has(record)) return {};
  ByteReader in(archive_.record(record));
  std::vector<std::shared_ptr<External>> operators;
  const uint32_t count = in.count("a count of operators", 4);
  for (uint32_t i = 0; i < count; ++i) {
    operators.push_back(std::make_shared<NamedOperator>(std::string(in.text())));
  }
  in.check(in.at_end(), "the end of the operators", in.at());
  return operators;
}

Ref<Program> CompiledModule::read_program(std::string_view record, const Program* classes) const {
  const ZipReader::Bytes bytes = archive_.record(record);
  ByteReader in(bytes);
  ProgramInputs inputs;
  const uint32_t count = in.count("a count of constants", 4);
  for (uint32_t i = 0; i < count; ++i) {
    inputs.constants.emplace_back(tensors_[in.index("a tensor", tensors_.size())]);
  }
  inputs.externals = read_operators(str(record, ".operators"));
  if (classes) {
    for (const Ref<ProgramClass>& each : classes->classes) inputs.classes[each->name] = each;
  }
  return Program::read(bytes.subspan(in.at()), std::move(inputs));
}

std::vector<std::string> CompiledModule::methods() const {
  std::vector<std::string> names;
  for (const auto& function : inference_->functions) {
    const std::string& name = function->name;
    const bool is_own = name.starts_with("__") || name.find('.') != name.npos;
    if (!is_own) names.push_back(name);
  }
  return names;
}

const Function& CompiledModule::signature(const std::string& method) const {
  const Function* function = inference_->find(method);
  WEFT_CHECK_AS(Key, function, "call: expected a method of the module, got '", method, "'");
  return *function;
}

const Program& CompiledModule::program_for(const std::vector<Value>& args) const {
  if (!autograd::grad_enabled()) return *inference_;
  GradientSearch search;
  bool records = search.in_value(state_);
  for (const Value& arg : args) records = records || search.in_value(arg);
  if (!records) return *inference_;
  const std::lock_guard lock(mutex_);
  if (!gradients_) {
    constexpr std::string_view kRecord = "weft/gradients";
    gradients_ = archive_.has(kRecord) ? read_program(kRecord, inference_.get()) : inference_;
  }
  return *gradients_;
}

Value CompiledModule::call(const std::string& method, std::vector<Value> args) const {
  const size_t first = has_state() ? 1 : 0;  // behind self
  std::vector<Value> values = bind_arguments(signature(method), method, first, std::move(args));
  return run(program_for(values), method, std::move(values));
}

// The values are all arguments behind self.
Value CompiledModule::run(const Program& program, const std::string& method,
                          std::vector<Value> values) const {
  if (has_state()) values.insert(values.begin(), state_);
  const Function* function = program.find(method);
  const bool fits = function && function->params.size() == values.size() &&
                    (!has_state() || matches(*function->params[0].type, state_));
  WEFT_CHECK_AS(Key, fits, "call: expected a method of the module, got '", method, "'");
  return run_function(*function, values.data(), values.size());
}

// Pairs of a name and a value, in a list or a tuple.
CompiledModule::NamedValues CompiledModule::named_values(const char* function) const {
  NamedValues named;
  if (!has_state() || !inference_->find(function)) return named;
  const Value listed = run(*inference_, function, {});
  const bool is_tuple = listed.tag() == ValueTag::Tuple;
  WEFT_CHECK(is_tuple || is_list(listed.tag()), "load: expected a list of ", function);
  const auto count = is_tuple ? static_cast<int64_t>(tuple_items(listed).size()) : list_len(listed);
  for (int64_t i = 0; i < count; ++i) {
    const Value pair = is_tuple ? tuple_items(listed)[static_cast<size_t>(i)] : list_get(listed, i);
    const bool fits = pair.tag() == ValueTag::Tuple && tuple_items(pair).size() == 2 &&
                      tuple_items(pair)[0].tag() == ValueTag::String;
    WEFT_CHECK(fits, "load: expected names and values in ", function);
    named.emplace_back(tuple_items(pair)[0].text(), tuple_items(pair)[1]);
  }
  return named;
}

CompiledModule::NamedTensors CompiledModule::named_tensors(const char* function) const {
  NamedTensors named;
  for (const auto& [name, value] : named_values(function)) {
    WEFT_CHECK(value.tag() == ValueTag::Tensor, "load: expected names and tensors in ", function);
    named.emplace_back(name, value.to_tensor());
  }
  return named;
}

void CompiledModule::train(bool mode) const {
  if (has_state()) run(*inference_, "__train__", {Value(mode)});
}

}  // namespace weft
