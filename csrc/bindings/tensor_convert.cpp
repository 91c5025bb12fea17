// Tensors as Python numbers and sequences: bool, int, float, len, iteration, hash, item, tolist.
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"
#include "bindings/tensor_slots.h"
#include "core/error.h"
#include "core/meta.h"
#include "ops/copy.h"
#include "ops_compare.h"
#include "ops_reductions.h"
#include "ops_views.h"

namespace weft::py {
namespace {

// float() and the like raise ValueError for several elements, item() and bool() RuntimeError.
Object one_element(const char* op, PyObject* self, ErrorKind kind = ErrorKind::Runtime) {
  const Tensor& tensor = unwrap(self);
  if (tensor.numel() != 1) {
    fail(kind, str(op, ": expected a tensor of one element, got shape ", AsTuple{tensor.sizes()}));
  }
  if (tensor.device().type == DeviceType::Meta) meta::refuse_item();
  const Tensor here = on_device(tensor, {});
  return Object::checked(element_to_python(here.dtype(), here.data()));
}

PyObject* list_of(const Tensor& tensor, int64_t dim, const char* at) {
  if (dim == tensor.dim()) return element_to_python(tensor.dtype(), at);
  auto d = static_cast<size_t>(dim);
  int64_t step = tensor.strides()[d] * static_cast<int64_t>(tensor.item_size());
  Object list = Object::checked(PyList_New(static_cast<Py_ssize_t>(tensor.sizes()[d])));
  for (Py_ssize_t i = 0; i < tensor.sizes()[d]; ++i) {
    PyList_SET_ITEM(list.get(), i, Object::checked(list_of(tensor, dim + 1, at)).release());
    at += step;
  }
  return list.release();
}

}  // namespace

PyObject* tensor_item(PyObject* self, PyObject*) {
  return guarded([&] { return one_element("item", self).release(); });
}

PyObject* tensor_tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor tensor = on_device(unwrap(self), {});
    return list_of(tensor, 0, static_cast<const char*>(tensor.data()));
  });
}

int tensor_bool(PyObject* self) {
  return guarded([&] {
    int truth = PyObject_IsTrue(one_element("bool", self).get());
    check_status(truth);
    return truth;
  });
}

// One element as a Python number that is not complex.
Object real_element(const char* op, PyObject* self) {
  Object element = one_element(op, self, ErrorKind::Value);
  if (!PyComplex_CheckExact(element.get())) return element;
  WEFT_CHECK(PyComplex_ImagAsDouble(element.get()) == 0, op,
             ": expected a number without an imaginary part, got another one");
  return Object::checked(PyFloat_FromDouble(PyComplex_RealAsDouble(element.get())));
}

PyObject* tensor_int(PyObject* self) {
  return guarded([&] { return PyNumber_Long(real_element("int", self).get()); });
}
PyObject* tensor_float(PyObject* self) {
  return guarded([&] { return PyNumber_Float(real_element("float", self).get()); });
}
PyObject* tensor_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    Object element = one_element("complex", self, ErrorKind::Value);
    return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), element.get());
  });
}

PyObject* tensor_index(PyObject* self) {
  return guarded([&] {
    const Tensor& tensor = unwrap(self);
    WEFT_CHECK_TYPE(tensor.numel() == 1 && category(tensor.dtype()) <= DTypeCategory::Integral,
                    "index: expected an integer tensor of one element, got ", tensor.dtype(),
                    " of shape ", AsTuple{tensor.sizes()});
    return PyNumber_Index(one_element("index", self).get());
  });
}

Py_hash_t tensor_hash(PyObject* self) { return PyBaseObject_Type.tp_hash(self); }

Py_ssize_t tensor_length(PyObject* self) {
  return guarded([&]() -> Py_ssize_t {
    const Tensor& tensor = unwrap(self);
    WEFT_CHECK_TYPE(tensor.dim() > 0, "len: expected a tensor with dims, got a 0-d tensor");
    return tensor.sizes()[0];
  });
}

PyObject* tensor_iter(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = unwrap(self);
    WEFT_CHECK_TYPE(tensor.dim() > 0, "iter: expected a tensor with dims, got a 0-d tensor");
    TensorList rows;
    rows.reserve(static_cast<size_t>(tensor.sizes()[0]));
    for (int64_t i = 0; i < tensor.sizes()[0]; ++i) rows.push_back(ops::select(tensor, 0, i));
    Object list = Object::checked(wrap_list(rows));
    return PyObject_GetIter(list.get());
  });
}

int tensor_contains(PyObject* self, PyObject* value) {
  return guarded([&]() -> int {
    const Tensor& tensor = unwrap(self);
    Scalar number;
    Tensor equal;
    if (is_tensor(value)) {
      equal = ops::eq(tensor, unwrap(value));
    } else {
      WEFT_CHECK(to_scalar(value, &number), "in: expected a Tensor or Number, got ",
                 short_type_name(value));
      equal = ops::eq(tensor, number);
    }
    return ops::any(ops::reshape(equal, Dims{-1}), int64_t{0}).item().to_bool() ? 1 : 0;
  });
}

}  // namespace weft::py
