// Sparse gradients. A sparse tensor is its values, and its Python wrapper knows the places of these
// (weft/sparse): here it is a tensor of other sizes than the one it is a gradient of.
//
// The engine hands a sparse gradient to a leaf as it is, and to any other node as a dense tensor.
#pragma once

#include <atomic>

#include "core/tensor.h"

namespace weft::autograd::sparse {

// What the wrappers know. Any thread may call these, without the GIL.
struct Wrappers {
  bool (*is_sparse)(const Tensor&);
  Dims (*sizes)(const Tensor&);
  Tensor (*to_dense)(const Tensor&);
  Tensor (*add)(const Tensor&, const Tensor&);  // one of the two may be dense
};
extern std::atomic<const Wrappers*> wrappers;  // set once, by a program with sparse tensors

inline bool in_use() noexcept { return wrappers.load(std::memory_order_acquire) != nullptr; }

inline bool is_sparse(const Tensor& tensor) {
  const Wrappers* known = wrappers.load(std::memory_order_acquire);
  return known && tensor.defined() && tensor.impl()->wrapper.object && known->is_sparse(tensor);
}
// Of a sparse tensor the sizes that it stands for.
inline Dims sizes_of(const Tensor& tensor) {
  return is_sparse(tensor) ? wrappers.load()->sizes(tensor) : tensor.sizes();
}
inline Tensor to_dense(const Tensor& tensor) { return wrappers.load()->to_dense(tensor); }
inline Tensor add(const Tensor& a, const Tensor& b) { return wrappers.load()->add(a, b); }

}  // namespace weft::autograd::sparse
