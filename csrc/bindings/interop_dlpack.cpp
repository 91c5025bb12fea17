// DLPack: tensors to and from other libraries without copying.
#include <memory>

#include "autograd/node.h"
#include "autograd/sparse.h"
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"
#include "core/dlpack.h"
#include "ops_copying.h"

namespace weft::py {
namespace {

using dlpack::Managed;
using dlpack::ManagedVersioned;

[[noreturn]] void raise_buffer_error(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  throw PythonError{};
}

// ---- out ----

// A capsule that nobody consumed deletes the tensor.
template <class M>
void delete_capsule(PyObject* capsule) {
  // A consumer renames the capsule it takes over.
  if (!PyCapsule_IsValid(capsule, M::kName)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, M::kName));
  managed->deleter(managed);
}

template <class M>
PyObject* export_capsule(const Tensor& tensor, uint64_t flags) {
  auto managed = dlpack::export_tensor<M>(tensor, flags);
  Object capsule = Object::checked(PyCapsule_New(managed.get(), M::kName, delete_capsule<M>));
  managed.release();
  return capsule.release();
}

// Whether the consumer understands version 1 or newer.
bool wants_versioned(PyObject* max_version) {
  if (absent(max_version)) return false;
  WEFT_CHECK_TYPE(PyTuple_Check(max_version) && PyTuple_GET_SIZE(max_version) == 2,
                  "__dlpack__: expected argument 'max_version' of type tuple of two ints, got ",
                  short_type_name(max_version));
  return int_arg("__dlpack__", "max_version", PyTuple_GET_ITEM(max_version, 0)) >= 1;
}

void check_target(PyObject* device) {
  if (absent(device)) return;
  int type = 0, id = 0;
  if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ii", &type, &id)) throw PythonError{};
  if (type != dlpack::kCpu)
    raise_buffer_error(str("__dlpack__: expected dl_device (1, 0), got type ", type));
}

// ---- in ----

template <class M>
Tensor adopt(const char* op, PyObject* capsule, uint8_t flags) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, M::kName));
  if (!managed) throw PythonError{};
  const dlpack::TensorInfo& info = managed->tensor;
  if (info.device.type != dlpack::kCpu && info.device.type != dlpack::kCudaHost) {
    raise_buffer_error(
        str(op, ": expected a tensor on the CPU, got DLPack device type ", info.device.type));
  }
  const std::optional<DType> dtype = dlpack::dtype_of(info.dtype);
  if (!dtype) {
    raise_buffer_error(str(op, ": expected a dtype weft has, got DLPack type code ",
                           int{info.dtype.code}, " with ", int{info.dtype.bits}, " bits and ",
                           info.dtype.lanes, " lanes"));
  }
  Tensor tensor = dlpack::import_tensor(op, managed, *dtype, flags);
  // From here on the storage owns the tensor.
  PyCapsule_SetName(capsule, M::kUsedName);
  return tensor;
}

Tensor from_capsule(const char* op, PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, ManagedVersioned::kName)) {
    auto* managed =
        static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, ManagedVersioned::kName));
    if (managed->major > 1) {
      raise_buffer_error(str(op, ": expected DLPack version 1, got ", managed->major));
    }
    uint8_t flags = kForeign | (managed->flags & dlpack::kReadOnlyFlag ? kReadOnly : 0);
    return adopt<ManagedVersioned>(op, capsule, flags);
  }
  if (PyCapsule_IsValid(capsule, Managed::kName)) return adopt<Managed>(op, capsule, kForeign);
  const char* name = PyCapsule_GetName(capsule);
  fail(ErrorKind::Value,
       str(op, ": expected an unused DLPack capsule, got one named \"", name ? name : "", "\""));
}

