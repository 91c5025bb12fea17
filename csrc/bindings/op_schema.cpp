// The parser of schema strings: "sum.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor".
#include "bindings/op_schema.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace weft::py {
namespace {

class Reader {
 public:
  explicit Reader(const OpRecord& record) : record_(record), rest_(record.schema) {}

  void spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool peek(std::string_view text) {
    spaces();
    return rest_.starts_with(text);
  }
  bool take(std::string_view text) {
    if (!peek(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    WEFT_INTERNAL_ASSERT(take(text), "schema \"", record_.schema, "\": expected '", text, "' at \"",
                         rest_, "\"");
  }
  std::string_view word() {
    spaces();
    size_t n = 0;
    while (n < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_'))
      ++n;
    return cut(n);
  }
  // Everything up to (not with) one of the stop characters.
  std::string_view until(std::string_view stops) {
    size_t n = rest_.find_first_of(stops);
    return cut(n == std::string_view::npos ? rest_.size() : n);
  }

 private:
  std::string_view cut(size_t n) {
    std::string_view text = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return text;
  }
  const OpRecord& record_;
  std::string_view rest_;
};

ParamKind base_kind(std::string_view name) {
  struct Entry {
    std::string_view name;
    ParamKind kind;
  };
  static constexpr Entry kEntries[] = {
      {"Tensor", ParamKind::Tensor},
      {"int", ParamKind::Int},
      {"SymInt", ParamKind::Int},
      {"float", ParamKind::Float},
      {"bool", ParamKind::Bool},
      {"Scalar", ParamKind::Scalar},
      {"ScalarType", ParamKind::DType},
      {"Device", ParamKind::Device},
      {"str", ParamKind::Str},
      {"Layout", ParamKind::Layout},
      {"MemoryFormat", ParamKind::MemoryFormat},
      {"Generator", ParamKind::Generator},
  };
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.kind;
  }
  fail_internal(__FILE__, __LINE__, "base_kind", "unknown schema type " + std::string(name));
}

ParamKind list_kind(ParamKind element) {
  switch (element) {
    case ParamKind::Tensor:
      return ParamKind::TensorList;
    case ParamKind::Int:
      return ParamKind::IntList;
    case ParamKind::Float:
      return ParamKind::FloatList;
    case ParamKind::Bool:
      return ParamKind::BoolList;
    default:
      fail_internal(__FILE__, __LINE__, "list_kind", "no list of this schema type");
  }
}

// "Tensor(a!)", "int[2]?", "Tensor?[]".
void read_type(Reader& in, Param& param) {
  param.kind = base_kind(in.word());
  if (in.take("(")) {
    param.written = in.until(")").find('!') != std::string_view::npos;
    in.expect(")");
  }
  bool element_optional = in.take("?");
  if (in.take("[")) {
    std::string_view size = in.until("]");
    in.expect("]");
    param.kind = list_kind(param.kind);
    param.list_size = size.empty() ? 0 : std::atoll(std::string(size).c_str());
    param.element_optional = element_optional;
    param.optional = in.take("?");
  } else {
    param.optional = element_optional;
  }
}

Value number_value(const Param& param, const std::string& text) {
  if (param.kind == ParamKind::Float) return Value(std::strtod(text.c_str(), nullptr));
  bool integral = text.find_first_of(".en") == std::string::npos;
  if (integral) return Value(static_cast<int64_t>(std::atoll(text.c_str())));
  return Value(std::strtod(text.c_str(), nullptr));
}

Value list_value(Reader& in, const Param& param) {
  std::vector<int64_t> items;
  while (!in.peek("]")) {
    std::string item(in.until(",]"));
    items.push_back(item.find("rue") != std::string::npos ? 1 : std::atoll(item.c_str()));
    in.take(",");
  }
  in.expect("]");
  if (param.kind == ParamKind::BoolList)
    return Value(std::vector<bool>(items.begin(), items.end()));
  return Value(std::move(items));
}

Value read_default(Reader& in, const Param& param) {
  if (in.take("None")) return Value();
  if (in.take("True")) return Value(true);
  if (in.take("False")) return Value(false);
  if (in.take("[")) return list_value(in, param);
  for (std::string_view quote : {"'", "\""}) {
    if (!in.take(quote)) continue;
    std::string text(in.until(quote));
    in.expect(quote);
    return Value(std::move(text));
  }
  std::string text(in.until(",)"));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  bool digits = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0]));
  if (param.kind == ParamKind::MemoryFormat && !digits) {
    const auto* name = std::find(kMemoryFormats.begin(), kMemoryFormats.end(), text);
    return Value(int64_t{name - kMemoryFormats.begin()});
  }
  if (text == "Mean" || text == "mean") return Value(int64_t{1});
  if (text == "Sum" || text == "sum") return Value(int64_t{2});
  Value value = number_value(param, text);
  if (param.kind == ParamKind::DType) return Value(dtype_of_number(value.to_int()));
  if (param.kind != ParamKind::IntList) return value;
  int64_t count = param.list_size > 0 ? param.list_size : 1;  // "int[2] stride=1"
  return Value(std::vector<int64_t>(static_cast<size_t>(count), value.to_int()));
}

