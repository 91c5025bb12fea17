// Attributes of weft.Tensor.
#include "autograd/node.h"
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"
#include "core/error.h"
#include "ops_unary.h"
#include "ops_views.h"

namespace weft::py {
namespace {

template <class Fn>
PyObject* get(PyObject* self, Fn&& fn) {
  return guarded([&]() -> PyObject* { return fn(unwrap(self)); });
}
PyObject* py_bool(bool value) { return PyBool_FromLong(value); }

PyObject* get_shape(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap_size(t.sizes()); });
}
PyObject* get_dtype(PyObject* self, void*) { return new_ref(dtype_object(unwrap(self).dtype())); }
PyObject* get_device(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap_device(t.device()); });
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLongLong(unwrap(self).dim()); }
PyObject* get_layout(PyObject*, void*) { return new_ref(strided_object()); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(unwrap(self).item_size());
}
PyObject* get_nbytes(PyObject* self, void*) {
  const Tensor& tensor = unwrap(self);
  return PyLong_FromLongLong(tensor.numel() * static_cast<int64_t>(tensor.item_size()));
}
PyObject* get_version(PyObject* self, void*) {
  return get(self, [](const Tensor& t) {
    WEFT_CHECK(!t.impl()->inference,
               "_version: expected a tensor made outside of inference mode, got one made inside: "
               "inference tensors do not track version counter");
    return PyLong_FromUnsignedLong(t.version());
  });
}
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* get_is_cpu(PyObject* self, void*) {
  return py_bool(unwrap(self).device().type == DeviceType::CPU);
}
PyObject* get_is_meta(PyObject* self, void*) {
  return py_bool(unwrap(self).device().type == DeviceType::Meta);
}

// ---- autograd ----

PyObject* get_requires_grad(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return py_bool(autograd::requires_grad(t)); });
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    WEFT_CHECK_TYPE(value && PyBool_Check(value), "requires_grad: expected a bool, got ",
                    value ? short_type_name(value) : "del");
    autograd::set_requires_grad(unwrap(self), value == Py_True);
    return 0;
  });
}
PyObject* get_grad(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap(autograd::grad(t)); });
}
int set_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    bool clear = !value || value == Py_None;
    WEFT_CHECK_TYPE(clear || is_tensor(value), "grad: expected a Tensor or None, got ",
                    short_type_name(value));
    WEFT_CHECK(clear || value != self,
               "grad: expected another tensor than the one it belongs to, got the same");
    autograd::set_grad(unwrap(self), clear ? Tensor() : unwrap(value));
    return 0;
  });
}
PyObject* get_grad_fn(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap_node(autograd::grad_fn(t)); });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return py_bool(autograd::is_leaf(t)); });
}
PyObject* get_retains_grad(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return py_bool(autograd::retains_grad(t)); });
}
PyObject* get_output_nr(PyObject* self, void*) {
  return get(self,
             [](const Tensor& t) { return PyLong_FromUnsignedLong(autograd::result_index(t)); });
}
PyObject* get_base(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap(autograd::view_base(t)); });
}
PyObject* get_data(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap(autograd::data(t)); });
}
int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    WEFT_CHECK_TYPE(value && is_tensor(value), "data: expected a Tensor, got ",
                    value ? short_type_name(value) : "del");
    autograd::set_data(unwrap(self), unwrap(value));
    return 0;
  });
}

// ---- views ----

PyObject* get_T(PyObject* self, void*) {
  return get(self, [](const Tensor& t) {
    if (t.dim() == 2) return wrap(ops::t(t));
    Dims reversed;
    for (int64_t d = t.dim(); d-- > 0;) reversed.push_back(d);
    return wrap(ops::permute(t, reversed));
  });
}
Tensor matrix_transpose(const char* op, const Tensor& t) {
  if (t.dim() == 0) return t;
  WEFT_CHECK(t.dim() >= 2, op, ": expected a tensor with at least 2 dims, got shape ",
             AsTuple{t.sizes()});
  return ops::transpose(t, -2, -1);
}
Tensor conjugate_transpose(const char* op, const Tensor& t) {
  Tensor view = matrix_transpose(op, t);
  return is_complex(t.dtype()) ? ops::conj(view) : view;
}
PyObject* get_mT(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap(matrix_transpose("mT", t)); });
}
PyObject* get_mH(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap(conjugate_transpose("mH", t)); });
}
PyObject* get_H(PyObject* self, void*) {
  return get(self, [](const Tensor& t) {
    WEFT_CHECK(t.dim() == 0 || t.dim() == 2, "H: expected a tensor with 2 dims, got shape ",
               AsTuple{t.sizes()});
    return wrap(conjugate_transpose("H", t));
  });
}
PyObject* get_real(PyObject* self, void*) {
  if (!is_complex(unwrap(self).dtype())) return new_ref(self);
  return get(self, [](const Tensor& t) { return wrap(ops::real(t)); });
}
PyObject* get_imag(PyObject* self, void*) {
  return get(self, [](const Tensor& t) { return wrap(ops::imag(t)); });
}
// x.real = value, in which x.real *= 2 ends too: x.real[...] = value.
int set_part(PyObject* self, PyObject* value, void* name) {
  return guarded([&] {
    auto* part = static_cast<const char*>(name);
    WEFT_CHECK_TYPE(value, part, ": expected a value to set, got del");
    Object view = Object::checked(PyObject_GetAttrString(self, part));
    check_status(PyObject_SetItem(view.get(), Py_Ellipsis, value));
    return 0;
  });
}

}  // namespace

