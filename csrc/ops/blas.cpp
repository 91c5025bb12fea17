#include "ops/blas.h"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <complex>
#include <type_traits>

#include "core/thread_pool.h"
#include "ops/blas_call.h"
#include "ops/few_rows.h"
#include "ops/openblas.h"
#include "ops/scratch.h"
#include "ops/small_gemm.h"
#include "ops/tile.h"
#include "ops/tiled_gemm.h"

namespace weft::blas {
namespace {

template <class T>
constexpr bool is_blas = !std::is_integral_v<T>;
template <class T>
constexpr bool is_complex_type =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// The strides of a dimension of size 1 say nothing: give the matrix its plain form.
template <class T>
Matrix<const T> normalised(Matrix<const T> a, int64_t rows, int64_t columns) {
  if (rows == 1) a.row = a.column == 1 ? std::max<int64_t>(columns, 1) : 1;
  if (columns == 1) a.column = a.row == 1 && rows > 1 ? rows : 1;
  return a;
}

// How BLAS can read a matrix: row by row, column by column, or not at all.
enum class Order { Rows, Columns, Neither };
template <class T>
Order order_of(const Matrix<const T>& a, int64_t rows, int64_t columns) {
  if (a.column == 1 && a.row >= std::max<int64_t>(columns, 1) && a.row <= INT_MAX)
    return Order::Rows;
  if (a.row == 1 && a.column >= std::max<int64_t>(rows, 1) && a.column <= INT_MAX) {
    return Order::Columns;
  }
  return Order::Neither;
}

template <class T>
void call_blas(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a, Order a_order,
               const Matrix<const T>& b, Order b_order, T beta, T* c, int64_t c_row) {
  const auto ta = a_order == Order::Rows ? CblasNoTrans : CblasTrans;
  const auto tb = b_order == Order::Rows ? CblasNoTrans : CblasTrans;
  const int lda = static_cast<int>(a_order == Order::Rows ? a.row : a.column);
  const int ldb = static_cast<int>(b_order == Order::Rows ? b.row : b.column);
  const int M = static_cast<int>(m), N = static_cast<int>(n), K = static_cast<int>(k);
  const int ldc = static_cast<int>(c_row);
  const BlasCall call;
  if constexpr (std::is_same_v<T, float>) {
    const auto gemm = WEFT_OPENBLAS(scipy_cblas_sgemm);
    gemm(CblasRowMajor, ta, tb, M, N, K, alpha, a.data, lda, b.data, ldb, beta, c, ldc);
  } else if constexpr (std::is_same_v<T, double>) {
    const auto gemm = WEFT_OPENBLAS(scipy_cblas_dgemm);
    gemm(CblasRowMajor, ta, tb, M, N, K, alpha, a.data, lda, b.data, ldb, beta, c, ldc);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    const auto gemm = WEFT_OPENBLAS(scipy_cblas_cgemm);
    gemm(CblasRowMajor, ta, tb, M, N, K, &alpha, a.data, lda, b.data, ldb, &beta, c, ldc);
  } else {
    const auto gemm = WEFT_OPENBLAS(scipy_cblas_zgemm);
    gemm(CblasRowMajor, ta, tb, M, N, K, &alpha, a.data, lda, b.data, ldb, &beta, c, ldc);
  }
}

template <class T>
void scale_rows(int64_t m, int64_t n, T beta, T* c, int64_t c_row) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * c_row;
    if (beta == T(0)) {
      std::fill_n(row, n, T(0));
    } else if (beta != T(1)) {
      for (int64_t j = 0; j < n; ++j) row[j] *= beta;
    }
  }
}

// Plain triple loop, for shapes BLAS cannot express (sizes beyond 32 bits of complex matrices).
template <class T>
void plain_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                const Matrix<const T>& b, T* c, int64_t c_row) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const T x = alpha * a.data[i * a.row + p * a.column];
      for (int64_t j = 0; j < n; ++j) c[i * c_row + j] += x * b.data[p * b.row + j * b.column];
    }
  }
}

