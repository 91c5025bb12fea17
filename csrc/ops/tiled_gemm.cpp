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

namespace {

// How a product is cut: blocks of a of kHeight x kDepth, which stay in the second-level cache, meet
// blocks of b of kDepth x kWidth strip by strip.
constexpr int64_t kWidth = 1024, kHeight = 22 * kTileRows;
// Elements of an a that is packed as a whole rather than for each block of b.
constexpr int64_t kSmallA = 64 * 1024;

// Whether tiles can read a where it lies. Rows a multiple of a kilobyte apart share few places in
// the cache, and columns walk across all of them; a few strips do not pay for a copy.
template <class T>
bool lies_well(const Matrix<const T>& a, int64_t n) {
  if (n < 4 * kStripColumns) return true;
  return a.column == 1 && static_cast<size_t>(a.row) * sizeof(T) % 1024 != 0;
}

// What m rows of tiles fetch while they meet a strip: the next one, which begins at b and of which
// they need so many rows. Strips are packed as they are needed, all into the same place, which
// stays in the nearest cache; packing a block of b as a whole wrote to memory that no cache held,
// and took longer than packing it again for each block of a.
template <class T>
Ahead next_strip(const Matrix<const T>& b, int64_t m) {
  constexpr int64_t item = sizeof(T), kLine = 64;
  const char* at = reinterpret_cast<const char*>(b.data);
  if (b.column == 1) return {at, kLanes * b.row * item, kLine, b.row * item, 2};
  if (b.row != 1) return {at, 0, 0, 0, 0};
  // Columns that each tile fetches, so that all tiles fetch all of them.
  const int64_t tiles = std::max<int64_t>(1, m / kTileRows);
  const int64_t each = std::max<int64_t>(2, (kStripColumns + tiles - 1) / tiles);
  return {at, each * b.column * item, b.column * item, kLine, static_cast<int>(each)};
}

// c = alpha * a @ b + beta * c for a packed block of a and as much of b as it meets.
template <class T>
void multiply_block(int64_t m, int64_t n, int64_t depth, T alpha, const T* a,
                    const Matrix<const T>& b, T* strip, T beta, T* c, int64_t c_row) {
  for (int64_t j = 0; j < n; j += kStripColumns) {
    const int64_t columns = std::min(kStripColumns, n - j);
    pack_strips<T>({b.data + j * b.column, b.row, b.column}, depth, columns, kStripColumns, strip);
    const bool whole_next = j + 2 * kStripColumns <= n;
    const Ahead ahead =
        whole_next ? next_strip<T>({b.data + (j + kStripColumns) * b.column, b.row, b.column}, m)
                   : Ahead{reinterpret_cast<const char*>(strip), 0, 0, 0, 0};
    gemm_block(m, columns, depth, alpha, a, strip, beta, c + j, c_row, ahead);
  }
}

// Products of several strips: blocks of a and strips of b are packed. A block of the result stays
// in the second-level cache until it is finished.
template <class T>
void gemm_by_blocks(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                    const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
  // Blocks of about one height: each of them packs b.
  const int64_t blocks = (m + kHeight - 1) / kHeight, rows = (m + blocks - 1) / blocks;
  const int64_t height = (rows + kTileRows - 1) / kTileRows * kTileRows;
  Scratch<T> strip(std::min(k, kDepth) * kStripColumns), packed(height * kPackedRow);
  for (int64_t i = 0; i < m; i += height) {
    const int64_t here = std::min(height, m - i);
    for (int64_t j = 0; j < n; j += kWidth) {
      const int64_t columns = std::min(kWidth, n - j);
      for (int64_t p = 0; p < k; p += kDepth) {
        const int64_t depth = std::min(kDepth, k - p);
        pack_rows<T>({a.data + i * a.row + p * a.column, a.row, a.column}, here, depth,
                     packed.data(), kPackedRow);
        multiply_block<T>(here, columns, depth, alpha, packed.data(),
                          {b.data + p * b.row + j * b.column, b.row, b.column}, strip.data(),
                          p == 0 ? beta : T(1), c + i * c_row + j, c_row);
      }
    }
  }
}

// A few strips, which meet all of a where it lies.
template <class T>
void gemm_of_few_strips(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
                        const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
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
  const bool by_strips = b.column == 1 && n >= kStripColumns && m >= kTileRows && m <= kHeight;
  if (by_strips && lies_well(a, n)) {
    return gemm_by_strips(m, n, k, alpha, a, b, beta, c, c_row);
  }
  if (by_strips && a.column == 1 && m * k <= kSmallA) {
    const bool apart = lies_well<T>({a.data, k + kLanes, 1}, n);
    const int64_t line = k + (apart ? 1 : 2) * kLanes;
    Scratch<T> rows(m * line);
    pack_rows(a, m, k, rows.data(), line);
    return gemm_by_strips<T>(m, n, k, alpha, {rows.data(), line, 1}, b, beta, c, c_row);
  }
  if (n < 4 * kStripColumns) {
    return gemm_of_few_strips(m, n, k, alpha, a, b, beta, c, c_row);
  }
  gemm_by_blocks(m, n, k, alpha, a, b, beta, c, c_row);
}

#define INSTANTIATE(T)                                                                 \
  template void pack_rows<T>(const Matrix<const T>&, int64_t, int64_t, T*, int64_t);   \
  template void pack_strips<T>(const Matrix<const T>&, int64_t, int64_t, int64_t, T*); \
  template void tiled_gemm<T>(int64_t, int64_t, int64_t, T, const Matrix<const T>&,    \
                              const Matrix<const T>&, T, T*, int64_t);
WEFT_GEMM_TYPES(INSTANTIATE)
#undef INSTANTIATE
template void pack_rows<std::complex<float>>(const Matrix<const std::complex<float>>&, int64_t,
                                             int64_t, std::complex<float>*, int64_t);
template void pack_rows<std::complex<double>>(const Matrix<const std::complex<double>>&, int64_t,
                                              int64_t, std::complex<double>*, int64_t);

}  // namespace weft::blas
