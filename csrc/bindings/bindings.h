// What the files of this folder offer to module.cpp and to each other.
#pragma once

#include "bindings/python.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/generator.h"
#include "core/scalar.h"
#include "core/tensor.h"

namespace nanobind {
class module_;
}

namespace weft::autograd {
class Node;
}

namespace weft::py {

// ---- small objects (objects.cpp, nanobind) ----
PyObject* dtype_object(DType dtype);  // borrowed: one object per dtype
// A weft.dtype, or Python's bool, int, float, complex. False: not a dtype (no exception set).
bool to_dtype(PyObject* object, DType* dtype);
PyObject* wrap_device(Device device);
// A weft.device or a str. False: neither. Raises weft::Error for a str that names no device.
bool to_device(PyObject* object, Device* device);
bool to_generator(PyObject* object, Ref<Generator>* generator);
// weft.strided and weft's memory formats as PyTorch's numbers.
bool to_layout(PyObject* object, int64_t* layout);
bool to_memory_format(PyObject* object, int64_t* format);
PyObject* strided_object();  // borrowed

// ---- weft.Size (size_type.cpp) ----
extern PyTypeObject* size_type;
PyObject* wrap_size(IntList sizes);  // new reference
void init_size_type(PyObject* module);

// ---- numbers (numbers.cpp) ----
// Python numbers and NumPy scalars. False: something else (no exception set). Raises PythonError or
// weft::Error on overflow.
bool to_scalar(PyObject* object, Scalar* scalar);
bool is_number(PyObject* object);
// An int (not bool), a NumPy integer or anything else with __index__, a 0-d integral tensor.
// ValueError for more than 64 bits; to_size, for members of lists, TypeError, as in PyTorch.
bool to_int(PyObject* object, int64_t* value);
bool to_size(PyObject* object, int64_t* value);
bool to_bool(PyObject* object, bool* value);
bool to_double(PyObject* object, double* value);
PyObject* from_scalar(const Scalar& scalar);  // new reference
// A number that meets `other` as a 0-d tensor of the dtype they promote to. RuntimeError naming
// `op` when the dtype has no such number.
Tensor number_beside(const char* op, const Scalar& number, const Tensor& other);
PyObject* element_to_python(DType dtype,
                            const void* element);  // new reference; null: exception set

// ---- NumPy, reached without its C interface (interop_numpy.cpp) ----
struct NumpyTypes {
  PyTypeObject *ndarray, *generic, *bool_, *integer, *floating, *complexfloating;
};
// Null as long as the program has not imported numpy: then no object can be one of its.
const NumpyTypes* numpy_if_loaded();
inline bool is_numpy_array(PyObject* object) {
  const NumpyTypes* numpy = numpy_if_loaded();
  return numpy && PyObject_TypeCheck(object, numpy->ndarray);
}
inline bool is_numpy_scalar(PyObject* object) {
  const NumpyTypes* numpy = numpy_if_loaded();
  return numpy && PyObject_TypeCheck(object, numpy->generic);
}
// The dtype an array of such scalars would have. TypeError where we have none.
DType numpy_scalar_dtype(const char* op, PyObject* scalar);
// Shares memory; read-only arrays give read-only tensors. TypeError, ValueError.
Tensor tensor_from_numpy(const char* op, PyObject* array);
PyObject* tensor_numpy_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                              PyObject* names);
PyObject* tensor_array_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                              PyObject* names);
void init_numpy(PyObject* module);

// ---- buffers (interop_buffer.cpp) ----
// The bytes of an exporter as a 1-d tensor of the given (or default) dtype.
Tensor tensor_from_buffer(const char* op, PyObject* exporter, std::optional<DType> dtype,
                          int64_t count = -1, int64_t offset = 0);
void init_buffers(PyObject* module);

// ---- DLPack (interop_dlpack.cpp) ----
Tensor tensor_from_dlpack(const char* op, PyObject* object);
PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);
PyObject* tensor_dlpack_device(PyObject* self, PyObject*);
void init_dlpack(PyObject* module);

// ---- handles of weft.h (capi_handles.cpp) ----
void init_handles(PyObject* module);

// ---- sparse tensors (sparse.cpp) ----
void init_sparse(PyObject* module);

// ---- construction from Python data (construct.cpp) ----
// New memory holding `data` (numbers, nested sequences, arrays, tensors). Names `op` in errors.
Tensor tensor_from_data(const char* op, PyObject* data, std::optional<DType> dtype);
void init_construct(PyObject* module);

// ---- storages, view(dtype) (storage_methods.cpp) ----
void init_storage_methods(PyObject* module);
void init_view_dtype();  // after the table's operators

// ---- the table's operators (op_function.cpp) ----
void init_op_functions(PyObject* module);

// ---- autograd.cpp ----
void bind_autograd(nanobind::module_& module);
// New reference to the Python object of a grad_fn; None when null.
PyObject* wrap_node(const Ref<autograd::Node>& node);

// ---- grad_mode.cpp ----
void init_grad_mode(PyObject* module);  // no_grad and enable_grad

// ---- mapped_file.cpp ----
void bind_mapped_file(nanobind::module_& module);

// ---- jit_fused.cpp ----
void bind_fused(nanobind::module_& module);

// Adds a new reference to `object` under `name`.
void add_object(PyObject* module, const char* name, PyObject* object);

}  // namespace weft::py
