// DLPack: tensors to and from other libraries without copying.
#include "core/dlpack.h"

#include <algorithm>

#include "core/error.h"

namespace weft::dlpack {
namespace {

template <class M>
struct Exported {
  explicit Exported(const Ref<Storage>& storage) : hold(storage) {}
  M managed;
  AddressHold hold;
  Dims shape, strides;
};

template <class M>
void delete_exported(M* managed) {
  delete static_cast<Exported<M>*>(managed->context);
}

template <class M>
void release_imported(void* context) {
  auto* managed = static_cast<M*>(context);
  if (managed->deleter) managed->deleter(managed);
}

Layout read_layout(const char* op, const TensorInfo& info) {
  WEFT_CHECK_VALUE(info.ndim >= 0 && info.ndim <= 64, op, ": expected at most 64 dims, got ",
                   info.ndim);
  Dims sizes(IntList(info.shape, static_cast<size_t>(info.ndim)));
  checked_numel(op, sizes);
  if (!info.strides) return Layout::contiguous(sizes);
  return {sizes, Dims(IntList(info.strides, static_cast<size_t>(info.ndim))), 0};
}

}  // namespace

TypeInfo type_info(DType dtype) {
  return {info_of(dtype).dlpack, static_cast<uint8_t>(item_size(dtype) * 8), 1};
}

std::optional<DType> dtype_of(TypeInfo type) {
  for (int i = 0; i < kDTypeCount && type.lanes == 1; ++i) {
    const TypeInfo ours = type_info(static_cast<DType>(i));
    if (ours.code == type.code && ours.bits == type.bits) return static_cast<DType>(i);
  }
  return {};
}

template <class M>
std::unique_ptr<M, void (*)(M*)> export_tensor(const Tensor& tensor, uint64_t flags) {
  auto exported = std::make_unique<Exported<M>>(tensor.storage());
  exported->shape = tensor.sizes();
  exported->strides = tensor.strides();
  M& managed = exported->managed;
  managed = {};
  managed.tensor = {tensor.numel() > 0 ? tensor.data() : nullptr,
                    {kCpu, 0},
                    static_cast<int32_t>(tensor.dim()),
                    type_info(tensor.dtype()),
                    exported->shape.data(),
                    exported->strides.data(),
                    0};
  managed.context = exported.get();
  managed.deleter = delete_exported<M>;
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    managed.major = 1;
    managed.minor = 0;
    managed.flags = flags;
  }
  return {&exported.release()->managed, delete_exported<M>};
}

template <class M>
Tensor import_tensor(const char* op, M* managed, DType dtype, uint8_t storage_flags) {
  const TensorInfo& info = managed->tensor;
  Layout layout = read_layout(op, info);
  const auto item = static_cast<int64_t>(item_size(dtype));
  char* first = static_cast<char*>(info.data) + info.byte_offset;
  const size_t alignment = std::min<size_t>(item_size(dtype), 8);
  WEFT_CHECK_VALUE(reinterpret_cast<uintptr_t>(first) % alignment == 0, op,
                   ": expected memory aligned to ", alignment, " bytes, got another address");
  // The storage starts at the lowest element, which a negative stride puts before the first.
  const Layout::Extent extent = layout.extent();
  layout.offset = -extent.begin;
  Ref<Storage> storage = Storage::wrap(first + extent.begin * item,
                                       static_cast<size_t>((extent.end - extent.begin) * item),
                                       release_imported<M>, managed, storage_flags);
  return Tensor(std::move(storage), std::move(layout), dtype);
}

template std::unique_ptr<Managed, void (*)(Managed*)> export_tensor(const Tensor&, uint64_t);
template std::unique_ptr<ManagedVersioned, void (*)(ManagedVersioned*)> export_tensor(const Tensor&,
                                                                                      uint64_t);
template Tensor import_tensor(const char*, Managed*, DType, uint8_t);
template Tensor import_tensor(const char*, ManagedVersioned*, DType, uint8_t);

}  // namespace weft::dlpack
