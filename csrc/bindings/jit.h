// Programs in Python: what its files share.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/bindings.h"
#include "bindings/tensor_object.h"
#include "runtime/interpreter.h"

namespace weft::py {

// ---- values across the border (jit_convert.cpp, jit_results.cpp) ----

// NotImplementedError for a tensor whose class says, in the text `_refused_in_programs`, that its
// elements are not all of it (jit_convert.cpp).
void refuse_class(PyObject* object);
// The tensor of an object that is one. Of sparse and of distributed ones programs would see a part.
inline const Tensor& program_tensor(PyObject* object) {
  if (!is_exact_tensor(object)) [[unlikely]]
    refuse_class(object);
  return unwrap(object);
}
// A value of the type from a Python object; containers are copied, class instances are shared.
// False: the object is not of the type (no exception set).
bool to_value(const Type& type, PyObject* object, Value& out);
// A value of whatever type the object has: for Any. False: programs have no such values.
bool to_any_value(PyObject* object, Value& out);
// New reference. Moves from `value`.
PyObject* from_value(Value&& value);
// New reference. What is no UTF-8 (programs are data from anywhere) becomes replacement characters.
PyObject* from_text(const std::string& text);
// "int", "List[Tensor]": what an object is, for messages.
std::string describe_object(PyObject* object);

// Python classes by qualified name of the program: enumerations, named tuples, classes.
PyObject* jit_types();  // borrowed dict
// The class registered under a name; null: none.
PyObject* registered_type(const std::string& name);

// ---- class instances and futures (jit_object.cpp) ----
struct JitObject {
  Ref<ClassObject> object;
};
struct JitClass {
  Ref<ProgramClass> def;
};
struct JitFuture {
  Value future;
};
// A list or dict that Python and programs share.
struct JitContainer {
  Value value;
};
// The container behind the `_jit_container` of a wrapper; null: it is none.
const Value* shared_container(PyObject* object);
// The instance behind a JitObject, or behind the `_jit_object` of a wrapper; null: neither.
Ref<ClassObject> class_object(PyObject* object);
PyObject* wrap_object(Ref<ClassObject> object);
PyObject* wrap_class(Ref<ProgramClass> def);
PyObject* wrap_future(Value future);
void bind_jit_objects(nanobind::module_& module);

// ---- programs (jit_program.cpp) and their functions (jit_function.cpp) ----
PyObject* make_function(Ref<const Program> program, const Function& function);
void init_jit_function(PyObject* module);
// JitDispatcher (jit_dispatcher.cpp)
void init_jit_dispatcher(PyObject* module);
void bind_jit_program(nanobind::module_& module);
// CompiledModule (jit_compiled.cpp)
void bind_compiled_module(nanobind::module_& module);
// _host_operators, _call_host_operator, _set_operator_finder (jit_host_operators.cpp)
void bind_host_operators(nanobind::module_& module);
// _call_operator (jit_builtin.cpp)
void bind_call_operator(nanobind::module_& module);
// _operators (jit_facts.cpp)
void bind_operator_facts(nanobind::module_& module);

// ---- failures (jit_errors.cpp) ----

// A Python exception on its way through a program, from thread to thread.
class PythonFailure final : public ForeignError {
 public:
  // Takes the exception that is set. Needs the GIL.
  static PythonFailure fetch();
  // The lines of the program become a note of the exception.
  void restore() const;
  [[noreturn]] void throw_with(const std::string& frame) const override {
    PythonFailure copy = *this;
    copy.frames_ = frame + frames_;
    throw copy;
  }

 private:
  std::shared_ptr<PyObject> exception_;
  std::string frames_;
};
// Sets the Python exception for a program's.
void set_program_error(const ProgramError& error);
// Sets the Python exception for the C++ exception being handled.
void translate_program_exception() noexcept;

}  // namespace weft::py
