// The Python object of a tensor, and the two ways across the border: wrap and unwrap.
//
// Identity: at most one wrapper exists per TensorImpl at a time. A wrapper normally owns its
// tensor. When its last Python reference goes while C++ still holds the tensor, a wrapper that
// carries state (a dict, weak references, a subclass) is kept: ownership turns round, the
// TensorImpl owns the wrapper, until wrap() hands it out again. A wrapper without state is simply
// dropped; the next wrap makes a new one. (What a subclass keeps in __slots__ is lost then: Python
// clears those before it asks us.)
#pragma once

#include "bindings/python.h"
#include "core/tensor.h"

namespace weft::py {

struct TensorObject {
  PyObject_HEAD Tensor tensor;  // counts only while the wrapper owns the tensor
  PyObject* dict;  // attributes; made on first use, and only then is the object tracked by the gc
  PyObject* weakrefs;
};

extern PyTypeObject* tensor_type;

inline bool is_exact_tensor(PyObject* object) noexcept { return Py_TYPE(object) == tensor_type; }
inline bool is_tensor(PyObject* object) noexcept {
  return is_exact_tensor(object) || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// The tensor of an object known to be one; the handle lives as long as the object.
inline const Tensor& unwrap(PyObject* object) noexcept {
  return reinterpret_cast<TensorObject*>(object)->tensor;
}

// Operators on this much memory let other Python threads run meanwhile.
inline constexpr size_t kLargeBytes = size_t{1} << 17;
inline bool is_large(const Tensor& tensor) noexcept {
  return tensor.storage()->nbytes() >= kLargeBytes;
}

// New reference to the wrapper of `tensor` (None when undefined). Raises PythonError.
PyObject* wrap(Tensor tensor);
// New reference to a wrapper of the given subclass. The tensor must not have a wrapper yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);
// The class of the wrapper that a tensor has; null: it has none.
PyTypeObject* wrapper_type(const Tensor& tensor) noexcept;
// Whether a tensor is the values of a nested one (weft/nested), whose sizes are others.
inline bool is_nested_tensor(const Tensor& tensor) noexcept {
  auto* object = static_cast<PyObject*>(tensor.impl()->wrapper.object);
  return object && !is_exact_tensor(object) && PyObject_HasAttrString(object, "_form");
}
// A tuple or list of wrappers.
PyObject* wrap_tuple(const TensorList& tensors);
PyObject* wrap_list(const TensorList& tensors);

// ---- parts of the type, assembled by tensor_type.cpp ----
void init_identity();  // hooks the core's release_wrapper
void tensor_dealloc(PyObject* object);
int tensor_traverse(PyObject* object, visitproc visit, void* arg);
int tensor_clear(PyObject* object);
int tensor_setattro(PyObject* object, PyObject* name, PyObject* value);
PyObject* tensor_get_dict(PyObject* object, void*);

extern PyGetSetDef tensor_getset[];
extern PyMethodDef tensor_methods[];
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);
PyObject* tensor_subscript(PyObject* self, PyObject* index);
int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value);
int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags);
void tensor_releasebuffer(PyObject* self, Py_buffer* view);

// Makes weft.Tensor and adds it to the module.
void init_tensor_type(PyObject* module);

}  // namespace weft::py
