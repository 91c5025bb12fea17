// Changing the dtype and the device of a tensor: to() and its many short names.
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/tensor_methods.h"
#include "bindings/tensor_object.h"
#include "ops_copying.h"
#include "ops_views.h"

namespace weft::py {
namespace {

// The tensor itself when nothing changes and no copy is asked for.
PyObject* convert(PyObject* self, std::optional<DType> dtype, bool copy,
                  std::optional<int64_t> format = {}, std::optional<Device> device = {}) {
  const Tensor& tensor = unwrap(self);
  DType target = dtype.value_or(tensor.dtype());
  const bool right_format =
      !format || tensor.layout().has_format(static_cast<MemoryFormat>(*format));
  const bool stays = !device || *device == tensor.device();
  if (target == tensor.dtype() && stays && !copy && right_format) return new_ref(self);
  Tensor result;
  {
    ReleaseGil release(is_large(tensor));
    result = ops::_to_copy(tensor, target, {}, device, {}, false, format);
  }
  return wrap(std::move(result));
}

std::optional<int64_t> format_arg(const char* op, PyObject* object) {
  if (absent(object)) return {};
  int64_t code;
  WEFT_CHECK_TYPE(to_memory_format(object, &code), op,
                  ": expected argument 'memory_format' of type memory_format, got ",
                  short_type_name(object));
  return code;
}

// The dtype of FloatTensor and its kind; of Tensor the default one.
DType dtype_of_class(PyObject* type) {
  if (type == reinterpret_cast<PyObject*>(tensor_type)) return default_dtype();
  Object member = Object::steal(PyObject_GetAttrString(type, "dtype"));
  if (!member) PyErr_Clear();
  DType dtype;
  if (!member || !to_dtype(member.get(), &dtype)) {
    fail(ErrorKind::Value, str("type: expected a dtype or a tensor type, got ",
                               reinterpret_cast<PyTypeObject*>(type)->tp_name));
  }
  return dtype;
}

// The method that converts to each dtype; null where there is none.
constexpr const char* kMethods[] = {"bool",     "byte",  "char",   "short",  "int",
                                    "long",     nullptr, nullptr,  nullptr,  "half",
                                    "bfloat16", "float", "double", "cfloat", "cdouble",
                                    nullptr,    nullptr, nullptr,  nullptr,  "chalf"};

struct ToArguments {
  PyObject *dtype = nullptr, *device = nullptr, *other = nullptr, *copy = nullptr,
           *format = nullptr;
  PyObject* non_blocking = nullptr;
};

// to(dtype, non_blocking, copy), to(device, dtype, non_blocking, copy), to(other, non_blocking,
// copy); every argument may come by name.
ToArguments parse_to(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  ToArguments out;
  Py_ssize_t next = 0;
  if (count > 0) {
    DType dtype;
    if (is_tensor(args[0])) {
      out.other = args[next++];
    } else if (to_dtype(args[0], &dtype)) {
      out.dtype = args[next++];
    } else {
      out.device = args[next++];
      if (count > 1 && !PyBool_Check(args[1])) out.dtype = args[next++];
    }
    if (next < count) out.non_blocking = args[next++];
    if (next < count) out.copy = args[next++];
    WEFT_CHECK_TYPE(next == count, "to: expected at most ", next, " positional arguments, got ",
                    count);
  }
  auto take = [&](PyObject* name, PyObject* value) {
    constexpr std::pair<const char*, PyObject * ToArguments::*> kNames[] = {
        {"dtype", &ToArguments::dtype},          {"device", &ToArguments::device},
        {"other", &ToArguments::other},          {"copy", &ToArguments::copy},
        {"memory_format", &ToArguments::format}, {"non_blocking", &ToArguments::non_blocking}};
    for (auto [text, member] : kNames) {
      if (PyUnicode_CompareWithASCIIString(name, text) != 0) continue;
      WEFT_CHECK_TYPE(!(out.*member), "to: expected argument '", text, "' once, got it twice");
      out.*member = value;
      return;
    }
    WEFT_CHECK_TYPE(false, "to: expected known argument names, got '", utf8(name), "'");
  };
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    take(PyTuple_GET_ITEM(names, i), args[count + i]);
  }
  return out;
}

}  // namespace

