// Storages in Python: what weft.storage, pickling and copying are made of. A storage is passed as
// any tensor over it.
#include <algorithm>

#include "autograd/node.h"
#include "autograd/out.h"
#include "autograd/placement.h"
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"
#include "core/meta.h"
#include "ops_views.h"

namespace weft::py {
namespace {

PyObject* storage_view(PyObject*, PyObject* tensor) {
  return guarded([&] {
    WEFT_CHECK_TYPE(is_tensor(tensor), "_storage_view: expected a Tensor, got ",
                    short_type_name(tensor));
    const Ref<Storage>& storage = unwrap(tensor).storage();
    Layout layout = Layout::contiguous(Dims{static_cast<int64_t>(storage->nbytes())});
    return wrap(Tensor(storage, std::move(layout), DType::U8));
  });
}

Dims dims_arg(const char* op, const char* name, PyObject* object) {
  WEFT_CHECK_TYPE(PyTuple_Check(object) || PyList_Check(object), op, ": expected argument '", name,
                  "' of type tuple of ints, got ", short_type_name(object));
  Dims dims;
  for (PyObject* const item : Items(object)) dims.push_back(int_arg(op, name, item));
  return dims;
}

const Tensor& tensor_arg(const char* op, const char* name, PyObject* object) {
  WEFT_CHECK_TYPE(is_tensor(object), op, ": expected argument '", name, "' of type Tensor, got ",
                  short_type_name(object));
  return unwrap(object);
}

// _from_storage(bytes, dtype, size, stride, offset): whatever a pickle says, the layout is checked.
PyObject* from_storage(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    constexpr const char* op = "_from_storage";
    auto [bytes, dtype, size, stride, offset] =
        parse_args(op, {"bytes", "dtype", "size", "stride", "offset"}, 5, args, count, names);
    WEFT_CHECK_TYPE(is_tensor(bytes), op, ": expected argument 'bytes' of type Tensor, got ",
                    short_type_name(bytes));
    Layout layout{dims_arg(op, "size", size), dims_arg(op, "stride", stride),
                  int_arg(op, "offset", offset)};
    WEFT_CHECK(layout.sizes.size() == layout.strides.size(), op,
               ": expected as many strides as sizes, got ", layout.strides.size(), " and ",
               layout.sizes.size());
    checked_numel(op, layout.sizes);
    DType type = dtype_arg(op, dtype).value_or(default_dtype());
    return wrap(autograd::over_storage(op, unwrap(bytes).storage(), type, std::move(layout)));
  });
}

// ---- what a storage is ----

// _storage_info(tensor): a tuple, named by weft.storage.
PyObject* storage_info(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const Storage& s = *tensor_arg("_storage_info", "tensor", tensor).storage();
    const char* allocator = s.allocator() ? s.allocator()->name() : nullptr;
    auto flag = [&](StorageFlags which) { return s.has(which) ? Py_True : Py_False; };
    return Py_BuildValue("(NnnzOOOOIII)", PyLong_FromVoidPtr(meta::shown_address(s)),
                         static_cast<Py_ssize_t>(s.nbytes()), static_cast<Py_ssize_t>(s.capacity()),
                         allocator, flag(kReadOnly), flag(kShared), flag(kPinned), flag(kForeign),
                         s.holds(), s.use_count(), s.version());
  });
}

size_t byte_count(const char* op, int64_t count) {
  WEFT_CHECK(count >= 0, op, ": expected at least 0 bytes, got ", count);
  return static_cast<size_t>(count);
}

PyObject* storage_resize(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    constexpr const char* op = "resize_";
    auto [tensor, nbytes] = parse_args(op, {"tensor", "nbytes"}, 2, args, count, names);
    Storage& storage = *tensor_arg(op, "tensor", tensor).storage();
    storage.resize(byte_count(op, int_arg(op, "nbytes", nbytes)));
    Py_RETURN_NONE;
  });
}

// ---- tensors over other memory ----

// _set(target, source, size, stride, offset): target lies over the storage of source from now on.
PyObject* set(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    constexpr const char* op = "set_";
    auto [target, source, size, stride, offset] =
        parse_args(op, {"tensor", "source", "size", "stride", "offset"}, 5, args, count, names);
    const Tensor& tensor = tensor_arg(op, "tensor", target);
    Layout layout{dims_arg(op, "size", size), {}, int_arg(op, "offset", offset)};
    checked_numel(op, layout.sizes);
    layout.strides =
        absent(stride) ? contiguous_strides(layout.sizes) : dims_arg(op, "stride", stride);
    WEFT_CHECK(layout.sizes.size() == layout.strides.size(), op,
               ": expected as many strides as sizes, got ", layout.strides.size(), " and ",
               layout.sizes.size());
    autograd::set_storage(op, tensor, tensor_arg(op, "source", source).storage(),
                          std::move(layout));
    return new_ref(target);
  });
}

