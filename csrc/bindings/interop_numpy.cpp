// NumPy arrays, reached through Python objects alone: no header of NumPy, no version to agree on,
// and no import before the first use.
#include <array>
#include <vector>

#include "autograd/node.h"
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_methods.h"
#include "bindings/tensor_object.h"
#include "ops/copy.h"

namespace weft::py {
namespace {

// ---- the module ----

PyTypeObject* class_of(PyObject* numpy, const char* name) {
  return reinterpret_cast<PyTypeObject*>(
      Object::checked(PyObject_GetAttrString(numpy, name)).release());
}

const NumpyTypes* load_types(PyObject* numpy) {
  return new NumpyTypes{class_of(numpy, "ndarray"),  class_of(numpy, "generic"),
                        class_of(numpy, "bool_"),    class_of(numpy, "integer"),
                        class_of(numpy, "floating"), class_of(numpy, "complexfloating")};
}

PyObject* import_numpy() {
  static PyObject* numpy = nullptr;
  if (PyObject* const known = load_acquire(numpy)) return known;
  Object made = Object::checked(PyImport_ImportModule("numpy"));
  if (set_once(numpy, made.get())) made.release();
  return load_acquire(numpy);
}

// ---- in ----

// What array.__array_struct__ points to: NumPy's documented protocol for exchange in C, the same in
// all versions. Names are ours.
struct ArrayStruct {
  int two;  // always 2
  int dims;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  char* data;
};
constexpr int kAligned = 0x100, kNativeOrder = 0x200, kWritable = 0x400;

std::optional<DType> dtype_of(char kind, int size) {
  auto pick = [](int wanted,
                 std::initializer_list<std::pair<int, DType>> sizes) -> std::optional<DType> {
    for (auto [bytes, dtype] : sizes) {
      if (bytes == wanted) return dtype;
    }
    return {};
  };
  switch (kind) {
    case 'b':
      return DType::Bool;
    case 'i':
      return pick(size, {{8, DType::I64}, {4, DType::I32}, {2, DType::I16}, {1, DType::I8}});
    case 'u':
      return pick(size, {{1, DType::U8}, {2, DType::U16}, {4, DType::U32}, {8, DType::U64}});
    case 'f':
      return pick(size, {{4, DType::F32}, {8, DType::F64}, {2, DType::F16}});
    case 'c':
      return pick(size, {{8, DType::C64}, {16, DType::C128}});
    default:
      return {};
  }
}

std::string dtype_text(PyObject* array) {
  Object dtype = Object::checked(PyObject_GetAttrString(array, "dtype"));
  return std::string(utf8(Object::checked(PyObject_Str(dtype.get())).get()));
}

// Sizes and strides in elements; the offset still counts from the first element.
Layout read_layout(const char* op, const ArrayStruct& info) {
  Layout layout;
  for (int i = 0; i < info.dims; ++i) {
    Py_ssize_t step =
        info.shape[i] > 1 ? info.strides[i] : info.item_size;  // otherwise never taken
    WEFT_CHECK_VALUE(step % info.item_size == 0, op,
                     ": expected strides that are multiples of the item size ", info.item_size,
                     ", got stride ", step, " at dim ", i);
    layout.sizes.push_back(info.shape[i]);
    layout.strides.push_back(step / info.item_size);
  }
  return layout;
}

// ---- out ----

// The bytes of a storage as a Python object: what an array made by numpy() has as its base.
struct StorageObject {
  PyObject_HEAD AddressHold hold;
};
PyTypeObject* storage_type = nullptr;

int storage_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  Storage& storage = *reinterpret_cast<StorageObject*>(self)->hold;
  return PyBuffer_FillInfo(view, self, storage.data(), static_cast<Py_ssize_t>(storage.nbytes()),
                           storage.has(kReadOnly), flags);
}
void storage_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<StorageObject*>(self)->hold.~AddressHold();
  type->tp_free(self);
  Py_DECREF(type);
}
Object wrap_storage(const Ref<Storage>& storage) {
  Object object = Object::checked(storage_type->tp_alloc(storage_type, 0));
  new (&reinterpret_cast<StorageObject*>(object.get())->hold) AddressHold(storage);
  return object;
}

