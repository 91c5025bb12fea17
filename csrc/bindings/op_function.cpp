// The operators of the table as Python callables. A group holds the overloads of one name; the
// signatures are made at the first call.
//
// Two types over one struct: OpFunction behaves like a built-in function (a class attribute of that
// type does not bind), OpMethod like a method of Tensor.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "autograd/node.h"
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/op_old_order.h"
#include "bindings/op_parse.h"
#include "bindings/tensor_object.h"
#include "bindings/torch_function.h"
#include "bindings/trace.h"
#include "core/error.h"
#include "core/warning.h"
#include "op_docs.h"

namespace weft::py {
namespace {

// OpRecord::variants.
constexpr uint8_t kFunction = 1, kMethod = 2, kNeural = 4, kNumberFirst = 16, kTwoNumbers = 32,
                  kNumbersBetween = 64;

struct OpGroup {
  const char* name;
  bool method;
  std::vector<const OpRecord*> records;
  std::vector<Signature>* signatures = nullptr;  // made by the first call

  void make_signatures() {
    std::vector<Signature> made;
    for (const OpRecord* record : records) made.push_back(signature_of(*record, method));
    // A 0-d tensor fits a Number as well, but would lose its gradient there: Tensor overloads
    // first. Forms with out= last: other calls need not look at them.
    auto rank = [](const Signature& signature) {
      return std::pair(!signature.writes_out,
                       std::ranges::count(signature.params, ArgumentKind::Tensor, &Param::kind));
    };
    std::ranges::stable_sort(made, std::ranges::greater{}, rank);
    auto kept = std::make_unique<std::vector<Signature>>(std::move(made));
    if (set_once(signatures, kept.get())) kept.release();
  }
};

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OpGroup* group;  // lives as long as the process
};

PyTypeObject* function_type = nullptr;
PyTypeObject* method_type = nullptr;

OpGroup& group_of(PyObject* object) {
  OpGroup& group = *reinterpret_cast<OpObject*>(object)->group;
  if (!load_acquire(group.signatures)) [[unlikely]]
    group.make_signatures();
  return group;
}

// ---- results ----

// torch.return_types.max(
// values=tensor([3.]),
// indices=tensor([1]))
PyObject* result_repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    std::string text = std::string(type_name(self)) + "(";
    PyTypeObject* type = Py_TYPE(self);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      Object item = Object::checked(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      text += str(i > 0 ? ",\n" : "\n", type->tp_members[i].name, "=", utf8(item.get()));
    }
    return PyUnicode_FromString((text + ")").c_str());
  });
}

// Pickles name the type of weft.return_types, which there is one of: functions and methods have
// types of their own.
PyObject* result_reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Object place = Object::checked(PyImport_ImportModule("weft.return_types"));
    std::string name = type_name(self);
    name.erase(0, name.rfind('.') + 1);
    if (name.ends_with("_out")) name.resize(name.size() - 4);
    const Object made = Object::checked(PyObject_GetAttrString(place.get(), "_made"));
    const Object values = Object::checked(PySequence_Tuple(self));
    return Object::checked(Py_BuildValue("O(sO)", made.get(), name.c_str(), values.get()))
        .release();
  });
}
PyMethodDef result_reduction = {"__reduce__", result_reduce, METH_NOARGS, nullptr};

