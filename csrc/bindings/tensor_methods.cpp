// Methods of weft.Tensor that are no operators of the table: what it is, and its exchange with
// Python.
#include "bindings/tensor_methods.h"

#include "bindings/args.h"
#include "bindings/facts.h"
#include "core/meta.h"
#include "ops_views.h"

namespace weft::py {
namespace {

int64_t rank(const Tensor& t) { return t.dim(); }
int64_t count(const Tensor& t) { return t.numel(); }

PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [dim] = parse_args("size", {"dim"}, 0, args, count, names);
    if (absent(dim)) return wrap_size(unwrap(self).sizes());
    return PyLong_FromLongLong(unwrap(self).size(int_arg("size", "dim", dim)));
  });
}

PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [dim] = parse_args("stride", {"dim"}, 0, args, count, names);
    const Tensor& tensor = unwrap(self);
    if (!absent(dim)) return PyLong_FromLongLong(tensor.stride(int_arg("stride", "dim", dim)));
    Object tuple = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(tensor.dim())));
    for (size_t i = 0; i < tensor.strides().size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyLong_FromLongLong(tensor.strides()[i]));
    }
    return tuple.release();
  });
}

const void* data_ptr(const Tensor& t) {
  t.storage()->set(kExposed);
  return t.numel() > 0 && meta::shown_address(*t.storage()) ? t.address() : nullptr;
}
template <StorageFlags flag>
bool lies_in(const Tensor& t) {
  return t.storage()->has(flag);
}

PyObject* is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [format] = parse_args("is_contiguous", {"memory_format"}, 0, args, count, names);
    int64_t code = 0;
    WEFT_CHECK_TYPE(absent(format) || to_memory_format(format, &code),
                    "is_contiguous: expected argument 'memory_format' of type memory_format, got ",
                    short_type_name(format));
    return PyBool_FromLong(unwrap(self).layout().has_format(static_cast<MemoryFormat>(code)));
  });
}

PyObject* is_set_to(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    WEFT_CHECK_TYPE(is_tensor(other), "is_set_to: expected a Tensor, got ", short_type_name(other));
    const Tensor &a = unwrap(self), &b = unwrap(other);
    return PyBool_FromLong(a.storage() == b.storage() && a.layout() == b.layout() &&
                           a.dtype() == b.dtype());
  });
}

// ---- subclasses ----

// _make_subclass(cls, data, require_grad=False): `data` without its history, as an object of cls.
PyObject* make_subclass(PyObject* cls, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [type, data, flag] =
        parse_args("_make_subclass", {"cls", "data", "require_grad"}, 2, args, count, names);
    (void)cls;
    WEFT_CHECK_TYPE(
        PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type),
        "_make_subclass: expected a subclass of Tensor, got ", short_type_name(type));
    WEFT_CHECK_TYPE(is_tensor(data),
                    "_make_subclass: expected argument 'data' of type Tensor, got ",
                    short_type_name(data));
    before_memory(data);
    Tensor tensor = autograd::detach(unwrap(data));
    if (bool_arg("_make_subclass", "require_grad", flag, false))
      autograd::set_requires_grad(tensor, true);
    return wrap_as(reinterpret_cast<PyTypeObject*>(type), std::move(tensor));
  });
}

PyObject* as_subclass(PyObject* self, PyObject* type) {
  return guarded([&]() -> PyObject* {
    WEFT_CHECK_TYPE(
        PyType_Check(type) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type),
        "as_subclass: expected a subclass of Tensor, got ", short_type_name(type));
    return wrap_as(reinterpret_cast<PyTypeObject*>(type), ops::alias(unwrap(self)));
  });
}

}  // namespace

