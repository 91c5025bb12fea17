// weft.tensor, as_tensor, asarray and the constructor: from Python data to tensors.
//
// Nested sequences are walked twice: once for shape and dtype, once to fill the memory.
#include "autograd/node.h"
#include "autograd/sparse.h"
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"
#include "core/warning.h"
#include "ops/factory.h"
#include "ops_copying.h"

namespace weft::py {
namespace {

// The tensor itself: the elements of a sparse or nested one are no data of its sizes.
const Tensor& strided_data(const char* op, const Tensor& tensor) {
  WEFT_CHECK_AS(NotImplemented, !is_nested_tensor(tensor), op,
                ": expected a dense tensor, got a nested one; use clone() or to_padded_tensor(0)");
  WEFT_CHECK_AS(NotImplemented, !autograd::sparse::is_sparse(tensor), op,
                ": expected a strided tensor, got a sparse one; use clone() or to_dense()");
  return tensor;
}

constexpr size_t kMaxDepth = 64;

bool is_nested(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object) ||
         (PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object) &&
          !is_tensor(object) && !is_numpy_array(object) && !is_numpy_scalar(object));
}

// An item as a list or tuple: itself, where it is one that no other thread changes.
Object fast_sequence(const char* op, PyObject* object) {
  Object fast = Object::steal(kFreeThreaded ? PySequence_Tuple(object)
                                            : PySequence_Fast(object, "expected a sequence"));
  if (fast) return fast;
  PyErr_Clear();
  fail(ErrorKind::Type,
       str(op, ": expected numbers or sequences of numbers, got ", short_type_name(object)));
}

// ---- first walk: shape and dtype ----

class Survey {
 public:
  explicit Survey(const char* op) : op_(op) {}

  // The shape follows the first item of every level; filling checks the others. A tensor in first
  // place counts as a number.
  void shape_of(PyObject* object) {
    Object held;
    while (true) {
      if (is_tensor(object)) return;
      if (is_numpy_array(object)) return append(tensor_from_numpy(op_, object));
      if (!is_nested(object)) return;
      Object fast = fast_sequence(op_, object);
      sizes_.push_back(PySequence_Fast_GET_SIZE(fast.get()));
      WEFT_CHECK_VALUE(sizes_.size() <= kMaxDepth, op_, ": expected at most ", kMaxDepth,
                       " dims, got more");
      if (sizes_.back() == 0) return;
      object = PySequence_Fast_ITEMS(fast.get())[0];
      held = std::move(fast);
    }
  }

  void dtype_of(PyObject* object, size_t depth = 0) {
    if (PyFloat_CheckExact(object)) {
      merge(default_dtype());
    } else if (PyBool_Check(object)) {
      merge(DType::Bool);
    } else if (PyLong_Check(object)) {
      merge(DType::I64);
    } else if (is_tensor(object)) {
      merge(unwrap(object).dtype());
    } else if (is_numpy_array(object)) {
      merge(tensor_from_numpy(op_, object).dtype());
    } else if (is_numpy_scalar(object)) {
      merge(numpy_scalar_dtype(op_, object));
    } else if (PyFloat_Check(object)) {
      merge(default_dtype());
    } else if (PyComplex_Check(object)) {
      merge(complex_of(default_dtype()));
    } else if (is_nested(object) && depth < kMaxDepth) {
      dtype_of_items(object, depth);
    } else {
      fail(ErrorKind::Type,
           str(op_, ": expected numbers or sequences of numbers, got ", short_type_name(object)));
    }
  }

  const Dims& sizes() const { return sizes_; }
  DType dtype() const { return dtype_.value_or(default_dtype()); }

 private:
  void append(const Tensor& tensor) {
    for (int64_t size : tensor.sizes()) sizes_.push_back(size);
  }
  void dtype_of_items(PyObject* object, size_t depth) {
    Object fast = fast_sequence(op_, object);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.get());
    for (Py_ssize_t i = 0; i < count; ++i)
      dtype_of(PySequence_Fast_ITEMS(fast.get())[i], depth + 1);
  }
  void merge(DType dtype) { dtype_ = dtype_ ? promote(*dtype_, dtype) : dtype; }

  const char* op_;
  Dims sizes_;
  std::optional<DType> dtype_;
};

// ---- second walk: the elements ----

[[noreturn]] void overflow(const char* op, DType dtype, PyObject* object) {
  PyErr_Clear();
  Object text = Object::checked(PyObject_Repr(object));
  fail(item_size(dtype) == 8 ? ErrorKind::Value : ErrorKind::Runtime,
       str(op, ": expected a number that fits ", dtype, ", got ", utf8(text.get())));
}

