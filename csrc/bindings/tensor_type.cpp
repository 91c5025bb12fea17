// weft.Tensor: the type object, assembled from the slots of its sister files.
#include <vector>

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

}  // namespace

void init_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots{
      {Py_tp_doc, const_cast<char*>("A multi-dimensional array of one element type.")},
      slot(Py_tp_new, tensor_new),
      slot(Py_tp_dealloc, tensor_dealloc),
      slot(Py_tp_traverse, tensor_traverse),
      slot(Py_tp_clear, tensor_clear),
      slot(Py_tp_setattro, tensor_setattro),
      slot(Py_tp_hash, tensor_hash),
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
      traced<"__bool__", tensor_bool>(Py_nb_bool),
      traced<"__int__", tensor_int>(Py_nb_int),
      traced<"__float__", tensor_float>(Py_nb_float),
      traced<"__index__", tensor_index>(Py_nb_index),
  };
  slots.insert(slots.end(), operator_slots().begin(), operator_slots().end());
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"weft.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
  init_identity();
  // ndarray + tensor: NumPy leaves the operation to us.
  Object priority = Object::checked(PyLong_FromLong(1000));
  check_status(PyDict_SetItemString(tensor_type->tp_dict, "__array_priority__", priority.get()));
  PyType_Modified(tensor_type);
  add_object(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
}

}  // namespace weft::py
