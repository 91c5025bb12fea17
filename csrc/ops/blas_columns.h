// Products whose right operand is made while they are computed, some columns at a time.
#pragma once

#include "ops/blas.h"

namespace weft::blas {

// How the right operand is made: as it is, k rows of n, or turned, n rows of k (a weight).
struct RightSizes {
  int64_t k, n;
  bool turned;
};

// Makes a part of it without gaps; parts count in its rows.
template <class T>
using PartMaker = FunctionRef<void(const Part& part, T* out)>;

// Whether that gives the bits of gemm, and pays: a has few rows, so that each element of the right
// operand is multiplied a few times only.
template <class T>
bool takes_columns(int64_t m, const RightSizes& b);

// c = alpha * a @ b + beta * c, for a b that takes_columns.
template <class T>
void gemm_by_columns(int64_t m, const RightSizes& b, T alpha, Matrix<const T> a, T beta, T* c,
                     int64_t c_row, const PartMaker<T>& make, const Finish& finish);

}  // namespace weft::blas
