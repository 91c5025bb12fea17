// weft.Tensor: the type object, assembled from the slots of its sister files.
#include "bindings/bindings.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
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
template <HookName name, auto fn>
constexpr PyType_Slot traced(int id) {
  return slot(id, Traced<name, fn>::call);
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
      traced<"iter", tensor_iter>(Py_tp_iter),
      {Py_tp_members, members},
      {Py_tp_getset, tensor_getset},
      {Py_tp_methods, tensor_methods},
      traced<"length", tensor_length>(Py_mp_length),
      traced<"subscript", tensor_subscript>(Py_mp_subscript),
      traced<"assign_subscript", tensor_assign_subscript>(Py_mp_ass_subscript),
      traced<"contains", tensor_contains>(Py_sq_contains),
      slot(Py_bf_getbuffer, tensor_getbuffer),
      slot(Py_bf_releasebuffer, tensor_releasebuffer),
      traced<"add", tensor_add>(Py_nb_add),
      traced<"subtract", tensor_subtract>(Py_nb_subtract),
      traced<"multiply", tensor_multiply>(Py_nb_multiply),
      traced<"true_divide", tensor_true_divide>(Py_nb_true_divide),
      traced<"floor_divide", tensor_floor_divide>(Py_nb_floor_divide),
      traced<"remainder", tensor_remainder>(Py_nb_remainder),
      traced<"power", tensor_power>(Py_nb_power),
      traced<"matrix_multiply", tensor_matrix_multiply>(Py_nb_matrix_multiply),
      traced<"and", tensor_and>(Py_nb_and),
      traced<"or", tensor_or>(Py_nb_or),
      traced<"xor", tensor_xor>(Py_nb_xor),
      traced<"lshift", tensor_lshift>(Py_nb_lshift),
      traced<"rshift", tensor_rshift>(Py_nb_rshift),
      traced<"inplace_add", tensor_inplace_add>(Py_nb_inplace_add),
      traced<"inplace_subtract", tensor_inplace_subtract>(Py_nb_inplace_subtract),
      traced<"inplace_multiply", tensor_inplace_multiply>(Py_nb_inplace_multiply),
      traced<"inplace_true_divide", tensor_inplace_true_divide>(Py_nb_inplace_true_divide),
      traced<"inplace_floor_divide", tensor_inplace_floor_divide>(Py_nb_inplace_floor_divide),
      traced<"inplace_remainder", tensor_inplace_remainder>(Py_nb_inplace_remainder),
      traced<"inplace_power", tensor_inplace_power>(Py_nb_inplace_power),
      traced<"inplace_and", tensor_inplace_and>(Py_nb_inplace_and),
      traced<"inplace_or", tensor_inplace_or>(Py_nb_inplace_or),
      traced<"inplace_xor", tensor_inplace_xor>(Py_nb_inplace_xor),
      traced<"inplace_lshift", tensor_inplace_lshift>(Py_nb_inplace_lshift),
      traced<"inplace_rshift", tensor_inplace_rshift>(Py_nb_inplace_rshift),
      traced<"negative", tensor_negative>(Py_nb_negative),
      traced<"positive", tensor_positive>(Py_nb_positive),
      traced<"absolute", tensor_absolute>(Py_nb_absolute),
      traced<"invert", tensor_invert>(Py_nb_invert),
      traced<"__bool__", tensor_bool>(Py_nb_bool),
      traced<"__int__", tensor_int>(Py_nb_int),
      traced<"__float__", tensor_float>(Py_nb_float),
      traced<"__index__", tensor_index>(Py_nb_index),
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
