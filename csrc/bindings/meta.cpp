// What results of hand-written operators look like on the device "meta": the formulas of the
// operator table, which Python evaluates (weft/jit/meta_device.py).
#include "bindings/meta.h"

#include "bindings/args.h"
#include "bindings/bindings.h"
#include "bindings/trace.h"
#include "core/error.h"
#include "core/meta.h"
#include "ops_factories.h"

namespace weft::py {
namespace {

// (sizes, dtype, strides), or None.
Object looks_of(const Tensor& tensor) {
  if (!tensor.defined()) return Object::borrow(Py_None);
  const Object sizes = Object::checked(wrap_size(tensor.sizes()));
  const Object strides = Object::checked(wrap_size(tensor.strides()));
  return Object::checked(PyTuple_Pack(3, sizes.get(), dtype_object(tensor.dtype()), strides.get()));
}

struct ToPython {
  Object operator()(std::monostate) const { return Object::borrow(Py_None); }
  Object operator()(const Tensor* tensor) const { return looks_of(*tensor); }
  Object operator()(const TensorList* tensors) const {
    Object list = Object::checked(PyList_New(0));
    for (const Tensor& tensor : *tensors) {
      check_status(PyList_Append(list.get(), looks_of(tensor).get()));
    }
    return list;
  }
  Object operator()(const Scalar& number) const { return Object::checked(from_scalar(number)); }
  Object operator()(IntList numbers) const { return Object::checked(wrap_size(numbers)); }
  Object operator()(std::string_view text) const {
    return Object::checked(
        PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  }
  Object operator()(DType dtype) const { return Object::borrow(dtype_object(dtype)); }
};

Dims dims_of(PyObject* tuple) {
  Dims dims;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    dims.push_back(int_arg("meta", "sizes", PyTuple_GET_ITEM(tuple, i)));
  }
  return dims;
}

// A result as Python tells it: (sizes, dtype, strides), where None stands for contiguous; or the
// number of the argument that it is; or None, where there is none.
Tensor made(PyObject* told, std::span<const meta::Argument> arguments) {
  if (told == Py_None) return {};
  if (PyLong_Check(told)) {
    return *std::get<const Tensor*>(arguments[PyLong_AsSize_t(told)]);
  }
  PyObject *sizes, *dtype, *strides;
  if (!PyArg_ParseTuple(told, "O!OO", &PyTuple_Type, &sizes, &dtype, &strides)) throw PythonError{};
  const DType type = dtype_arg("meta", dtype).value_or(DType::F32);
  const Device device{DeviceType::Meta};
  if (strides == Py_None) return Tensor::empty(dims_of(sizes), type, device, "meta");
  return ops::empty_strided(dims_of(sizes), dims_of(strides), type, {}, device);
}

std::vector<Tensor> results(const char* key, std::span<const meta::Argument> arguments) {
  const TakeGil gil;
  const PauseTrace pause;
  const Object given = Object::checked(PyList_New(0));
  for (const meta::Argument& argument : arguments) {
    check_status(PyList_Append(given.get(), std::visit(ToPython{}, argument).get()));
  }
  const Object module = Object::checked(PyImport_ImportModule("weft.jit.meta_device"));
  const Object told =
      Object::checked(PyObject_CallMethod(module.get(), "results", "sO", key, given.get()));
  const Object items = Object::checked(PySequence_Fast(told.get(), "meta: expected a sequence"));
  std::vector<Tensor> found;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    found.push_back(made(PySequence_Fast_GET_ITEM(items.get(), i), arguments));
  }
  return found;
}

}  // namespace

void init_meta() { meta::set_rule(results); }

}  // namespace weft::py
