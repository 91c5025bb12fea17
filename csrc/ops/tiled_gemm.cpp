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
constexpr int64_t kWidth = 1024, kHeight = 20 * kTileRows;
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

// How blocks of a are read: where they lie, or copied row by row or as tiles.
enum class Packing { None, Rows, Tiles };

// Rows a multiple of a kilobyte apart share few places in the cache, and columns walk across all of
// them.
template <class T>
Packing packing_of(const Matrix<const T>& a, int64_t n) {
  if (n < 4 * kStripColumns) return Packing::None;
  if (a.column != 1) return Packing::Tiles;
  return static_cast<size_t>(a.row) * sizeof(T) % 1024 == 0 ? Packing::Rows : Packing::None;
}
constexpr int64_t kPaddedDepth = kDepth + kLanes;  // of packed rows

// a's block as tiles of kTileRows rows, column by column.
template <class T>
void pack_tiles(const Matrix<const T>& a, int64_t m, int64_t depth, T* out) {
  for (int64_t i = 0; i < m; i += kTileRows) {
    const int64_t rows = std::min(kTileRows, m - i);
    const T* from = a.data + i * a.row;
    for (int64_t p = 0; p < depth; ++p) {
      for (int64_t r = 0; r < rows; ++r) out[p * kTileRows + r] = from[r * a.row + p * a.column];
    }
    out += depth * kTileRows;
  }
}

// c = alpha * a @ strips + beta * c for one block of each; `packed` is room for the block of a.
template <class T>
void multiply_block(int64_t m, int64_t n, int64_t depth, T alpha, Matrix<const T> a,
                    Packing packing, T* packed, const T* strips, T beta, T* c, int64_t c_row) {
  if (packing == Packing::Rows) {
    pack_rows(a, m, depth, packed, kPaddedDepth);
    a = {packed, kPaddedDepth, 1};
  } else if (packing == Packing::Tiles) {
    pack_tiles(a, m, depth, packed);
  }
  for (int64_t j = 0; j < n; j += kStripColumns) {
    const int64_t columns = std::min(kStripColumns, n - j);
    const T* b = strips + j * depth;
    if (packing != Packing::Tiles) {
      gemm_packed(m, columns, depth, alpha, a.data, a.row, a.column, b, kStripColumns, beta, c + j,
                  c_row);
      continue;
    }
    for (int64_t i = 0; i < m; i += kTileRows) {
      gemm_packed(std::min(kTileRows, m - i), columns, depth, alpha, packed + i * depth, int64_t{1},
                  kTileRows, b, kStripColumns, beta, c + i * c_row + j, c_row);
    }
  }
}

// A single block of a: each strip of b meets all of it as soon as it is read, and is packed
// meanwhile.
template <class T>
void gemm_by_strips(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                    const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
  const int64_t whole = n / kStripColumns * kStripColumns;
  Scratch<T> packed(std::min(k, kDepth) * kStripColumns);
  for (int64_t j = 0; j < whole; j += kStripColumns) {
    for (int64_t p = 0; p < k; p += kDepth) {
      gemm_strip(m, std::min(kDepth, k - p), alpha, a.data + p * a.column, a.row, a.column,
                 b.data + p * b.row + j, b.row, packed.data(), p == 0 ? beta : T(1), c + j, c_row);
    }
  }
  if (whole == n) return;
  tiled_gemm<T>(m, n - whole, k, alpha, a, {b.data + whole, b.row, 1}, beta, c + whole, c_row);
}

}  // namespace

template <class T>
void tiled_gemm(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
  if (k <= kDepth && n <= kLanes) {
    // A single narrow strip, or b itself: the short way for small layers.
    const bool in_place = n == kLanes && b.column == 1;
    Scratch<T> strip(in_place ? 0 : k * kLanes);
    if (!in_place) pack_strips(b, k, n, kLanes, strip.data());
    return gemm_packed(m, n, k, alpha, a.data, a.row, a.column, in_place ? b.data : strip.data(),
                       in_place ? b.row : kLanes, beta, c, c_row);
  }
  const Packing packing = packing_of(a, n);
  const int64_t strip_columns =
      (std::min(n, kWidth) + kStripColumns - 1) / kStripColumns * kStripColumns;
  const int64_t depth = std::min(k, kDepth);
  if (packing == Packing::Rows && m <= kHeight && m * k <= kSmallA) {
    const bool apart = packing_of<T>({a.data, k + kLanes, 1}, n) == Packing::None;
    const int64_t line = k + (apart ? 1 : 2) * kLanes;
    Scratch<T> rows(m * line);
    pack_rows(a, m, k, rows.data(), line);
    return tiled_gemm<T>(m, n, k, alpha, {rows.data(), line, 1}, b, beta, c, c_row);
  }
  if (packing == Packing::None && b.column == 1 && n >= kStripColumns && m >= kTileRows &&
      m <= kHeight) {
    return gemm_by_strips(m, n, k, alpha, a, b, beta, c, c_row);
  }
  const int64_t height = (std::min(m, kHeight) + kTileRows - 1) / kTileRows * kTileRows;
  Scratch<T> strips(depth * strip_columns);
  Scratch<T> packed(packing == Packing::None ? 0 : kPaddedDepth * height);
  for (int64_t j = 0; j < n; j += kWidth) {
    const int64_t columns = std::min(kWidth, n - j);
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t rows = std::min(kDepth, k - p);
      pack_strips<T>({b.data + p * b.row + j * b.column, b.row, b.column}, rows, columns,
                     kStripColumns, strips.data());
      for (int64_t i = 0; i < m; i += kHeight) {
        multiply_block<T>(std::min(kHeight, m - i), columns, rows, alpha,
                          {a.data + i * a.row + p * a.column, a.row, a.column}, packing,
                          packed.data(), strips.data(), p == 0 ? beta : T(1), c + i * c_row + j,
                          c_row);
      }
    }
  }
}

#define INSTANTIATE(T)                                                               \
  template void pack_rows<T>(const Matrix<const T>&, int64_t, int64_t, T*, int64_t); \
  template void tiled_gemm<T>(int64_t, int64_t, int64_t, T, const Matrix<const T>&,  \
                              const Matrix<const T>&, T, T*, int64_t);
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
