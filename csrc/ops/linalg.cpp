// Decompositions and solutions of linear systems, matrix by matrix through LAPACK.
//
// LAPACK is column-major: a contiguous copy of the transposed matrix is what it reads and writes.
#include <climits>
#include <cmath>

#include "native_decompositions.h"
#include "native_indexing.h"
#include "native_solvers.h"
#include "ops/matrices.h"

namespace weft::native {
namespace {

using namespace matrices;
using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

// LU decompositions in place; pivots[i * n ...] belong to matrix i. Gives the zero pivots found.
template <class T>
std::vector<int> decompose(const Tensor& columns, std::vector<int>& pivots) {
  const int64_t n = columns.size(-1), count = batch_count(columns);
  pivots.resize(static_cast<size_t>(n * count));
  std::vector<int> infos(static_cast<size_t>(count));
  const int size = as_int(n), lda = leading(n);
  for_each_matrix(n > 0 ? count : 0, n, [&](int64_t i) {
    T* const matrix = columns.data_as<T>() + i * n * n;
    int *const swaps = pivots.data() + i * n, *const info = &infos[static_cast<size_t>(i)];
    if (n <= kSmallOrder) {
      *info = small_lu(matrix, size, swaps);
    } else {
      lapack::getrf(T{})(&size, &size, matrix, &lda, swaps, info);
    }
  });
  return infos;
}

void check_regular(const char* op, const std::vector<int>& infos) {
  for (size_t i = 0; i < infos.size(); ++i) {
    WEFT_CHECK_AS(LinearAlgebra, infos[i] == 0, op,
                  ": expected regular matrices, got a singular one (batch element ", i, ", pivot ",
                  infos[i], ")");
  }
}

bool is_vector_for(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  if (b.dim() + 1 != a.dim()) return false;
  for (int64_t d = 0; d < b.dim(); ++d) {
    if (a.size(d) != b.size(d)) return false;
  }
  return true;
}

}  // namespace

Pair linalg_inv_ex(const Tensor& A, bool check_errors) {
  check_matrices("linalg_inv", A, true);
  const Tensor work = by_columns(A);
  const int64_t n = A.size(-1);
  std::vector<int> infos;
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<int> pivots;
    infos = decompose<T>(work, pivots);
    if (check_errors) check_regular("linalg_inv", infos);
    const int size = as_int(n), lda = leading(n), lwork = std::max(1, size * 32);
    for_each_matrix(n > 0 ? batch_count(A) : 0, n, [&](int64_t i) {
      int info = infos[static_cast<size_t>(i)];
      T* matrix = work.data_as<T>() + i * n * n;
      if (n > kSmallOrder) {
        std::vector<T> scratch(static_cast<size_t>(lwork));
        lapack::getri(T{})(&size, matrix, &lda, pivots.data() + i * n, scratch.data(), &lwork,
                           &info);
      } else if (info == 0) {
        T inverse[kSmallOrder * kSmallOrder];
        std::fill_n(inverse, n * n, T(0));
        for (int64_t k = 0; k < n; ++k) inverse[k * (n + 1)] = 1;
        small_solve(matrix, size, pivots.data() + i * n, inverse, n);
        std::copy_n(inverse, n * n, matrix);
      }
      // A singular matrix has no inverse; LAPACK leaves its factors.
      if (info > 0) std::fill_n(matrix, n * n, T(std::numeric_limits<Real<T>>::quiet_NaN()));
    });
  });
  return {from_columns(work), infos_of(A, infos)};
}

Pair linalg_slogdet(const Tensor& A) {
  check_matrices("linalg_slogdet", A, true);
  const Tensor work = contiguous_copy(A);  // transposed, it has the same determinant
  const int64_t n = A.size(-1);
  const Tensor sign = Tensor::empty(batch_sizes(A, 2, {}), A.dtype(), A.device());
  const Tensor size = Tensor::empty(sign.sizes(), real_of(A.dtype()), A.device());
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<int> pivots;
    decompose<T>(work, pivots);
    for (int64_t i = 0; i < batch_count(A); ++i) {
      T direction = 1;
      Real<T> total = 0;
      for (int64_t k = 0; k < n; ++k) {
        const T pivot = work.data_as<T>()[i * n * n + k * n + k];
        const Real<T> length = std::abs(pivot);
        if (pivots[static_cast<size_t>(i * n + k)] != k + 1) direction = -direction;
        direction = length == 0 ? T(0) : direction * (pivot / length);
        total += std::log(length);
      }
      sign.data_as<T>()[i] = direction;
      size.data_as<Real<T>>()[i] = total;
    }
  });
  return {sign, size};
}

