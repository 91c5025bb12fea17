// weft.Size: the tuple that shapes are.
#include <vector>

#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/trace.h"

namespace weft::py {

PyTypeObject* size_type = nullptr;

namespace {

PyObject* size_repr(PyObject* self) {
  return guarded([&] {
    Object list = Object::checked(PySequence_List(self));
    return PyUnicode_FromFormat("torch.Size(%R)", list.get());
  });
}

// Slices and sums of a Size are Sizes again.
PyObject* as_size(PyObject* result) {
  if (!result || !PyTuple_CheckExact(result)) return result;
  Object tuple = Object::steal(result);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), tuple.get());
}
PyObject* size_concat(PyObject* self, PyObject* other) {
  if (!PyTuple_Check(other)) Py_RETURN_NOTIMPLEMENTED;
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(self, other));
}
PyObject* size_repeat(PyObject* self, Py_ssize_t count) {
  Object tuple = Object::steal(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
  if (!tuple) return nullptr;
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(tuple.get(), count));
}
PyObject* size_subscript(PyObject* self, PyObject* index) {
  PyObject* result = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return PySlice_Check(index) ? as_size(result) : result;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    Object self = Object::checked(PyTuple_Type.tp_new(type, args, kwargs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(self.get(), i);
      if (PyLong_Check(item) || is_traced_number(item)) continue;
      PyObject* number = PyNumber_Index(item);
      if (!number) {
        PyErr_Format(PyExc_TypeError, "Size: expected ints, got %s", type_name(item));
        throw PythonError{};
      }
      PyTuple_SET_ITEM(self.get(), i, number);
      Py_DECREF(item);
    }
    return self.release();
  });
}

PyObject* size_numel(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Object product = Object::checked(PyLong_FromLong(1));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
      product = Object::checked(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
    }
    return product.release();
  });
}

PyObject* size_reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Object tuple = Object::checked(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
    return Py_BuildValue("O(O)", Py_TYPE(self), tuple.get());
  });
}

PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "Number of elements of a tensor of this size."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot size_slots[] = {
    {Py_tp_doc, const_cast<char*>("The sizes of a tensor: a tuple of ints.")},
    {Py_tp_new, reinterpret_cast<void*>(size_new)},
    {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
    {Py_tp_methods, size_methods},
    {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
    {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
    {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
    {0, nullptr},
};
PyType_Spec size_spec = {"weft.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

}  // namespace

PyObject* wrap_size(IntList sizes) {
  Object self =
      Object::checked(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(sizes.size())));
#if PY_VERSION_HEX >= 0x030E0000
  // Tuples keep their hash from Python 3.14 on; -1: not asked for yet. Their tp_new says so, too.
  reinterpret_cast<PyTupleObject*>(self.get())->ob_hash = -1;
#endif
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(sizes[i]);
    if (!item) throw PythonError{};
    PyTuple_SET_ITEM(self.get(), static_cast<Py_ssize_t>(i), item);
  }
  return self.release();
}

void init_size_type(PyObject* module) {
  Object bases = Object::checked(PyTuple_Pack(1, &PyTuple_Type));
  size_type = reinterpret_cast<PyTypeObject*>(
      Object::checked(PyType_FromSpecWithBases(&size_spec, bases.get())).release());
  add_object(module, "Size", reinterpret_cast<PyObject*>(size_type));
}

}  // namespace weft::py
