// Operators of hosts: those that a library in C has registered, called from Python; and those that
// Python has, called by compiled files.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/python_external.h"
#include "capi/weft.h"
#include "runtime/custom_operator.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// Takes the name of an operator, gives what is called or None. Lives as long as the process.
PyObject* finder = nullptr;

std::shared_ptr<External> find_in_python(const std::string& name, const Ref<Type>& result) {
  const TakeGil gil;
  if (!finder) return nullptr;
  try {
    const Object text = Object::checked(from_text(name));
    const Object found = Object::checked(PyObject_CallOneArg(finder, text.get()));
    if (found.get() == Py_None) return nullptr;
    auto external = std::make_shared<PythonExternal>(found.get());
    external->type = result;
    return external;
  } catch (const PythonError&) {
    throw PythonFailure::fetch();
  }
}

void set_finder(nb::object function) {
  finder = function.release().ptr();
  set_operator_fallback(find_in_python);
}

std::vector<std::pair<std::string, std::string>> listed() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const CustomOperatorRef& op : custom_operators()) {
    names.emplace_back(op->schema().name, op->schema().text);
  }
  return names;
}

// What weft_fail has left on this thread, which is taken away.
std::string taken_error() {
  std::string text = weft_last_error();
  weft_fail(WEFT_OK, "");
  return text;
}

nb::object call(const std::string& name, nb::sequence args) {
  const CustomOperatorRef op = find_custom_operator(name);
  WEFT_CHECK(op, name, ": expected an operator that is registered, got one that is gone");
  std::vector<Value> values;
  for (nb::handle arg : args) {
    Value value;
    const bool known = values.size() < op->schema().arguments.size() &&
                       to_value(*op->schema().arguments[values.size()].type, arg.ptr(), value);
    WEFT_CHECK_TYPE(known || to_any_value(arg.ptr(), value), name,
                    ": expected values that a program can hold, got ", short_type_name(arg.ptr()));
    values.push_back(std::move(value));
  }
  Value result;
  try {
    const ReleaseGil release(true);
    result = call_custom_operator(op, values);
  } catch (...) {
    translate_program_exception();
    throw PythonError{};
  }
  return nb::steal(from_value(std::move(result)));
}

}  // namespace

void bind_host_operators(nb::module_& module) {
  module.def("_host_operators", listed, "Names and schemas of operators registered by weft.h.");
  module.def("_take_host_error", taken_error);
  module.def("_call_host_operator", call, nb::arg("name"), nb::arg("args"));
  module.def("_set_operator_finder", set_finder, nb::arg("function"),
             "Who gives compiled files the operators that Python has, by their names.");
}

}  // namespace weft::py
