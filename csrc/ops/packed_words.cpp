#include "ops/packed_words.h"

#include <algorithm>
#include <cstring>

#include "core/thread_pool.h"

namespace weft::blas {
namespace {

template <class T>
bool lies_in_words(const Matrix<const T>& a, int64_t rows, int64_t columns) {
  constexpr int64_t kEach = WordMatrix<T>::kEach;
  return a.column == 1 && columns % kEach == 0 && (a.row % kEach == 0 || rows == 1) &&
         reinterpret_cast<uintptr_t>(a.data) % sizeof(uint32_t) == 0;
}

// The word of `count` numbers at `from`, `step` apart.
template <class T>
uint32_t word_at(const T* from, int64_t step, int64_t count) {
  uint32_t word = 0;
  for (int64_t e = 0; e < count; ++e) {
    word |= static_cast<uint32_t>(from[e * step]) << (8 * sizeof(T) * static_cast<size_t>(e));
  }
  return word;
}

// The words of numbers that lie `step` apart, of so many rows beside each other.
template <class T>
void copy_beside(const T* from, int64_t step, int64_t rows, uint32_t inverted, uint32_t* to) {
  for (int64_t i = 0; i < rows; ++i) {
    uint32_t word = static_cast<uint32_t>(from[i]) | static_cast<uint32_t>(from[i + step])
                                                         << (8 * sizeof(T));
    if constexpr (sizeof(T) == 1) {
      word |= static_cast<uint32_t>(from[i + 2 * step]) << 16 |
              static_cast<uint32_t>(from[i + 3 * step]) << 24;
    }
    to[i] = word ^ inverted;
  }
}

// to[i * to_row + p * to_column] = word p of row i.
template <class T>
void copy_words(const Matrix<const T>& a, int64_t rows, int64_t columns, uint32_t inverted,
                uint32_t* to, int64_t to_row, int64_t to_column) {
  constexpr int64_t kEach = WordMatrix<T>::kEach;
  // Threads and the outer loop take what lies apart.
  const int64_t words = (columns + kEach - 1) / kEach;
  const bool by_words = to_column != 1;
  const int64_t inner = by_words ? rows : words;
  parallel_for(by_words ? words : rows, 1 + 16384 / inner, [&](int64_t begin, int64_t end) {
    for (int64_t outer = begin; outer < end; ++outer) {
      auto copy = [&](int64_t i, int64_t p, int64_t count) {
        const T* from = a.data + i * a.row + p * kEach * a.column;
        to[i * to_row + p * to_column] = word_at(from, a.column, count) ^ inverted;
      };
      if (by_words && (outer + 1) * kEach <= columns && a.row == 1 && to_row == 1) {
        copy_beside<T>(a.data + outer * kEach * a.column, a.column, rows, inverted,
                       to + outer * to_column);
      } else if (by_words && (outer + 1) * kEach <= columns) {
        for (int64_t i = 0; i < rows; ++i) copy(i, outer, kEach);
      } else if (a.column == 1 && to_column == 1) {
        const int64_t whole = columns / kEach;
        uint32_t* const line = to + outer * to_row;
        std::memcpy(line, a.data + outer * a.row, static_cast<size_t>(whole) * sizeof(uint32_t));
        for (int64_t p = 0; p < whole; ++p) line[p] ^= inverted;
        if (whole < words) copy(outer, whole, columns - whole * kEach);
      } else {
        for (int64_t k = 0; k < inner; ++k) {
          const int64_t p = by_words ? outer : k;
          copy(by_words ? k : outer, p, std::min(kEach, columns - p * kEach));
        }
      }
    }
  });
}

}  // namespace

template <class T>
WordMatrix<T>::WordMatrix(const Matrix<const T>& a, int64_t rows, int64_t columns,
                          uint32_t inverted) {
  const int64_t words = (columns + kEach - 1) / kEach;
  if (inverted == 0 && lies_in_words(a, rows, columns)) {
    words_ = {reinterpret_cast<const float*>(a.data), a.row / kEach, 1};
    return;
  }
  copy_.emplace(rows * words);
  const bool by_words = a.row == 1 && a.column != 1;
  const int64_t row = by_words ? 1 : words, column = by_words ? rows : 1;
  copy_words(a, rows, columns, inverted, copy_->data(), row, column);
  words_ = {reinterpret_cast<const float*>(copy_->data()), row, column};
}

template class WordMatrix<uint16_t>;
template class WordMatrix<uint8_t>;

}  // namespace weft::blas
