// weft._C.JitProgram: bytes made by weft.jit.codegen, ready to run.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "bindings/jit.h"
#include "bindings/python_external.h"
#include "bindings/tensor_object.h"
#include "core/error.h"
#include "runtime/interpreter_ops.h"
#include "runtime/interrupt.h"
#include "runtime/print.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

struct JitProgram {
  Ref<Program> program;
};

// Runs the handlers of signals that have arrived, as Python does between two instructions: Ctrl-C
// ends a program. Python runs them on its main thread only.
void run_signal_handlers() {
  if (syscall(SYS_gettid) != getpid()) return;
  const TakeGil gil;
  if (PyErr_CheckSignals() != 0) throw PythonFailure::fetch();
}

ProgramInputs take_inputs(nb::sequence constants, nb::sequence callables, nb::dict classes) {
  ProgramInputs inputs;
  for (nb::handle object : constants) {
    Value value;
    WEFT_CHECK_TYPE(to_any_value(object.ptr(), value), "JitProgram: expected constants that a ",
                    "program can hold, got ", short_type_name(object.ptr()));
    inputs.constants.push_back(std::move(value));
  }
  for (nb::handle object : callables) {
    WEFT_CHECK_TYPE(PyCallable_Check(object.ptr()), "JitProgram: expected callables, got ",
                    short_type_name(object.ptr()));
    inputs.externals.push_back(std::make_shared<PythonExternal>(object.ptr()));
  }
  for (auto [name, known] : classes) {
    JitClass* def = nullptr;
    WEFT_CHECK_TYPE(nb::try_cast(known, def) && def, "JitProgram: expected classes of type ",
                    "JitClass, got ", short_type_name(known.ptr()));
    inputs.classes.emplace(nb::cast<std::string>(name), def->def);
  }
  return inputs;
}

void make_program(JitProgram* self, nb::bytes bytes, nb::sequence constants, nb::sequence callables,
                  nb::dict classes) {
  const std::span<const std::byte> data(reinterpret_cast<const std::byte*>(bytes.c_str()),
                                        bytes.size());
  Ref<Program> program = Program::read(data, take_inputs(constants, callables, classes));
  for (size_t i = 0; i < program->externals.size(); ++i) {
    static_cast<PythonExternal&>(*program->externals[i]).type = program->external_types[i];
  }
  new (self) JitProgram{std::move(program)};
}

nb::object find_function(const JitProgram& self, const std::string& name) {
  const Function* function = self.program->find(name);
  if (!function) {
    const std::string text =
        weft::str("JitProgram: expected the name of a function, got '", name, "'");
    PyErr_SetString(PyExc_KeyError, text.c_str());
    throw PythonError{};
  }
  return nb::steal(make_function(self.program, *function));
}

nb::object find_class(const JitProgram& self, const std::string& name) {
  Ref<ProgramClass> def = self.program->find_class(name);
  if (!def) {
    const std::string text =
        weft::str("JitProgram: expected the name of a class, got '", name, "'");
    PyErr_SetString(PyExc_KeyError, text.c_str());
    throw PythonError{};
  }
  return nb::steal(wrap_class(std::move(def)));
}

void print_to_python(const std::string& text) {
  TakeGil gil;
  PyObject* out = PySys_GetObject("stdout");  // borrowed
  if (!out || out == Py_None) return;
  if (PyFile_WriteString(text.c_str(), out) < 0) throw PythonFailure::fetch();
}

// What repr() of the tensor is: programs show tensors as Python does, with its options of printing.
std::string text_of_tensor(const Tensor& tensor) {
  TakeGil gil;
  const Object held = Object::steal(wrap(tensor));
  const Object text = Object::steal(held.get() ? PyObject_Repr(held.get()) : nullptr);
  Py_ssize_t size = 0;
  const char* data = text.get() ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
  if (!data) throw PythonFailure::fetch();
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

void bind_jit_program(nb::module_& module) {
  interrupt::set_check(run_signal_handlers);
  set_print_hook(print_to_python);
  set_tensor_text_hook(text_of_tensor);
  nb::class_<JitProgram>(module, "JitProgram",
                         "Compiled functions, made from the bytes of weft.jit.codegen.")
      .def("__init__", make_program, nb::arg("data"), nb::arg("constants") = nb::tuple(),
           nb::arg("callables") = nb::tuple(), nb::arg("classes") = nb::dict())
      .def("function", find_function, nb::arg("name"), "A function of the program, callable.")
      .def("class_", find_class, nb::arg("name"), "A class of the program.")
      .def_prop_ro("functions",
                   [](const JitProgram& self) {
                     std::vector<std::string> names;
                     for (const auto& function : self.program->functions) {
                       names.push_back(function->name);
                     }
                     return names;
                   })
      .def(
          "missing_operators",
          [](const JitProgram& self) { return self.program->missing_operators(); },
          "Operators the program calls that this build does not have.");
}

}  // namespace weft::py
