// Attributes of weft.Tensor.
#include "autograd/node.h"
#include "bindings/facts.h"
#include "core/error.h"
#include "core/warning.h"
#include "ops_unary.h"
#include "ops_views.h"

namespace weft::py {
namespace {

int64_t item_bytes(const Tensor& t) { return static_cast<int64_t>(t.item_size()); }
bool none(const Tensor&) { return false; }
template <DeviceType type>
bool is_on(const Tensor& t) {
  return t.device().type == type;
}

// ---- autograd ----

Tensor gradient(const Tensor& t) {
  const Tensor found = autograd::grad(t);
  if (!found.defined() && !autograd::is_leaf(t) && !autograd::retains_grad(t)) {
    warn(
        "grad: expected a leaf, got a result of operators, where backward leaves no gradient; "
        "call its retain_grad() before, or read the leaf");
  }
  return found;
}

// What a program hangs on the node may refer to the tensor: the collector has to come by.
Ref<autograd::Node> history(const Tensor& t) {
  Ref<autograd::Node> node = autograd::grad_fn(t);
  auto* self = static_cast<PyObject*>(t.impl()->wrapper.object);
  if (node && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return node;
}

uint32_t version(const Tensor& t) {
  WEFT_CHECK(!t.impl()->inference,
             "_version: expected a tensor made outside of inference mode, got one made inside: "
             "inference tensors do not track version counter");
  return t.version();
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    WEFT_CHECK_TYPE(value && PyBool_Check(value), "requires_grad: expected a bool, got ",
                    value ? short_type_name(value) : "del");
    autograd::set_requires_grad(unwrap(self), value == Py_True);
    return 0;
  });
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
int set_data(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    WEFT_CHECK_TYPE(value && is_tensor(value), "data: expected a Tensor, got ",
                    value ? short_type_name(value) : "del");
    autograd::set_data(unwrap(self), unwrap(value));
    return 0;
  });
}

// ---- views ----

Tensor reversed(const Tensor& t) {
  if (t.dim() == 2) return ops::t(t);
  warn("T: expected a matrix; for other tensors it is deprecated: say mT, or permute");
  Dims dims;
  for (int64_t d = t.dim(); d-- > 0;) dims.push_back(d);
  return ops::permute(t, dims);
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
Tensor adjoint(const Tensor& t) {
  WEFT_CHECK(t.dim() == 0 || t.dim() == 2, "H: expected a tensor with 2 dims, got shape ",
             AsTuple{t.sizes()});
  return conjugate_transpose("H", t);
}
PyObject* get_real(PyObject* self, void* name) {
  return is_complex(unwrap(self).dtype()) ? fact_of<ops::real>(self, name) : new_ref(self);
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
    attribute<"shape", kBoth, [](const Tensor& t) -> const Dims& { return t.sizes(); }>(
        "Sizes of the dimensions."),
    attribute<"dtype", kBoth, [](const Tensor& t) { return new_ref(dtype_object(t.dtype())); }>(
        "Type of the elements."),
    attribute<"device", kBoth, [](const Tensor& t) { return t.device(); }>(
        "Where the elements are."),
    attribute<"ndim", kOverride, [](const Tensor& t) { return t.dim(); }>("Number of dimensions."),
    attribute<"layout", kOverride, [](const Tensor&) { return new_ref(strided_object()); }>(
        "weft.strided."),
    attribute<"itemsize", kOverride, item_bytes>("Bytes of one element."),
    attribute<"nbytes", kBoth, [](const Tensor& t) { return t.numel() * item_bytes(t); }>(
        "Bytes of all elements."),
    attribute<"requires_grad", kBoth, autograd::requires_grad>(
        "Whether operators on it are recorded.",
        Traced<"set_requires_grad", set_requires_grad>::call),
    attribute<"grad", kBoth, gradient>("The gradient that backward left, or None.",
                                       Traced<"set_grad", set_grad>::call),
    attribute<"grad_fn", kOverride, history>("The graph node that made it; None for leaves."),
    attribute<"is_leaf", kOverride, autograd::is_leaf>("Whether no recorded operator made it."),
    attribute<"retains_grad", kOverride, autograd::retains_grad>(
        "Whether retain_grad() was asked for."),
    attribute<"output_nr", kOverride, autograd::result_index>("Which result of its grad_fn it is."),
    attribute<"data", kBoth, autograd::data>("The same elements without history.",
                                             Traced<"set_data", set_data>::call),
    attribute<"T", kBoth, reversed>("View with the dimensions reversed."),
    attribute<"mT", kBoth, [](const Tensor& t) { return matrix_transpose("mT", t); }>(
        "View with the last two dimensions swapped."),
    attribute<"H", kBoth, adjoint>("Conjugate transpose of a matrix."),
    attribute<"mH", kBoth, [](const Tensor& t) { return conjugate_transpose("mH", t); }>(
        "Conjugate transpose of the last two dimensions."),
    {"real", Traced<"real", get_real>::call, set_part,
     "View of the real parts; a real tensor itself.", const_cast<char*>("real")},
    {"imag", Traced<"imag", fact_of<ops::imag, void>>::call, set_part,
     "View of the imaginary parts.", const_cast<char*>("imag")},
    attribute<"is_cpu", kOverride, is_on<DeviceType::CPU>>("Whether it is in main memory."),
    attribute<"is_cuda", kOverride, none>("False: this build has the CPU only."),
    attribute<"is_sparse", kOverride, none>("False; sparse tensors are a subclass."),
    attribute<"is_quantized", kOverride, none>("False: there are no quantized tensors."),
    attribute<"is_meta", kOverride, is_on<DeviceType::Meta>>("Whether it has no elements."),
    attribute<"_version", kOverride, version>(
        "Writes so far, also through views and detach(); .data has a count of its own."),
    attribute<"_base", kOverride, autograd::view_base>("The tensor it is a view of, or None."),
    {"__dict__", tensor_get_dict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace weft::py
