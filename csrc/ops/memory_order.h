// Tensors of channels_last as the row-major ones that their memory holds: what goes over lines of a
// dimension works on those.
#pragma once

#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {

class MemoryOrder {
 public:
  explicit MemoryOrder(MemoryFormat format) : has_channels_(format > MemoryFormat::Preserve) {}
  // The order of results over such a tensor.
  explicit MemoryOrder(const Tensor& model) : MemoryOrder(model.layout().suggested_format()) {}

  // The tensor with its dimensions in the order of memory, (N, H, W, C), and back.
  Tensor turned(const Tensor& tensor) const { return moved(tensor, 1, -1); }
  Tensor back(const Tensor& tensor) const { return moved(tensor, -1, 1); }
  // Where a dimension of the tensor lies in the turned one.
  int64_t dim(int64_t dim, int64_t dims) const {
    if (!has_channels_ || dim == 0) return dim;
    return dim == 1 ? dims - 1 : dim - 1;
  }

 private:
  Tensor moved(const Tensor& tensor, int64_t from, int64_t to) const {
    if (!has_channels_) return tensor;
    return tensor.with_layout(views::movedim(tensor.layout(), from, to));
  }
  bool has_channels_;
};

}  // namespace weft::native
