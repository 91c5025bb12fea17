// One operator called by its full name with Python values: how tests reach the builtins, and how
// the passes ask what an operator makes of constants.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/errors.h"
#include "bindings/jit.h"
#include "core/error.h"
#include "runtime/dict.h"
#include "runtime/list.h"
#include "runtime/operator.h"
#include "runtime/print.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// "int", "float", "bool", "Tensor": the elements of a list that is empty or whose items do not
// tell. Anything else leaves the storage that the items imply.
ValueTag storage_of(const std::string& element, ValueTag implied) {
  if (element == "int") return ValueTag::IntList;
  if (element == "float") return ValueTag::DoubleList;
  if (element == "bool") return ValueTag::BoolList;
  if (element == "Tensor") return ValueTag::TensorList;
  if (element == "Tensor?") return ValueTag::OptionalTensorList;
  return element.empty() ? implied : ValueTag::List;
}

Value stored_as(const Value& list, ValueTag tag) {
  std::vector<Value> items;
  for (int64_t i = 0; i < list_len(list); ++i) items.push_back(list_get(list, i));
  return make_list(tag, items.data(), items.size());
}

Value argument(const Operator& op, size_t i, nb::handle object, const std::string& element) {
  Value value;
  if (!to_any_value(object.ptr(), value)) {
    fail(ErrorKind::Type,
         weft::str(op.record->name, ": expected a value of a program for argument ", i, ", got ",
                   describe_object(object.ptr())));
  }
  if (is_list(value.tag())) value = stored_as(value, storage_of(element, value.tag()));
  if (value.tag() == ValueTag::Dict) {
    DictObject& dict = *value.object<DictObject>();
    dict.value_list = storage_of(element, dict.value_list);
  }
  if (!op.accepts(i, value.tag())) {
    fail(ErrorKind::Type, weft::str(op.record->name, ": expected ", op.record->schema,
                                    ", got argument ", i, " of type ", type_name(value)));
  }
  return value;
}

// (results..., arguments after the call), each a tuple.
nb::object call_operator(const std::string& kind, nb::tuple args,
                         const std::vector<std::string>& elements) {
  const Operator* op = find_operator(kind);
  if (!op) {
    fail(ErrorKind::Key,
         weft::str("call_operator: expected the name of an operator, got '", kind, "'"));
  }
  WEFT_CHECK_TYPE(args.size() == op->record->arg_count, kind, ": expected ",
                  int{op->record->arg_count}, " arguments, got ", args.size());
  std::vector<Value> values;
  for (size_t i = 0; i < args.size(); ++i) {
    values.push_back(argument(*op, i, args[i], i < elements.size() ? elements[i] : ""));
  }
  std::vector<Value> results(op->record->result_count);
  try {
    op->call(values.data(), results.data());
  } catch (const ProgramError& error) {
    set_program_error(error);
    throw PythonError{};
  }
  nb::list after, given;
  for (Value& result : results) given.append(nb::steal(from_value(std::move(result))));
  for (Value& value : values) after.append(nb::steal(from_value(std::move(value))));
  return nb::make_tuple(nb::tuple(given), nb::tuple(after));
}

}  // namespace

void bind_call_operator(nb::module_& module) {
  module.def("_call_operator", call_operator, nb::arg("kind"), nb::arg("args"),
             nb::arg("elements") = std::vector<std::string>(),
             "Calls an operator by its full name; gives its results and the arguments afterwards. "
             "`elements` names what the lists among the arguments hold, where their items do not "
             "tell.");
}

}  // namespace weft::py
