#include "ops/pairs.h"

#include "core/thread_pool.h"

namespace weft::blas {
namespace {

bool lies_in_pairs(const Matrix<const uint16_t>& a, int64_t rows, int64_t columns) {
  return a.column == 1 && columns % 2 == 0 && (a.row % 2 == 0 || rows == 1) &&
         reinterpret_cast<uintptr_t>(a.data) % sizeof(uint32_t) == 0;
}

// Row p of the copy has the pairs of all rows of a: their elements of two columns lie in two lines.
void pair_lines(const Matrix<const uint16_t>& a, int64_t rows, int64_t columns, uint32_t* to) {
  const int64_t grain = 1 + 16384 / rows;
  parallel_for((columns + 1) / 2, grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const uint16_t *low = a.data + 2 * p * a.column, *high = low + a.column;
      uint32_t* const line = to + p * rows;
      if (2 * p + 1 == columns) {
        for (int64_t i = 0; i < rows; ++i) line[i] = low[i];
      } else {
        for (int64_t i = 0; i < rows; ++i) line[i] = paired(low[i], high[i]);
      }
    }
  });
}

void pair_columns(const Matrix<const uint16_t>& a, int64_t rows, int64_t columns, uint32_t* to) {
  const int64_t pairs = (columns + 1) / 2;
  parallel_for(rows, 1 + 16384 / pairs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint16_t* const row = a.data + i * a.row;
      for (int64_t p = 0; p < columns / 2; ++p) {
        to[i * pairs + p] = paired(row[2 * p * a.column], row[(2 * p + 1) * a.column]);
      }
      if (columns % 2 != 0) to[i * pairs + pairs - 1] = row[(columns - 1) * a.column];
    }
  });
}

}  // namespace

PairedMatrix::PairedMatrix(const Matrix<const uint16_t>& a, int64_t rows, int64_t columns) {
  auto floats = [](const void* data) { return static_cast<const float*>(data); };
  const int64_t pairs = (columns + 1) / 2;
  if (lies_in_pairs(a, rows, columns)) {
    pairs_ = {floats(a.data), a.row / 2, 1};
    return;
  }
  copy_.emplace(rows * pairs);
  if (a.row == 1) {
    pair_lines(a, rows, columns, copy_->data());
    pairs_ = {floats(copy_->data()), 1, rows};
  } else {
    pair_columns(a, rows, columns, copy_->data());
    pairs_ = {floats(copy_->data()), pairs, 1};
  }
}

}  // namespace weft::blas
