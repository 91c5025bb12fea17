// Binding Python arguments to parameters: positions, names and their aliases, then conversion by
// kind.
#include "bindings/op_parse.h"

#include <algorithm>
#include <array>
#include <vector>

#include "autograd/node.h"
#include "bindings/bindings.h"
#include "bindings/torch_function.h"
#include "core/error.h"

namespace weft::py {
namespace {

// Names NumPy users write, the schema's own name for `input`, and those of torch.split and
// Tensor.copy_.
struct Alias {
  PyObject* given;
  PyObject* name;
};
const std::vector<Alias>& aliases() {
  auto alias = [](const char* given, const char* name) {
    return Alias{PyUnicode_InternFromString(given), PyUnicode_InternFromString(name)};
  };
  static const std::vector<Alias> all{
      alias("self", "input"),
      alias("axis", "dim"),
      alias("keepdims", "keepdim"),
      alias("a", "input"),
      alias("x", "input"),
      alias("x1", "input"),
      alias("x2", "other"),
      alias("tensor", "input"),
      alias("split_size_or_sections", "split_size"),
      alias("other", "src"),
  };
  return all;
}

int find_exact(const Signature& signature, PyObject* name) {
  for (size_t i = 0; i < signature.params.size(); ++i) {
    if (signature.params[i].key == name) return static_cast<int>(i);
  }
  return -1;
}

// All names are interned, those of a call nearly always: comparing pointers is enough.
int find_param(const Signature& signature, PyObject* name) {
  int at = find_exact(signature, name);
  if (at >= 0) return at;
  for (const Alias& alias : aliases()) {
    if (alias.given == name) return find_exact(signature, alias.name);
  }
  if (PyUnicode_CHECK_INTERNED(name)) return -1;
  PyObject* interned = new_ref(name);
  PyUnicode_InternInPlace(&interned);
  Object held = Object::steal(interned);
  return find_param(signature, interned);
}

bool store_ints(PyObject* const* items, size_t count, Frame& frame, Value& out) {
  int64_t* slots = frame.ints(count);
  std::vector<int64_t> spill;
  if (!slots) {
    spill.resize(count);
    slots = spill.data();
  }
  for (size_t i = 0; i < count; ++i) {
    if (!to_size(items[i], &slots[i])) return false;
  }
  out = spill.empty() ? Value::borrow(IntList(slots, count)) : Value(std::move(spill));
  return true;
}

bool is_list(PyObject* object) { return PyTuple_Check(object) || PyList_Check(object); }

bool repeat_int(int64_t value, int64_t count, Frame& frame, Value& out) {
  int64_t* slots = frame.ints(static_cast<size_t>(count));
  WEFT_INTERNAL_ASSERT(slots);
  std::fill_n(slots, count, value);
  out = Value::borrow(IntList(slots, static_cast<size_t>(count)));
  return true;
}

// None for int[1] dim=[]: as if it were not given. Lists of sizes have no such default.
bool stands_for_default(const Param& param, PyObject* object) {
  return object == Py_None && param.list_size > 0 &&
         param.default_value.tag() == ValueTag::IntList && param.default_value.to_ints().empty();
}

bool convert_ints(const Param& param, PyObject* object, Frame& frame, Value& out) {
  if (stands_for_default(param, object)) return store_ints(nullptr, 0, frame, out);
  if (is_list(object)) {
    const Items items(object);
    int64_t only;
    if (items.size() == 1 && param.list_size > 1 && to_int(items[0], &only)) {
      return repeat_int(only, param.list_size, frame, out);
    }
    return store_ints(items.data(), items.size(), frame, out);
  }
  int64_t value;
  return param.list_size > 0 && to_int(object, &value) &&
         repeat_int(value, param.list_size, frame, out);
}

// `out=`: one tensor for each result.
bool convert_outs(const Param& param, PyObject* object, Value* outs) {
  if (!is_list(object)) return false;
  const Items items(object);  // borrowed from the caller, whose list must not lose them meanwhile
  if (items.size() != param.outs || !std::ranges::all_of(items, is_plain_tensor)) return false;
  for (size_t i = 0; i < param.outs; ++i) outs[i] = Frame::borrow(unwrap(items[i]));
  return true;
}

bool convert_tensors(const Param& param, PyObject* object, Value& out) {
  if (!is_list(object)) return false;
  const Items items(object);
  TensorList tensors;
  tensors.reserve(items.size());
  for (PyObject* const item : items) {
    if (is_plain_tensor(item)) {
      tensors.push_back(unwrap(item));
    } else if (param.element_optional && item == Py_None) {
      tensors.emplace_back();
    } else {
      return false;
    }
  }
  out = Value(std::move(tensors));
  return true;
}

template <class T, class Convert>
bool convert_list(PyObject* object, Convert convert, Value& out) {
  if (!is_list(object)) return false;
  const Items items(object);
  std::vector<T> values(items.size());
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    if (!convert(items[i], &value)) return false;
    values[i] = value;
  }
  out = Value(std::move(values));
  return true;
}

bool convert_scalar(const Param& param, PyObject* object, Value& out) {
  if (PyFloat_CheckExact(object)) {
    out = Value(PyFloat_AS_DOUBLE(object));
    return true;
  }
  if (is_plain_tensor(object)) {
    const Tensor& tensor = unwrap(object);
    // A number has no gradient: one that is asked for would be lost without a word.
    if (tensor.dim() != 0 || tensor.device().type == DeviceType::Meta ||
        (autograd::requires_grad(tensor) && !param.of_factory))
      return false;
    out = Value(tensor.item());
    return true;
  }
  Scalar scalar;
  if (!to_scalar(object, &scalar)) return false;
  out = Value(scalar);
  return true;
}

template <class T>
bool convert_with(bool (*convert)(PyObject*, T*), PyObject* object, Value& out) {
  T value;
  if (!convert(object, &value)) return false;
  out = Value(value);
  return true;
}

bool convert_generator(PyObject* object, Value& out) {
  Ref<Generator> generator;
  if (!to_generator(object, &generator)) return false;
  out = Value(std::move(generator));
  return true;
}

bool convert(const Param& param, PyObject* object, Frame& frame, Value& out) {
  if (object == Py_None && param.optional) return true;
  switch (param.kind) {
    case ArgumentKind::Tensor:
      if (!is_plain_tensor(object)) return false;
      out = Frame::borrow(unwrap(object));
      return true;
    case ArgumentKind::TensorList:
      if (param.outs > 0) return convert_outs(param, object, &out);
      return convert_tensors(param, object, out);
    case ArgumentKind::Int:
      return convert_with<int64_t>(to_int, object, out);
    case ArgumentKind::Float:
      return convert_with<double>(to_double, object, out);
    case ArgumentKind::Bool:
      return convert_with<bool>(to_bool, object, out);
    case ArgumentKind::Scalar:
      return convert_scalar(param, object, out);
    case ArgumentKind::IntList:
      return convert_ints(param, object, frame, out);
    case ArgumentKind::FloatList:
      return convert_list<double>(object, to_double, out);
    case ArgumentKind::BoolList:
      return convert_list<bool>(object, to_bool, out);
    case ArgumentKind::DType:
      return convert_with<DType>(to_dtype, object, out);
    case ArgumentKind::Device:
      return convert_with<Device>(to_device, object, out);
    case ArgumentKind::Layout:
      return convert_with<int64_t>(to_layout, object, out);
    case ArgumentKind::MemoryFormat:
      return convert_with<int64_t>(to_memory_format, object, out);
    case ArgumentKind::Generator:
      return convert_generator(object, out);
    case ArgumentKind::Str:
      if (!PyUnicode_Check(object)) return false;
      out = Value(program_text(object));
      return true;
    case ArgumentKind::Other:
      break;
  }
  __builtin_unreachable();
}

struct Binding {
  const Signature& signature;
  const CallArgs& call;
  Frame& frame;
  Mismatch* mismatch;
  PyObject* given[kMaxParams];  // set by run(): by parameter, null where not given

