// Handles of weft.h for extension modules in C++: a tensor of Python in a capsule, and back.
#include "bindings/bindings.h"
#include "bindings/tensor_object.h"
#include "capi/handles.h"

namespace weft::py {
namespace {

constexpr const char* kCapsule = "weft_tensor";

void release_capsule(PyObject* capsule) {
  delete static_cast<weft_tensor*>(PyCapsule_GetPointer(capsule, kCapsule));
}

PyObject* to_handle(PyObject*, PyObject* object) {
  return guarded([&] {
    WEFT_CHECK_TYPE(is_tensor(object), "_to_handle: expected a tensor, got ",
                    short_type_name(object));
    auto made = std::make_unique<weft_tensor>(weft_tensor{unwrap(object)});
    PyObject* capsule = PyCapsule_New(made.get(), kCapsule, release_capsule);
    if (!capsule) throw PythonError();
    made.release();
    return capsule;
  });
}

// The same tensor that _to_handle was given is the same object.
PyObject* from_handle(PyObject*, PyObject* capsule) {
  return guarded([&] {
    WEFT_CHECK_TYPE(PyCapsule_IsValid(capsule, kCapsule), "_from_handle: expected a handle, got ",
                    short_type_name(capsule));
    return wrap(static_cast<weft_tensor*>(PyCapsule_GetPointer(capsule, kCapsule))->tensor);
  });
}

PyMethodDef functions[] = {
    {"_to_handle", to_handle, METH_O, "A tensor as weft.h has it, in a capsule."},
    {"_from_handle", from_handle, METH_O, "The tensor of such a capsule."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void init_handles(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace weft::py
