#include "autograd/autocast.h"

#include "autograd/arith.h"

namespace weft::autograd {
namespace {

bool is_half(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

Tensor as(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == dtype ? tensor : arith::cast(tensor, dtype);
}

}  // namespace

Autocast::Autocast(const TensorList& tensors) : Autocast() {
  for (const Tensor& tensor : tensors) {
    any_float32_ = any_float32_ || (tensor.defined() && tensor.dtype() == DType::F32);
  }
}

Tensor Autocast::lower(const Tensor& tensor) const {
  if (!tensor.defined()) return tensor;
  const bool fits = tensor.dtype() == DType::F32 || is_half(tensor.dtype());
  return fits ? as(tensor, static_cast<DType>(old_ - 1)) : tensor;
}

TensorList Autocast::lower(const TensorList& tensors) const {
  TensorList result;
  for (const Tensor& tensor : tensors) result.push_back(lower(tensor));
  return result;
}

Tensor Autocast::float32(const Tensor& tensor) const {
  return tensor.defined() && is_half(tensor.dtype()) ? as(tensor, DType::F32) : tensor;
}

TensorList Autocast::widest(const TensorList& tensors) const {
  if (!any_float32_) return tensors;
  TensorList result;
  for (const Tensor& tensor : tensors) result.push_back(float32(tensor));
  return result;
}

}  // namespace weft::autograd
