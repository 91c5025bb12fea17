// Operators of the library, called by hosts.
#include "capi/handles.h"
#include "runtime/list.h"
#include "runtime/operator.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::capi {
namespace {

// Handles are the operators themselves, which live as long as the process.
const weft_operator* handle_of(const Operator* op) {
  return reinterpret_cast<const weft_operator*>(op);
}
const Operator* operator_of(const weft_operator* given) {
  return reinterpret_cast<const Operator*>(given);
}

// The storage of lists that an argument takes; None where it takes none.
ValueTag list_tag(const SchemaArgument& argument) {
  switch (argument.kind) {
    case ArgumentKind::IntList:
      return ValueTag::IntList;
    case ArgumentKind::FloatList:
      return ValueTag::DoubleList;
    case ArgumentKind::BoolList:
      return ValueTag::BoolList;
    case ArgumentKind::TensorList:
      return argument.element_optional ? ValueTag::OptionalTensorList : ValueTag::TensorList;
    default:
      return ValueTag::None;
  }
}

// Lists have the argument's storage. A number, or a list of one, stands for as many as the argument
// has.
Value as_list(ValueTag tag, const SchemaArgument& argument, Value given) {
  const bool is_number = given.tag() >= ValueTag::Bool && given.tag() <= ValueTag::Double;
  if (!is_list(given.tag()) && !(is_number && argument.list_size > 0)) return given;
  const bool repeats = argument.list_size > 1 && (is_number || list_len(given) == 1);
  if (given.tag() == tag && !repeats) return given;
  std::vector<Value> items;
  if (is_number) items.push_back(std::move(given));
  for (int64_t i = 0; !is_number && i < list_len(given); ++i) items.push_back(list_get(given, i));
  if (repeats) items.assign(argument.list_size, Value(items[0]));
  return make_list(tag, items.data(), items.size());
}

Value bound(const Operator& op, size_t index, const weft_value* given) {
  const SchemaArgument& argument = argument_of(*op.record, index);
  const char* name = op.record->name;
  if (!given) {
    WEFT_CHECK_TYPE(argument.make_default, name, ": expected a value for argument '", argument.name,
                    "', got none");
    return argument.make_default();
  }
  Value value = given->value;
  const ValueTag tag = list_tag(argument);
  if (tag != ValueTag::None) value = as_list(tag, argument, std::move(value));
  WEFT_CHECK_TYPE(op.accepts(index, value.tag()), name, ": expected argument '", argument.name,
                  "' of type ", argument.type, ", got ", type_name(value));
  const bool is_format = argument.kind == ArgumentKind::MemoryFormat && !value.is_none();
  WEFT_CHECK_VALUE(!is_format || static_cast<uint64_t>(value.to_int()) < kMemoryFormats.size(),
                   name, ": expected a memory format from 0 to 3, got another number");
  return value;
}

Value run(const Operator& op, const weft_value* const* args, size_t count) {
  const OpRecord& record = *op.record;
  WEFT_CHECK_TYPE(count <= record.arg_count, record.name, ": expected at most ",
                  int{record.arg_count}, " arguments, got ", count);
  std::vector<Value> values, results(record.result_count);
  values.reserve(record.arg_count);
  for (size_t i = 0; i < record.arg_count; ++i) {
    values.push_back(bound(op, i, i < count ? args[i] : nullptr));
  }
  op.call(values.data(), results.data());
  if (results.empty()) return Value();
  if (results.size() == 1) return std::move(results[0]);
  return make_tuple_value(std::move(results));
}

}  // namespace
}  // namespace weft::capi

using namespace weft;
using capi::guarded;
using capi::handle;

weft_status weft_find_operator(const char* name, const weft_operator** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(name, "weft_find_operator: expected a name, got NULL");
    const Operator* op = find_operator(name);
    const bool is_row = op && std::string_view(op->record->name).find("::") == std::string::npos;
    WEFT_CHECK_AS(Key, is_row, "weft_find_operator: expected an operator of the library, got '",
                  name, "'");
    *out = capi::handle_of(op);
  });
}

const char* weft_operator_schema(const weft_operator* op) {
  return op ? capi::operator_of(op)->record->schema : nullptr;
}

const char* weft_operator_schema_at(size_t index) {
  return index < op_records().size() ? op_records()[index].schema : nullptr;
}

weft_status weft_call_operator(const weft_operator* op, const weft_value* const* args, size_t count,
                               weft_value** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(args || count == 0, "weft_call_operator: expected arguments, got NULL");
    capi::put(out, capi::run(handle("weft_call_operator", capi::operator_of(op)), args, count));
  });
}
