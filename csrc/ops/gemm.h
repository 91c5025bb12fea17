// Matrix products of tensors, whatever their strides: out = beta * start + alpha * a @ b. `out` is
// contiguous, of a column a vector or a matrix; all are of one dtype that arithmetic happens in, or
// out and start are float32, the factors of one that multiplies_in_pairs(), and alpha and beta 1.
// An undefined `start` counts as 0.
#pragma once

#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {

// Calls fn with the element type; bool and what computes in a wider type never come here.
template <class Fn>
void dispatch_numeric(DType dtype, Fn&& fn) {
  dispatch(dtype, [&]<class T>(std::type_identity<T> type) {
    if constexpr (!std::is_same_v<T, bool> && is_computed<T>) fn(type);
  });
}

using Gemm = void(const Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b,
                  const Scalar& beta, const Scalar& alpha);

Gemm gemm;             // a @ b
Gemm gemm_transposed;  // a @ b^T
Gemm gemm_batched;     // of each matrix of a batch

// Whether the processor multiplies this dtype faster than float32, into float32.
bool multiplies_in_pairs(DType dtype);

inline Tensor transposed(const Tensor& matrix) {
  return matrix.with_layout(views::transpose(matrix.layout(), 0, 1));
}

}  // namespace weft::native
