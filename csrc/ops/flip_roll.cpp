// Copies with elements at other positions along dimensions: flip and roll.
#include "native_indexing.h"
#include "ops/copy.h"
#include "ops/support.h"
#include "ops_copying.h"
#include "ops_indexing.h"
#include "ops_views.h"

namespace weft::native {

Tensor flip(const Tensor& self, IntList dims) {
  const Dims wrapped = wrap_dims("flip", dims, self.dim());
  if (self.dim() == 0) return contiguous_copy(self);
  Layout layout = self.layout();
  for (int64_t dim : wrapped) {
    if (layout.sizes[dim] > 0) layout.offset += (layout.sizes[dim] - 1) * layout.strides[dim];
    layout.strides[dim] = -layout.strides[dim];
  }
  const Tensor out = empty_preserve(self, self.dtype(), self.device());
  copy_into(out, self.with_layout(std::move(layout)));
  return out;
}

namespace {

Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  dim = wrap_dim("roll", dim, self.dim());
  const int64_t size = self.sizes()[dim];
  const int64_t start = size == 0 ? 0 : ((shift % size) + size) % size;
  if (start == 0) return self;
  return ops::cat(
      {ops::narrow(self, dim, size - start, start), ops::narrow(self, dim, 0, size - start)}, dim);
}

}  // namespace

// Composite.
Tensor roll(const Tensor& self, IntList shifts, IntList dims) {
  if (dims.empty()) {
    WEFT_CHECK(shifts.size() == 1, "roll: expected one shift where no dims are given, got ",
               AsTuple{shifts});
    if (self.numel() == 0) return ops::clone(self, std::nullopt);
    const Tensor flat = ops::reshape(self, Dims{-1});
    return ops::clone(ops::view(roll_one(flat, shifts[0], 0), self.sizes()), std::nullopt);
  }
  WEFT_CHECK(shifts.size() == dims.size(), "roll: expected as many shifts as dims, got ",
             AsTuple{shifts}, " and ", AsTuple{dims});
  WEFT_CHECK_INDEX(self.dim() > 0, "roll: expected at least 1 dim, got a 0-d tensor");
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) result = roll_one(result, shifts[i], dims[i]);
  return result.is_same(self) ? ops::clone(self, static_cast<int64_t>(MemoryFormat::Contiguous))
                              : result;
}

}  // namespace weft::native
