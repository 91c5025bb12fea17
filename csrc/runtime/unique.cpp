#include "runtime/unique.h"

#include "autograd/node.h"

namespace weft {
namespace {

// Nobody else refers to the tensor, and Python knows nothing of it.
bool is_unseen(const Tensor& tensor) {
  return tensor.ref()->use_count() == 1 && !tensor.impl()->wrapper.object;
}

}  // namespace

bool is_unique(const Tensor& tensor) {
  if (!is_unseen(tensor)) return false;
  uint32_t tensors = 1;
  if (const autograd::AutogradMeta* meta = autograd::meta_of(tensor)) {
    const Tensor& base = meta->base;
    if (meta->node || meta->slot || meta->requires_grad || !base.defined()) return false;
    if (!is_unseen(base) || autograd::meta_of(base)) return false;
    tensors = 2;
  }
  const Storage& storage = *tensor.storage();
  return storage.use_count() == tensors && storage.allocator() && storage.holds() == 0 &&
         !storage.has(kReadOnly) && !storage.has(kShared) &&
         storage.nbytes() == static_cast<size_t>(tensor.numel()) * tensor.item_size();
}

}  // namespace weft
