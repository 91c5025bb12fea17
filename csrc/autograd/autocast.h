// Autocast: while it is on, operators whose rows say so run in another precision. The generated
// function makes an Autocast, which turns it off, and calls itself with converted tensors.
#pragma once

#include <utility>

#include "autograd/mode.h"
#include "core/tensor.h"

namespace weft::autograd {

class Autocast {
 public:
  Autocast() : old_(std::exchange(mode.autocast, 0)) {}
  // For `widest`: looks at the tensors first.
  explicit Autocast(const TensorList& tensors);
  ~Autocast() { mode.autocast = old_; }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // Tensors of float16, bfloat16 and float32 in the dtype that was set; others as they are.
  Tensor lower(const Tensor& tensor) const;
  TensorList lower(const TensorList& tensors) const;
  // Tensors of float16 and bfloat16 in float32.
  Tensor float32(const Tensor& tensor) const;
  // As it is: what the operator is made of does not meet autocast.
  const Tensor& given(const Tensor& tensor) const { return tensor; }
  // float32 where one of the tensors looked at is float32.
  TensorList widest(const TensorList& tensors) const;

 private:
  unsigned char old_;
  bool any_float32_ = false;
};

}  // namespace weft::autograd