// One row times a matrix. Threads take columns in whole cache lines, so that the last ones of c,
// which are computed one by one and rounded otherwise, are the same on any number of threads.
template <class T>
void row_times_matrix(int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                      const Matrix<const T>& b, T beta, T* c) {
  constexpr int64_t kGrain = int64_t{1} << 16;  // elements of b a thread should have at least
  constexpr int64_t kUnit = 64;
  const int64_t grain = std::max<int64_t>(1, kGrain / kUnit / k);
  parallel_for((n + kUnit - 1) / kUnit, grain, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kUnit;
    few_rows<T>(1, std::min(n, end * kUnit) - first, k, alpha, a,
                {b.data + first * b.column, b.row, b.column}, beta, c + first, n);
  });
}

// Whether our tiles beat OpenBLAS: of float32 always with vectors of 64 bytes, unless there are too
// few rows to share what tiles pack; else where a call costs a part of the product, whose `work` is
// that of all threads: they shall not change its bits.
template <class T>
bool prefers_tiles(int64_t m, double work, const Matrix<const T>& b) {
  if (takes_few_rows(m, b)) return false;
  constexpr double kSmall = sizeof(T) == 8 ? 2 << 20 : 256 << 10;
  if (work <= kSmall) return true;
  return !std::is_same_v<T, double> && tile::active_isa() == tile::Isa::V4;
}

double work_of(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// The body of gemm for one panel of c, on one thread. All of the rows and the work of the product
// choose the way, not those of the panel, which depend on threads. Neither m, n nor k is 0.
template <class T>
void panel_gemm(int64_t all, double work, int64_t m, int64_t n, int64_t k, T alpha,
                const Matrix<const T>& a, const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
  if constexpr (!is_blas<T>) {
    return tiled_gemm(m, n, k, alpha, a, b, beta, c, c_row);
  } else {
    const Order a_order = order_of(a, m, k), b_order = order_of(b, k, n);
    const bool fits = std::max({m, n, k, c_row}) <= INT_MAX && a_order != Order::Neither &&
                      b_order != Order::Neither;
    if constexpr (!is_complex_type<T>) {
      if (takes_few_rows(all, b)) {
        return few_rows(m, n, k, alpha, a, b, beta, c, c_row);
      }
    }
    if constexpr (is_complex_type<T>) {
      if (!fits) {
        scale_rows(m, n, beta, c, c_row);
        return plain_gemm(m, n, k, alpha, a, b, c, c_row);
      }
    } else if (!fits || prefers_tiles(all, work, b)) {
      return tiled_gemm(m, n, k, alpha, a, b, beta, c, c_row);
    }
    call_blas(m, n, k, alpha, a, a_order, b, b_order, beta, c, c_row);
  }
}

// Rows of a panel: as many as meet a block of b at once. Fewer rows at a time would pack b more
// often, which costs more than what a panel saves.
constexpr int64_t kPanelRows = 22 * kTileRows;

// Cuts c into one panel a thread. Columns first: each thread then packs its own part of b.
template <class T>
void threaded_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                   const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
  // With rows for several blocks of a each, threads pack all of b no more often by rows; parts of
  // the result then lie together.
  const bool many_rows = m >= 2 * kPanelRows * num_threads();
  const bool by_rows = n < 2 * kStripColumns * num_threads() || m > 8 * n || many_rows;
  const int64_t unit = by_rows ? kTileRows : kStripColumns;
  const int64_t units = ((by_rows ? m : n) + unit - 1) / unit;
  const int64_t panels = std::min<int64_t>(num_threads(), units);
  const double work = work_of(m, n, k);
  parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = units * begin / panels * unit;
    const int64_t count = std::min(units * end / panels * unit, by_rows ? m : n) - first;
    const Matrix<const T> left{a.data + first * a.row, a.row, a.column};
    const Matrix<const T> right{b.data + first * b.column, b.row, b.column};
    if (by_rows) {
      panel_gemm(m, work, count, n, k, alpha, left, b, beta, c + first * c_row, c_row);
    } else {
      panel_gemm(m, work, m, count, k, alpha, a, right, beta, c + first, c_row);
    }
  });
}

