// Tensors: made over memory, read, differentiated, exchanged.
#include "autograd/node.h"
#include "autograd/out.h"
#include "autograd/placement.h"
#include "capi/handles.h"
#include "core/dlpack.h"
#include "ops_copying.h"

namespace weft::capi {
namespace {

Dims dims_of(const char* op, int ndim, const int64_t* numbers) {
  WEFT_CHECK_VALUE(ndim >= 0 && ndim <= 64, op, ": expected 0 to 64 dims, got ", ndim);
  WEFT_CHECK_VALUE(ndim == 0 || numbers, op, ": expected sizes, got NULL");
  return Dims(IntList(numbers, static_cast<size_t>(ndim)));
}

struct HostMemory {
  void (*release)(void*);
  void* context;
};
void release_host_memory(void* memory) {
  const std::unique_ptr<HostMemory> held(static_cast<HostMemory*>(memory));
  if (held->release) held->release(held->context);
}

Tensor wrap_memory(void* data, DType dtype, Layout layout, const HostMemory& memory) {
  const char* op = "weft_tensor_wrap";
  const auto item = static_cast<int64_t>(item_size(dtype));
  WEFT_CHECK_VALUE(data || layout.numel() == 0, op, ": expected memory, got NULL");
  const size_t alignment = std::min<size_t>(item_size(dtype), 8);
  WEFT_CHECK_VALUE(reinterpret_cast<uintptr_t>(data) % alignment == 0, op,
                   ": expected memory aligned to ", alignment, " bytes, got another address");
  // The storage starts at the lowest element, which a negative stride puts before the first.
  const Layout::Extent extent = layout.extent();
  layout.offset = -extent.begin;
  auto held = std::make_unique<HostMemory>(memory);
  Ref<Storage> storage = Storage::wrap(static_cast<char*>(data) + extent.begin * item,
                                       static_cast<size_t>((extent.end - extent.begin) * item),
                                       release_host_memory, held.get());
  held.release();
  return Tensor(std::move(storage), std::move(layout), dtype);
}

TensorList tensors_of(const char* op, const weft_tensor* const* handles, size_t count) {
  WEFT_CHECK_VALUE(handles && count > 0, op, ": expected tensors, got none");
  TensorList tensors;
  for (size_t i = 0; i < count; ++i) tensors.push_back(handle(op, handles[i]).tensor);
  return tensors;
}

autograd::BackwardOptions options_of(const char* op, int flags) {
  constexpr int known = WEFT_RETAIN_GRAPH | WEFT_CREATE_GRAPH | WEFT_ALLOW_UNUSED;
  WEFT_CHECK_VALUE((flags & ~known) == 0, op, ": expected flags of weft.h, got ", flags);
  autograd::BackwardOptions options;
  options.create_graph = (flags & WEFT_CREATE_GRAPH) != 0;
  options.retain_graph = (flags & WEFT_RETAIN_GRAPH) != 0 || options.create_graph;
  options.allow_unused = (flags & WEFT_ALLOW_UNUSED) != 0;
  return options;
}

}  // namespace

DType dtype_of(const char* op, weft_dtype dtype) {
  WEFT_CHECK_VALUE(dtype >= 0 && dtype < kDTypeCount, op, ": expected a dtype of weft.h, got ",
                   static_cast<int>(dtype));
  return static_cast<DType>(dtype);
}

}  // namespace weft::capi

using namespace weft;
using capi::guarded;
using capi::handle;
using capi::put;

static_assert(static_cast<int>(DType::C32) == WEFT_COMPLEX32 && kDTypeCount == 20,
              "weft_dtype numbers the dtypes as DType does");

weft_status weft_tensor_wrap(void* data, weft_dtype dtype, int ndim, const int64_t* sizes,
                             const int64_t* strides, void (*release)(void*), void* context,
                             weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_tensor_wrap";
    const DType type = capi::dtype_of(op, dtype);
    const Dims dims = capi::dims_of(op, ndim, sizes);
    checked_numel(op, dims);
    const Layout layout =
        strides ? Layout{dims, capi::dims_of(op, ndim, strides), 0} : Layout::contiguous(dims);
    put(out, capi::wrap_memory(data, type, layout, {release, context}));
  });
}

weft_status weft_tensor_empty(weft_dtype dtype, int ndim, const int64_t* sizes, weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_tensor_empty";
    put(out, Tensor::empty(capi::dims_of(op, ndim, sizes), capi::dtype_of(op, dtype), {}, op));
  });
}

