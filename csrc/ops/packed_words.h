// Matrices of small numbers as matrices of words of four bytes: neighbours along one dimension, of
// which a processor multiplies all of a word at once (Elements in packed_gemm.h).
#pragma once

#include <optional>

#include "ops/blas.h"
#include "ops/scratch.h"

namespace weft::blas {

constexpr uint32_t paired(uint32_t low, uint32_t high) { return low | high << 16; }

// T: uint16_t (the bytes of a bfloat16) or uint8_t (of an int8).
template <class T>
class WordMatrix {
 public:
  static constexpr int64_t kEach = sizeof(uint32_t) / sizeof(T);

  // Words along the columns of a, `columns` of them, filled up with 0; of each word these bits are
  // inverted. Read where they lie if neighbours do and no bit is inverted, else copied.
  WordMatrix(const Matrix<const T>& a, int64_t rows, int64_t columns, uint32_t inverted = 0);
  // Element (i, p) are columns kEach * p and following of row i. Only its bytes count.
  const Matrix<const float>& words() const { return words_; }

 private:
  std::optional<Scratch<uint32_t>> copy_;
  Matrix<const float> words_;
};

}  // namespace weft::blas
