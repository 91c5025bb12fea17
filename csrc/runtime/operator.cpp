#include "runtime/operator.h"

#include <map>
#include <string>

#include "core/error.h"
#include "core/fork.h"
#include "runtime/builtins.h"

namespace weft {
namespace {

using Tag = ValueTag;

template <class... Tags>
constexpr uint32_t bits(Tags... tags) {
  return ((uint32_t{1} << static_cast<uint32_t>(tags)) | ...);
}
constexpr uint32_t kAnything = ~uint32_t{0};
constexpr uint32_t kAnyList = bits(Tag::IntList, Tag::DoubleList, Tag::BoolList, Tag::TensorList,
                                   Tag::OptionalTensorList, Tag::List);
constexpr uint32_t kNumber = bits(Tag::Bool, Tag::Int, Tag::Double, Tag::Complex);

struct Row {
  std::string_view type;
  uint32_t single, list;
};
constexpr Row kRows[] = {
    {"Tensor", bits(Tag::Tensor), bits(Tag::TensorSpan, Tag::TensorList)},
    {"Tensor?", bits(Tag::Tensor, Tag::None),
     bits(Tag::TensorSpan, Tag::TensorList, Tag::OptionalTensorList)},
    {"int", bits(Tag::Int, Tag::Bool), bits(Tag::IntSpan, Tag::IntList)},
    {"float", bits(Tag::Int, Tag::Bool, Tag::Double), bits(Tag::DoubleSpan, Tag::DoubleList)},
    {"bool", bits(Tag::Int, Tag::Bool), bits(Tag::BoolList)},
    {"complex", kNumber, bits(Tag::List)},
    {"Scalar", kNumber | bits(Tag::Tensor), kAnyList},
    {"number", kNumber | bits(Tag::Tensor), kAnyList},
    {"str", bits(Tag::String), bits(Tag::List)},
    {"Device", bits(Tag::Device), bits(Tag::List)},
    {"ScalarType", bits(Tag::DType, Tag::Int), bits(Tag::List)},
    {"dtype", bits(Tag::DType, Tag::Int), bits(Tag::List)},
    {"Layout", bits(Tag::Int), bits(Tag::List)},
    {"MemoryFormat", bits(Tag::Int), bits(Tag::List)},
    {"Generator", bits(Tag::Generator), bits(Tag::List)},
    {"NoneType", bits(Tag::None), bits(Tag::List)},
    {"Dict", bits(Tag::Dict), bits(Tag::List)},
    {"Future", bits(Tag::Future), bits(Tag::List)},
    {"AnyEnumType", bits(Tag::Enum), bits(Tag::List)},
    {"AnyClassType", bits(Tag::Object), bits(Tag::List)},
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t skip_parentheses(std::string_view text, size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at + 1;
  }
  return at;
}

// Whether the record is the one of a kind such as "aten::add.Tensor". The table's names are plain,
// those of builtins have their namespace.
bool is_kind(const OpRecord& record, std::string_view kind) {
  const std::string_view name = record.name, overload = record.overload;
  if (name.find("::") == name.npos) {
    if (!kind.starts_with("aten::")) return false;
    kind.remove_prefix(6);
  }
  if (!kind.starts_with(name)) return false;
  kind.remove_prefix(name.size());
  if (overload.empty()) return kind.empty();
  return kind.starts_with('.') && kind.substr(1) == overload;
}

const OpRecord* find_record(std::string_view kind) {
  for (std::span<const OpRecord> records : {op_records(), builtin_records()}) {
    for (const OpRecord& record : records) {
      if (is_kind(record, kind)) return &record;
    }
  }
  return nullptr;
}

}  // namespace

uint32_t tags_of_type(std::string_view type) {
  if (type.starts_with('(')) return type.ends_with("[]") ? bits(Tag::List) : bits(Tag::Tuple);
  size_t at = 0;
  while (at < type.size() && is_word(type[at])) ++at;
  std::string_view name = type.substr(0, at);
  if (at < type.size() && type[at] == '(') at = skip_parentheses(type, at);
  std::string_view suffix = type.substr(at);
  const size_t bracket = suffix.find('[');
  const bool list = bracket != suffix.npos;
  const bool optional = suffix.ends_with('?');
  const bool element_optional = list && bracket > 0 && suffix[bracket - 1] == '?';
  const bool nested = list && suffix.find('[', bracket + 1) != suffix.npos;
  const uint32_t none = optional ? bits(Tag::None) : 0;
  for (const Row& row : kRows) {
    if (row.type != (name == "Tensor" && element_optional ? "Tensor?" : name)) continue;
    if (nested) return bits(Tag::List) | none;
    if (element_optional && name != "Tensor") return bits(Tag::List) | none;
    return (list ? row.list : row.single) | none;
  }
  return list ? kAnyList | none : kAnything;
}

std::vector<std::string_view> argument_types(std::string_view schema) {
  std::vector<std::string_view> types;
  size_t at = schema.find('(');
  if (at == schema.npos) return types;
  const size_t end = skip_parentheses(schema, at) - 1;
  for (++at; at < end;) {
    while (schema[at] == ' ') ++at;
    const size_t start = at;
    size_t space = schema.npos;  // the last blank before the name
    int depth = 0;
    char quote = 0;
    bool in_default = false;
    for (; at < end; ++at) {
      const char c = schema[at];
      if (quote) {
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '\'' || c == '"') quote = c;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (depth == 0 && c == ',') break;
      if (depth == 0 && c == '=') in_default = true;
      if (depth == 0 && c == ' ' && !in_default) space = at;
    }
    if (space != schema.npos) types.push_back(schema.substr(start, space - start));
    ++at;
  }
  return types;
}

namespace {
GlobalMutex operators_mutex(ForkRank::Programs);
}

// Searched one by one and remembered: a program asks once for each place that calls an operator,
// and a table of them all would cost every process a millisecond.
const Operator* find_operator(std::string_view kind) {
  static std::map<std::string, Operator, std::less<>>& known =
      *new std::map<std::string, Operator, std::less<>>();
  const std::lock_guard lock(operators_mutex);
  const auto found = known.find(kind);
  if (found != known.end()) return &found->second;
  const OpRecord* record = find_record(kind);
  if (!record) return nullptr;
  Operator op{record, record->call, {}};
  for (std::string_view type : argument_types(record->schema)) {
    op.tags.push_back(tags_of_type(type));
  }
  WEFT_INTERNAL_ASSERT(op.tags.size() == record->arg_count);
  return &known.emplace(kind, std::move(op)).first->second;
}

}  // namespace weft