PyTypeObject* make_result_type(Signature& signature) {
  // PyStructSequence keeps pointers to these strings.
  auto* const texts = new std::deque<std::string>;
  auto keep = [&](std::string text) { return texts->emplace_back(std::move(text)).c_str(); };
  std::vector<PyStructSequence_Field> fields;
  for (const std::string& name : signature.result_names) fields.push_back({keep(name), nullptr});
  fields.push_back({nullptr, nullptr});
  const char* suffix = signature.writes_out ? "_out" : "";
  PyStructSequence_Desc description = {
      keep(str("torch.return_types.", signature.record->name, suffix)), nullptr, fields.data(),
      static_cast<int>(signature.result_names.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (!type) throw PythonError{};
  type->tp_repr = result_repr;
  const Object reduction = Object::checked(PyDescr_NewMethod(type, &result_reduction));
  check_status(PyDict_SetItemString(type->tp_dict, "__reduce__", reduction.get()));
  PyType_Modified(type);
  set_once(signature.result_type, type);
  return load_acquire(signature.result_type);
}

PyObject* wrap_value(Value& value) {
  if (value.tag() == ValueTag::Tensor) [[likely]]
    return wrap(value.take_tensor());
  const bool is_list = value.tag() == ValueTag::TensorSpan || value.tag() == ValueTag::TensorList;
  return is_list ? wrap_tuple(value.to_tensors()) : from_value(std::move(value));
}

PyObject* wrap_results(Signature& signature, Value* results) {
  auto count = static_cast<Py_ssize_t>(signature.record->result_count);
  if (count == 1) return wrap_value(results[0]);
  if (count == 0) return new_ref(Py_None);
  bool named = !signature.result_names.empty();
  PyTypeObject* type = load_acquire(signature.result_type);
  if (named && !type) type = make_result_type(signature);
  Object tuple = Object::checked(named ? PyStructSequence_New(type) : PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    // A struct sequence is a tuple: same items.
    PyTuple_SET_ITEM(tuple.get(), i, Object::checked(wrap_value(results[i])).release());
  }
  return tuple.release();
}

// ---- the call ----

bool is_large_call(const Signature& signature, Frame& frame) {
  const Value* values = frame.values();
  for (size_t i = 0; i < frame.count(); ++i) {
    const Value& value = values[i];
    if (value.tag() == ValueTag::Tensor) {
      if (is_large(value.to_tensor())) return true;
    } else if (value.tag() == ValueTag::TensorList) {
      for (const Tensor& tensor : value.to_tensors()) {
        if (tensor.defined() && is_large(tensor)) return true;
      }
    } else if (signature.factory && value.tag() == ValueTag::IntSpan) {
      double bytes = 8;
      for (int64_t size : value.to_ints()) bytes *= static_cast<double>(size);
      if (bytes >= static_cast<double>(kLargeBytes)) return true;
    }
  }
  return false;
}

[[gnu::always_inline]] inline PyObject* run(Signature& signature, Frame& frame) {
  Value results[kMaxResults];
  if (is_large_call(signature, frame)) [[unlikely]] {
    ReleaseGil release;
    signature.record->call(frame.values(), results);
  } else {
    signature.record->call(frame.values(), results);
  }
  if (frame.requires_grad) [[unlikely]]
    autograd::set_requires_grad(results[0].to_tensor(), true);
  return wrap_results(signature, results);
}

Arguments arguments_of(const CallArgs& call) {
  return {nullptr, call.args, call.count, call.names};
}

PyObject* run_recorded(PyObject* self, OpGroup& group, const CallArgs& call);

// Where an argument stands among those given, by its place or its name.
std::optional<size_t> place_of(const CallArgs& call, size_t position, const char* name) {
  if (position < call.count) return position;
  for (size_t i = 0; i < call.name_count(); ++i) {
    PyObject* const given = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i));
    if (PyUnicode_CompareWithASCIIString(given, name) == 0) return call.count + i;
  }
  return {};
}

bool starts_with_number(const OpGroup& group, const CallArgs& call) {
  const auto takes = [&](uint8_t what) {
    return std::ranges::any_of(
        group.records, [what](const OpRecord* record) { return (record->variants & what) != 0; });
  };
  if (group.method || !takes(kNumberFirst)) return false;
  const auto first = place_of(call, 0, "input"), second = place_of(call, 1, "other");
  return first && second && is_number(call.args[*first]) &&
         (is_plain_tensor(call.args[*second]) ||
          (is_number(call.args[*second]) && takes(kTwoNumbers)));
}

// The tensor in place of a number. Made by an operator while a trace records: a tensor of unknown
// origin would be a constant that the trace warns of.
Object number_operand(const char* op, const Scalar& number, PyObject* other) {
  const Tensor operand = is_plain_tensor(other) ? number_beside(op, number, unwrap(other))
                                                : Tensor::scalar(number, number.dtype());
  if (!trace_records()) return Object::checked(wrap(operand));
  const Object weft = Object::checked(PyImport_ImportModule("weft"));
  const Object make = Object::checked(PyObject_GetAttrString(weft.get(), "scalar_tensor"));
  const Object value = Object::checked(from_scalar(number));
  const Object args = Object::checked(PyTuple_Pack(1, value.get()));
  const Object names = Object::checked(PyDict_New());
  check_status(PyDict_SetItemString(names.get(), "dtype", dtype_object(operand.dtype())));
  return Object::checked(PyObject_Call(make.get(), args.get(), names.get()));
}

// add(2, x), add(2, other=x), add(2, 3): the number as a tensor, and the call again.
PyObject* run_number_first(PyObject* self, OpGroup& group, const CallArgs& call) {
  const size_t place = *place_of(call, 0, "input");
  Scalar number;
  if (!to_scalar(call.args[place], &number)) raise_mismatch(group.name, *group.signatures, call);
  PyObject* const other = call.args[*place_of(call, 1, "other")];
  const Object first = number_operand(group.name, number, other);
  std::vector<PyObject*> args(call.args, call.args + call.count + call.name_count());
  args[place] = first.get();
  return run_recorded(self, group, {args.data(), call.count, call.names});
}