// _resize(tensor, size): see autograd::resize.
PyObject* resize(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    constexpr const char* op = "resize_";
    auto [target, size] = parse_args(op, {"tensor", "size"}, 2, args, count, names);
    const Tensor& tensor = tensor_arg(op, "tensor", target);
    autograd::resize(op, tensor, dims_arg(op, "size", size));
    tensor.bump_version();  // a graph that saved the tensor must notice
    return new_ref(target);
  });
}

// _write_out(function, result, out, casts): see autograd::write_out and cast_out.
PyObject* write_out(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    auto [function, result, out, casts] =
        parse_args("_write_out", {"function", "result", "out", "casts"}, 4, args, count, names);
    const std::string op(utf8(function));
    const Tensor& made = tensor_arg(op.c_str(), "result", result);
    const Tensor& target = tensor_arg(op.c_str(), "out", out);
    autograd::check_out_graph(op.c_str(), autograd::needs_graph(made, target));
    const auto write = casts == Py_True ? autograd::cast_out : autograd::write_out;
    write(op.c_str(), made, target);
    return new_ref(out);
  });
}

// ---- view(dtype) ----

// Tensor.view of the table takes sizes; a dtype comes here.
PyObject* view_sizes = nullptr;

PyObject* view(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  DType dtype;
  PyObject* only = count + (names ? PyTuple_GET_SIZE(names) : 0) == 1 ? args[0] : nullptr;
  if (only && Py_TYPE(only) == Py_TYPE(dtype_object(DType::F32)) && to_dtype(only, &dtype))
    return guarded([&] { return wrap(ops::view(unwrap(self), dtype)); });
  // One place is free in front of the arguments for self.
  constexpr Py_ssize_t kInline = 8;
  PyObject* stack[kInline];
  const Py_ssize_t total = count + 1 + (names ? PyTuple_GET_SIZE(names) : 0);
  if (total > kInline) {
    Object rest = Object::steal(PyTuple_New(total));
    if (!rest) return nullptr;
    PyTuple_SET_ITEM(rest.get(), 0, new_ref(self));
    for (Py_ssize_t i = 1; i < total; ++i) PyTuple_SET_ITEM(rest.get(), i, new_ref(args[i - 1]));
    auto** items = &PyTuple_GET_ITEM(rest.get(), 0);
    return PyObject_Vectorcall(view_sizes, items, static_cast<size_t>(count + 1), names);
  }
  stack[0] = self;
  std::copy_n(args, total - 1, stack + 1);
  return PyObject_Vectorcall(view_sizes, stack, static_cast<size_t>(count + 1), names);
}

PyMethodDef view_method = {"view", fast(Traced<"view", view>::call), kFast,
                           "view(*size) or view(dtype)\n\nThe same memory with other sizes, or its "
                           "bytes as another dtype."};

PyMethodDef storage_functions[] = {
    {"_storage_view", Recorded<"weft._storage_view", storage_view>::call, METH_O, nullptr},
    {"_from_storage", fast(Recorded<"weft._from_storage", from_storage>::call), kFast, nullptr},
    {"_storage_info", storage_info, METH_O, nullptr},
    {"_storage_resize", fast(Recorded<"weft._storage_resize", storage_resize>::call), kFast,
     nullptr},
    {"_set", fast(Recorded<"weft._set", set>::call), kFast, nullptr},
    {"_resize", fast(Recorded<"weft._resize", resize>::call), kFast, nullptr},
    {"_write_out", fast(Recorded<"weft._write_out", write_out>::call), kFast, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_storage_methods(PyObject* module) {
  check_status(PyModule_AddFunctions(module, storage_functions));
}

void init_view_dtype() {
  PyObject* dict = tensor_type->tp_dict;
  view_sizes = new_ref(Object::borrow(PyDict_GetItemString(dict, "view")).get());
  Object method = Object::checked(PyDescr_NewMethod(tensor_type, &view_method));
  check_status(PyDict_SetItemString(dict, "view", method.get()));
  PyType_Modified(tensor_type);
}

}  // namespace weft::py
