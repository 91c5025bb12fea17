// The LAPACK routines in use, for float and double under one name each. Matrices are column-major.
#pragma once

namespace weft::lapack {

extern "C" {
#define WEFT_LAPACK(p, T)                                                                          \
  void scipy_##p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots,            \
                         int* info);                                                               \
  void scipy_##p##getri_(const int* n, T* a, const int* lda, const int* pivots, T* work,           \
                         const int* lwork, int* info);                                             \
  void scipy_##p##getrs_(const char* trans, const int* n, const int* nrhs, const T* a,             \
                         const int* lda, const int* pivots, T* b, const int* ldb, int* info);      \
  void scipy_##p##trtrs_(const char* uplo, const char* trans, const char* diag, const int* n,      \
                         const int* nrhs, const T* a, const int* lda, T* b, const int* ldb,        \
                         int* info);                                                               \
  void scipy_##p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info);         \
  void scipy_##p##syevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda,   \
                         T* w, T* work, const int* lwork, int* iwork, const int* liwork,           \
                         int* info);                                                               \
  void scipy_##p##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,        \
                         const int* lwork, int* info);                                             \
  void scipy_##p##orgqr_(const int* m, const int* n, const int* k, T* a, const int* lda,           \
                         const T* tau, T* work, const int* lwork, int* info);                      \
  void scipy_##p##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, \
                         T* u, const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork,  \
                         int* iwork, int* info);
WEFT_LAPACK(s, float)
WEFT_LAPACK(d, double)
#undef WEFT_LAPACK
}

// getrf(T{})(...) and so on: the routine for elements of type T.
#define WEFT_LAPACK(name)                       \
  inline constexpr auto name = []<class T>(T) { \
    if constexpr (sizeof(T) == sizeof(float)) { \
      return &scipy_s##name##_;                 \
    } else {                                    \
      return &scipy_d##name##_;                 \
    }                                           \
  };
WEFT_LAPACK(getrf)
WEFT_LAPACK(getri)
WEFT_LAPACK(getrs)
WEFT_LAPACK(trtrs)
WEFT_LAPACK(potrf)
WEFT_LAPACK(syevd)
WEFT_LAPACK(geqrf)
WEFT_LAPACK(orgqr)
WEFT_LAPACK(gesdd)
#undef WEFT_LAPACK

}  // namespace weft::lapack
