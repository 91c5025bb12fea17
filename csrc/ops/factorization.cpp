// Factors of matrices for later use (LU, LDL, QR as reflections), and eigenvalues of any square
// matrix.
#include <cmath>
#include <numeric>

#include "native_factorizations.h"
#include "native_indexing.h"
#include "ops/matrices.h"

namespace weft::native {
namespace {

using namespace matrices;
using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;
using Quadruple = std::tuple<Tensor, Tensor, Tensor, Tensor>;

template <class T>
void check_finite(const char* op, const Tensor& columns) {
  const T* data = columns.data_as<T>();
  const bool finite = std::all_of(data, data + columns.numel(), [](const T& value) {
    return std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
  });
  WEFT_CHECK(finite, op, ": expected finite entries, got infs or NaNs");
}

// Eigenvalues and vectors (as columns) of a matrix that is overwritten. Gives LAPACK's info.
template <class T>
int eigen(int n, std::complex<T>* a, std::complex<T>* values, std::complex<T>* vectors) {
  const int lda = leading(n), lwork = std::max(1, 34 * n);
  std::vector<std::complex<T>> work(static_cast<size_t>(lwork));
  std::vector<T> real(static_cast<size_t>(2 * n));
  int info = 0;
  lapack::geev(std::complex<T>{})("N", "V", &n, a, &lda, values, nullptr, &lda, vectors, &lda,
                                  work.data(), &lwork, real.data(), &info);
  return info;
}

// Of a real matrix, whose complex eigenvalues come in conjugate pairs: LAPACK gives the real and
// the imaginary parts of their vectors as two columns.
template <class T>
int eigen(int n, T* a, std::complex<T>* values, std::complex<T>* vectors) {
  const auto size = static_cast<size_t>(n);
  const int lda = leading(n), lwork = std::max(1, 34 * n);
  std::vector<T> work(static_cast<size_t>(lwork)), real(size), imaginary(size), parts(size * size);
  int info = 0;
  lapack::geev(T{})("N", "V", &n, a, &lda, real.data(), imaginary.data(), nullptr, &lda,
                    parts.data(), &lda, work.data(), &lwork, &info);
  for (size_t j = 0; j < size; ++j) {
    values[j] = {real[j], imaginary[j]};
    const bool first = imaginary[j] > 0 && j + 1 < size, second = imaginary[j] < 0 && j > 0;
    const T* re = parts.data() + (second ? j - 1 : j) * size;
    const T sign = first ? T(1) : second ? T(-1) : T(0);
    for (size_t i = 0; i < size; ++i) {
      vectors[j * size + i] = {re[i], sign == 0 ? T(0) : sign * re[size + i]};
    }
  }
  return info;
}

// Where the rows of a matrix lie after the exchanges of row i with row pivots[i], counted from 1.
void follow(const int32_t* pivots, int64_t steps, int64_t* permutation, int64_t rows) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i < steps; ++i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(pivots[i] - 1)]);
  }
  for (int64_t i = 0; i < rows; ++i) permutation[order[static_cast<size_t>(i)]] = i;
}

// LAPACK reads the rows that the pivots name: those of blocks of two are negative, both of them.
void check_pivots(const int32_t* pivots, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const bool one = pivots[k] >= 1 && pivots[k] <= n;
    const bool two =
        pivots[k] < 0 && k + 1 < n && pivots[k + 1] < 0 && pivots[k] >= -n && pivots[k + 1] >= -n;
    WEFT_CHECK(one || two, "ldl_solve: expected pivots of ldl_factor for ", n, " rows, got ",
               pivots[k], " for row ", k + 1);
    if (two) ++k;
  }
}

}  // namespace

Pair linalg_eig(const Tensor& self) {
  const char* op = "linalg_eig";
  check_matrices(op, self, true);
  const Tensor work = by_columns(self);
  const int64_t n = self.size(-1);
  const DType dtype = complex_of(self.dtype());
  const Tensor values = Tensor::empty(batch_sizes(self, 2, {n}), dtype, self.device());
  const Tensor vectors = Tensor::empty(self.sizes(), dtype, self.device());
  dispatch_matrix(self.dtype(), [&]<class T>(std::type_identity<T>) {
    using Complex = std::complex<Real<T>>;
    check_finite<T>(op, work);
    for (int64_t i = 0; i < batch_count(self) && n > 0; ++i) {
      const int info =
          eigen(as_int(n), work.data_as<T>() + i * n * n, values.data_as<Complex>() + i * n,
                vectors.data_as<Complex>() + i * n * n);
      check_converged(op, info);
    }
  });
  return {values, from_columns(vectors)};
}

