// What the engine asks of the wrappers of sparse tensors, answered by weft/sparse.
#include "autograd/sparse.h"

#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/jit.h"
#include "bindings/tensor_object.h"
#include "core/error.h"

namespace weft::py {
namespace {

PyTypeObject* sparse_type = nullptr;
PyObject* dense_function = nullptr;
PyObject* sum_function = nullptr;

bool is_sparse(const Tensor& tensor) {
  const TakeGil gil;
  PyTypeObject* const type = wrapper_type(tensor);
  return type && PyType_IsSubtype(type, sparse_type);
}

Dims sizes(const Tensor& tensor) {
  const TakeGil gil;
  const Object object = Object::checked(wrap(tensor));
  // Not by the attribute `shape`, which is the values' where classes do not answer.
  const Object pattern = Object::checked(PyObject_GetAttrString(object.get(), "_pattern"));
  const Object size = Object::checked(PyObject_GetAttrString(pattern.get(), "size"));
  const Object items = Object::checked(PySequence_Tuple(size.get()));
  Dims result;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    const int64_t size = PyLong_AsLongLong(PyTuple_GET_ITEM(items.get(), i));
    if (size == -1 && PyErr_Occurred()) throw PythonError{};
    result.push_back(size);
  }
  return result;
}

Tensor tensor_of(const Object& object) {
  WEFT_CHECK_TYPE(is_tensor(object.get()), "sparse: expected a Tensor, got ",
                  short_type_name(object.get()));
  return unwrap(object.get());
}

Tensor to_dense(const Tensor& tensor) {
  const TakeGil gil;
  const Object object = Object::checked(wrap(tensor));
  return tensor_of(Object::checked(PyObject_CallOneArg(dense_function, object.get())));
}

Tensor add(const Tensor& a, const Tensor& b) {
  const TakeGil gil;
  const Object left = Object::checked(wrap(a)), right = Object::checked(wrap(b));
  return tensor_of(Object::checked(
      PyObject_CallFunctionObjArgs(sum_function, left.get(), right.get(), nullptr)));
}

constexpr autograd::sparse::Wrappers kWrappers{is_sparse, sizes, to_dense, add};

PyObject* set_sparse_type(PyObject*, PyObject* args) {
  PyObject *type, *dense, *sum;
  if (!PyArg_ParseTuple(args, "O!OO", &PyType_Type, &type, &dense, &sum)) return nullptr;
  Py_XSETREF(sparse_type, reinterpret_cast<PyTypeObject*>(new_ref(type)));
  Py_XSETREF(dense_function, new_ref(dense));
  Py_XSETREF(sum_function, new_ref(sum));
  autograd::sparse::wrappers.store(&kWrappers, std::memory_order_release);
  Py_RETURN_NONE;
}

PyMethodDef sparse_functions[] = {
    {"_set_sparse_type", set_sparse_type, METH_VARARGS,
     "The class of sparse tensors, and the functions that make one dense and add two."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_sparse(PyObject* module) {
  check_status(PyModule_AddFunctions(module, sparse_functions));
}

}  // namespace weft::py