// obj.__dlpack__(max_version=(1, 0)); older producers know no arguments, or not `copy`: those
// share.
Object ask_producer(PyObject* object, PyObject* copy, bool* shared) {
  Object method = Object::checked(PyObject_GetAttrString(object, "__dlpack__"));
  Object none = Object::checked(PyTuple_New(0));
  Object keywords = Object::checked(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
  if (!absent(copy)) check_status(PyDict_SetItemString(keywords.get(), "copy", copy));
  PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get());
  *shared = absent(copy);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    *shared = true;
    capsule = PyObject_CallNoArgs(method.get());
  }
  return Object::checked(capsule);
}

Tensor import_from(const char* op, PyObject* source, PyObject* copy) {
  const bool must_copy = bool_arg(op, "copy", copy, false);
  Tensor tensor;
  bool shared = true;
  if (is_tensor(source)) {
    // Our own layouts need no exchange format, which has no room for negative strides.
    tensor = autograd::detach(unwrap(source));
    if (autograd::sparse::is_sparse(unwrap(source)) || is_nested_tensor(unwrap(source)))
      raise_buffer_error(str(op, ": expected a strided tensor, got a ", short_type_name(source)));
  } else if (PyCapsule_CheckExact(source)) {
    tensor = from_capsule(op, source);
  } else {
    WEFT_CHECK_TYPE(PyObject_HasAttrString(source, "__dlpack__"), op,
                    ": expected an object with __dlpack__, got ", short_type_name(source));
    tensor = from_capsule(op, ask_producer(source, copy, &shared).get());
  }
  return must_copy && shared ? ops::clone(tensor) : tensor;
}

PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    auto [source, device, copy] =
        parse_args("from_dlpack", {"ext_tensor", "device", "copy"}, 1, args, count, names);
    device_arg("from_dlpack", device);
    return wrap(import_from("from_dlpack", source, copy));
  });
}

PyMethodDef dlpack_functions[] = {
    {"from_dlpack", fast(Traced<"weft.from_dlpack", from_dlpack>::call), kFast,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n\n"
     "A tensor over the memory of another library's; read-only when that says so."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor tensor_from_dlpack(const char* op, PyObject* object) {
  return import_from(op, object, nullptr);
}

PyObject* tensor_dlpack(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [stream, max_version, device, copy] = parse_args(
        "__dlpack__", {"stream", "max_version", "dl_device", "copy"}, 0, args, count, names);
    WEFT_CHECK_TYPE(!stream || stream == Py_None || PyLong_Check(stream),
                    "__dlpack__: expected stream as an int or None, got ", short_type_name(stream));
    Tensor tensor = unwrap(self);
    if (autograd::requires_grad(tensor)) {
      raise_buffer_error(
          "__dlpack__: expected a tensor that does not require grad, got one that does; use "
          "detach()");
    }
    check_target(device);
    bool copied = bool_arg("__dlpack__", "copy", copy, false);
    if (copied) tensor = ops::clone(tensor);
    for (int64_t stride : tensor.strides()) {
      // Legal, but there are consumers that end the process when they meet it.
      if (stride < 0) {
        raise_buffer_error(str("__dlpack__: expected strides of at least 0, got ",
                               AsTuple{tensor.strides()}, "; use numpy() or copy=True"));
      }
    }
    bool read_only = tensor.storage()->has(kReadOnly);
    uint64_t flags = (read_only ? dlpack::kReadOnlyFlag : 0u) | (copied ? dlpack::kCopiedFlag : 0u);
    if (wants_versioned(max_version)) return export_capsule<ManagedVersioned>(tensor, flags);
    if (read_only) {
      raise_buffer_error(
          "__dlpack__: expected a consumer of DLPack 1 for a read-only tensor, got an older one");
    }
    return export_capsule<Managed>(tensor, flags);
  });
}

PyObject* tensor_dlpack_device(PyObject*, PyObject*) {
  return Py_BuildValue("(ii)", dlpack::kCpu, 0);
}

void init_dlpack(PyObject* module) {
  check_status(PyModule_AddFunctions(module, dlpack_functions));
}

}  // namespace weft::py