Quadruple _lu_factor(const Tensor& A, bool check_errors) {
  const char* op = "linalg_lu_factor";
  check_matrices(op, A, false);
  const Tensor work = by_columns(A);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = batch_count(A);
  const Tensor pivots = Tensor::empty(batch_sizes(A, 2, {k}), DType::I32, A.device());
  const Tensor permutation = Tensor::empty(batch_sizes(A, 2, {m}), DType::I64, A.device());
  std::vector<int> infos(static_cast<size_t>(count));
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    const int rows = as_int(m), columns = as_int(n), lda = leading(m);
    for (int64_t i = 0; i < count; ++i) {
      int& info = infos[static_cast<size_t>(i)];
      int32_t* exchanges = pivots.data_as<int32_t>() + i * k;
      if (k > 0)
        lapack::getrf(T{})(&rows, &columns, work.data_as<T>() + i * m * n, &lda, exchanges, &info);
      WEFT_CHECK_AS(LinearAlgebra, info == 0 || !check_errors, op,
                    ": expected regular matrices, got a singular one (batch element ", i,
                    ", pivot ", info, ")");
      follow(exchanges, k, permutation.data_as<int64_t>() + i * m, m);
    }
  });
  return {from_columns(work), pivots, permutation, infos_of(A, infos)};
}

Triple _ldl_factor(const Tensor& self, bool hermitian) {
  check_matrices("ldl_factor", self, true);
  const Tensor work = by_columns(self);
  const int64_t n = self.size(-1), count = batch_count(self);
  const Tensor pivots = Tensor::empty(batch_sizes(self, 2, {n}), DType::I32, self.device());
  std::vector<int> infos(static_cast<size_t>(count));
  dispatch_matrix(self.dtype(), [&]<class T>(std::type_identity<T>) {
    const int size = as_int(n), lda = leading(n), lwork = std::max(1, 64 * size);
    std::vector<T> scratch(static_cast<size_t>(lwork));
    const auto routine = hermitian ? lapack::hetrf(T{}) : lapack::sytrf(T{});
    for (int64_t i = 0; i < count && n > 0; ++i) {
      routine("L", &size, work.data_as<T>() + i * n * n, &lda, pivots.data_as<int32_t>() + i * n,
              scratch.data(), &lwork, &infos[static_cast<size_t>(i)]);
    }
  });
  return {tril(from_columns(work), 0), pivots, infos_of(self, infos)};
}

Tensor _ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  const char* op = "ldl_solve";
  check_matrices(op, LD, true);
  const int64_t n = LD.size(-1);
  WEFT_CHECK(pivots.dtype() == DType::I32 && pivots.sizes() == batch_sizes(LD, 2, {n}), op,
             ": expected pivots of int32 and shape ", AsTuple{batch_sizes(LD, 2, {n})}, ", got ",
             pivots.dtype(), " and ", AsTuple{pivots.sizes()});
  const System system = system_of(op, LD, B);
  const int64_t k = system.b.size(-2);
  const Tensor exchanges =
      contiguous_copy(ops::expand(pivots, batch_sizes(system.a, 2, {n}), false));
  dispatch_matrix(LD.dtype(), [&]<class T>(std::type_identity<T>) {
    const int size = as_int(n), count = as_int(k), lda = leading(n);
    const auto routine = hermitian ? lapack::hetrs(T{}) : lapack::sytrs(T{});
    for (int64_t i = 0; i < batch_count(system.a) && n > 0 && k > 0; ++i) {
      const int32_t* rows = exchanges.data_as<int32_t>() + i * n;
      check_pivots(rows, n);
      int info = 0;
      routine("L", &size, &count, system.a.data_as<T>() + i * n * n, &lda, rows,
              system.b.data_as<T>() + i * n * k, &lda, &info);
    }
  });
  return from_columns(system.b);
}

Pair geqrf(const Tensor& self) {
  check_matrices("geqrf", self, false);
  const Tensor work = by_columns(self);
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  const Tensor tau = Tensor::empty(batch_sizes(self, 2, {k}), self.dtype(), self.device());
  dispatch_matrix(self.dtype(), [&]<class T>(std::type_identity<T>) {
    const int rows = as_int(m), columns = as_int(n), lda = leading(m);
    const int lwork = std::max(1, 32 * columns);
    std::vector<T> scratch(static_cast<size_t>(lwork));
    for (int64_t i = 0; i < batch_count(self) && k > 0; ++i) {
      int info = 0;
      lapack::geqrf(T{})(&rows, &columns, work.data_as<T>() + i * m * n, &lda,
                         tau.data_as<T>() + i * k, scratch.data(), &lwork, &info);
    }
  });
  return {from_columns(work), tau};
}

}  // namespace weft::native
