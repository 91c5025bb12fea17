// In-place writes and views. A view remembers its base; writing into a view gives the base a new
// history (CopySlices), and other views of that base rebuild theirs from it (AsStridedBackward0).
#pragma once

#include <vector>

#include "autograd/node.h"

namespace weft::autograd {

// Between them this thread runs a function under a transform (weft.func), which may change in place
// what is made meanwhile and what is lent: check_inplace raises RuntimeError for other tensors.
void begin_transform(std::vector<Tensor> lent);
void end_transform();

AutogradMeta& ensure_meta(const Tensor& tensor);
// Gives a stale view the history it has as a part of its base.
void refresh_view(const Tensor& view);

// Where a view lies in its base. Offsets count from the lowest element that either of them reaches.
// Where one is complex and the other real, both are counted in real parts: the complex one has one
// dimension more here, of size 2.
struct ViewGeometry {
  ViewGeometry(const Tensor& base, const Tensor& view);

  // A gradient of base or view in the elements counted here, and back. Complex numbers come back in
  // memory of their own.
  Tensor unfold_base(const Tensor& grad) const;
  Tensor unfold_view(const Tensor& grad) const;
  Tensor fold_base(const Tensor& grad) const;
  Tensor fold_view(const Tensor& grad) const;

  Layout base;
  Layout view;
  int64_t length;  // elements from the lowest to the highest
  DType dtype;     // of these elements
  bool base_has_parts = false;
  bool view_has_parts = false;
};

}  // namespace weft::autograd