class Fill {
 public:
  Fill(const char* op, const Tensor& out)
      : op_(op), out_(out), size_(out.item_size()), dtype_(out.dtype()) {
    at_ = static_cast<char*>(out.data());
  }

  void run(PyObject* object) { level(object, 0); }

 private:
  void level(PyObject* object, size_t depth) {
    const Dims& sizes = out_.sizes();
    bool number = PyFloat_CheckExact(object) || PyLong_CheckExact(object);
    if (number && depth == sizes.size()) return element(object);
    if (is_tensor(object)) return block(unwrap(object), depth);
    if (is_numpy_array(object)) return block(tensor_from_numpy(op_, object), depth);
    if (depth == sizes.size()) {
      WEFT_CHECK_VALUE(!is_nested(object), op_, ": expected a number at dim ", depth,
                       ", got a sequence");
      return element(object);
    }
    WEFT_CHECK_TYPE(is_nested(object), op_, ": expected a sequence of length ", sizes[depth],
                    " at dim ", depth, ", got ", short_type_name(object));
    Object fast = fast_sequence(op_, object);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.get());
    WEFT_CHECK_VALUE(count == sizes[depth], op_, ": expected a sequence of length ", sizes[depth],
                     " at dim ", depth, ", got ", count);
    if (depth + 1 == sizes.size() && dtype_ == DType::F32 && floats(fast.get(), count)) return;
    // The list may be changed by what conversion calls.
    for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
      Object item = Object::borrow(PySequence_Fast_ITEMS(fast.get())[i]);
      level(item.get(), depth + 1);
    }
  }

  // A row of Python floats, the common case; false when something else is among them.
  bool floats(PyObject* fast, Py_ssize_t count) {
    PyObject** items = PySequence_Fast_ITEMS(fast);
    auto* row = reinterpret_cast<float*>(at_);
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!PyFloat_CheckExact(items[i])) return false;
      row[i] = static_cast<float>(PyFloat_AS_DOUBLE(items[i]));
    }
    at_ += static_cast<size_t>(count) * size_;
    return true;
  }

  void block(const Tensor& part, size_t depth) {
    IntList rest = IntList(out_.sizes()).subspan(depth);
    const bool number = rest.empty() && part.numel() == 1;
    WEFT_CHECK_TYPE(rest.empty() || part.dim() > 0, op_, ": expected an item of shape ",
                    AsTuple{rest}, " at dim ", depth, ", got a number");
    WEFT_CHECK_VALUE(number || same(part.sizes(), rest), op_, ": expected an item of shape ",
                     AsTuple{rest}, " at dim ", depth, ", got shape ", AsTuple{part.sizes()});
    int64_t count = part.numel();
    if (count == 0) return;
    Layout layout = Layout::contiguous(number ? IntList(part.sizes()) : rest);
    layout.offset = (at_ - static_cast<char*>(out_.data())) / static_cast<int64_t>(size_);
    autograd::NoGradGuard no_grad;
    ops::copy_(out_.with_layout(std::move(layout)), part);
    at_ += static_cast<size_t>(count) * size_;
  }

  void element(PyObject* object) {
    if (PyLong_Check(object) && !PyBool_Check(object) && is_integral(dtype_)) {
      store_int(object);
    } else {
      Scalar scalar;
      WEFT_CHECK_TYPE(to_large(object, &scalar) || to_scalar(object, &scalar), op_,
                      ": expected numbers or sequences of numbers, got ", short_type_name(object));
      WEFT_CHECK_TYPE(!scalar.is_complex() || is_complex(dtype_) || dtype_ == DType::Bool, op_,
                      ": expected real numbers for ", dtype_, ", got a complex one");
      if (is_integral(dtype_)) {
        check_range(scalar, object);
      }
      scalar.store(dtype_, at_);
    }
    at_ += size_;
  }

  // An int beyond 64 bits, which only floats and bools hold.
  static bool to_large(PyObject* object, Scalar* out) {
    int over = 0;
    if (!PyLong_CheckExact(object)) return false;
    (void)PyLong_AsLongLongAndOverflow(object, &over);
    if (over == 0) return false;
    *out = PyLong_AsDouble(object);
    if (PyErr_Occurred()) throw PythonError{};
    return true;
  }

  void store_int(PyObject* object) {
    if (dtype_ == DType::U64) {
      uint64_t value = PyLong_AsUnsignedLongLong(object);
      if (PyErr_Occurred()) overflow(op_, dtype_, object);
      std::memcpy(at_, &value, sizeof(value));
      return;
    }
    int over = 0;
    int64_t value = PyLong_AsLongLongAndOverflow(object, &over);
    if (over != 0) overflow(op_, dtype_, object);
    check_range(Scalar(value), object);
    Scalar(value).store(dtype_, at_);
  }

  void check_range(const Scalar& scalar, PyObject* object) {
    bool fits = dispatch(dtype_, [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (!scalar.is_integral()) {
          double value = std::trunc(scalar.to_double());
          // Both bounds as doubles; the upper one is exclusive because it rounds up for 64 bits.
          return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                 value < std::ldexp(1.0, std::numeric_limits<T>::digits);
        }
        int64_t value = scalar.to_int();
        if constexpr (std::is_same_v<T, uint64_t>) return value >= 0;
        return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
               value <= static_cast<int64_t>(std::numeric_limits<T>::max());
      } else {
        return true;
      }
    });
    if (!fits) overflow(op_, dtype_, object);
  }

  const char* op_;
  const Tensor& out_;
  size_t size_;
  DType dtype_;
  char* at_;
};