PyObject* tensor_to(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    ToArguments given = parse_to(args, count, names);
    std::optional<Device> device = device_arg("to", given.device);
    std::optional<DType> dtype = dtype_arg("to", given.dtype);
    if (!absent(given.other)) {
      WEFT_CHECK_TYPE(is_tensor(given.other), "to: expected argument 'other' of type Tensor, got ",
                      short_type_name(given.other));
      dtype = unwrap(given.other).dtype();
      device = unwrap(given.other).device();
    }
    const std::optional<int64_t> format = format_arg("to", given.format);
    return convert(self, dtype, bool_arg("to", "copy", given.copy, false), format, device);
  });
}

// type(): the old-style name, "torch.FloatTensor". type(dtype): as to(dtype).
PyObject* tensor_type_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                             PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [dtype, non_blocking] =
        parse_args("type", {"dtype", "non_blocking"}, 0, args, count, names);
    (void)non_blocking;
    if (absent(dtype)) {
      const std::string_view name = info_of(unwrap(self).dtype()).tensor_class;
      return PyUnicode_FromString(str("torch.", name, "Tensor").c_str());
    }
    if (PyUnicode_Check(dtype)) {
      std::string_view text = utf8(dtype);
      for (int i = 0; i < kDTypeCount; ++i) {
        if (text == str("torch.", kDTypes[i].tensor_class, "Tensor"))
          return convert(self, static_cast<DType>(i), false);
      }
      fail(ErrorKind::Value, str("type: expected the name of a tensor type, got \"", text, "\""));
    }
    if (PyType_Check(dtype)) return convert(self, dtype_of_class(dtype), false);
    return convert(self, dtype_arg("type", dtype), false);
  });
}

PyObject* tensor_cpu(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    auto [format] = parse_args("cpu", {"memory_format"}, 0, args, count, names);
    return convert(self, {}, false, format_arg("cpu", format), Device{});
  });
}

namespace {

// The tensor of x.view_as(other), or other=.
const Tensor& other_arg(const char* op, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  auto [other] = parse_args(op, {"other"}, 1, args, count, names);
  WEFT_CHECK_TYPE(is_tensor(other), op, ": expected a Tensor, got ", short_type_name(other));
  return unwrap(other);
}

}  // namespace

PyObject* tensor_type_as(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const Tensor& other = other_arg("type_as", args, count, names);
    return convert(self, other.dtype(), false, {}, other.device());
  });
}

PyObject* tensor_view_as(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    return wrap(ops::view(unwrap(self), other_arg("view_as", args, count, names).sizes()));
  });
}
PyObject* tensor_reshape_as(PyObject* self, PyObject* const* args, Py_ssize_t count,
                            PyObject* names) {
  return guarded([&] {
    return wrap(ops::reshape(unwrap(self), other_arg("reshape_as", args, count, names).sizes()));
  });
}

template <DType dtype>
PyObject* tensor_to_dtype(PyObject* self, PyObject* const* args, Py_ssize_t count,
                          PyObject* names) {
  return guarded([&] {
    constexpr const char* op = kMethods[static_cast<int>(dtype)];
    auto [format] = parse_args(op, {"memory_format"}, 0, args, count, names);
    return convert(self, dtype, false, format_arg(op, format));
  });
}
template PyObject* tensor_to_dtype<DType::F32>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::F64>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::F16>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::BF16>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::I64>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::I32>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::I16>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::I8>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::U8>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::Bool>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::C32>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::C64>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template PyObject* tensor_to_dtype<DType::C128>(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

}  // namespace weft::py
