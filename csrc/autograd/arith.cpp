#include "autograd/arith.h"

#include <utility>

#include "ops/copy.h"
#include "ops_arithmetic.h"
#include "ops_copying.h"
#include "ops_indexing.h"
#include "ops_reductions.h"
#include "ops_unary.h"
#include "ops_views.h"

namespace weft::autograd::arith {

bool is_private(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  uint32_t holders = 1;
  if (const AutogradMeta* meta = meta_of(tensor); meta && meta->base.defined()) {
    // A view: its base counts as nobody when only the view holds it, and no history is at stake.
    if (grad_enabled() || meta->base.impl()->use_count() != 1) return false;
    ++holders;
  }
  return tensor.impl()->use_count() == 1 && storage.use_count() == holders &&
         !storage.has(kForeign) && !storage.has(kReadOnly) && !storage.has(kShared);
}

Dims dense_strides(const Tensor& tensor) {
  const Layout& layout = tensor.layout();
  const Layout::Extent extent = layout.extent();
  const bool dense = layout.is_non_overlapping() && extent.end - extent.begin == layout.numel();
  bool forward = true;
  for (int64_t stride : layout.strides) forward = forward && stride >= 0;
  return dense && forward ? layout.strides : contiguous_strides(layout.sizes);
}

bool has_strides(const Tensor& tensor, const Dims& strides) {
  const Layout& layout = tensor.layout();
  if (layout.strides.size() != strides.size()) return false;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (layout.sizes[i] > 1 && layout.strides[i] != strides[i]) return false;
  }
  return true;
}

Tensor copy_with_strides(const Tensor& tensor, const Dims& strides) {
  const size_t bytes = static_cast<size_t>(tensor.numel()) * tensor.item_size();
  Tensor copy(Storage::allocate(bytes, tensor.device()), Layout{tensor.sizes(), strides, 0},
              tensor.dtype());
  copy_into(copy, tensor);
  return copy;
}

Tensor zeros(const ResultInfo& info) {
  Tensor zero = flat_zeros(1, info.dtype, info.device);
  return zero.with_layout(Layout{info.sizes, Dims(info.sizes.size(), 0), 0}, "zeros");
}

Tensor ones(const ResultInfo& info) {
  Tensor one = Tensor::empty(info.sizes, info.dtype, info.device);
  fill(one, 1);
  return one;
}

Tensor flat_zeros(int64_t count, DType dtype, Device device) {
  const int64_t sizes[] = {count};
  Tensor result = Tensor::empty(sizes, dtype, device, "backward");
  fill(result, 0);
  return result;
}

Tensor add(const Tensor& a, const Tensor& b) { return ops::add(a, b, Scalar(1)); }

void add_into(const Tensor& target, const Tensor& value) { ops::add_(target, value, Scalar(1)); }

Tensor accumulate(Tensor a, const Tensor& b) {
  if (!grad_enabled() && is_private(a) && a.is_contiguous()) {
    add_into(a, b);
    return a;
  }
  return add(a, b);
}

bool can_sum_to(const Dims& from, const Dims& to) {
  if (to.size() > from.size()) return false;
  const size_t lead = from.size() - to.size();
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] != from[lead + i] && to[i] != 1) return false;
  }
  return true;
}

Tensor sum_to(const Tensor& tensor, const Dims& sizes) {
  const Dims& from = tensor.sizes();
  const size_t lead = from.size() - sizes.size();
  Dims dims;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < lead || (sizes[i - lead] == 1 && from[i] != 1)) dims.push_back(static_cast<int64_t>(i));
  }
  Tensor result = dims.empty() ? tensor : ops::sum(tensor, IntList(dims), true, std::nullopt);
  return lead == 0 ? result : reshape(result, sizes);
}

Tensor cast(const Tensor& tensor, DType dtype) {
  const bool drops_imaginary = is_complex(tensor.dtype()) && !is_complex(dtype);
  return ops::_to_copy(drops_imaginary ? ops::real(tensor) : tensor, dtype);
}

Tensor move(const Tensor& tensor, Device device) {
  return ops::_to_copy(tensor, tensor.dtype(), {}, device);
}

Tensor as_strided(const Tensor& tensor, const Layout& layout) {
  return ops::as_strided(tensor, layout.sizes, layout.strides, layout.offset);
}

void copy_into(const Tensor& target, const Tensor& source) { ops::copy_(target, source, false); }

Tensor view_as_real(const Tensor& tensor) { return ops::view_as_real(tensor); }
Tensor view_as_complex(const Tensor& pairs) {
  return ops::view_as_complex(copy_with_strides(pairs, contiguous_strides(pairs.sizes())));
}

Tensor reshape(const Tensor& tensor, IntList sizes) { return ops::reshape(tensor, sizes); }

void scatter_add_into(const Tensor& target, const Tensor& index, const Tensor& source) {
  ops::scatter_add_(target, 0, index, source);
}

Tensor arange(int64_t count, Device device) {
  const int64_t sizes[] = {count};
  Tensor result = Tensor::empty(sizes, DType::I64);
  for (int64_t i = 0; i < count; ++i) result.data_as<int64_t>()[i] = i;
  return on_device(result, device);
}

}  // namespace weft::autograd::arith