Tensor copy_of(const Tensor& source, DType dtype) {
  autograd::NoGradGuard no_grad;
  Tensor out = Tensor::empty(source.sizes(), dtype, source.device());
  ops::copy_(out, source);
  return out;
}

// ---- the functions ----

struct Options {
  std::optional<DType> dtype;
  bool requires_grad = false;
};

// Whether the data is a storage of weft.storage, which a tensor is made over and no copy of.
bool is_storage(PyObject* data) { return PyObject_HasAttrString(data, "_tensor_of"); }
Tensor tensor_over_storage(PyObject* data, std::optional<DType> dtype) {
  PyObject* wanted = dtype ? dtype_object(*dtype) : Py_None;
  return unwrap(Object::checked(PyObject_CallMethod(data, "_tensor_of", "O", wanted)).get());
}

Tensor placed(const Tensor& tensor, std::optional<Device> device) {
  if (!device || *device == tensor.device()) return tensor;
  return ops::_to_copy(tensor, {}, {}, device);
}

PyObject* finish(Tensor tensor, bool requires_grad) {
  if (requires_grad) autograd::set_requires_grad(tensor, true);
  return wrap(std::move(tensor));
}

PyObject* tensor(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    auto [data, dtype, device, requires_grad, pinned] =
        parse_args("tensor", {"data", "dtype", "device", "requires_grad", "pin_memory"}, 1, args,
                   count, names);
    (void)pinned;
    const std::optional<Device> place = device_arg("tensor", device);
    bool grad = bool_arg("tensor", "requires_grad", requires_grad, false);
    if (is_tensor(data)) {
      warn(
          "tensor: expected numbers, got a tensor, which is copied without its history; say "
          "data.detach().clone()");
    }
    return finish(placed(tensor_from_data("tensor", data, dtype_arg("tensor", dtype)), place),
                  grad);
  });
}

// Whether the data is given by another library: a capsule, or an object that makes one.
bool gives_dlpack(PyObject* data) {
  return PyCapsule_CheckExact(data) || PyObject_HasAttrString(data, "__dlpack__");
}

// No copy where the data is a tensor or array of the right dtype.
Tensor shared_or_copied(const char* op, PyObject* data, std::optional<DType> dtype) {
  Tensor source;
  if (is_tensor(data)) {
    source = strided_data(op, unwrap(data));
  } else if (is_numpy_array(data)) {
    source = tensor_from_numpy(op, data);
  } else if (gives_dlpack(data)) {
    source = tensor_from_dlpack(op, data);
  } else {
    return tensor_from_data(op, data, dtype);
  }
  if (dtype && *dtype != source.dtype()) return ops::_to_copy(source, *dtype);
  return source;
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    auto [data, dtype, device] =
        parse_args("as_tensor", {"data", "dtype", "device"}, 1, args, count, names);
    const std::optional<Device> place = device_arg("as_tensor", device);
    return wrap(placed(shared_or_copied("as_tensor", data, dtype_arg("as_tensor", dtype)), place));
  });
}