PyObject* run_old_order(PyObject* self, OpGroup& group, const OldOrder& order) {
  static std::atomic<bool> warned{false};  // as PyTorch: one warning, whichever operator it is
  if (!warned.exchange(true)) {
    warn(str(group.name, ": numbers before or between the tensors are deprecated: give '",
             utf8(order.names.back()), "' by its name"));
  }
  const Object names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(order.names.size())));
  for (size_t i = 0; i < order.names.size(); ++i) {
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), new_ref(order.names[i]));
  }
  return run_recorded(self, group, {order.args.data(), order.count, names.get()});
}

// No signature fits: tensors of classes that answer for themselves are among what does not, a
// number stands first, or numbers stand between the tensors.
[[gnu::noinline, gnu::cold]] PyObject* run_unfit(PyObject* self, OpGroup& group,
                                                 const CallArgs& call) {
  if (any_overrides(arguments_of(call))) return ask_function(self, arguments_of(call));
  const auto signature = std::ranges::find_if(*group.signatures, [](const Signature& candidate) {
    return (candidate.record->variants & kNumbersBetween) != 0;
  });
  if (signature != group.signatures->end()) {
    const auto order = old_order(*signature, call, group.method);
    if (order) return run_old_order(self, group, *order);
  }
  if (starts_with_number(group, call)) return run_number_first(self, group, call);
  raise_mismatch(group.name, *group.signatures, call);
}

[[gnu::always_inline]] inline PyObject* run_first(PyObject* self, OpGroup& group,
                                                  const CallArgs& call) {
  Frame frame;
  for (Signature& signature : *group.signatures) {
    if (bind_call(signature, call, frame, nullptr)) return run(signature, frame);
  }
  return run_unfit(self, group, call);
}

// Binding runs unrecorded as well: it may ask tensors for their numbers.
[[gnu::noinline, gnu::cold]] PyObject* run_traced(PyObject* self, OpGroup& group,
                                                  const CallArgs& call) {
  Object given, result;
  const char* schema = nullptr;
  const bool performs = trace_performs();
  {
    PauseTrace pause;
    Frame frame;
    for (Signature& signature : *group.signatures) {
      if (!bind_call(signature, call, frame, nullptr)) continue;
      given = given_arguments(signature, call);
      schema = signature.record->schema;
      if (!performs) result = Object::checked(run(signature, frame));
      break;
    }
  }
  if (!schema) return run_unfit(self, group, call);
  if (performs) return trace_perform(schema, given.get()).release();
  return trace_operator(schema, given.get(), result.get()).release();
}

PyObject* run_recorded(PyObject* self, OpGroup& group, const CallArgs& call) {
  return trace_records() ? run_traced(self, group, call) : run_first(self, group, call);
}

// Somebody traces, or has a mode; perhaps another thread.
[[gnu::noinline, gnu::cold]] PyObject* run_watched(PyObject* self, OpGroup& group,
                                                   const CallArgs& call) {
  if (function_mode_asks()) return ask_function(self, arguments_of(call));
  return run_recorded(self, group, call);
}

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  return guarded([&]() -> PyObject* {
    OpGroup& group = group_of(self);
    CallArgs call{args, static_cast<size_t>(PyVectorcall_NARGS(flags)), names};
    if (watch_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return run_watched(self, group, call);
    return run_first(self, group, call);
  });
}

// ---- the rest of the object ----

PyObject* op_descr_get(PyObject* self, PyObject* instance, PyObject*) {
  return instance ? PyMethod_New(self, instance) : new_ref(self);
}

PyObject* op_repr(PyObject* self) {
  OpGroup* group = reinterpret_cast<OpObject*>(self)->group;
  return PyUnicode_FromFormat(
      group->method ? "<method '%s' of 'weft.Tensor' objects>" : "<built-in function %s>",
      group->name);
}

PyObject* op_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<OpObject*>(self)->group->name);
}
PyObject* op_qualname(PyObject* self, void*) {
  OpGroup* group = reinterpret_cast<OpObject*>(self)->group;
  return PyUnicode_FromFormat(group->method ? "Tensor.%s" : "%s", group->name);
}
PyObject* op_module(PyObject*, void*) { return PyUnicode_FromString("weft"); }

const OpDocs& docs_of(const Signature& signature) {
  return kOpDocs[signature.record - op_records().data()];
}

