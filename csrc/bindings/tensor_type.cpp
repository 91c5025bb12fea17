// weft.Tensor: the type object, assembled from the slots of its sister files.
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/tensor_object.h"
#include "bindings/tensor_slots.h"

namespace weft::py {

PyTypeObject* tensor_type = nullptr;

namespace {

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class Fn>
constexpr PyType_Slot slot(int id, Fn* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

void init_tensor_type(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A multi-dimensional array of one element type.")},
      slot(Py_tp_new, tensor_new),
      slot(Py_tp_dealloc, tensor_dealloc),
      slot(Py_tp_traverse, tensor_traverse),
      slot(Py_tp_clear, tensor_clear),
      slot(Py_tp_setattro, tensor_setattro),
      slot(Py_tp_hash, tensor_hash),
      slot(Py_tp_richcompare, tensor_richcompare),
      slot(Py_tp_iter, tensor_iter),
      {Py_tp_members, members},
      {Py_tp_getset, tensor_getset},
      {Py_tp_methods, tensor_methods},
      slot(Py_mp_length, tensor_length),
      slot(Py_mp_subscript, tensor_subscript),
      slot(Py_mp_ass_subscript, tensor_assign_subscript),
      slot(Py_sq_contains, tensor_contains),
      slot(Py_bf_getbuffer, tensor_getbuffer),
      slot(Py_bf_releasebuffer, tensor_releasebuffer),
      slot(Py_nb_add, tensor_add),
      slot(Py_nb_subtract, tensor_subtract),
      slot(Py_nb_multiply, tensor_multiply),
      slot(Py_nb_true_divide, tensor_true_divide),
      slot(Py_nb_floor_divide, tensor_floor_divide),
      slot(Py_nb_remainder, tensor_remainder),
      slot(Py_nb_power, tensor_power),
      slot(Py_nb_matrix_multiply, tensor_matrix_multiply),
      slot(Py_nb_and, tensor_and),
      slot(Py_nb_or, tensor_or),
      slot(Py_nb_xor, tensor_xor),
      slot(Py_nb_inplace_add, tensor_inplace_add),
      slot(Py_nb_inplace_subtract, tensor_inplace_subtract),
      slot(Py_nb_inplace_multiply, tensor_inplace_multiply),
      slot(Py_nb_inplace_true_divide, tensor_inplace_true_divide),
      slot(Py_nb_inplace_floor_divide, tensor_inplace_floor_divide),
      slot(Py_nb_inplace_remainder, tensor_inplace_remainder),
      slot(Py_nb_inplace_power, tensor_inplace_power),
      slot(Py_nb_inplace_and, tensor_inplace_and),
      slot(Py_nb_inplace_or, tensor_inplace_or),
      slot(Py_nb_inplace_xor, tensor_inplace_xor),
      slot(Py_nb_negative, tensor_negative),
      slot(Py_nb_positive, tensor_positive),
      slot(Py_nb_absolute, tensor_absolute),
      slot(Py_nb_invert, tensor_invert),
      slot(Py_nb_bool, tensor_bool),
      slot(Py_nb_int, tensor_int),
      slot(Py_nb_float, tensor_float),
      slot(Py_nb_index, tensor_index),
      {0, nullptr},
  };
  PyType_Spec spec = {"weft.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
  init_identity();
  // ndarray + tensor: NumPy leaves the operation to us.
  Object priority = Object::checked(PyLong_FromLong(1000));
  check_status(PyDict_SetItemString(tensor_type->tp_dict, "__array_priority__", priority.get()));
  PyType_Modified(tensor_type);
  add_object(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
}

}  // namespace weft::py
