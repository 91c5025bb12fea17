// The arithmetic the engine itself needs. All of it goes through the operators, so that a graph of
// it is recorded when grad mode is on.
#pragma once

#include "autograd/node.h"

namespace weft::autograd::arith {

// Nobody but the one handle at hand can see these elements: they may be changed or given away.
bool is_private(const Tensor& tensor);
// The strides a gradient of `tensor` gets: its own when it is dense, else row-major.
Dims dense_strides(const Tensor& tensor);
// True when `tensor` walks its elements with these strides (dimensions of size 1 do not count).
bool has_strides(const Tensor& tensor, const Dims& strides);
Tensor copy_with_strides(const Tensor& tensor, const Dims& strides);

// One element, seen `info.sizes` times through strides of zero.
Tensor zeros(const ResultInfo& info);
Tensor ones(const ResultInfo& info);  // of one element
// A fresh row of zeros.
Tensor flat_zeros(int64_t count, DType dtype, Device device);

Tensor add(const Tensor& a, const Tensor& b);
void add_into(const Tensor& target, const Tensor& value);
// a + b; takes over `a` when that is possible and nothing is recorded.
Tensor accumulate(Tensor a, const Tensor& b);

// Whether sum_to(tensor of shape `from`, to) makes sense: `to` broadcasts to `from`.
bool can_sum_to(const Dims& from, const Dims& to);
Tensor sum_to(const Tensor& tensor, const Dims& sizes);
Tensor cast(const Tensor& tensor, DType dtype);
Tensor move(const Tensor& tensor, Device device);
Tensor as_strided(const Tensor& tensor, const Layout& layout);
void copy_into(const Tensor& target, const Tensor& source);
// The same numbers as pairs, and pairs as numbers (copied where they do not lie side by side).
Tensor view_as_real(const Tensor& tensor);
Tensor view_as_complex(const Tensor& pairs);
Tensor reshape(const Tensor& tensor, IntList sizes);
// target[index[i]] += source[i] for flat tensors.
void scatter_add_into(const Tensor& target, const Tensor& index, const Tensor& source);
Tensor arange(int64_t count, Device device);

}  // namespace weft::autograd::arith
