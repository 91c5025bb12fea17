// The LAPACK routines in use, for every element type under one name each. Matrices are
// column-major.
#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "ops/blas_call.h"
#include "ops/openblas.h"

namespace weft::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

extern "C" {
#define WEFT_LAPACK(p, T)                                                                     \
  void scipy_##p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots,       \
                         int* info);                                                          \
  void scipy_##p##getri_(const int* n, T* a, const int* lda, const int* pivots, T* work,      \
                         const int* lwork, int* info);                                        \
  void scipy_##p##getrs_(const char* trans, const int* n, const int* nrhs, const T* a,        \
                         const int* lda, const int* pivots, T* b, const int* ldb, int* info); \
  void scipy_##p##trtrs_(const char* uplo, const char* trans, const char* diag, const int* n, \
                         const int* nrhs, const T* a, const int* lda, T* b, const int* ldb,   \
                         int* info);                                                          \
  void scipy_##p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info);    \
  void scipy_##p##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,   \
                         const int* lwork, int* info);
WEFT_LAPACK(s, float)
WEFT_LAPACK(d, double)
WEFT_LAPACK(c, std::complex<float>)
WEFT_LAPACK(z, std::complex<double>)
#undef WEFT_LAPACK

// Complex elements have these under other names (unitary, Hermitian), with real scratch beside.
#define WEFT_LAPACK(p, orthogonal, symmetric, T, ...)                                              \
  void scipy_##p##orthogonal##gqr_(const int* m, const int* n, const int* k, T* a, const int* lda, \
                                   const T* tau, T* work, const int* lwork, int* info);            \
  void scipy_##p##symmetric##evd_(                                                                 \
      const char* jobz, const char* uplo, const int* n, T* a, const int* lda, Real<T>* w, T* work, \
      const int* lwork __VA_OPT__(, ) __VA_ARGS__, int* iwork, const int* liwork, int* info);
WEFT_LAPACK(s, or, sy, float)
WEFT_LAPACK(d, or, sy, double)
WEFT_LAPACK(c, un, he, std::complex<float>, float* rwork, const int* lrwork)
WEFT_LAPACK(z, un, he, std::complex<double>, double* rwork, const int* lrwork)
#undef WEFT_LAPACK
#define WEFT_LAPACK(p, T, ...)                                                               \
  void scipy_##p##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, \
                         Real<T>* s, T* u, const int* ldu, T* vt, const int* ldvt, T* work,  \
                         const int* lwork __VA_OPT__(, ) __VA_ARGS__, int* iwork, int* info);
WEFT_LAPACK(s, float)
WEFT_LAPACK(d, double)
WEFT_LAPACK(c, std::complex<float>, float* rwork)
WEFT_LAPACK(z, std::complex<double>, double* rwork)
#undef WEFT_LAPACK
// Eigenvalues of any square matrix: real and imaginary parts apart, or complex with real scratch.
#define WEFT_LAPACK(p, T)                                                                         \
  void scipy_##p##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, \
                        T* wr, T* wi, T* vl, const int* ldvl, T* vr, const int* ldvr, T* work,    \
                        const int* lwork, int* info);
WEFT_LAPACK(s, float)
WEFT_LAPACK(d, double)
#undef WEFT_LAPACK
#define WEFT_LAPACK(p, T)                                                                         \
  void scipy_##p##geev_(const char* jobvl, const char* jobvr, const int* n, T* a, const int* lda, \
                        T* w, T* vl, const int* ldvl, T* vr, const int* ldvr, T* work,            \
                        const int* lwork, Real<T>* rwork, int* info);
WEFT_LAPACK(c, std::complex<float>)
WEFT_LAPACK(z, std::complex<double>)
#undef WEFT_LAPACK
#define WEFT_LAPACK(p, symmetric, T)                                                           \
  void scipy_##p##symmetric##trf_(const char* uplo, const int* n, T* a, const int* lda,        \
                                  int* pivots, T* work, const int* lwork, int* info);          \
  void scipy_##p##symmetric##trs_(const char* uplo, const int* n, const int* nrhs, const T* a, \
                                  const int* lda, const int* pivots, T* b, const int* ldb,     \
                                  int* info);
WEFT_LAPACK(s, sy, float)
WEFT_LAPACK(d, sy, double)
WEFT_LAPACK(c, sy, std::complex<float>)
WEFT_LAPACK(z, sy, std::complex<double>)
WEFT_LAPACK(c, he, std::complex<float>)
WEFT_LAPACK(z, he, std::complex<double>)
#undef WEFT_LAPACK
}

// A routine that a fork waits for, found when it is called first.
template <class F>
struct Routine {
  F* (*find)();
  template <class... Args>
  void operator()(Args... args) const {
    const BlasCall call;
    find()(args...);
  }
};

