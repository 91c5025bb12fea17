// A function of a program as a Python callable.
#include <array>
#include <memory>

#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "bindings/trace.h"
#include "core/error.h"
#include "runtime/interpreter.h"
#include "runtime/print.h"

namespace weft::py {
namespace {

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Ref<const Program> program;  // owns the function
  const Function* function;
  bool brief;                    // see is_brief
  std::vector<PyObject*> names;  // of the parameters, interned
  PyObject* source;              // what it was compiled from, for the tracer; may be null
};
FunctionObject& as_function(PyObject* object) { return *reinterpret_cast<FunctionObject*>(object); }

PyTypeObject* function_type = nullptr;

PyObject* interned(const std::string& name) {
  PyObject* text = from_text(name);
  PyUnicode_InternInPlace(&text);
  return text;
}

// The last part of "__torch__.net.f".
std::string short_name(const Function& function) { return std::string(unqualified(function.name)); }

// As users count: methods leave out self.
std::string signature(const Function& function) {
  std::string text;
  for (const Param& param : function.params) {
    if (!text.empty()) text += ", ";
    text += param.type->str() + " " + *param.name;
    if (param.default_value) text += "=" + repr(*param.default_value);
  }
  return weft::str(short_name(function), "(", text, ") -> ", function.result->str());
}

[[noreturn]] void fail_call(const Function& function, const std::string& what) {
  fail(ErrorKind::Type, weft::str(short_name(function), "() expected ", what,
                                  "; declaration: ", signature(function)));
}

void convert(const Function& function, size_t i, PyObject* object, Value& out) {
  const Param& param = function.params[i];
  if (param.type->kind == TypeKind::Tensor && is_tensor(object)) [[likely]] {
    out = Value(program_tensor(object));
    return;
  }
  if (to_value(*param.type, object, out)) return;
  fail_call(function, weft::str("value of type ", param.type->str(), " for argument '", *param.name,
                                "' in position ", i, ", but got ", describe_object(object)));
}

size_t find_param(const FunctionObject& self, PyObject* name) {
  for (size_t i = 0; i < self.names.size(); ++i) {
    if (self.names[i] == name) return i;
  }
  for (size_t i = 0; i < self.names.size(); ++i) {
    if (PyUnicode_Compare(self.names[i], name) == 0) return i;
  }
  fail_call(*self.function, weft::str("known argument names, got '", utf8(name), "'"));
}

void take_names(const FunctionObject& self, PyObject* const* given, PyObject* names,
                size_t positional, Value* values, bool* set) {
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(names));
  for (size_t k = 0; k < count; ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(k));
    const size_t i = find_param(self, name);
    if (i < positional || set[i]) {
      fail_call(*self.function, weft::str("argument '", utf8(name), "' once, got it twice"));
    }
    convert(*self.function, i, given[k], values[i]);
    set[i] = true;
  }
}

// The values of a call: on the C++ stack when they are few.
class Values {
 public:
  explicit Values(size_t count) {
    if (count > few_.size()) many_ = std::make_unique<Value[]>(count);
  }
  Value* data() noexcept { return many_ ? many_.get() : few_.data(); }

 private:
  std::array<Value, 8> few_;
  std::unique_ptr<Value[]> many_;
};

void bind_arguments(const FunctionObject& self, PyObject* const* args, size_t positional,
                    PyObject* names, Value* values) {
  const Function& function = *self.function;
  const size_t count = function.params.size();
  if (positional > count) {
    fail_call(function, weft::str("at most ", count, " arguments, got ", positional));
  }
  for (size_t i = 0; i < positional; ++i) convert(function, i, args[i], values[i]);
  if (positional == count && !names) [[likely]]
    return;
  auto set = std::make_unique<bool[]>(count);
  if (names) take_names(self, args + positional, names, positional, values, set.get());
  for (size_t i = positional; i < count; ++i) {
    if (set[i]) continue;
    const Param& param = function.params[i];
    if (!param.default_value) {
      fail_call(function, weft::str("a value for argument '", *param.name, "', got none"));
    }
    values[i] = *param.default_value;
  }
}

