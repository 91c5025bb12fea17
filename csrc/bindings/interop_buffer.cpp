// The buffer protocol, both ways: tensors export their memory, and tensors are made over the bytes
// of others.
#include <algorithm>
#include <memory>

#include "autograd/node.h"
#include "autograd/sparse.h"
#include "bindings/args.h"
#include "bindings/errors.h"
#include "bindings/hooked.h"
#include "bindings/tensor_object.h"

namespace weft::py {
namespace {

// ---- in ----

// Runs on whichever thread drops the last reference to the storage.
void release_buffer(void* context) {
  if (!interpreter_alive()) return;
  TakeGil gil;
  KeepException keep;
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

struct BufferDeleter {
  void operator()(Py_buffer* view) const {
    PyBuffer_Release(view);
    delete view;
  }
};
using BufferHolder = std::unique_ptr<Py_buffer, BufferDeleter>;

BufferHolder request(PyObject* exporter) {
  auto view = std::make_unique<Py_buffer>();
  check_status(PyObject_GetBuffer(exporter, view.get(), PyBUF_SIMPLE));
  return BufferHolder(view.release());
}

// ---- out ----

// The format characters of PEP 3118; null where it has none.
const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "?";
    case DType::U8:
      return "B";
    case DType::I8:
      return "b";
    case DType::I16:
      return "h";
    case DType::I32:
      return "i";
    case DType::I64:
      return sizeof(long) == 8 ? "l" : "q";
    case DType::U16:
      return "H";
    case DType::U32:
      return "I";
    case DType::U64:
      return sizeof(long) == 8 ? "L" : "Q";
    case DType::F16:
      return "e";
    case DType::F32:
      return "f";
    case DType::F64:
      return "d";
    case DType::C64:
      return "Zf";
    case DType::C128:
      return "Zd";
    default:
      return nullptr;
  }
}

// What an exported view keeps alive until it is released.
struct Export {
  explicit Export(const Ref<Storage>& storage) : hold(storage) {}
  AddressHold hold;
  std::vector<Py_ssize_t> shape, strides;
};

bool is_fortran(const Layout& layout) {
  int64_t step = 1;
  for (size_t i = 0; i < layout.sizes.size(); ++i) {
    if (layout.sizes[i] > 1 && layout.strides[i] != step) return false;
    step *= layout.sizes[i];
  }
  return true;
}

bool order_fits(const Layout& layout, int flags) {
  auto asks = [&](int wanted) { return (flags & wanted) == wanted; };
  bool c = layout.is_contiguous();
  if (!asks(PyBUF_STRIDES) || asks(PyBUF_C_CONTIGUOUS)) return c;
  if (asks(PyBUF_F_CONTIGUOUS)) return is_fortran(layout);
  if (asks(PyBUF_ANY_CONTIGUOUS)) return c || is_fortran(layout);
  return true;
}

void fill_view(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& tensor = unwrap(self);
  auto item = static_cast<Py_ssize_t>(tensor.item_size());
  auto exported = std::make_unique<Export>(tensor.storage());
  for (size_t i = 0; i < tensor.sizes().size(); ++i) {
    exported->shape.push_back(tensor.sizes()[i]);
    exported->strides.push_back(tensor.strides()[i] * item);
  }
  static char nothing = 0;
  view->buf = tensor.data() ? tensor.data() : &nothing;
  view->len = tensor.numel() * item;
  view->itemsize = item;
  view->readonly = tensor.storage()->has(kReadOnly);
  view->ndim = static_cast<int>(tensor.dim());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(tensor.dtype())) : nullptr;
  view->shape = flags & PyBUF_ND ? exported->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  view->obj = new_ref(self);
}

// ---- frombuffer ----