weft_status weft_tensor_share(const weft_tensor* tensor, weft_tensor** out) {
  return guarded([&] { put(out, handle("weft_tensor_share", tensor).tensor); });
}

void weft_tensor_release(weft_tensor* tensor) { delete tensor; }

weft_dtype weft_tensor_dtype(const weft_tensor* tensor) {
  return tensor ? static_cast<weft_dtype>(tensor->tensor.dtype()) : WEFT_BOOL;
}
int weft_tensor_ndim(const weft_tensor* tensor) {
  return tensor ? static_cast<int>(tensor->tensor.dim()) : 0;
}
const int64_t* weft_tensor_sizes(const weft_tensor* tensor) {
  return tensor ? tensor->tensor.sizes().data() : nullptr;
}
const int64_t* weft_tensor_strides(const weft_tensor* tensor) {
  return tensor ? tensor->tensor.strides().data() : nullptr;
}
int64_t weft_tensor_numel(const weft_tensor* tensor) { return tensor ? tensor->tensor.numel() : 0; }
const char* weft_tensor_device(const weft_tensor* tensor) {
  if (!tensor || tensor->tensor.on_cpu()) return "cpu";
  thread_local std::string text;
  text = str(tensor->tensor.device());
  return text.c_str();
}
void* weft_tensor_data(const weft_tensor* tensor) {
  if (!tensor) return nullptr;
  tensor->tensor.storage()->set(kExposed);
  return tensor->tensor.on_cpu() ? tensor->tensor.data() : nullptr;
}

weft_status weft_tensor_contiguous(const weft_tensor* tensor, weft_tensor** out) {
  return guarded([&] {
    const Tensor& given = handle("weft_tensor_contiguous", tensor).tensor;
    put(out, given.is_contiguous() ? given : ops::contiguous(given));
  });
}

weft_status weft_tensor_copy(weft_tensor* target, const weft_tensor* source) {
  return guarded([&] {
    const autograd::NoGradGuard no_grad;
    ops::copy_(handle("weft_tensor_copy", target).tensor,
               handle("weft_tensor_copy", source).tensor);
  });
}

weft_status weft_tensor_item(const weft_tensor* tensor, double* out) {
  return guarded([&] { *out = handle("weft_tensor_item", tensor).tensor.item().to_double(); });
}

weft_status weft_tensor_set_requires_grad(weft_tensor* tensor, int requires_grad) {
  return guarded([&] {
    autograd::set_requires_grad(handle("weft_tensor_set_requires_grad", tensor).tensor,
                                requires_grad != 0);
  });
}

int weft_tensor_requires_grad(const weft_tensor* tensor) {
  return tensor && autograd::requires_grad(tensor->tensor);
}

weft_status weft_tensor_backward(const weft_tensor* tensor, const weft_tensor* gradient,
                                 int flags) {
  return guarded([&] {
    const Tensor& root = handle("weft_tensor_backward", tensor).tensor;
    autograd::backward({root}, {gradient ? gradient->tensor : Tensor()}, {},
                       capi::options_of("weft_tensor_backward", flags));
  });
}

weft_status weft_grad(const weft_tensor* const* outputs, size_t output_count,
                      const weft_tensor* const* gradients, const weft_tensor* const* inputs,
                      size_t input_count, int flags, weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_grad";
    const TensorList roots = capi::tensors_of(op, outputs, output_count);
    TensorList grads(output_count);
    for (size_t i = 0; gradients && i < output_count; ++i) {
      if (gradients[i]) grads[i] = gradients[i]->tensor;
    }
    autograd::BackwardOptions options = capi::options_of(op, flags);
    options.accumulate = false;
    const TensorList wanted = capi::tensors_of(op, inputs, input_count);
    const TensorList found = autograd::backward(roots, grads, wanted, options);
    std::vector<std::unique_ptr<weft_tensor>> made;
    for (const Tensor& each : found) {
      made.emplace_back(each.defined() ? new weft_tensor{each} : nullptr);
    }
    for (size_t i = 0; i < made.size(); ++i) out[i] = made[i].release();
  });
}

weft_status weft_tensor_retain_grad(weft_tensor* tensor) {
  return guarded([&] { autograd::retain_grad(handle("weft_tensor_retain_grad", tensor).tensor); });
}

