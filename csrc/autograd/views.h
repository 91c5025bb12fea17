// In-place writes and views. A view remembers its base; writing into a view gives the base a new
// history (CopySlices), and other views of that base rebuild theirs from it (AsStridedBackward0).
#pragma once

#include "autograd/node.h"

namespace weft::autograd {

AutogradMeta& ensure_meta(const Tensor& tensor);
// Gives a stale view the history it has as a part of its base.
void refresh_view(const Tensor& view);

// Where a view lies in its base. Offsets count from the lowest element that either of them reaches.
struct ViewGeometry {
  ViewGeometry(const Tensor& base, const Tensor& view);

  Layout base;
  Layout view;
  int64_t length;  // elements from the lowest to the highest
};

}  // namespace weft::autograd
