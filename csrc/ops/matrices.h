// Batches of matrices as LAPACK reads them: column-major, one after another.
#pragma once

#include <complex>
#include <tuple>
#include <vector>

#include "core/thread_pool.h"
#include "ops/lapack.h"
#include "ops/support.h"
#include "ops_copying.h"
#include "ops_views.h"

namespace weft::matrices {

inline void check_matrices(const char* op, const Tensor& a, bool square) {
  WEFT_CHECK(a.dim() >= 2, op, ": expected matrices, got shape ", AsTuple{a.sizes()});
  WEFT_CHECK_AS(NotImplemented,
                (is_complex(a.dtype()) && a.dtype() != DType::C32) || a.dtype() == DType::F32 ||
                    a.dtype() == DType::F64,
                op, ": expected dtype float32, float64, complex64 or complex128, got ", a.dtype());
  WEFT_CHECK(!square || a.size(-1) == a.size(-2), op, ": expected square matrices, got shape ",
             AsTuple{a.sizes()});
  WEFT_CHECK(a.size(-1) < (1 << 24) && a.size(-2) < (1 << 24), op,
             ": expected at most 2^24 rows and columns, got shape ", AsTuple{a.sizes()});
}

// A copy of the matrices in column-major order: (..., columns, rows), contiguous.
inline Tensor by_columns(const Tensor& a) { return contiguous_copy(ops::transpose(a, -2, -1)); }
inline Tensor from_columns(const Tensor& columns) {
  return contiguous_copy(ops::transpose(columns, -2, -1));
}

template <class Fn>
void dispatch_matrix(DType dtype, Fn&& fn) {
  const bool known =
      dispatch_among<float, double, std::complex<float>, std::complex<double>>(dtype, fn);
  WEFT_CHECK(known, "linalg: expected a floating or complex dtype, got ", dtype);
}
using lapack::Real;

inline int as_int(int64_t value) { return static_cast<int>(value); }
inline int leading(int64_t rows) { return as_int(std::max<int64_t>(rows, 1)); }

// The sizes in front of the last `count`, with more behind.
inline Dims batch_sizes(const Tensor& a, int64_t count, std::initializer_list<int64_t> behind) {
  Dims sizes;
  for (int64_t d = 0; d + count < a.dim(); ++d) sizes.push_back(a.size(d));
  for (const int64_t size : behind) sizes.push_back(size);
  return sizes;
}

inline int64_t batch_count(const Tensor& a) {
  int64_t count = 1;
  for (int64_t d = 0; d + 2 < a.dim(); ++d) count *= a.size(d);
  return count;
}

// body(i) for each of so many matrices of order n; threads share them.
template <class Fn>
void for_each_matrix(int64_t count, int64_t n, Fn&& body) {
  const int64_t work = std::max<int64_t>(1, n * n * n);
  parallel_for(count, (int64_t{1} << 15) / work + 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) body(begin);
  });
}

// Up to this order a call of LAPACK's takes longer than the arithmetic, which stands here.
inline constexpr int64_t kSmallOrder = 12;

// getrf: LU with partial pivoting in place, column-major; the first zero pivot, from 1, or 0.
template <class T>
int small_lu(T* a, int n, int* pivots) {
  const auto size = [](T x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  int info = 0;
  for (int k = 0; k < n; ++k) {
    T* const column = a + k * n;
    int best = k;
    for (int i = k + 1; i < n; ++i) best = size(column[i]) > size(column[best]) ? i : best;
    pivots[k] = best + 1;
    if (column[best] == T(0)) {
      info = info == 0 ? k + 1 : info;
      continue;
    }
    for (int j = 0; j < n && best != k; ++j) std::swap(a[j * n + k], a[j * n + best]);
    for (int i = k + 1; i < n; ++i) column[i] /= column[k];
    for (int j = k + 1; j < n; ++j) {
      for (int i = k + 1; i < n; ++i) a[j * n + i] -= column[i] * a[j * n + k];
    }
  }
  return info;
}

// getrs: solves in place for `count` columns b.
template <class T>
void small_solve(const T* lu, int n, const int* pivots, T* b, int64_t count) {
  for (; count > 0; --count, b += n) {
    for (int k = 0; k < n; ++k) std::swap(b[k], b[pivots[k] - 1]);
    for (int k = 0; k < n; ++k) {
      for (int i = k + 1; i < n; ++i) b[i] -= lu[k * n + i] * b[k];
    }
    for (int k = n; k-- > 0;) {
      b[k] /= lu[k * n + k];
      for (int i = 0; i < k; ++i) b[i] -= lu[k * n + i] * b[k];
    }
  }
}

inline void check_converged(const char* op, int info) {
  WEFT_CHECK_AS(LinearAlgebra, info == 0, op, ": expected an iteration that converges, got error ",
                info);
}

// What LAPACK said of each matrix, 0 for success: an int32 tensor of the leading sizes.
inline Tensor infos_of(const Tensor& a, const std::vector<int>& infos) {
  const Tensor result = Tensor::empty(batch_sizes(a, 2, {}), DType::I32, a.device());
  std::copy(infos.begin(), infos.end(), result.data_as<int32_t>());
  return result;
}

// Both expanded to common leading sizes; b as matrices, in column-major copies.
struct System {
  Tensor a, b;
};

inline System system_of(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, ": expected tensors of one dtype, got ", a.dtype(),
             " and ", b.dtype());
  WEFT_CHECK(b.dim() >= 2 && b.size(-2) == a.size(-1), op, ": expected right-hand sides of ",
             a.size(-1), " rows, got shape ", AsTuple{b.sizes()});
  const Dims batch = broadcast_sizes(op, batch_sizes(a, 2, {}), batch_sizes(b, 2, {}));
  Dims a_sizes = batch, b_sizes = batch;
  for (const int64_t d : {-2, -1}) {
    a_sizes.push_back(a.size(d));
    b_sizes.push_back(b.size(d));
  }
  return {by_columns(ops::expand(a, a_sizes, false)), by_columns(ops::expand(b, b_sizes, false))};
}

}  // namespace weft::matrices