Tensor linalg_det(const Tensor& A) {
  check_matrices("linalg_det", A, true);
  const Tensor work = contiguous_copy(A);  // transposed, it has the same determinant
  const int64_t n = A.size(-1);
  const Tensor out = Tensor::empty(batch_sizes(A, 2, {}), A.dtype(), A.device());
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<int> pivots;
    decompose<T>(work, pivots);
    for (int64_t i = 0; i < batch_count(A); ++i) {
      T product = 1;
      for (int64_t k = 0; k < n; ++k) {
        const bool swapped = pivots[static_cast<size_t>(i * n + k)] != k + 1;
        product *= T(swapped ? -1 : 1) * work.data_as<T>()[i * n * n + k * n + k];
      }
      out.data_as<T>()[i] = product;
    }
  });
  return out;
}

Tensor _solve(const Tensor& A, const Tensor& B) {
  const char* op = "linalg_solve";
  check_matrices(op, A, true);
  const bool vector = is_vector_for(A, B);
  const System system = system_of(op, A, vector ? ops::unsqueeze(B, -1) : B);
  const int64_t n = A.size(-1), k = system.b.size(-2);
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    std::vector<int> pivots;
    check_regular(op, decompose<T>(system.a, pivots));
    const int size = as_int(n), count = as_int(k), lda = leading(n);
    for_each_matrix(n > 0 && k > 0 ? batch_count(system.a) : 0, n, [&](int64_t i) {
      int info = 0;
      T *const lu = system.a.data_as<T>() + i * n * n, *const b = system.b.data_as<T>() + i * n * k;
      const int* const swaps = pivots.data() + i * n;
      if (n <= kSmallOrder) return small_solve(lu, size, swaps, b, k);
      lapack::getrs(T{})("N", &size, &count, lu, &lda, swaps, b, &lda, &info);
    });
  });
  const Tensor out = from_columns(system.b);
  return vector ? ops::squeeze(out, -1) : out;
}

Tensor _solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool unitriangular) {
  const char* op = "linalg_solve_triangular";
  check_matrices(op, A, true);
  const System system = system_of(op, A, B);
  const int64_t n = A.size(-1), k = system.b.size(-2);
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    const int size = as_int(n), count = as_int(k), lda = leading(n);
    for (int64_t i = 0; i < batch_count(system.a) && n > 0 && k > 0; ++i) {
      int info = 0;
      T* b = system.b.data_as<T>() + i * n * k;
      lapack::trtrs(T{})(upper ? "U" : "L", "N", unitriangular ? "U" : "N", &size, &count,
                         system.a.data_as<T>() + i * n * n, &lda, b, &lda, &info);
      // PyTorch divides by the zero; LAPACK stops before.
      if (info > 0) std::fill_n(b, n * k, T(std::numeric_limits<Real<T>>::quiet_NaN()));
    }
  });
  return from_columns(system.b);
}

Pair _cholesky(const Tensor& self, bool check_errors) {
  const char* op = "linalg_cholesky";
  check_matrices(op, self, true);
  const Tensor work = by_columns(self);
  const int64_t n = self.size(-1);
  std::vector<int> infos(static_cast<size_t>(batch_count(self)));
  dispatch_matrix(self.dtype(), [&]<class T>(std::type_identity<T>) {
    const int size = as_int(n), lda = leading(n);
    for_each_matrix(n > 0 ? batch_count(self) : 0, n, [&](int64_t i) {
      lapack::potrf(T{})("L", &size, work.data_as<T>() + i * n * n, &lda,
                         &infos[static_cast<size_t>(i)]);
    });
    for (size_t i = 0; i < infos.size(); ++i) {
      WEFT_CHECK_AS(LinearAlgebra, infos[i] == 0 || !check_errors, op,
                    ": expected positive-definite matrices, got one whose leading minor "
                    "of order ",
                    infos[i], " is not (batch element ", i, ")");
    }
  });
  return {tril(from_columns(work), 0), infos_of(self, infos)};
}