PyObject* asarray(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    auto [data, dtype, device, copy, requires_grad] = parse_args(
        "asarray", {"obj", "dtype", "device", "copy", "requires_grad"}, 1, args, count, names);
    const std::optional<Device> place = device_arg("asarray", device);
    bool grad = bool_arg("asarray", "requires_grad", requires_grad, false);
    bool must_copy = bool_arg("asarray", "copy", copy, false);
    std::optional<DType> wanted = dtype_arg("asarray", dtype);
    bool buffer = !is_tensor(data) && !is_numpy_array(data) && !is_numpy_scalar(data) &&
                  PyObject_CheckBuffer(data);  // a number of NumPy is one of its dtype, no bytes
    const bool alias = copy == Py_False;
    Tensor source = buffer ? tensor_from_buffer("asarray", data, wanted)
                           : shared_or_copied("asarray", data, alias ? std::nullopt : wanted);
    bool shares =
        buffer || is_tensor(data) || is_numpy_array(data) || gives_dlpack(data) || is_storage(data);
    if (must_copy && shares) source = copy_of(source, source.dtype());
    WEFT_CHECK_VALUE(!alias || shares, "asarray: expected data that can be shared, got ",
                     short_type_name(data));
    WEFT_CHECK_VALUE(!alias || !wanted || *wanted == source.dtype(), "asarray: expected dtype ",
                     dtype_name(source.dtype()), " with copy=False, got ", dtype_name(*wanted));
    WEFT_CHECK_VALUE(!alias || !place || *place == source.device(), "asarray: expected device ",
                     source.device().str(), " with copy=False, got ", place->str());
    if (is_tensor(data) && autograd::requires_grad(source) && !grad && requires_grad) {
      source = autograd::detach(source);
    }
    source = placed(source, place);
    return finish(std::move(source), grad && !autograd::requires_grad(source));
  });
}

PyMethodDef construction_functions[] = {
    {"tensor", fast(Traced<"weft.tensor", tensor>::call), kFast,
     "tensor(data, *, dtype=None, device=None, requires_grad=False)\n\n"
     "A new tensor holding a copy of numbers, nested sequences, an array or a tensor."},
    {"as_tensor", fast(Traced<"weft.as_tensor", as_tensor>::call), kFast,
     "as_tensor(data, dtype=None, device=None)\n\nShares memory with tensors and arrays where "
     "it can."},
    {"asarray", fast(Traced<"weft.asarray", asarray>::call), kFast,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n\n"
     "From tensors, arrays, DLPack and buffers without copying, else as tensor()."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor tensor_from_data(const char* op, PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) {
    return copy_of(strided_data(op, unwrap(data)), dtype.value_or(unwrap(data).dtype()));
  }
  if (is_numpy_array(data)) {
    Tensor array = tensor_from_numpy(op, data);
    return copy_of(array, dtype.value_or(array.dtype()));
  }
  if (!PyList_Check(data) && !PyTuple_Check(data) && !PyNumber_Check(data)) {
    if (is_storage(data)) return tensor_over_storage(data, dtype);
    if (gives_dlpack(data)) {
      const Tensor given = tensor_from_dlpack(op, data);
      return copy_of(given, dtype.value_or(given.dtype()));
    }
  }
  Survey survey(op);
  survey.shape_of(data);
  if (!dtype) survey.dtype_of(data);
  Tensor out = Tensor::empty(survey.sizes(), dtype.value_or(survey.dtype()), {}, op);
  Fill(op, out).run(data);
  return out;
}

// Tensor(), Tensor(2, 3), Tensor([1, 2]), Tensor(other): PyTorch's old constructor, always
// floating.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    (void)kwargs;  // for subclasses with an __init__ of their own
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    PyObject* first = count > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (first) before_memory(first);
    Tensor made;
    int64_t size;
    if (!first) {
      made = Tensor::empty(Dims{0}, default_dtype());
    } else if (count == 1 && is_tensor(first)) {  // before numbers, as which one integer counts
      made = autograd::detach(strided_data("Tensor", unwrap(first)));
    } else if (count > 1 || PyObject_TypeCheck(first, size_type) || to_int(first, &size)) {
      Dims sizes;
      PyObject* list = PyObject_TypeCheck(first, size_type) ? first : args;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); ++i) {
        sizes.push_back(int_arg("Tensor", "size", PyTuple_GET_ITEM(list, i)));
      }
      made = native::unset(Tensor::empty(sizes, default_dtype(), {}, "Tensor"));
    } else {
      made = tensor_from_data("Tensor", first, default_dtype());
    }
    return wrap_as(type, std::move(made));
  });
}

void init_construct(PyObject* module) {
  check_status(PyModule_AddFunctions(module, construction_functions));
}

}  // namespace weft::py
