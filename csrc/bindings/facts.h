// Attributes, and methods without arguments, that are functions of a tensor.
#pragma once

#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"

namespace weft::py {

inline constexpr Hooks kBoth = Hooks::Both, kOverride = Hooks::Override;

inline PyObject* to_object(bool value) { return PyBool_FromLong(value); }
inline PyObject* to_object(int64_t value) { return PyLong_FromLongLong(value); }
inline PyObject* to_object(uint32_t value) { return PyLong_FromUnsignedLong(value); }
inline PyObject* to_object(const void* value) {
  return PyLong_FromVoidPtr(const_cast<void*>(value));
}
inline PyObject* to_object(PyObject* value) { return value; }
inline PyObject* to_object(Device value) { return wrap_device(value); }
inline PyObject* to_object(const Dims& value) { return wrap_size(value); }
inline PyObject* to_object(Tensor value) { return wrap(std::move(value)); }
inline PyObject* to_object(const Ref<autograd::Node>& value) { return wrap_node(value); }

// As CPython calls it: the second argument of a getter or a method says nothing.
template <auto fact, class Nothing>
PyObject* fact_of(PyObject* self, Nothing*) {
  return guarded([&]() -> PyObject* { return to_object(fact(unwrap(self))); });
}

template <HookName name, Hooks hooks, auto fact>
constexpr PyGetSetDef attribute(const char* doc, setter set = nullptr) {
  return {name.text, Hooked<name, hooks, fact_of<fact, void>>::call, set, doc, nullptr};
}
template <HookName name, Hooks hooks, auto fact>
constexpr PyMethodDef method(const char* doc) {
  return {name.text, Hooked<name, hooks, fact_of<fact, PyObject>>::call, METH_NOARGS, doc};
}

}  // namespace weft::py
