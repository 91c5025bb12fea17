// Storages for pickling and copying: a storage in Python is a uint8 tensor over all of its bytes.
#include "autograd/node.h"
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"

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
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    dims.push_back(int_arg(op, name, PySequence_Fast_ITEMS(object)[i]));
  }
  return dims;
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
    Tensor whole(unwrap(bytes).storage(), Layout::contiguous(Dims{0}), type);
    return wrap(whole.with_layout(std::move(layout), op));
  });
}

PyMethodDef functions[] = {
    {"_storage_view", storage_view, METH_O, nullptr},
    {"_from_storage", fast(from_storage), kFast, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_storage_face(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
