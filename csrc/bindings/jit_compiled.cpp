// weft._C.CompiledModule: a file that weft.jit.aot_compile wrote, run by what C and C++ programs
// run it by.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "runtime/compiled_module.h"
#include "runtime/print.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct Compiled {
  Ref<CompiledModule> module;
  size_t first;  // the number of the first argument that callers give: behind self
};

// As to_value; what is not of the type goes on as it is, and the call says what it expected.
Value convert(const Type& type, PyObject* object) {
  Value value;
  if (to_value(type, object, value)) return value;
  WEFT_CHECK_TYPE(to_any_value(object, value),
                  "call: expected values that a program can hold, got ", short_type_name(object));
  return value;
}

std::vector<Value> values_of(const Compiled& self, const std::string& method, nb::args args,
                             nb::kwargs kwargs) {
  const Function& function = self.module->signature(method);
  std::vector<Value> values;
  size_t named = 0;
  for (size_t i = 0; self.first + i < function.params.size(); ++i) {
    const Param& param = function.params[self.first + i];
    const nb::str name(param.name->c_str());
    if (i < args.size()) {
      values.push_back(convert(*param.type, args[i].ptr()));
    } else if (kwargs.contains(name)) {
      values.push_back(convert(*param.type, nb::object(kwargs[name]).ptr()));
      ++named;
    } else if (param.default_value) {
      values.push_back(*param.default_value);
    } else {
      break;  // the call says which one is missing
    }
  }
  WEFT_CHECK_TYPE(named == kwargs.size() && args.size() <= values.size(), method,
                  ": expected arguments of the method, each once, got others");
  return values;
}

// Runs code of the file, which raises what programs and handlers of signals raise.
template <typename F>
auto run_code(F&& run) {
  try {
    const ReleaseGil release(true);
    return run();
  } catch (...) {
    translate_program_exception();
    throw PythonError{};
  }
}

nb::object call(const Compiled& self, const std::string& method, nb::args args, nb::kwargs kwargs) {
  std::vector<Value> values = values_of(self, method, args, kwargs);
  Value result = run_code([&] { return self.module->call(method, std::move(values)); });
  return nb::steal(from_value(std::move(result)));
}

template <auto listed>
nb::dict dict_of(const Compiled& self) {
  nb::dict made;
  for (auto& [name, tensor] : run_code([&] { return (*self.module.*listed)(); })) {
    made[name.c_str()] = nb::steal(Object::checked(wrap(std::move(tensor))).release());
  }
  return made;
}

}  // namespace

void bind_compiled_module(nb::module_& module) {
  nb::class_<Compiled>(module, "CompiledModule", "A file of weft.jit.aot_compile, ready to run.")
      .def(
          "__init__",
          [](Compiled* self, const std::string& path) {
            Ref<CompiledModule> loaded = run_code([&] { return CompiledModule::load(path); });
            const size_t first = loaded->has_state() ? 1 : 0;
            new (self) Compiled{std::move(loaded), first};
          },
          nb::arg("path"))
      .def_prop_ro("methods", [](const Compiled& self) { return self.module->methods(); })
      .def("call", call, nb::arg("method"), nb::arg("args"), nb::arg("kwargs"),
           "Runs a method: the value that it gives.")
      .def(
          "train",
          [](const Compiled& self, bool mode) { run_code([&] { self.module->train(mode); }); },
          nb::arg("mode") = true, "Sets training or evaluation mode.")
      .def(
          "packed_weights",
          [](const Compiled& self) {
            auto [record, weights] = self.module->packed_weights();
            nb::list listed;
            for (Tensor& each : weights) {
              listed.append(nb::steal(Object::checked(wrap(std::move(each))).release()));
            }
            return nb::make_tuple(nb::bytes(record.data(), record.size()), listed);
          },
          "What layers keep packed now: the record that tells of which, and the bytes of each.")
      .def("parameters", dict_of<&CompiledModule::parameters>, "The parameters by their names.")
      .def("buffers", dict_of<&CompiledModule::buffers>,
           "The buffers of the state by their names.");
}

}  // namespace weft::py
