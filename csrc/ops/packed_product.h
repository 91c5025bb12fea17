// Whole products over packed strips (packed_gemm.h), on all threads: blocks of rows that stay in
// the second-level cache meet strips of columns.
#pragma once

#include "ops/blas.h"
#include "ops/packed_gemm.h"

namespace weft::blas {

// Factors that do not lie in memory as matrices: parts of them, packed as they are met.
class Factors {
 public:
  // to[i * line + p] = a[first + i, begin + p] for `count` rows and `depth` columns.
  virtual void rows(int64_t first, int64_t count, int64_t begin, int64_t depth, float* to,
                    int64_t line) const = 0;
  // Strips of b[begin + p, column + j], each of `depth` rows. `columns`: at most two strips.
  virtual void strips(int64_t begin, int64_t depth, int64_t column, int64_t columns,
                      float* to) const = 0;

 protected:
  ~Factors() = default;
};

// out = sink(out * add + a @ b): m rows of n columns, row by row.
struct PackedProduct {
  int64_t m, n, k;
  Matrix<const float> a, b;
  const float* strips;  // of all of b; null: packed as they are met
  Sink sink;
  bool add;
  Elements of;
  float* out;
  const Factors* factors = nullptr;  // instead of a and b

  void run() const;
};

// All of b, of k rows and n columns, in strips: packed_size(k, n) elements.
void pack_matrix(const Matrix<const float>& b, int64_t k, int64_t n, float* to);

// c = c * add + a @ b for bfloat16 factors, where the processor multiplies(BFloat16Pairs).
void bfloat16_gemm(int64_t m, int64_t n, int64_t k, const Matrix<const uint16_t>& a,
                   const Matrix<const uint16_t>& b, bool add, float* c);
// c = a @ b for int8 factors. Sums wrap around.
void int8_gemm(int64_t m, int64_t n, int64_t k, const Matrix<const uint8_t>& a,
               const Matrix<const uint8_t>& b, int32_t* c);

}  // namespace weft::blas
