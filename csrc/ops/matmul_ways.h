// The ways that a product of two tensors goes, as a whole and part by part.
#pragma once

#include "ops/epilogue.h"
#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {

// Calls fn with the element type; bool and the 16-bit floats never come here.
template <class Fn>
void dispatch_numeric(DType dtype, Fn&& fn) {
  dispatch(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (!std::is_same_v<T, bool> && !is_small_float<T>) fn(type);
  });
}

// The three ways a product goes, each also part by part: for an `a` that a prologue makes while it
// is multiplied (else null), and a row that the result starts from (else undefined): written as a
// whole, it would have left the caches when the product comes to it; or for such a `b`.
struct Gemm {
  void (*into)(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
               const Scalar& alpha, const Finish& finish);
  bool (*takes_parts)(const Tensor& a, const Tensor& b);  // of a prologue
  bool (*takes_row)(const Tensor& a, const Tensor& b);    // to start from
  void (*of_parts)(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                   const Scalar& alpha, const Finish& finish, Prologue* before, const Tensor& row);
  bool (*takes_right)(const Tensor& a, const Tensor& b);
  void (*of_right)(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                   const Scalar& alpha, const Finish& finish, Prologue& before);
};

extern const Gemm kPlain;       // a @ b
extern const Gemm kTransposed;  // a @ b^T
extern const Gemm kBatched;     // of each matrix of a batch

inline Tensor transposed(const Tensor& matrix) {
  return matrix.with_layout(views::transpose(matrix.layout(), 0, 1));
}

}  // namespace weft::native