PyObject* numpy_dtype(DType dtype) {
  static std::array<PyObject*, kDTypeCount> cache{};
  PyObject*& entry = cache[static_cast<size_t>(dtype)];
  if (PyObject* const known = load_acquire(entry)) return known;
  Object made = Object::checked(
      PyObject_CallMethod(import_numpy(), "dtype", "s", std::string(dtype_name(dtype)).c_str()));
  if (set_once(entry, made.get())) made.release();
  return load_acquire(entry);
}

Object int_tuple(IntList values, int64_t factor) {
  Object tuple = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* item = Object::checked(PyLong_FromLongLong(values[i] * factor)).release();
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple;
}

// numpy.ndarray(shape, dtype, buffer, offset, strides) over the storage.
PyObject* to_array(const char* op, const Tensor& tensor, bool force) {
  if (force && !tensor.on_cpu()) return to_array(op, on_device(tensor, {}), force);
  WEFT_CHECK_TYPE(tensor.on_cpu(), op, ": expected a tensor on the CPU, got one on ",
                  tensor.device(), "; use Tensor.cpu() to copy it to host memory first");
  WEFT_CHECK(
      force || !autograd::grad_enabled() || !autograd::requires_grad(tensor), op,
      ": expected a tensor that does not require grad, got one that does; use detach().numpy()");
  const DType kind = tensor.dtype();
  WEFT_CHECK_TYPE(kind != DType::BF16 && kind != DType::C32 && !is_float8(kind), op,
                  ": expected a dtype that NumPy has, got ", kind, "; use ",
                  is_complex(kind) ? "cfloat" : "float", "().numpy()");
  import_numpy();
  const NumpyTypes* numpy = numpy_if_loaded();
  WEFT_CHECK(numpy, op, ": expected a complete numpy module, got one without its types");
  Object shape = int_tuple(tensor.sizes(), 1);
  auto* ndarray = reinterpret_cast<PyObject*>(numpy->ndarray);
  PyObject* dtype = numpy_dtype(tensor.dtype());
  if (tensor.numel() == 0) {
    PyObject* args[] = {shape.get(), dtype};
    return PyObject_Vectorcall(ndarray, args, 2, nullptr);
  }
  auto item = static_cast<int64_t>(tensor.item_size());
  Object storage = wrap_storage(tensor.storage());
  Object offset = Object::checked(PyLong_FromLongLong(tensor.offset() * item));
  if (tensor.is_contiguous()) {
    PyObject* args[] = {shape.get(), dtype, storage.get(), offset.get()};
    return PyObject_Vectorcall(ndarray, args, 4, nullptr);
  }
  Object strides = int_tuple(tensor.strides(), item);
  PyObject* args[] = {shape.get(), dtype, storage.get(), offset.get(), strides.get()};
  return PyObject_Vectorcall(ndarray, args, 5, nullptr);
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    WEFT_CHECK_TYPE(is_numpy_array(array), "from_numpy: expected a numpy.ndarray, got ",
                    short_type_name(array));
    return wrap(tensor_from_numpy("from_numpy", array));
  });
}

