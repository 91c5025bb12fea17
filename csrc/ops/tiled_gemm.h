// Whole matrix products on one thread with our own register tiles (small_gemm.h).
#pragma once

#include "ops/blas.h"

namespace weft::blas {

// out[i * out_row + j] = a[i, j].
template <class T>
void pack_rows(const Matrix<const T>& a, int64_t rows, int64_t columns, T* out, int64_t out_row);

// b as strips of `width` columns, each `depth` rows without gaps; columns beyond n are 0.
template <class T>
void pack_strips(const Matrix<const T>& b, int64_t depth, int64_t n, int64_t width, T* out);

// c = alpha * a @ b + beta * c; neither m, n nor k is 0. T: float, double, unsigned integers.
template <class T>
void tiled_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                const Matrix<const T>& b, T beta, T* c, int64_t c_row);

}  // namespace weft::blas