int weft_tensor_is_leaf(const weft_tensor* tensor) {
  return tensor && autograd::is_leaf(tensor->tensor);
}

int weft_tensor_is_same(const weft_tensor* tensor, const weft_tensor* other) {
  return tensor && other && tensor->tensor.is_same(other->tensor);
}

int64_t weft_tensor_offset(const weft_tensor* tensor) {
  return tensor ? tensor->tensor.offset() : 0;
}

weft_status weft_tensor_storage(const weft_tensor* tensor, weft_tensor** out) {
  return guarded([&] {
    const Ref<Storage>& storage = handle("weft_tensor_storage", tensor).tensor.storage();
    Layout layout = Layout::contiguous(Dims{static_cast<int64_t>(storage->nbytes())});
    put(out, Tensor(storage, std::move(layout), DType::U8));
  });
}

weft_status weft_tensor_set_storage(weft_tensor* tensor, const weft_tensor* source, int64_t offset,
                                    int ndim, const int64_t* sizes, const int64_t* strides) {
  return guarded([&] {
    const char* op = "weft_tensor_set_storage";
    Layout layout{capi::dims_of(op, ndim, sizes), {}, offset};
    checked_numel(op, layout.sizes);
    layout.strides = strides ? capi::dims_of(op, ndim, strides) : contiguous_strides(layout.sizes);
    autograd::set_storage(op, handle(op, tensor).tensor, handle(op, source).tensor.storage(),
                          std::move(layout));
  });
}

weft_status weft_tensor_write(const weft_tensor* result, weft_tensor* out) {
  return guarded([&] {
    const char* op = "weft_tensor_write";
    const Tensor &made = handle(op, result).tensor, &target = handle(op, out).tensor;
    autograd::check_out_graph(op, autograd::needs_graph(made, target));
    autograd::cast_out(op, made, target);
  });
}

weft_status weft_tensor_grad(const weft_tensor* tensor, weft_tensor** out) {
  return guarded([&] {
    Tensor gradient = autograd::grad(handle("weft_tensor_grad", tensor).tensor);
    if (gradient.defined()) {
      put(out, std::move(gradient));
    } else {
      *out = nullptr;
    }
  });
}

weft_status weft_tensor_set_grad(weft_tensor* tensor, const weft_tensor* gradient) {
  return guarded([&] {
    autograd::set_grad(handle("weft_tensor_set_grad", tensor).tensor,
                       gradient ? gradient->tensor : Tensor());
  });
}

weft_status weft_tensor_set_data(weft_tensor* tensor, const weft_tensor* source) {
  return guarded([&] {
    const char* op = "weft_tensor_set_data";
    autograd::set_data(handle(op, tensor).tensor, handle(op, source).tensor);
  });
}

weft_status weft_tensor_to_dlpack(const weft_tensor* tensor, DLManagedTensorVersioned** out) {
  return guarded([&] {
    const Tensor& given = handle("weft_tensor_to_dlpack", tensor).tensor;
    const uint64_t flags = given.storage()->has(kReadOnly) ? dlpack::kReadOnlyFlag : 0;
    auto managed = dlpack::export_tensor<dlpack::ManagedVersioned>(given, flags);
    *out = reinterpret_cast<DLManagedTensorVersioned*>(managed.release());
  });
}

weft_status weft_tensor_from_dlpack(DLManagedTensorVersioned* managed, weft_tensor** out) {
  return guarded([&] {
    const char* op = "weft_tensor_from_dlpack";
    auto& given = handle(op, reinterpret_cast<dlpack::ManagedVersioned*>(managed));
    WEFT_CHECK_VALUE(given.major == 1, op, ": expected DLPack version 1, got ", given.major);
    const int32_t device = given.tensor.device.type;
    WEFT_CHECK_VALUE(device == dlpack::kCpu || device == dlpack::kCudaHost, op,
                     ": expected a tensor on the CPU, got DLPack device type ", device);
    const auto dtype = dlpack::dtype_of(given.tensor.dtype);
    WEFT_CHECK_VALUE(dtype, op, ": expected a dtype that weft has, got DLPack type code ",
                     int{given.tensor.dtype.code});
    const uint8_t flags = kForeign | (given.flags & dlpack::kReadOnlyFlag ? kReadOnly : 0);
    put(out, dlpack::import_tensor(op, &given, *dtype, flags));
  });
}