PyMethodDef tensor_methods[] = {
    {"size", fast(Traced<"size", size>::call), kFast,
     "size(dim=None): all sizes, or that of one dimension."},
    {"stride", fast(Traced<"stride", stride>::call), kFast,
     "stride(dim=None): all strides in elements, or that of one dimension."},
    method<"dim", kOverride, rank>("Number of dimensions."),
    {"ndimension", Overridable<"dim", fact_of<rank, PyObject>>::call, METH_NOARGS,
     "Number of dimensions."},
    method<"numel", kBoth, count>("Number of elements."),
    {"nelement", Traced<"numel", fact_of<count, PyObject>>::call, METH_NOARGS,
     "Number of elements."},
    method<"element_size", kOverride,
           [](const Tensor& t) { return static_cast<int64_t>(t.item_size()); }>(
        "Bytes of one element."),
    method<"storage_offset", kBoth, [](const Tensor& t) { return t.offset(); }>(
        "Place of the first element in the storage, in elements."),
    method<"data_ptr", kOverride, data_ptr>("Address of the first element; 0 without elements."),
    method<"get_device", kOverride,
           [](const Tensor& t) { return t.on_cpu() ? int64_t{-1} : int64_t{t.device().index}; }>(
        "Index of the GPU; -1 for the CPU."),
    method<"is_floating_point", kOverride, [](const Tensor& t) { return is_floating(t.dtype()); }>(
        "Whether the dtype is floating."),
    method<"is_complex", kOverride, [](const Tensor& t) { return is_complex(t.dtype()); }>(
        "Whether the dtype is complex."),
    method<"is_signed", kOverride,
           [](const Tensor& t) {
             return PyObject_GetAttrString(dtype_object(t.dtype()), "is_signed");
           }>("Whether the dtype has negative numbers."),
    method<"is_shared", kOverride, lies_in<kShared>>("Whether the storage is shared by processes."),
    method<"is_pinned", kOverride, lies_in<kPinned>>("Whether the storage is pinned."),
    method<"_is_view", kOverride, autograd::is_view>("Whether it is a view for autograd."),
    // Beyond PyTorch: writing to such a tensor raises.
    method<"is_read_only", Hooks::None, lies_in<kReadOnly>>("Whether writing to it raises."),
    {"is_contiguous", fast(Overridable<"is_contiguous", is_contiguous>::call), kFast,
     "is_contiguous(memory_format=weft.contiguous_format)"},
    {"is_set_to", Overridable<"is_set_to", is_set_to>::call, METH_O,
     "Whether both show the same elements of one storage."},
    // That tensors over one storage share; pickling and tests use it.
    method<"_storage_key", Hooks::None,
           [](const Tensor& t) -> const void* { return t.storage().get(); }>(nullptr),
    {"item", Traced<"item", tensor_item>::call, METH_NOARGS, "The one element as a Python number."},
    {"tolist", Traced<"tolist", tensor_tolist>::call, METH_NOARGS,
     "The elements as nested lists; a number for a 0-d tensor."},
    {"__complex__", Traced<"__complex__", tensor_complex>::call, METH_NOARGS, nullptr},
    {"numpy", fast(Traced<"numpy", tensor_numpy_method>::call), kFast,
     "numpy(*, force=False): an array over the same memory."},
    {"__array__", fast(Traced<"__array__", tensor_array_method>::call), kFast, nullptr},
    {"__dlpack__", fast(Traced<"__dlpack__", tensor_dlpack>::call), kFast, nullptr},
    {"__dlpack_device__", Overridable<"__dlpack_device__", tensor_dlpack_device>::call, METH_NOARGS,
     nullptr},
    {"_make_subclass", fast(make_subclass), kFast | METH_STATIC, nullptr},
    {"as_subclass", Recorded<"as_subclass", as_subclass>::call, METH_O,
     "The same tensor as an object of a subclass."},

    method<"detach", kBoth, autograd::detach>("The same elements without history."),
    method<"is_inference", kOverride, [](const Tensor& t) { return t.impl()->inference; }>(
        "Whether it was made under inference_mode."),
    {"detach_", Traced<"detach_", tensor_detach_>::call, METH_NOARGS,
     "Drops the history in place."},
    {"requires_grad_", fast(Traced<"requires_grad_", tensor_requires_grad_>::call), kFast,
     "requires_grad_(requires_grad=True)"},
    {"retain_grad", Traced<"retain_grad", tensor_retain_grad>::call, METH_NOARGS,
     "Asks backward to keep .grad of this non-leaf."},
    {"backward", fast(Traced<"backward", tensor_backward>::call), kFast,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)"},

    {"to", fast(Traced<"to", tensor_to>::call), kFast,
     "to(dtype | device | other, non_blocking=False, copy=False)"},
    {"cpu", fast(Traced<"cpu", tensor_cpu>::call), kFast,
     "The tensor itself when it is on the CPU, else a copy there."},
    {"type", fast(Traced<"type", tensor_type_method>::call), kFast, "type(dtype=None)"},
    {"type_as", fast(Traced<"type_as", tensor_type_as>::call), kFast,
     "Converted to the dtype of another tensor."},
    {"float", fast(Traced<"float", tensor_to_dtype<DType::F32>>::call), kFast,
     "float(memory_format=weft.preserve_format): to float32."},
    {"double", fast(Traced<"double", tensor_to_dtype<DType::F64>>::call), kFast,
     "double(memory_format=weft.preserve_format): to float64."},
    {"half", fast(Traced<"half", tensor_to_dtype<DType::F16>>::call), kFast,
     "half(memory_format=weft.preserve_format): to float16."},
    {"bfloat16", fast(Traced<"bfloat16", tensor_to_dtype<DType::BF16>>::call), kFast,
     "bfloat16(memory_format=weft.preserve_format): to bfloat16."},
    {"long", fast(Traced<"long", tensor_to_dtype<DType::I64>>::call), kFast,
     "long(memory_format=weft.preserve_format): to int64."},
    {"int", fast(Traced<"int", tensor_to_dtype<DType::I32>>::call), kFast,
     "int(memory_format=weft.preserve_format): to int32."},
    {"short", fast(Traced<"short", tensor_to_dtype<DType::I16>>::call), kFast,
     "short(memory_format=weft.preserve_format): to int16."},
    {"char", fast(Traced<"char", tensor_to_dtype<DType::I8>>::call), kFast,
     "char(memory_format=weft.preserve_format): to int8."},
    {"byte", fast(Traced<"byte", tensor_to_dtype<DType::U8>>::call), kFast,
     "byte(memory_format=weft.preserve_format): to uint8."},
    {"bool", fast(Traced<"bool", tensor_to_dtype<DType::Bool>>::call), kFast,
     "bool(memory_format=weft.preserve_format): to bool."},
    {"chalf", fast(Traced<"chalf", tensor_to_dtype<DType::C32>>::call), kFast,
     "chalf(memory_format=weft.preserve_format): to complex32."},
    {"cfloat", fast(Traced<"cfloat", tensor_to_dtype<DType::C64>>::call), kFast,
     "cfloat(memory_format=weft.preserve_format): to complex64."},
    {"cdouble", fast(Traced<"cdouble", tensor_to_dtype<DType::C128>>::call), kFast,
     "cdouble(memory_format=weft.preserve_format): to complex128."},
    {"view_as", fast(Traced<"view_as", tensor_view_as>::call), kFast, "view(other.shape)"},
    {"reshape_as", fast(Traced<"reshape_as", tensor_reshape_as>::call), kFast,
     "reshape(other.shape)"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace weft::py
