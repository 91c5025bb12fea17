// Operators of the library, called by hosts.
#include <map>

#include "capi/operator_handle.h"
#include "core/fork.h"
#include "runtime/list.h"
#include "runtime/operator.h"
#include "runtime/print.h"
#include "runtime/tuple.h"

namespace weft::capi {
namespace {

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
  if (tag != ValueTag::None) value = as_list(tag, argument.list_size, std::move(value));
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

// A row of the table.
class TableOperator final : public weft_operator {
 public:
  explicit TableOperator(const Operator* op) : op_(op) {}
  const char* schema() const override { return op_->record->schema; }
  Value call(const weft_value* const* args, size_t count) const override {
    return run(*op_, args, count);
  }

 private:
  const Operator* op_;
};

GlobalMutex handles_mutex(ForkRank::Programs);

const weft_operator* handle_of(const Operator* op) {
  static auto& known = *new std::map<const Operator*, TableOperator>;
  const std::lock_guard lock(handles_mutex);
  return &known.try_emplace(op, op).first->second;
}

const weft_operator* find(std::string_view name) {
  const Operator* op = find_operator(name);
  const bool is_row = op && std::string_view(op->record->name).find("::") == std::string::npos;
  if (is_row) return handle_of(op);
  constexpr std::string_view kSpace = "aten::";
  return name.starts_with(kSpace) ? find_composed_operator(name.substr(kSpace.size())) : nullptr;
}

}  // namespace

Value as_list(ValueTag tag, size_t size, Value given) {
  const bool is_number = given.tag() >= ValueTag::Bool && given.tag() <= ValueTag::Double;
  if (!is_list(given.tag()) && !(is_number && size > 0)) return given;
  const bool repeats = size > 1 && (is_number || list_len(given) == 1);
  if (given.tag() == tag && !repeats) return given;
  std::vector<Value> items;
  if (is_number) items.push_back(std::move(given));
  for (int64_t i = 0; !is_number && i < list_len(given); ++i) items.push_back(list_get(given, i));
  if (repeats) items.assign(size, Value(items[0]));
  return make_list(tag, items.data(), items.size());
}

}  // namespace weft::capi

using namespace weft;
using capi::guarded;
using capi::handle;

weft_status weft_find_operator(const char* name, const weft_operator** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(name, "weft_find_operator: expected a name, got NULL");
    const weft_operator* found = capi::find(name);
    WEFT_CHECK_AS(Key, found, "weft_find_operator: expected an operator of the library, got '",
                  name, "'",
                  capi::has_composed_operators()
                      ? ""
                      : "; those that are composed in Python are in composed.weft, which does not "
                        "lie beside the library");
    *out = found;
  });
}

const char* weft_operator_schema(const weft_operator* op) { return op ? op->schema() : nullptr; }

const char* weft_operator_schema_at(size_t index) {
  const size_t rows = op_records().size();
  if (index < rows) return op_records()[index].schema;
  const char* schema = nullptr;
  guarded([&] { schema = weft_operator_schema(capi::composed_operator_at(index - rows)); });
  return schema;
}

weft_status weft_call_operator(const weft_operator* op, const weft_value* const* args, size_t count,
                               weft_value** out) {
  return guarded([&] {
    WEFT_CHECK_VALUE(args || count == 0, "weft_call_operator: expected arguments, got NULL");
    capi::put(out, handle("weft_call_operator", op).call(args, count));
  });
}