Param read_param(Reader& in, bool keyword_only) {
  Param param;
  param.keyword_only = keyword_only;
  read_type(in, param);
  std::string name(in.word());
  if (name == "self") name = "input";  // PyTorch's name for it in Python
  param.name = PyUnicode_InternFromString(name.c_str());
  if (!param.name) throw PythonError{};
  if (in.take("=")) {
    param.has_default = true;
    param.default_value = read_default(in, param);
  }
  return param;
}

void read_results(Reader& in, Signature& signature) {
  if (!in.take("->") || !in.take("(")) return;
  while (!in.peek(")")) {
    Param result;
    read_type(in, result);
    std::string_view name = in.word();
    if (!name.empty()) signature.result_names.emplace_back(name);
    if (!in.take(",")) break;
  }
}

std::string default_text(const Param& param) {
  const Value& value = param.default_value;
  switch (value.tag()) {
    case ValueTag::None:
      return "None";
    case ValueTag::Bool:
      return value.to_bool() ? "True" : "False";
    case ValueTag::Int:
      return std::to_string(value.to_int());
    case ValueTag::Double:
      return str(value.to_double());
    case ValueTag::String:
      return "'" + value.to_string() + "'";
    case ValueTag::IntList:
      return str(AsTuple{value.to_ints()});
    default:
      return "...";
  }
}

}  // namespace

std::string describe(const Param& param) {
  switch (param.kind) {
    case ParamKind::Tensor:
      return "Tensor";
    case ParamKind::TensorList:
      return "tuple of Tensors";
    case ParamKind::Int:
      return "int";
    case ParamKind::Float:
      return "float";
    case ParamKind::Bool:
      return "bool";
    case ParamKind::Scalar:
      return "Number";
    case ParamKind::IntList:
      return param.list_size > 0 ? "int or tuple of ints" : "tuple of ints";
    case ParamKind::FloatList:
      return "tuple of floats";
    case ParamKind::BoolList:
      return "tuple of bools";
    case ParamKind::DType:
      return "dtype";
    case ParamKind::Device:
      return "device";
    case ParamKind::Str:
      return "str";
    case ParamKind::Layout:
      return "layout";
    case ParamKind::MemoryFormat:
      return "memory_format";
    case ParamKind::Generator:
      return "Generator";
  }
  __builtin_unreachable();
}

std::string Signature::text() const {
  std::string out = std::string(record->name) + "(";
  bool star = false;
  for (const Param& param : params) {
    if (out.back() != '(') out += ", ";
    if (param.keyword_only && !std::exchange(star, true)) out += "*, ";
    out += describe(param) + " " + param.name_text();
    if (param.has_default) out += "=" + default_text(param);
  }
  return out + ")";
}

namespace {

void move_self_first(std::vector<Param>& params) {
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].name_text() == "input") {
      std::rotate(params.begin(), params.begin() + static_cast<ptrdiff_t>(i),
                  params.begin() + static_cast<ptrdiff_t>(i) + 1);
      return;
    }
  }
}

bool is_out(const Param& param) { return param.written && param.keyword_only; }

// The tensors that several results are written to are one argument in Python.
void join_outs(std::vector<Param>& params) {
  const auto first = std::ranges::find_if(params, is_out);
  if (params.end() - first < 2) return;
  first->outs = static_cast<uint8_t>(params.end() - first);
  first->name = PyUnicode_InternFromString("out");
  if (!first->name) throw PythonError{};
  first->kind = ParamKind::TensorList;
  params.erase(first + 1, params.end());
}

// An int[] that is the only positional parameter beside self.
int varargs_of(const Signature& signature) {
  size_t self = !signature.params.empty() && signature.params[0].kind == ParamKind::Tensor ? 1 : 0;
  if (signature.positional != self + 1) return -1;
  return signature.params[self].kind == ParamKind::IntList ? static_cast<int>(self) : -1;
}

}  // namespace

Signature parse_signature(const OpRecord& record, bool method) {
  Signature signature;
  signature.record = &record;
  Reader in(record);
  in.until("(");
  in.expect("(");
  bool keyword_only = false;
  while (!in.take(")")) {
    if (in.take("*")) {
      keyword_only = true;
    } else {
      signature.params.push_back(read_param(in, keyword_only));
      Param& param = signature.params.back();
      param.slot = static_cast<uint8_t>(signature.params.size() - 1);
      if (!keyword_only) ++signature.positional;
      signature.factory |= keyword_only && param.kind == ParamKind::Device;
    }
    in.take(",");
  }
  read_results(in, signature);
  WEFT_INTERNAL_ASSERT(signature.params.size() <= kMaxParams && record.result_count <= kMaxResults,
                       "too many parameters or results: ", record.schema);
  WEFT_INTERNAL_ASSERT(signature.params.size() == record.arg_count,
                       "schema and record disagree: ", record.schema);
  join_outs(signature.params);
  signature.writes_out = !signature.params.empty() && is_out(signature.params.back());
  if (method) move_self_first(signature.params);
  signature.varargs = varargs_of(signature);
  return signature;
}

}  // namespace weft::py