// The signatures with the same text, that text, the next ones; the example of all.
PyObject* op_doc(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const std::vector<Signature>& all = *group_of(self).signatures;
    std::string text;
    std::vector<std::string_view> told;
    for (const Signature& signature : all) {
      const std::string_view doc = docs_of(signature).doc;
      if (std::ranges::find(told, doc) != told.end()) continue;
      told.push_back(doc);
      for (const Signature& other : all)
        if (docs_of(other).doc == doc) text += other.text() + "\n";
      text.append("\n").append(doc).append("\n\n");
    }
    text += docs_of(all.front()).example;
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

// The schema strings, as the table has them.
PyObject* op_overloads(PyObject* self, void*) {
  OpGroup* group = reinterpret_cast<OpObject*>(self)->group;
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(group->records.size()));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < group->records.size(); ++i) {
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i),
                     PyUnicode_FromString(group->records[i]->schema));
  }
  return tuple;
}

// A function is pickled by its name in weft, a method as getattr(Tensor, name).
PyObject* op_reduce(PyObject* self, PyObject*) {
  OpGroup* group = reinterpret_cast<OpObject*>(self)->group;
  if (!group->method) return PyUnicode_FromString(group->name);
  PyObject* builtins = PyEval_GetBuiltins();
  return Py_BuildValue("O(Os)", PyDict_GetItemString(builtins, "getattr"), tensor_type,
                       group->name);
}

void op_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef op_methods[] = {
    {"__reduce__", op_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef op_getset[] = {
    {"__name__", op_name, nullptr, nullptr, nullptr},
    {"__qualname__", op_qualname, nullptr, nullptr, nullptr},
    {"__module__", op_module, nullptr, nullptr, nullptr},
    {"__doc__", op_doc, nullptr, nullptr, nullptr},
    {"overloads", op_overloads, nullptr, "The schemas of the table behind this name.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyTypeObject* make_type(const char* name, bool method) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
      {Py_tp_methods, op_methods},
      {Py_tp_getset, op_getset},
      {Py_tp_members, op_members},
      {method ? Py_tp_descr_get : 0, reinterpret_cast<void*>(op_descr_get)},
      {0, nullptr},
  };
  unsigned flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  if (method) flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Spec spec = {name, sizeof(OpObject), 0, flags, slots};
  return reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
}

PyObject* make_op(PyTypeObject* type, OpGroup* group) {
  PyObject* object = Object::checked(type->tp_alloc(type, 0)).release();
  reinterpret_cast<OpObject*>(object)->vectorcall = op_vectorcall;
  reinterpret_cast<OpObject*>(object)->group = group;
  make_immortal(object);
  return object;
}

using Groups = std::map<std::string_view, std::unique_ptr<OpGroup>>;

constexpr uint8_t kEveryRecord = 0;

Groups group_records(uint8_t variant, bool method) {
  Groups groups;
  for (const OpRecord& record : op_records()) {
    if (variant != kEveryRecord && !(record.variants & variant)) continue;
    std::unique_ptr<OpGroup>& group = groups[record.name];
    if (!group) group = std::make_unique<OpGroup>(OpGroup{record.name, method, {}});
    group->records.push_back(&record);
  }
  return groups;
}

void add_all(Groups groups, PyTypeObject* type, PyObject* dict) {
  for (auto& [name, group] : groups) {
    Object op = Object::steal(make_op(type, group.release()));
    // What is written by hand wins over the table.
    if (!PyDict_GetItemString(dict, name.data())) {
      check_status(PyDict_SetItemString(dict, name.data(), op.get()));
    }
  }
}

}  // namespace

void init_op_functions(PyObject* module) {
  function_type = make_type("weft._C.OpFunction", false);
  method_type = make_type("weft._C.OpMethod", true);
  add_object(module, "_OpFunction", reinterpret_cast<PyObject*>(function_type));
  add_object(module, "_OpMethod", reinterpret_cast<PyObject*>(method_type));

  Object functions = Object::checked(PyDict_New());
  add_all(group_records(kFunction, false), function_type, functions.get());
  add_object(module, "_functions", functions.get());

  add_all(group_records(kMethod, true), method_type, tensor_type->tp_dict);
  PyType_Modified(tensor_type);

  Object neural = Object::checked(PyModule_New("weft._C._nn"));
  add_all(group_records(kNeural, false), function_type, PyModule_GetDict(neural.get()));
  add_object(module, "_nn", neural.get());

  // Every row, also those that only gradients and archives call.
  Object aten = Object::checked(PyModule_New("weft._C._aten"));
  add_all(group_records(kEveryRecord, false), function_type, PyModule_GetDict(aten.get()));
  add_object(module, "_aten", aten.get());
}

}  // namespace weft::py