// A few operators in a row. On small tensors they are done before another thread would have
// started, so the interpreter lock is kept, as for single operators in Python.
bool is_brief(const Function& function) {
  constexpr size_t kMost = 24;
  if (function.code.size() > kMost) return false;
  for (const Instruction& one : function.code) {
    const OpcodeInfo& info = opcode_info(one.op);
    switch (one.op) {
      case Opcode::call_function:
      case Opcode::call_method:
      case Opcode::call_external:
      case Opcode::fork:
      case Opcode::wait:
      case Opcode::print:
        return false;
      default:
        if (info.x == WideKind::Jump && one.target <= &one) return false;
        if (info.x == WideKind::LiteralJump && short_target(one) <= 0) return false;
    }
  }
  return true;
}

// Whether other threads should run meanwhile.
bool takes_long(const FunctionObject& self, const Value* values) {
  if (!self.brief) return true;
  bool tensors = false;
  for (size_t i = 0; i < self.function->params.size(); ++i) {
    if (values[i].tag() == ValueTag::Tensor) {
      if (is_large(values[i].to_tensor())) return true;
      tensors = true;
    } else if (values[i].tag() > ValueTag::Complex) {
      return true;  // who knows what it holds
    }
  }
  return !tensors;  // what is made from numbers may be of any size
}

PyObject* trace_program(PyObject* object, PyObject* const* args, size_t count, PyObject* names) {
  return trace_override("program", {object, args, count, names});
}

PyObject* function_vectorcall(PyObject* object, PyObject* const* args, size_t flags,
                              PyObject* names) {
  const FunctionObject& self = as_function(object);
  if (tracing()) [[unlikely]]
    return trace_program(object, args, static_cast<size_t>(PyVectorcall_NARGS(flags)), names);
  try {
    Values values(self.function->params.size());
    bind_arguments(self, args, static_cast<size_t>(PyVectorcall_NARGS(flags)), names,
                   values.data());
    Value result;
    {
      ReleaseGil release(takes_long(self, values.data()));
      result = run_function(*self.function, values.data(), self.function->params.size());
    }
    return from_value(std::move(result));
  } catch (...) {
    translate_program_exception();
    return nullptr;
  }
}

// A program's source may refer to the function that was made of it: types, methods, programs.
int function_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(as_function(object).source);
  return 0;
}

int function_clear(PyObject* object) {
  Py_CLEAR(as_function(object).source);
  return 0;
}

void function_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  FunctionObject& self = as_function(object);
  PyTypeObject* type = Py_TYPE(object);
  for (PyObject* name : self.names) Py_DECREF(name);
  Py_CLEAR(self.source);
  std::destroy_at(&self.names);
  std::destroy_at(&self.program);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* function_repr(PyObject* object) {
  return guarded([&]() -> PyObject* {
    return from_text(
        weft::str("<compiled function ", signature(*as_function(object).function), ">"));
  });
}
PyObject* function_name(PyObject* object, void*) {
  return guarded([&] { return from_text(short_name(*as_function(object).function)); });
}
PyObject* function_qualname(PyObject* object, void*) {
  return guarded([&] { return from_text(as_function(object).function->name); });
}

PyGetSetDef function_getset[] = {
    {"__name__", function_name, nullptr, nullptr, nullptr},
    {"__qualname__", function_qualname, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {"_source", T_OBJECT, offsetof(FunctionObject, source), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyObject* make_function(Ref<const Program> program, const Function& function) {
  Object made = Object::checked(function_type->tp_alloc(function_type, 0));
  FunctionObject& self = as_function(made.get());
  self.vectorcall = function_vectorcall;
  new (&self.program) Ref<const Program>(std::move(program));
  self.function = &function;
  self.brief = is_brief(function);
  new (&self.names) std::vector<PyObject*>();
  for (const Param& param : function.params) {
    self.names.push_back(interned(*param.name));
  }
  return made.release();
}

void init_jit_function(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
      {Py_tp_getset, function_getset},
      {Py_tp_members, function_members},
      {0, nullptr},
  };
  constexpr unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC |
                             Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec spec = {"weft._C.JitFunction", sizeof(FunctionObject), 0, flags, slots};
  function_type =
      reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
  add_object(module, "JitFunction", reinterpret_cast<PyObject*>(function_type));
}

}  // namespace weft::py