PyObject* frombuffer(PyObject*, PyObject* const* args, Py_ssize_t given, PyObject* names) {
  return guarded([&] {
    auto [buffer, dtype, count, offset, requires_grad] =
        parse_args("frombuffer", {"buffer", "dtype", "count", "offset", "requires_grad"}, 2, args,
                   given, names);
    WEFT_CHECK_VALUE(PyObject_CheckBuffer(buffer),
                     "frombuffer: expected an object with a buffer, got ", short_type_name(buffer));
    Tensor tensor = tensor_from_buffer("frombuffer", buffer, dtype_arg("frombuffer", dtype),
                                       int_arg("frombuffer", "count", count, -1),
                                       int_arg("frombuffer", "offset", offset, 0));
    if (bool_arg("frombuffer", "requires_grad", requires_grad, false))
      autograd::set_requires_grad(tensor, true);
    return wrap(std::move(tensor));
  });
}

PyMethodDef buffer_functions[] = {
    {"frombuffer", fast(Traced<"weft.frombuffer", frombuffer>::call), kFast,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n\n"
     "A 1-d tensor over the bytes of a buffer, without copying; read-only when the buffer is."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Tensor tensor_from_buffer(const char* op, PyObject* exporter, std::optional<DType> dtype,
                          int64_t count, int64_t offset) {
  BufferHolder view = request(exporter);
  DType type = dtype.value_or(default_dtype());
  auto item = static_cast<int64_t>(item_size(type));
  WEFT_CHECK_VALUE(view->len > 0 && count != 0, op, ": expected at least one element, got ",
                   view->len > 0 ? "count 0" : "an empty buffer");
  WEFT_CHECK_VALUE(offset >= 0 && offset < view->len, op, ": expected offset in [0, ",
                   view->len - 1, "], got ", offset);
  int64_t available = view->len - offset;
  if (count < 0) {
    WEFT_CHECK_VALUE(available % item == 0, op, ": expected a multiple of ", item,
                     " bytes after the offset, got ", available);
    count = available / item;
  }
  WEFT_CHECK_VALUE(count <= available / item, op, ": expected count in [1, ", available / item,
                   "], got ", count);
  char* data = static_cast<char*>(view->buf) + offset;
  WEFT_CHECK_VALUE(reinterpret_cast<uintptr_t>(data) % std::min<size_t>(item_size(type), 8) == 0,
                   op, ": expected memory aligned to ", item, " bytes, got offset ", offset);
  uint8_t flags = kForeign | (view->readonly ? kReadOnly : 0);
  Ref<Storage> storage =
      Storage::wrap(data, static_cast<size_t>(count * item), release_buffer, view.get(), flags);
  view.release();
  return Tensor(std::move(storage), Layout::contiguous(Dims{count}), type);
}

int tensor_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& tensor = unwrap(self);
  const char* problem = nullptr;
  if (autograd::grad_enabled() && autograd::requires_grad(tensor)) {
    problem =
        "buffer: expected a tensor that does not require grad, got one that does; use detach()";
  } else if (autograd::sparse::is_sparse(tensor)) {
    problem = "buffer: expected a strided tensor, got a sparse one; use to_dense()";
  } else if (is_nested_tensor(tensor)) {
    problem = "buffer: expected a dense tensor, got a nested one; use unbind()";
  } else if (!format_of(tensor.dtype())) {
    problem = "buffer: expected a dtype that buffers have, got a small float; use float()";
  } else if ((flags & PyBUF_WRITABLE) && tensor.storage()->has(kReadOnly)) {
    problem = "buffer: expected a writable tensor, got a read-only one";
  } else if (!order_fits(tensor.layout(), flags)) {
    problem = "buffer: expected a contiguous tensor, got a strided one; use contiguous()";
  }
  if (problem) {
    PyErr_SetString(PyExc_BufferError, problem);
    return -1;
  }
  return guarded([&] {
    before_memory(self);
    fill_view(self, view, flags);
    return 0;
  });
}

void tensor_releasebuffer(PyObject*, Py_buffer* view) {
  delete static_cast<Export*>(view->internal);
}

void init_buffers(PyObject* module) {
  check_status(PyModule_AddFunctions(module, buffer_functions));
}

}  // namespace weft::py
