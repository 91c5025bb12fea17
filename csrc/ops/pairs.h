// Matrices of bfloat16 as matrices of pairs: two neighbours along one dimension in the four bytes
// of an element, as processors multiply them.
#pragma once

#include <optional>

#include "ops/blas.h"
#include "ops/scratch.h"

namespace weft::blas {

constexpr uint32_t paired(uint32_t low, uint32_t high) { return low | high << 16; }

class PairedMatrix {
 public:
  // Pairs along the columns of a, `columns` of them; an odd one is paired with 0. Read where they
  // lie if neighbours do, else copied.
  PairedMatrix(const Matrix<const uint16_t>& a, int64_t rows, int64_t columns);
  // Element (i, p) are columns 2p and 2p + 1 of row i. Only its bytes count.
  const Matrix<const float>& pairs() const { return pairs_; }

 private:
  std::optional<Scratch<uint32_t>> copy_;
  Matrix<const float> pairs_;
};

}  // namespace weft::blas
