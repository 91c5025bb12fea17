// Products of a few rows with a matrix that is read once, where it lies: layers of small batches,
// recurrent steps, decoders. Memory sets the speed: packing the matrix would double its traffic.
#pragma once

#include "ops/blas.h"

namespace weft::blas {

// Whether m rows times b go this way. T: float, double; of unsigned integers one row.
template <class T>
bool takes_few_rows(int64_t m, const Matrix<const T>& b);

// c = alpha * a @ b + beta * c on this thread. Element (p, j) of b lies row by row (column == 1) or
// column by column (row == 1). The values of a column do not depend on its neighbours, but in the
// last n % 64.
template <class T>
void few_rows(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
              const Matrix<const T>& b, T beta, T* c, int64_t c_row);

}  // namespace weft::blas