// getrf(T{})(...) and so on: the routine for elements of type T.
#define WEFT_LAPACK(name, s, d, c, z)                                                     \
  inline constexpr auto name = []<class T>(T) {                                           \
    if constexpr (std::is_same_v<T, float>) {                                             \
      return Routine<decltype(scipy_##s##_)>{[] { return WEFT_OPENBLAS(scipy_##s##_); }}; \
    } else if constexpr (std::is_same_v<T, double>) {                                     \
      return Routine<decltype(scipy_##d##_)>{[] { return WEFT_OPENBLAS(scipy_##d##_); }}; \
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {                        \
      return Routine<decltype(scipy_##c##_)>{[] { return WEFT_OPENBLAS(scipy_##c##_); }}; \
    } else {                                                                              \
      return Routine<decltype(scipy_##z##_)>{[] { return WEFT_OPENBLAS(scipy_##z##_); }}; \
    }                                                                                     \
  };
WEFT_LAPACK(getrf, sgetrf, dgetrf, cgetrf, zgetrf)
WEFT_LAPACK(getri, sgetri, dgetri, cgetri, zgetri)
WEFT_LAPACK(getrs, sgetrs, dgetrs, cgetrs, zgetrs)
WEFT_LAPACK(trtrs, strtrs, dtrtrs, ctrtrs, ztrtrs)
WEFT_LAPACK(potrf, spotrf, dpotrf, cpotrf, zpotrf)
WEFT_LAPACK(geqrf, sgeqrf, dgeqrf, cgeqrf, zgeqrf)
WEFT_LAPACK(orgqr, sorgqr, dorgqr, cungqr, zungqr)
WEFT_LAPACK(syevd, ssyevd, dsyevd, cheevd, zheevd)
WEFT_LAPACK(gesdd, sgesdd, dgesdd, cgesdd, zgesdd)
WEFT_LAPACK(geev, sgeev, dgeev, cgeev, zgeev)
WEFT_LAPACK(sytrf, ssytrf, dsytrf, csytrf, zsytrf)
WEFT_LAPACK(sytrs, ssytrs, dsytrs, csytrs, zsytrs)
// Of real elements the same as sytrf and sytrs.
WEFT_LAPACK(hetrf, ssytrf, dsytrf, chetrf, zhetrf)
WEFT_LAPACK(hetrs, ssytrs, dsytrs, chetrs, zhetrs)
#undef WEFT_LAPACK

template <class T>
inline constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

// Eigenvalues (ascending) and eigenvectors (in place of a) of symmetric or Hermitian matrices of
// one size, one after another through one scratch.
template <class T>
class Eigen {
 public:
  explicit Eigen(int n)
      : n_(n),
        work_(static_cast<size_t>(kComplex<T> ? 2 * n + n * n : 1 + 6 * n + 2 * n * n)),
        real_(kComplex<T> ? static_cast<size_t>(1 + 5 * n + 2 * n * n) : 0),
        numbers_(static_cast<size_t>(3 + 5 * n)) {}

  // LAPACK's info: 0 when all went well.
  int run(const char* uplo, T* a, Real<T>* values) {
    const int lda = std::max(n_, 1), lwork = static_cast<int>(work_.size());
    const int liwork = static_cast<int>(numbers_.size());
    int info = 0;
    if constexpr (kComplex<T>) {
      const int lrwork = static_cast<int>(real_.size());
      syevd(T{})("V", uplo, &n_, a, &lda, values, work_.data(), &lwork, real_.data(), &lrwork,
                 numbers_.data(), &liwork, &info);
    } else {
      syevd(T{})("V", uplo, &n_, a, &lda, values, work_.data(), &lwork, numbers_.data(), &liwork,
                 &info);
    }
    return info;
  }

 private:
  int n_;
  std::vector<T> work_;
  std::vector<Real<T>> real_;
  std::vector<int> numbers_;
};

// Singular values (descending) and vectors of m x n matrices; ldvt is the rows of vt.
template <class T>
class Singular {
 public:
  Singular(bool full, int m, int n) : full_(full), m_(m), n_(n) {
    const size_t small = static_cast<size_t>(std::min(m, n)),
                 large = static_cast<size_t>(std::max(m, n));
    work_.resize(3 * small + std::max(large, 5 * small * small + 4 * small) + 32 * large);
    numbers_.resize(8 * small);
    if (kComplex<T>) {
      real_.resize(
          std::max(5 * small * small + 5 * small, 2 * large * small + 2 * small * small + small));
    }
  }
  bool fits() const { return work_.size() < (size_t{1} << 31) && real_.size() < (size_t{1} << 31); }

  int run(T* a, Real<T>* s, T* u, T* vt, int ldvt) {
    const int lda = std::max(m_, 1), lwork = static_cast<int>(work_.size());
    const char* job = full_ ? "A" : "S";
    int info = 0;
    if constexpr (kComplex<T>) {
      gesdd(T{})(job, &m_, &n_, a, &lda, s, u, &lda, vt, &ldvt, work_.data(), &lwork, real_.data(),
                 numbers_.data(), &info);
    } else {
      gesdd(T{})(job, &m_, &n_, a, &lda, s, u, &lda, vt, &ldvt, work_.data(), &lwork,
                 numbers_.data(), &info);
    }
    return info;
  }

 private:
  bool full_;
  int m_, n_;
  std::vector<T> work_;
  std::vector<Real<T>> real_;
  std::vector<int> numbers_;
};

}  // namespace weft::lapack
