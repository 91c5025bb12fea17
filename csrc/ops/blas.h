// Matrix products on plain memory: c = alpha * a @ b + beta * c for any strides of a and b.
//
// Large floating products go to OpenBLAS, which runs one thread a call: the threads are ours
// (core/thread_pool.h) and take panels of the result. Small ones and integers run loops of our own.
#pragma once

#include <cstdint>

namespace weft::blas {

// Element (i, j) lies at data[i * row + j * column].
template <class T>
struct Matrix {
  T* data;
  int64_t row;
  int64_t column;

  Matrix transposed() const { return {data, column, row}; }
};

// From this many multiplications on, a second thread pays for being woken.
inline constexpr double kParallelWork = 96.0 * 96 * 96;

// c has m rows, n columns and lies row by row, c_row elements apart. With beta = 0 the contents of
// c are not read. T: float, double, std::complex of both, and the integers (which wrap around).
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          T* c, int64_t c_row);

// c = a @ b + beta * c on this thread, for a b that lies row by row and is small enough to be read
// where it is (some hundred kilobytes). `slack`: elements that can be read behind the last one;
// with kSlack of them, or n a multiple of it, b is not copied into another order.
inline constexpr int64_t kSlack = 16;
template <class T>
void gemm_in_place(int64_t m, int64_t n, int64_t k, Matrix<const T> a, const T* b, int64_t b_row,
                   int64_t slack, T beta, T* c, int64_t c_row);

// Sum of a[i] * b[i] (no conjugation). Strides in elements.
template <class T>
T dot(int64_t n, const T* a, int64_t a_stride, const T* b, int64_t b_stride);

}  // namespace weft::blas