PyGetSetDef tensor_getset[] = {
    {"shape", Traced<"shape", get_shape>::call, nullptr, "Sizes of the dimensions.", nullptr},
    {"dtype", Traced<"dtype", get_dtype>::call, nullptr, "Type of the elements.", nullptr},
    {"device", Traced<"device", get_device>::call, nullptr, "Where the elements are.", nullptr},
    {"ndim", Overridable<"ndim", get_ndim>::call, nullptr, "Number of dimensions.", nullptr},
    {"layout", Overridable<"layout", get_layout>::call, nullptr, "weft.strided.", nullptr},
    {"itemsize", Overridable<"itemsize", get_itemsize>::call, nullptr, "Bytes of one element.",
     nullptr},
    {"nbytes", Traced<"nbytes", get_nbytes>::call, nullptr, "Bytes of all elements.", nullptr},
    {"requires_grad", Traced<"requires_grad", get_requires_grad>::call,
     Traced<"set_requires_grad", set_requires_grad>::call, "Whether operators on it are recorded.",
     nullptr},
    {"grad", Traced<"grad", get_grad>::call, Traced<"set_grad", set_grad>::call,
     "The gradient that backward left, or None.", nullptr},
    {"grad_fn", Overridable<"grad_fn", get_grad_fn>::call, nullptr,
     "The graph node that made it; None for leaves.", nullptr},
    {"is_leaf", Overridable<"is_leaf", get_is_leaf>::call, nullptr,
     "Whether no recorded operator made it.", nullptr},
    {"retains_grad", Overridable<"retains_grad", get_retains_grad>::call, nullptr,
     "Whether retain_grad() was asked for.", nullptr},
    {"output_nr", Overridable<"output_nr", get_output_nr>::call, nullptr,
     "Which result of its grad_fn it is.", nullptr},
    {"data", Traced<"data", get_data>::call, Traced<"set_data", set_data>::call,
     "The same elements without history.", nullptr},
    {"T", Traced<"T", get_T>::call, nullptr, "View with the dimensions reversed.", nullptr},
    {"mT", Traced<"mT", get_mT>::call, nullptr, "View with the last two dimensions swapped.",
     nullptr},
    {"H", Traced<"H", get_H>::call, nullptr, "Conjugate transpose of a matrix.", nullptr},
    {"mH", Traced<"mH", get_mH>::call, nullptr, "Conjugate transpose of the last two dimensions.",
     nullptr},
    {"real", Traced<"real", get_real>::call, set_part,
     "View of the real parts; a real tensor itself.", const_cast<char*>("real")},
    {"imag", Traced<"imag", get_imag>::call, set_part, "View of the imaginary parts.",
     const_cast<char*>("imag")},
    {"is_cpu", Overridable<"is_cpu", get_is_cpu>::call, nullptr, "Whether it is in main memory.",
     nullptr},
    {"is_cuda", Overridable<"is_cuda", get_false>::call, nullptr,
     "False: this build has the CPU only.", nullptr},
    {"is_sparse", Overridable<"is_sparse", get_false>::call, nullptr,
     "False; sparse tensors are a subclass.", nullptr},
    {"is_quantized", Overridable<"is_quantized", get_false>::call, nullptr,
     "False: there are no quantized tensors.", nullptr},
    {"is_meta", Overridable<"is_meta", get_is_meta>::call, nullptr, "Whether it has no elements.",
     nullptr},
    {"_version", Overridable<"_version", get_version>::call, nullptr,
     "Writes so far, also through views and detach(); .data has a count of its own.", nullptr},
    {"_base", Overridable<"_base", get_base>::call, nullptr, "The tensor it is a view of, or None.",
     nullptr},
    {"__dict__", tensor_get_dict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace weft::py
