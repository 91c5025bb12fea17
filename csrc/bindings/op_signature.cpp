// Signatures of operators for the binder, from the arguments that tools/gen wrote down.
#include "bindings/op_signature.h"

#include <algorithm>

#include "core/error.h"

namespace weft::py {
namespace {

PyObject* interned(const char* name) {
  PyObject* const made = PyUnicode_InternFromString(name);
  if (!made) throw PythonError{};
  return made;
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
  constexpr const char* kNames[] = {
      "Tensor",          "tuple of Tensors", "int",   "float",  "bool", "Number", "tuple of ints",
      "tuple of floats", "tuple of bools",   "dtype", "device", "str",  "layout", "memory_format",
      "Generator"};
  const std::string name = kNames[static_cast<size_t>(param.kind)];
  return param.kind == ArgumentKind::IntList && param.list_size > 0 ? "int or " + name : name;
}

std::string Signature::text() const {
  std::string out = std::string(record->name) + "(";
  bool star = false;
  for (const Param& param : params) {
    if (out.back() != '(') out += ", ";
    if (param.keyword_only && !std::exchange(star, true)) out += "*, ";
    out += describe(param) + " " + param.key_text();
    if (param.has_default()) out += "=" + default_text(param);
  }
  return out + ")";
}

namespace {

void move_self_first(std::vector<Param>& params) {
  const auto self = std::ranges::find(params, "input", &Param::key_text);
  if (self != params.end()) std::rotate(params.begin(), self, self + 1);
}

bool is_out(const Param& param) { return param.written && param.keyword_only; }

// The tensors that several results are written to are one argument in Python.
void join_outs(std::vector<Param>& params) {
  const auto first = std::ranges::find_if(params, is_out);
  if (params.end() - first < 2) return;
  first->outs = static_cast<uint8_t>(params.end() - first);
  first->key = interned("out");
  first->kind = ArgumentKind::TensorList;
  params.erase(first + 1, params.end());
}

// An int[] that is the only positional parameter beside self.
int varargs_of(const Signature& signature) {
  size_t self =
      !signature.params.empty() && signature.params[0].kind == ArgumentKind::Tensor ? 1 : 0;
  if (signature.positional != self + 1) return -1;
  return signature.params[self].kind == ArgumentKind::IntList ? static_cast<int>(self) : -1;
}

}  // namespace

Signature signature_of(const OpRecord& record, bool method) {
  WEFT_INTERNAL_ASSERT(record.arg_count <= kMaxParams && record.result_count <= kMaxResults,
                       "too many parameters or results: ", record.schema);
  Signature signature;
  signature.record = &record;
  for (uint8_t i = 0; i < record.arg_count; ++i) {
    const SchemaArgument& argument = argument_of(record, i);
    const bool self = std::string_view(argument.name) == "self";
    Param param{argument, interned(self ? "input" : argument.name), i};  // as PyTorch calls it
    if (param.has_default()) param.default_value = argument.make_default();
    if (!param.keyword_only) ++signature.positional;
    signature.factory |= param.keyword_only && param.kind == ArgumentKind::Device;
    signature.params.push_back(std::move(param));
  }
  for (Param& param : signature.params) param.of_factory = signature.factory;
  for (size_t i = record.arg_count; i < size_t{record.arg_count} + record.result_count; ++i) {
    const char* const name = argument_of(record, i).name;
    if (*name) signature.result_names.emplace_back(name);
  }
  join_outs(signature.params);
  signature.writes_out = !signature.params.empty() && is_out(signature.params.back());
  if (method) move_self_first(signature.params);
  signature.varargs = varargs_of(signature);
  return signature;
}

}  // namespace weft::py