Pair linalg_eigh(const Tensor& self, const std::string& UPLO) {
  const char* op = "linalg_eigh";
  check_matrices(op, self, true);
  WEFT_CHECK(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", op,
             ": expected UPLO \"L\" or \"U\", got \"", UPLO, "\"");
  const Tensor work = by_columns(self);
  const int64_t n = self.size(-1);
  WEFT_CHECK(n <= (1 << 14), op, ": expected at most 2^14 rows, got shape ", AsTuple{self.sizes()});
  const Tensor values =
      Tensor::empty(batch_sizes(self, 2, {n}), real_of(self.dtype()), self.device());
  dispatch_matrix(self.dtype(), [&]<class T>(std::type_identity<T>) {
    lapack::Eigen<T> solver(as_int(n));
    for (int64_t i = 0; i < batch_count(self) && n > 0; ++i) {
      const int info = solver.run(UPLO.c_str(), work.data_as<T>() + i * n * n,
                                  values.data_as<Real<T>>() + i * n);
      check_converged(op, info);
    }
  });
  return {values, from_columns(work)};
}

Pair linalg_qr(const Tensor& A, const std::string& mode) {
  const char* op = "linalg_qr";
  check_matrices(op, A, false);
  WEFT_CHECK(mode == "reduced" || mode == "complete" || mode == "r", op,
             ": expected mode \"reduced\", \"complete\" or \"r\", got \"", mode, "\"");
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = batch_count(A);
  const int64_t q_columns = mode == "complete" ? m : k;
  const Tensor work = by_columns(A);
  // Reflections as columns, with room for all columns of a complete Q.
  const Tensor q = zeros_of(batch_sizes(A, 2, {q_columns, m}), A.dtype(), A.device(), op);
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    const int rows = as_int(m), columns = as_int(n), lda = leading(m);
    const int wide = as_int(q_columns), inner = as_int(k);
    const int lwork = std::max(1, 32 * std::max(columns, wide));
    std::vector<T> tau(static_cast<size_t>(std::max<int64_t>(k, 1))),
        scratch(static_cast<size_t>(lwork));
    for (int64_t i = 0; i < count && m > 0; ++i) {
      int info = 0;
      T* a = work.data_as<T>() + i * m * n;
      T* out = q.data_as<T>() + i * m * q_columns;
      if (n > 0)
        lapack::geqrf(T{})(&rows, &columns, a, &lda, tau.data(), scratch.data(), &lwork, &info);
      std::copy_n(a, m * k, out);
      if (wide > 0) {
        lapack::orgqr(T{})(&rows, &wide, &inner, out, &lda, tau.data(), scratch.data(), &lwork,
                           &info);
      }
    }
  });
  const Tensor r = triu(ops::narrow(from_columns(work), -2, 0, q_columns), 0);
  if (mode == "r") {
    const int64_t none[] = {0};
    return {Tensor::empty(none, A.dtype(), A.device()), r};
  }
  return {from_columns(q), r};
}

Triple linalg_svd(const Tensor& A, bool full_matrices, std::optional<std::string>) {
  const char* op = "linalg_svd";
  check_matrices(op, A, false);
  const int64_t m = A.size(-2), n = A.size(-1), k = std::min(m, n), count = batch_count(A);
  const int64_t u_columns = full_matrices ? m : k, v_rows = full_matrices ? n : k;
  const Tensor work = by_columns(A);
  const Tensor u = zeros_of(batch_sizes(A, 2, {u_columns, m}), A.dtype(), A.device(), op);
  const Tensor s = Tensor::empty(batch_sizes(A, 2, {k}), real_of(A.dtype()), A.device());
  const Tensor vh = zeros_of(batch_sizes(A, 2, {n, v_rows}), A.dtype(), A.device(), op);
  if (k == 0) {
    // No singular value: any orthonormal matrices will do.
    for (const Tensor& one : {u, vh}) ops::fill_(ops::diagonal(one, 0, -2, -1), Scalar(1));
    return {from_columns(u), s, from_columns(vh)};
  }
  dispatch_matrix(A.dtype(), [&]<class T>(std::type_identity<T>) {
    lapack::Singular<T> solver(full_matrices, as_int(m), as_int(n));
    WEFT_CHECK(solver.fits(), op, ": expected matrices that LAPACK has room for, got shape ",
               AsTuple{A.sizes()});
    for (int64_t i = 0; i < count; ++i) {
      const int info = solver.run(work.data_as<T>() + i * m * n, s.data_as<Real<T>>() + i * k,
                                  u.data_as<T>() + i * m * u_columns,
                                  vh.data_as<T>() + i * n * v_rows, leading(v_rows));
      check_converged(op, info);
    }
  });
  return {from_columns(u), s, from_columns(vh)};
}

}  // namespace weft::native