  Binding(const Signature& s, const CallArgs& c, Frame& f, Mismatch* m)
      : signature(s), call(c), frame(f), mismatch(m) {}

  bool fail(Mismatch::Kind kind, size_t progress, const Param* param, PyObject* object) {
    if (mismatch) *mismatch = {kind, progress, param, object};
    return false;
  }

  // view(2, 3): everything from the int[] parameter on is one list.
  bool spread() const {
    if (signature.varargs < 0) return false;
    auto at = static_cast<size_t>(signature.varargs);
    return call.count > at + 1 ||
           (call.count == at + 1 && !is_list(call.args[at]) && signature.params[at].list_size == 0);
  }

  PyObject* first_not_int(size_t from) const {
    int64_t ignored;
    while (from + 1 < call.count && to_int(call.args[from], &ignored)) ++from;
    return call.args[from];
  }

  bool take_names() {
    for (size_t i = 0; i < call.name_count(); ++i) {
      PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i));
      PyObject* object = call.args[call.count + i];
      int at = find_param(signature, name);
      if (at >= 0) {
        if (given[at]) return fail(Mismatch::GivenTwice, 0, nullptr, name);
        given[at] = object;
      } else if (object == Py_None && PyUnicode_CompareWithASCIIString(name, "out") == 0) {
        continue;
      } else if (signature.factory &&
                 PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0) {
        if (!to_bool(object, &frame.requires_grad))
          return fail(Mismatch::UnknownName, 0, nullptr, name);
      } else {
        return fail(Mismatch::UnknownName, 0, nullptr, name);
      }
    }
    return true;
  }

  bool convert_all(size_t spread_at) {
    size_t progress = 1;
    for (size_t i = 0; i < signature.params.size(); ++i) {
      const Param& param = signature.params[i];
      Value& out = frame.values()[param.slot];
      if (i == spread_at) {
        if (!store_ints(call.args + i, call.count - i, frame, out)) {
          return fail(Mismatch::Type, progress, &param, first_not_int(i));
        }
      } else if (given[i]) {
        if (!convert(param, given[i], frame, out)) {
          return fail(Mismatch::Type, progress, &param, given[i]);
        }
        ++progress;
      } else if (param.has_default()) {
        out = param.default_value;
      } else {
        return fail(Mismatch::Missing, progress, &param, nullptr);
      }
    }
    return true;
  }

  // Fills `given`; what is spread over the call is left out.
  [[gnu::always_inline]] bool collect(bool spreads) {
    size_t n = signature.params.size();
    size_t positional = spreads ? static_cast<size_t>(signature.varargs) : call.count;
    if (positional > signature.positional) return fail(Mismatch::TooMany, 0, nullptr, nullptr);
    frame.start(signature.record->arg_count);
    std::copy_n(call.args, positional, given);
    std::fill(given + positional, given + n, nullptr);
    return !call.names || take_names();
  }

  bool run() {
    bool spreads = spread();
    if (!collect(spreads)) return false;
    return convert_all(spreads ? static_cast<size_t>(signature.varargs) : signature.params.size());
  }

  Object objects() {
    bool spreads = spread();
    WEFT_INTERNAL_ASSERT(collect(spreads));
    Object tuple = Object::checked(PyTuple_New(signature.record->arg_count));
    for (size_t i = 0; i < signature.params.size(); ++i) {
      const Param& param = signature.params[i];
      PyObject* item = given[i] ? given[i] : Py_Ellipsis;
      for (size_t k = 0; k < std::max<size_t>(param.outs, 1); ++k) {
        PyObject* part = param.outs > 0 ? PySequence_Fast_GET_ITEM(item, k) : item;
        PyTuple_SET_ITEM(tuple.get(), param.slot + k, new_ref(part));
      }
    }
    if (!spreads) return tuple;
    auto at = static_cast<size_t>(signature.varargs);
    Object rest = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(call.count - at)));
    for (size_t i = at; i < call.count; ++i) {
      PyTuple_SET_ITEM(rest.get(), static_cast<Py_ssize_t>(i - at), new_ref(call.args[i]));
    }
    check_status(PyTuple_SetItem(tuple.get(), signature.params[at].slot, rest.release()));
    return tuple;
  }
};

