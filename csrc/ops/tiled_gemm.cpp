#include "ops/tiled_gemm.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "ops/scratch.h"
#include "ops/small_gemm.h"
#include "ops/transpose.h"

namespace weft::blas {

template <class T>
void pack_rows(const Matrix<const T>& a, int64_t rows, int64_t columns, T* out, int64_t out_row) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  if (a.column == 1) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(a.data + i * a.row, columns, out + i * out_row);
  } else if (a.row == 1) {
    transpose::copy(reinterpret_cast<char*>(out), reinterpret_cast<const char*>(a.data), sizeof(T),
                    rows, columns, out_row * item, a.column * item);
  } else {
    for (int64_t i = 0; i < rows; ++i) {
      const T* from = a.data + i * a.row;
      for (int64_t j = 0; j < columns; ++j) out[i * out_row + j] = from[j * a.column];
    }
  }
}

namespace {

// How a product is cut: blocks of b of kDepth x kWidth are packed into strips, blocks of a of
// kHeight x kDepth meet them while both stay in the second-level cache.
constexpr int64_t kWidth = 1024, kHeight = 22 * kTileRows;
// Columns of a finished part, at least: each row of it is a stretch of memory.
constexpr int64_t kPartColumns = 1024;
// Elements of an a that is packed as a whole rather than for each block of b.
constexpr int64_t kSmallA = 64 * 1024;

// b's block as strips of `width` columns, each depth rows without gaps; columns beyond n are 0.
template <class T>
void pack_strips(const Matrix<const T>& b, int64_t depth, int64_t n, int64_t width, T* out) {
  if (b.column == 1 && width == kStripColumns && n >= width) {
    // Row by row across the strips: long stretches of memory are what the processor reads ahead.
    const int64_t whole = n / width * width;
    for (int64_t p = 0; p < depth; ++p) {
      const T* from = b.data + p * b.row;
      for (int64_t j = 0; j < whole; j += width) {
        std::memcpy(out + j * depth + p * width, from + j, kStripColumns * sizeof(T));
      }
    }
    if (whole == n) return;
    return pack_strips<T>({b.data + whole, b.row, 1}, depth, n - whole, width, out + whole * depth);
  }
  for (int64_t j = 0; j < n; j += width) {
    const int64_t columns = std::min(width, n - j);
    pack_rows({b.data + j * b.column, b.row, b.column}, depth, columns, out, width);
    for (int64_t p = 0; p < depth && columns < width; ++p) {
      std::fill(out + p * width + columns, out + (p + 1) * width, T(0));
    }
    out += depth * width;
  }
}

// Whether tiles can read a where it lies. Rows a multiple of a kilobyte apart share few places in
// the cache, and columns walk across all of them; a few strips do not pay for a copy.
template <class T>
bool lies_well(const Matrix<const T>& a, int64_t n) {
  if (n < 4 * kStripColumns) return true;
  return a.column == 1 && static_cast<size_t>(a.row) * sizeof(T) % 1024 != 0;
}

// The strips of one block of b. Each is packed when the first block of a needs it, and fetched into
// the cache before, while the strip in front of it is multiplied. Where there is only one block of
// a, all of them are packed into the same place, which stays in the nearest cache.
template <class T>
class Strips {
 public:
  Strips(const Matrix<const T>& b, int64_t depth, int64_t columns, bool kept, T* packed)
      : b_(b), depth_(depth), columns_(columns), distance_(kept ? depth : 0), packed_(packed) {}

  const T* pack(int64_t j) {
    T* const strip = packed_ + j * distance_;
    pack_strips<T>({b_.data + j * b_.column, b_.row, b_.column}, depth_,
                   std::min(kStripColumns, columns_ - j), kStripColumns, strip);
    return strip;
  }
  const T* packed(int64_t j) const { return packed_ + j * distance_; }

  // What m rows of tiles fetch while they meet strip j: the next one.
  Ahead ahead(int64_t j, int64_t m) const {
    constexpr auto item = static_cast<int64_t>(sizeof(T));
    const int64_t row = b_.row * item, column = b_.column * item;
    const char* next = reinterpret_cast<const char*>(b_.data) + (j + kStripColumns) * column;
    if (j + 2 * kStripColumns > columns_) return nothing(j);
    if (b_.column == 1) return {next, kLanes * row, kLine, row, 2};
    if (b_.row != 1) return nothing(j);
    // Columns of the strip that each tile fetches, so that all tiles fetch all of them.
    const int64_t tiles = std::max<int64_t>(1, m / kTileRows);
    const int64_t each = std::max<int64_t>(2, (kStripColumns + tiles - 1) / tiles);
    return {next, each * column, column, kLine, static_cast<int>(each)};
  }
  Ahead nothing(int64_t j) const { return {reinterpret_cast<const char*>(packed(j)), 0, 0, 0, 0}; }

