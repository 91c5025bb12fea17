// Operators that weft composes in Python, compiled when the library was built: functions of a file
// beside it, by their names, with the lines of their schemas (tools/compose.py).
#include <link.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

#include "capi/operator_handle.h"
#include "core/fork.h"

namespace weft::capi {
namespace {

constexpr char kSchemas[] = "extra/schemas";

// Whether an object that is loaded has this code in it; then its path is put out. (dladdr would
// search all symbols of the library, for milliseconds.)
int find_path(dl_phdr_info* object, size_t, void* out) {
  const auto place = reinterpret_cast<uintptr_t>(&find_path) - object->dlpi_addr;
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || place - part.p_vaddr >= part.p_memsz) continue;
    *static_cast<std::string*>(out) = *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
    return 1;
  }
  return 0;
}

// Beside the library, or the program that it is linked into.
std::filesystem::path path_of_file() {
  std::string path;
  dl_iterate_phdr(find_path, &path);
  std::error_code ignored;
  std::filesystem::path followed = std::filesystem::canonical(path, ignored);
  return followed.empty() ? followed : followed.replace_filename("composed.weft");
}

// The lengths that a schema gives to lists, argument by argument: 2 of "int[2] stride=1", 0 of
// others.
std::vector<size_t> list_sizes(std::string_view schema) {
  std::vector<size_t> sizes;
  const size_t open = schema.find('('), end = schema.rfind(") -> ");
  int depth = 0;
  bool starts = true, in_type = false;
  for (size_t i = open + 1; i < end; ++i) {
    const char c = schema[i];
    if (starts && c != ' ' && c != '*' && c != ',') {
      sizes.push_back(0);
      starts = false;
      in_type = true;
    }
    if (c == '[' && in_type) std::from_chars(&schema[i] + 1, &schema[end], sizes.back());
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (depth == 0 && c == ' ') in_type = false;
    if (depth == 0 && c == ',') starts = true;
  }
  return sizes;
}

const Type& without_none(const Type& type) {
  const bool is_optional = type.kind == TypeKind::Optional && !type.children.empty();
  return is_optional ? *type.children[0] : type;
}

class ComposedOperator final : public weft_operator {
 public:
  ComposedOperator(std::string_view schema, const CompiledModule& module)
      : schema_(schema),
        kind_(schema.substr(0, schema.find('('))),
        sizes_(list_sizes(schema)),
        module_(module) {
    WEFT_CHECK(sizes_.size() == module.signature(kind_).params.size(),
               "load: expected a function of the schema ", schema_, ", got one of other arguments");
  }
  const char* schema() const override { return schema_.c_str(); }
  const std::string& kind() const { return kind_; }

  Value call(const weft_value* const* args, size_t count) const override {
    const Function& function = module_.signature(kind_);
    WEFT_CHECK_TYPE(count <= sizes_.size(), kind_, ": expected at most ", sizes_.size(),
                    " arguments, got ", count);
    std::vector<Value> values;
    values.reserve(sizes_.size());
    for (size_t i = 0; i < sizes_.size(); ++i) {
      values.push_back(bound(function.params[i], sizes_[i], i < count ? args[i] : nullptr));
    }
    return module_.call(kind_, std::move(values));
  }

 private:
  Value bound(const Param& param, size_t size, const weft_value* given) const {
    if (!given) {
      WEFT_CHECK_TYPE(param.default_value, kind_, ": expected a value for argument '", *param.name,
                      "', got none");
      return *param.default_value;
    }
    const Type& type = without_none(*param.type);
    const bool is_list = type.kind == TypeKind::List;
    return is_list ? as_list(type.children[0]->list_tag(), size, given->value) : given->value;
  }

  std::string schema_, kind_;
  std::vector<size_t> sizes_;
  const CompiledModule& module_;
};

struct ComposedFile {
  Ref<CompiledModule> module;
  std::vector<std::unique_ptr<ComposedOperator>> operators;  // in the order of their kinds
};

const std::string& kind_of(const std::unique_ptr<ComposedOperator>& op) { return op->kind(); }

ComposedFile read(const std::filesystem::path& path) {
  ComposedFile file{CompiledModule::load(path.string()), {}};
  const ZipReader::Bytes bytes = file.module->record(kSchemas);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    file.operators.push_back(std::make_unique<ComposedOperator>(rest.substr(0, end), *file.module));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::ranges::sort(file.operators, {}, kind_of);
  return file;
}

// Before the locks of programs, which reading one takes.
GlobalMutex composed_mutex(ForkRank::Compiler);

// Null: there is none.
const ComposedFile* composed() {
  static const ComposedFile* known = nullptr;
  const std::lock_guard lock(composed_mutex);
  static const std::filesystem::path path = path_of_file();
  if (!known && std::filesystem::exists(path)) known = new ComposedFile(read(path));
  return known;
}

}  // namespace

bool has_composed_operators() { return composed() != nullptr; }

const weft_operator* find_composed_operator(std::string_view kind) {
  const ComposedFile* file = composed();
  if (!file) return nullptr;
  const auto found = std::ranges::lower_bound(file->operators, kind, {}, kind_of);
  return found != file->operators.end() && (*found)->kind() == kind ? found->get() : nullptr;
}

const weft_operator* composed_operator_at(size_t index) {
  const ComposedFile* file = composed();
  return file && index < file->operators.size() ? file->operators[index].get() : nullptr;
}

}  // namespace weft::capi