std::string got(const Mismatch& mismatch) {
  if (mismatch.kind == Mismatch::Missing) return "nothing";
  PyObject* object = mismatch.object;
  // "tuple of ints" is wrong only because of what is inside.
  if (is_list(object) && mismatch.param->kind != ArgumentKind::Tensor) {
    for (PyObject* const item : Items(object)) {
      int64_t ignored;
      bool fits = mismatch.param->kind == ArgumentKind::TensorList ? is_tensor(item)
                                                                   : to_int(item, &ignored);
      if (!fits) return str(short_type_name(object), " with ", short_type_name(item));
    }
  }
  return std::string(short_type_name(object));
}

std::string complaint(const std::vector<Mismatch>& best, const CallArgs& call) {
  const Mismatch& first = best.front();
  switch (first.kind) {
    case Mismatch::Type:
    case Mismatch::Missing: {
      std::string types;
      for (const Mismatch& mismatch : best) {
        if (!mismatch.param || mismatch.param->key != first.param->key) continue;
        std::string type = describe(*mismatch.param);
        if (mismatch.param->optional) type += " or None";
        if (types.find(type) != std::string::npos) continue;
        types += (types.empty() ? "" : " or ") + type;
      }
      return str("argument '", first.param->key_text(), "' of type ", types, ", got ", got(first));
    }
    case Mismatch::UnknownName:
      return str("known argument names, got '", utf8(first.object), "'");
    case Mismatch::GivenTwice:
      return str("argument '", utf8(first.object), "' once, got it twice");
    default:
      return str("fewer positional arguments, got ", call.count);
  }
}

}  // namespace

bool bind_call(const Signature& signature, const CallArgs& call, Frame& frame, Mismatch* mismatch) {
  return Binding(signature, call, frame, mismatch).run();
}

[[gnu::cold]] Object given_arguments(const Signature& signature, const CallArgs& call) {
  Frame frame;
  return Binding(signature, call, frame, nullptr).objects();
}

void raise_mismatch(const char* name, const std::vector<Signature>& signatures,
                    const CallArgs& call) {
  // The overloads that got furthest speak.
  std::vector<Mismatch> best;
  Frame frame;
  for (const Signature& signature : signatures) {
    Mismatch mismatch;
    bind_call(signature, call, frame, &mismatch);
    if (!best.empty() && mismatch.progress < best.front().progress) continue;
    if (!best.empty() && mismatch.progress > best.front().progress) best.clear();
    best.push_back(mismatch);
  }
  std::string hint;
  for (const Signature& signature : signatures) {
    hint += (hint.empty() ? "" : " | ") + signature.text();
  }
  fail(ErrorKind::Type, str(name, ": expected ", complaint(best, call), "; accepted: ", hint));
}

}  // namespace weft::py
