#include "autograd/placement.h"

#include "autograd/node.h"
#include "core/error.h"

namespace weft::autograd {

void resize(const char* op, const Tensor& tensor, const Dims& sizes) {
  if (sizes == tensor.sizes()) return;
  WEFT_CHECK(!requires_grad(tensor), op,
             ": expected a tensor that does not require grad, got one that does");
  int64_t end = 0, nbytes = 0;
  const int64_t elements = checked_numel(op, sizes);
  WEFT_CHECK(!__builtin_add_overflow(elements, tensor.offset(), &end) &&
                 !__builtin_mul_overflow(end, static_cast<int64_t>(tensor.item_size()), &nbytes),
             op, ": expected sizes whose bytes fit in 64 bits, got ", AsTuple{sizes});
  Storage& storage = *tensor.storage();
  if (elements > 0 && static_cast<size_t>(nbytes) > storage.nbytes()) {
    storage.resize(static_cast<size_t>(nbytes));
  }
  Layout layout = Layout::contiguous(sizes);
  layout.offset = tensor.offset();
  tensor.impl()->layout = tensor.with_layout(std::move(layout), op).layout();
  data_changed(tensor);
}

Tensor over_storage(const char* op, const Ref<Storage>& storage, DType dtype, Layout layout) {
  const size_t alignment = std::min<size_t>(item_size(dtype), 8);
  WEFT_CHECK(reinterpret_cast<uintptr_t>(storage->address()) % alignment == 0, op,
             ": expected memory aligned to ", alignment, " bytes for ", dtype, ", got address ",
             storage->address());
  Tensor whole(storage, Layout::contiguous(Dims{0}), dtype);
  return whole.with_layout(std::move(layout), op);
}

void set_storage(const char* op, const Tensor& tensor, const Ref<Storage>& storage, Layout layout) {
  WEFT_CHECK(!grad_enabled() || !requires_grad(tensor), op,
             ": expected a tensor that does not require grad, got one that does; use no_grad()");
  const Tensor placed = over_storage(op, storage, tensor.dtype(), std::move(layout));
  tensor.impl()->storage = placed.storage();
  tensor.impl()->layout = placed.layout();
  data_changed(tensor);
}

}  // namespace weft::autograd
