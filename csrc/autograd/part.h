// Nodes of views whose elements are distinct.
#pragma once

#include "core/tensor.h"

namespace weft::autograd {

// Beside Node: the node's only gradient is zero but for a part, where it is that of the view.
class Part {
 public:
  // The view's part of a tensor of the input's size.
  virtual Tensor of(const Tensor& whole) const = 0;

 protected:
  ~Part() = default;
};

}  // namespace weft::autograd