PyMethodDef numpy_functions[] = {
    {"from_numpy", Traced<"weft.from_numpy", from_numpy>::call, METH_O,
     "from_numpy(array)\n\nA tensor over the memory of an array. A read-only array gives a "
     "read-only tensor, a "
     "negative stride a view."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const NumpyTypes* numpy_if_loaded() {
  static const NumpyTypes* types = nullptr;
  if (const NumpyTypes* const known = load_acquire(types)) [[likely]]
    return known;
  const Object name = Object::checked(PyUnicode_FromString("numpy"));
  Object numpy = Object::steal(PyImport_GetModule(name.get()));
  if (!numpy) {
    if (PyErr_Occurred()) throw PythonError{};
    return nullptr;
  }
  // While numpy itself is being imported its classes may not be there yet.
  if (!PyObject_HasAttrString(numpy.get(), "complexfloating")) return nullptr;
  set_once(types, load_types(numpy.get()));
  return load_acquire(types);
}

DType numpy_scalar_dtype(const char* op, PyObject* scalar) {
  Object dtype = Object::checked(PyObject_GetAttrString(scalar, "dtype"));
  Object name = Object::checked(PyObject_Str(dtype.get()));
  std::string_view text = utf8(name.get());
  for (int i = 0; i < kDTypeCount; ++i) {
    if (text == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  fail(ErrorKind::Type, str(op, ": expected numbers of a dtype weft has, got dtype ", text));
}

Tensor tensor_from_numpy(const char* op, PyObject* array) {
  static PyObject* name = PyUnicode_InternFromString("__array_struct__");
  Object capsule = Object::checked(PyObject_GetAttr(array, name));
  auto* found = static_cast<const ArrayStruct*>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (!found) throw PythonError{};
  const ArrayStruct& info = *found;
  std::optional<DType> dtype = dtype_of(info.kind, info.item_size);
  WEFT_CHECK_TYPE(dtype, op, ": expected numbers of a dtype weft has, got dtype ",
                  dtype_text(array));
  WEFT_CHECK_VALUE(info.flags & kNativeOrder, op, ": expected native byte order, got dtype ",
                   dtype_text(array), "; convert with array.astype(array.dtype.newbyteorder('='))");
  Layout layout = read_layout(op, info);
  WEFT_CHECK_VALUE(info.flags & kAligned, op, ": expected memory aligned to ", info.item_size,
                   " bytes, got address ", reinterpret_cast<uintptr_t>(info.data),
                   "; use array.copy()");
  // The storage starts at the lowest element, which a negative stride puts before the first.
  Layout::Extent extent = layout.extent();
  layout.offset = -extent.begin;
  char* base = info.data + extent.begin * info.item_size;
  auto nbytes = static_cast<size_t>((extent.end - extent.begin) * info.item_size);
  uint8_t flags = kForeign | (info.flags & kWritable ? 0 : kReadOnly);
  Ref<Storage> storage = Storage::wrap(base, nbytes, drop_reference, array, flags);
  Py_INCREF(array);
  return Tensor(std::move(storage), std::move(layout), *dtype);
}

PyObject* tensor_numpy_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                              PyObject* names) {
  return guarded([&] {
    auto [force] = parse_args("numpy", {"force"}, 0, args, count, names);
    return to_array("numpy", unwrap(self), bool_arg("numpy", "force", force, false));
  });
}

// __array__(dtype=None, copy=None) of NumPy's protocol.
PyObject* tensor_array_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                              PyObject* names) {
  return guarded([&]() -> PyObject* {
    auto [dtype, copy] = parse_args("__array__", {"dtype", "copy"}, 0, args, count, names);
    Object array = Object::checked(to_array("numpy", unwrap(self), false));
    bool must_copy = bool_arg("__array__", "copy", copy, false);
    if (absent(dtype))
      return must_copy ? PyObject_CallMethod(array.get(), "copy", nullptr) : array.release();
    Object own = Object::checked(PyObject_GetAttrString(array.get(), "dtype"));
    Object wanted = Object::checked(PyObject_CallMethod(import_numpy(), "dtype", "O", dtype));
    int equal = PyObject_RichCompareBool(own.get(), wanted.get(), Py_EQ);
    check_status(equal);
    WEFT_CHECK_VALUE(equal || copy != Py_False,
                     "__array__: expected the tensor's own dtype with copy=False, got ", "another");
    if (equal && !must_copy) return array.release();
    return PyObject_CallMethod(array.get(), "astype", "O", wanted.get());
  });
}

void init_numpy(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(storage_getbuffer)},
      {0, nullptr},
  };
  PyType_Spec spec = {"weft._C.StorageBuffer", sizeof(StorageObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  storage_type = reinterpret_cast<PyTypeObject*>(Object::checked(PyType_FromSpec(&spec)).release());
  check_status(PyModule_AddFunctions(module, numpy_functions));
}

}  // namespace weft::py