template <class T>
void dispatch_gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a, Matrix<const T> b,
                   T beta, T* c, int64_t c_row) {
  const double work = work_of(m, n, k);
  if constexpr (!is_complex_type<T>) {
    if (m == 1 && (b.row == 1 || b.column == 1)) {
      return row_times_matrix(n, k, alpha, a, b, beta, c);
    }
    // c is a column: c^T = b^T @ a^T is the case above when c is dense.
    if (n == 1 && c_row == 1 && (a.row == 1 || a.column == 1)) {
      return row_times_matrix(m, k, alpha, b.transposed(), a.transposed(), beta, c);
    }
  }
  if (work < kParallelWork || num_threads() == 1 || in_parallel_region()) {
    return panel_gemm(m, work, m, n, k, alpha, a, b, beta, c, c_row);
  }
  threaded_gemm(m, n, k, alpha, a, b, beta, c, c_row);
}

}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta,
          T* c, int64_t c_row) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    return scale_rows(m, n, beta, c, c_row);
  }
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    // Wrapping arithmetic is defined for unsigned integers, and gives the same bits.
    using U = std::make_unsigned_t<T>;
    auto cast = [](Matrix<const T> x) {
      return Matrix<const U>{reinterpret_cast<const U*>(x.data), x.row, x.column};
    };
    gemm<U>(m, n, k, static_cast<U>(alpha), cast(a), cast(b), static_cast<U>(beta),
            reinterpret_cast<U*>(c), c_row);
  } else {
    a = normalised(a, m, k);
    b = normalised(b, k, n);
    if (m == 1) c_row = n;
    if constexpr (is_blas<T>) {
      // BLAS and the threads read matrices with one unit stride; others are copied once.
      const bool copy_a = order_of(a, m, k) == Order::Neither;
      const bool copy_b = order_of(b, k, n) == Order::Neither;
      if (copy_a || copy_b) {
        Scratch<T> packed_a(copy_a ? m * k : 0), packed_b(copy_b ? k * n : 0);
        if (copy_a) {
          pack_rows(a, m, k, packed_a.data(), k);
          a = {packed_a.data(), k, 1};
        }
        if (copy_b) {
          pack_rows(b, k, n, packed_b.data(), n);
          b = {packed_b.data(), n, 1};
        }
        return dispatch_gemm(m, n, k, alpha, a, b, beta, c, c_row);
      }
    }
    dispatch_gemm(m, n, k, alpha, a, b, beta, c, c_row);
  }
}

template <class T>
void gemm_in_place(int64_t m, int64_t n, int64_t k, Matrix<const T> a, const T* b, int64_t b_row,
                   int64_t slack, T beta, T* c, int64_t c_row) {
  static_assert(kSlack == kLanes);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    const bool readable = slack >= kSlack || n % kSlack == 0;
    const Matrix<const T> matrix{b, b_row, 1};
    if (readable && m > 0 && n > 0 && k > 0 && prefers_tiles(m, work_of(m, n, k), matrix)) {
      for (int64_t p = 0; p < k; p += kDepth) {
        gemm_packed(m, n, std::min(kDepth, k - p), T(1), a.data + p * a.column, a.row, a.column,
                    b + p * b_row, b_row, p == 0 ? beta : T(1), c, c_row);
      }
      return;
    }
  }
  gemm<T>(m, n, k, T(1), a, {b, b_row, 1}, beta, c, c_row);
}

template <class T>
T dot(int64_t n, const T* a, int64_t a_stride, const T* b, int64_t b_stride) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(
        dot(n, reinterpret_cast<const U*>(a), a_stride, reinterpret_cast<const U*>(b), b_stride));
  } else {
    if constexpr (!is_complex_type<T>) {
      if (n == 1 || (a_stride == 1 && b_stride == 1)) return dot_contiguous(n, a, b);
    }
    using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    Sum sum(0);
    for (int64_t i = 0; i < n; ++i) {
      sum += static_cast<Sum>(a[i * a_stride]) * static_cast<Sum>(b[i * b_stride]);
    }
    return static_cast<T>(sum);
  }
}

#define INSTANTIATE(T)                                                                          \
  template void gemm<T>(int64_t, int64_t, int64_t, T, Matrix<const T>, Matrix<const T>, T, T*,  \
                        int64_t);                                                               \
  template void gemm_in_place<T>(int64_t, int64_t, int64_t, Matrix<const T>, const T*, int64_t, \
                                 int64_t, T, T*, int64_t);                                      \
  template T dot<T>(int64_t, const T*, int64_t, const T*, int64_t);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(std::complex<float>)
INSTANTIATE(std::complex<double>)
INSTANTIATE(uint8_t)
INSTANTIATE(int8_t)
INSTANTIATE(int16_t)
INSTANTIATE(int32_t)
INSTANTIATE(int64_t)
INSTANTIATE(uint16_t)
INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE

}  // namespace weft::blas
