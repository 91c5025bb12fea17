// Nodes of views whose elements are distinct.
#pragma once

#include "core/tensor.h"

namespace weft::autograd {

class Node;
class Task;

// Beside Node: the node's only gradient is zero but for a part, where it is that of the view.
class Part {
 public:
  // The view's part of a tensor of the input's size.
  virtual Tensor of(const Tensor& whole) const = 0;

 protected:
  ~Part() = default;
};

// Adds the gradient of a part where that of the whole is being summed, without zeros around it.
// False where nothing has come yet, or the sum may not change.
bool add_part(const Node& node, const TensorList& grads, Task& task);

}  // namespace weft::autograd