 private:
  static constexpr int64_t kLine = 64;
  const Matrix<const T> b_;
  const int64_t depth_, columns_, distance_;
  T* const packed_;
};

// Products of several strips: blocks of a and b are packed.
template <class T>
void gemm_by_blocks(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                    const Matrix<const T>& b, T beta, T* c, int64_t c_row, const Finish& finish) {
  const bool kept = m > kHeight;
  const int64_t width =
      kept ? (std::min(n, kWidth) + kStripColumns - 1) / kStripColumns * kStripColumns
           : kStripColumns;
  Scratch<T> strips(std::min(k, kDepth) * width), rows(std::min(m, kHeight) * kPackedRow);
  for (int64_t j = 0; j < n; j += kWidth) {
    const int64_t columns = std::min(kWidth, n - j);
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = std::min(kDepth, k - p);
      Strips<T> block({b.data + p * b.row + j * b.column, b.row, b.column}, depth, columns, kept,
                      strips.data());
      for (int64_t i = 0; i < m; i += kHeight) {
        const int64_t height = std::min(kHeight, m - i);
        pack_rows<T>({a.data + i * a.row + p * a.column, a.row, a.column}, height, depth,
                     rows.data(), kPackedRow);
        for (int64_t s = 0; s < columns; s += kStripColumns) {
          const T* strip = i == 0 ? block.pack(s) : block.packed(s);
          gemm_block(height, std::min(kStripColumns, columns - s), depth, alpha, rows.data(), strip,
                     p == 0 ? beta : T(1), c + i * c_row + j + s, c_row,
                     i == 0 ? block.ahead(s, height) : block.nothing(s));
        }
        if (p + depth == k) finish.at(i, j)(height, columns);
      }
    }
  }
}

// A few strips, which meet all of a where it lies.
template <class T>
void gemm_of_few_strips(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                        const Matrix<const T>& b, T beta, T* c, int64_t c_row,
                        const Finish& finish) {
  Scratch<T> strips(std::min(k, kDepth) * (n + kStripColumns));
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = std::min(kDepth, k - p);
    pack_strips<T>({b.data + p * b.row, b.row, b.column}, depth, n, kStripColumns, strips.data());
    for (int64_t i = 0; i < m; i += kHeight) {
      const int64_t height = std::min(kHeight, m - i);
      for (int64_t j = 0; j < n; j += kStripColumns) {
        gemm_packed(height, std::min(kStripColumns, n - j), depth, alpha,
                    a.data + i * a.row + p * a.column, a.row, a.column, strips.data() + j * depth,
                    kStripColumns, p == 0 ? beta : T(1), c + i * c_row + j, c_row);
      }
      if (p + depth == k) finish.at(i, 0)(height, n);
    }
  }
}

// A single block of a: each strip of b meets all of it as soon as it is read, and is packed
// meanwhile.
template <class T>
void gemm_by_strips(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                    const Matrix<const T>& b, T beta, T* c, int64_t c_row, const Finish& finish) {
  const int64_t whole = n / kStripColumns * kStripColumns;
  const int64_t part = std::max<int64_t>(kPartElements / m, kPartColumns);
  int64_t finished = 0;
  Scratch<T> packed(std::min(k, kDepth) * kStripColumns);
  for (int64_t j = 0; j < whole; j += kStripColumns) {
    for (int64_t p = 0; p < k; p += kDepth) {
      gemm_strip(m, std::min(kDepth, k - p), alpha, a.data + p * a.column, a.row, a.column,
                 b.data + p * b.row + j, b.row, packed.data(), p == 0 ? beta : T(1), c + j, c_row);
    }
    const int64_t end = j + kStripColumns;
    if (end - finished < part && end < whole) continue;
    finish.at(0, finished)(m, end - finished);
    finished = end;
  }
  if (whole == n) return;
  tiled_gemm<T>(m, n - whole, k, alpha, a, {b.data + whole, b.row, 1}, beta, c + whole, c_row,
                finish.at(0, whole));
}

}  // namespace

template <class T>
void tiled_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                const Matrix<const T>& b, T beta, T* c, int64_t c_row, const Finish& finish) {
  if (k <= kDepth && n <= kLanes) {
    // A single narrow strip, or b itself: the short way for small layers.
    const bool in_place = n == kLanes && b.column == 1;
    Scratch<T> strip(in_place ? 0 : k * kLanes);
    if (!in_place) pack_strips(b, k, n, kLanes, strip.data());
    gemm_packed(m, n, k, alpha, a.data, a.row, a.column, in_place ? b.data : strip.data(),
                in_place ? b.row : kLanes, beta, c, c_row);
    return finish(m, n);
  }
  const bool by_strips = b.column == 1 && n >= kStripColumns && m >= kTileRows && m <= kHeight;
  if (by_strips && lies_well(a, n)) {
    return gemm_by_strips(m, n, k, alpha, a, b, beta, c, c_row, finish);
  }
  if (by_strips && a.column == 1 && m * k <= kSmallA) {
    const bool apart = lies_well<T>({a.data, k + kLanes, 1}, n);
    const int64_t line = k + (apart ? 1 : 2) * kLanes;
    Scratch<T> rows(m * line);
    pack_rows(a, m, k, rows.data(), line);
    return gemm_by_strips<T>(m, n, k, alpha, {rows.data(), line, 1}, b, beta, c, c_row, finish);
  }
  if (n < 4 * kStripColumns) {
    return gemm_of_few_strips(m, n, k, alpha, a, b, beta, c, c_row, finish);
  }
  gemm_by_blocks(m, n, k, alpha, a, b, beta, c, c_row, finish);
}

#define INSTANTIATE(T)                                                               \
  template void pack_rows<T>(const Matrix<const T>&, int64_t, int64_t, T*, int64_t); \
  template void tiled_gemm<T>(int64_t, int64_t, int64_t, T, const Matrix<const T>&,  \
                              const Matrix<const T>&, T, T*, int64_t, const Finish&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(uint8_t)
INSTANTIATE(uint16_t)
INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE
template void pack_rows<std::complex<float>>(const Matrix<const std::complex<float>>&, int64_t,
                                             int64_t, std::complex<float>*, int64_t);
template void pack_rows<std::complex<double>>(const Matrix<const std::complex<double>>&, int64_t,
                                              int64_t, std::complex<double>*, int64_t);

}  // namespace weft::blas
