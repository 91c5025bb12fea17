#include "ops/small_gemm.h"

#include <cstring>
#include <type_traits>

#include "ops/vector.h"

namespace weft::blas {
namespace {

template <class T, int Bytes>
using Lanes = LanesOf<T, kLanes, Bytes>;

// a * b without the trip of narrow unsigned integers through int, which overflows.
template <class T>
WEFT_INLINE auto times(T a, T b) {
  if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(uint32_t)) {
    return uint32_t{a} * uint32_t{b};
  } else {
    return a * b;
  }
}

// Writes one line of 16 finished sums, n of them.
template <class T, int Bytes>
WEFT_INLINE void store(Lanes<T, Bytes>& sums, int64_t n, T beta, T* out) {
  if (n >= kLanes && beta == T(0)) return sums.write(out);
  T values[kLanes];
  sums.write(values);
  if (n > kLanes) n = kLanes;
  if (beta == T(0)) {
    for (int64_t j = 0; j < n; ++j) out[j] = values[j];
  } else {
    for (int64_t j = 0; j < n; ++j) out[j] = static_cast<T>(values[j] + times(beta, out[j]));
  }
}

// Writes a tile of finished sums, all of whose columns are wanted.
template <int Rows, int Vectors, class T, int Bytes>
WEFT_INLINE void store(Lanes<T, Bytes> (&sums)[Rows][Vectors], T alpha, T beta, T* c,
                       int64_t c_row) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      T* const to = c + r * c_row + v * kLanes;
      sums[r][v].scale(alpha);
      if (beta != T(0)) {
        Lanes<T, Bytes> old;
        old.read(to);
        sums[r][v].add(beta, old);
      }
      sums[r][v].write(to);
    }
  }
}

// Sums of nothing.
template <int Rows, int Vectors, class T, int Bytes>
WEFT_INLINE void clear(Lanes<T, Bytes> (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sums[r][v].clear();
  }
}

// Sums += the products of a column of a, `a_row` apart, and a line of b.
template <int Rows, int Vectors, class T, class L>
WEFT_INLINE void add_products(const T* a, int64_t a_row, const L (&line)[Vectors],
                              L (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    const T x = a[r * a_row];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sums[r][v].add(x, line[v]);
  }
}

// One tile of Rows x (Vectors * 16) results, of which n columns are wanted. With Keep, what is read
// of b is left in `packed`, rows kStripColumns apart.
template <int Bytes, int Rows, int Vectors, bool Keep = false, class T>
WEFT_INLINE void tile(int64_t n, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column,
                      const T* b, int64_t b_row, T beta, T* c, int64_t c_row,
                      [[maybe_unused]] T* packed = nullptr) {
  Lanes<T, Bytes> sums[Rows][Vectors];
  clear(sums);
  for (int64_t p = 0; p < k; ++p) {
    Lanes<T, Bytes> line[Vectors];
    for (int v = 0; v < Vectors; ++v) line[v].read(b + p * b_row + v * kLanes);
    if constexpr (Keep) {
      for (int v = 0; v < Vectors; ++v) line[v].write(packed + p * kStripColumns + v * kLanes);
      // The next strip comes while this one is multiplied: rows lie too far apart for the processor
      // to guess it.
      for (int v = 0; v < Vectors; ++v) {
        __builtin_prefetch(b + p * b_row + kStripColumns + v * kLanes, 0, 2);
      }
    }
    add_products(a + p * a_column, a_row, line, sums);
  }
  if (n >= Vectors * kLanes) return store(sums, alpha, beta, c, c_row);
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v].scale(alpha);
      store(sums[r][v], n - v * kLanes, beta, c + r * c_row + v * kLanes);
    }
  }
}

// All rows of one strip of Vectors * 16 columns: tiles of Rows, then of 4, then single rows.
template <int Bytes, int Rows, int Vectors, class T>
WEFT_INLINE void strip(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,
                       int64_t a_column, const T* b, int64_t b_row, T beta, T* c, int64_t c_row) {
  int64_t i = 0;
  for (; i + Rows <= m; i += Rows) {
    tile<Bytes, Rows, Vectors>(n, k, alpha, a + i * a_row, a_row, a_column, b, b_row, beta,
                               c + i * c_row, c_row);
  }
  for (; i + 4 <= m; i += 4) {
    tile<Bytes, 4, Vectors>(n, k, alpha, a + i * a_row, a_row, a_column, b, b_row, beta,
                            c + i * c_row, c_row);
  }
  for (; i < m; ++i) {
    tile<Bytes, 1, Vectors>(n, k, alpha, a + i * a_row, a_row, a_column, b, b_row, beta,
                            c + i * c_row, c_row);
  }
}

// The tile of a level: as many sums as leave room in its registers.
struct TileShape {
  int rows, vectors;
};
template <class T, int Bytes>
constexpr TileShape tile_shape() {
  // Integers are of four types: their code is kept short.
  if (std::is_integral_v<T>) return {by_register_file<Bytes>(3, 3, 1), 1};
  if (sizeof(T) == 8) return {by_register_file<Bytes>(12, 3, 1), 1};
  return {by_register_file<Bytes>(12, 6, 2), by_register_file<Bytes>(2, 1, 1)};
}

template <int Bytes, int Rows, int Vectors, class T>
WEFT_INLINE void gemm_packed_body(int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                                  int64_t a_row, int64_t a_column, const T* b, int64_t b_row,
                                  T beta, T* c, int64_t c_row) {
  int64_t j = 0;
  if constexpr (Vectors > 1) {
    for (; n - j > (Vectors - 1) * kLanes; j += Vectors * kLanes) {
      strip<Bytes, Rows, Vectors>(m, n - j, k, alpha, a, a_row, a_column, b + j, b_row, beta, c + j,
                                  c_row);
    }
  }
  for (; j < n; j += kLanes) {
    strip<Bytes, Rows, 1>(m, n - j, k, alpha, a, a_row, a_column, b + j, b_row, beta, c + j, c_row);
  }
}

// The first tile of rows packs the strip while it waits for it; the others read it from there.
template <int Bytes, int Rows, int Vectors, class T>
WEFT_INLINE void gemm_strip_body(int64_t m, int64_t k, T alpha, const T* a, int64_t a_row,
                                 int64_t a_column, const T* b, int64_t b_row, T* packed, T beta,
                                 T* c, int64_t c_row) {
  constexpr int64_t kColumns = Vectors * kLanes;
  for (int64_t j = 0; j < kStripColumns; j += kColumns) {
    tile<Bytes, Rows, Vectors, true>(kColumns, k, alpha, a, a_row, a_column, b + j, b_row, beta,
                                     c + j, c_row, packed + j);
    strip<Bytes, Rows, Vectors>(m - Rows, kColumns, k, alpha, a + Rows * a_row, a_row, a_column,
                                packed + j, kStripColumns, beta, c + Rows * c_row + j, c_row);
  }
}

// One tile of packed operands, all of whose columns are wanted.
template <int Bytes, int Rows, int Vectors, class T>
WEFT_INLINE void block_tile(int64_t k, T alpha, const T* a, const T* b, T beta, T* c, int64_t c_row,
                            const Ahead& ahead, const char* next) {
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(c + r * c_row + v * kLanes, 1);
  }
  Lanes<T, Bytes> sums[Rows][Vectors];
  clear(sums);
  for (const T* end = a + k; a != end;) {
    for (int l = 0; l < ahead.lanes; ++l) __builtin_prefetch(next + l * ahead.lane, 0, 2);
    next += ahead.step;
    for (const T* stop = end - a > kLanes ? a + kLanes : end; a != stop; ++a, b += kStripColumns) {
      Lanes<T, Bytes> line[Vectors];
      for (int v = 0; v < Vectors; ++v) line[v].read(b + v * kLanes);
      add_products(a, kPackedRow, line, sums);
    }
  }
  store(sums, alpha, beta, c, c_row);
}

// The same where only n columns are wanted: in a copy of what c holds.
template <int Bytes, int Rows, int Vectors, class T>
WEFT_INLINE void edge_tile(int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c,
                           int64_t c_row, const Ahead& ahead, const char* next) {
  constexpr int64_t kColumns = Vectors * kLanes;
  if (n >= kColumns) {
    return block_tile<Bytes, Rows, Vectors>(k, alpha, a, b, beta, c, c_row, ahead, next);
  }
  alignas(64) T whole[Rows * kColumns] = {};
  const size_t line = static_cast<size_t>(n) * sizeof(T);
  for (int r = 0; r < Rows && beta != T(0); ++r) {
    std::memcpy(whole + r * kColumns, c + r * c_row, line);
  }
  block_tile<Bytes, Rows, Vectors>(k, alpha, a, b, beta, whole, kColumns, ahead, next);
  for (int r = 0; r < Rows; ++r) std::memcpy(c + r * c_row, whole + r * kColumns, line);
}

template <int Bytes, int Rows, int Vectors, class T>
WEFT_INLINE void gemm_block_body(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b,
                                 T beta, T* c, int64_t c_row, const Ahead& ahead) {
  constexpr int64_t kColumns = Vectors * kLanes;
  const char* next = ahead.at;
  for (int64_t j = 0; j < n; j += kColumns) {
    int64_t i = 0;
    for (; i + Rows <= m; i += Rows, next += ahead.tile) {
      edge_tile<Bytes, Rows, Vectors>(n - j, k, alpha, a + i * kPackedRow, b + j, beta,
                                      c + i * c_row + j, c_row, ahead, next);
    }
    if constexpr (Rows > 4) {
      for (; i + 4 <= m; i += 4) {
        edge_tile<Bytes, 4, Vectors>(n - j, k, alpha, a + i * kPackedRow, b + j, beta,
                                     c + i * c_row + j, c_row, ahead, next);
      }
    }
    for (; i < m; ++i) {
      edge_tile<Bytes, 1, Vectors>(n - j, k, alpha, a + i * kPackedRow, b + j, beta,
                                   c + i * c_row + j, c_row, ahead, next);
    }
  }
}

template <int Bytes, class T>
WEFT_INLINE T dot_body(int64_t n, const T* a, const T* b) {
  using Register = Vector<T, Bytes>;
  constexpr int64_t kWidth = Bytes / sizeof(T), kAtOnce = 8;
  Register sums[kAtOnce], left, right;
#pragma GCC unroll 8
  for (Register& sum : sums) sum = Register{};
  int64_t i = 0;
  for (; i + kAtOnce * kWidth <= n; i += kAtOnce * kWidth) {
#pragma GCC unroll 8
    for (int u = 0; u < kAtOnce; ++u) {
      load(left, a + i + u * kWidth);
      load(right, b + i + u * kWidth);
      sums[u] += left * right;
    }
  }
  for (; i + kWidth <= n; i += kWidth) {
    load(left, a + i);
    load(right, b + i);
    sums[0] += left * right;
  }
  T tail = 0;
  for (; i < n; ++i) tail = static_cast<T>(tail + times(a[i], b[i]));
#pragma GCC unroll 4
  for (int half = kAtOnce / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int u = 0; u < half; ++u) sums[u] += sums[u + half];
  }
  for (int lane = 0; lane < kWidth; ++lane) tail = static_cast<T>(tail + sums[0][lane]);
  return tail;
}

}  // namespace

template <class T>
void gemm_packed(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,
                 int64_t a_column, const T* b, int64_t b_row, T beta, T* c, int64_t c_row) {
  at_level(
      [](auto bytes, auto... given) WEFT_INLINED {
        constexpr TileShape shape = tile_shape<T, bytes()>();
        gemm_packed_body<bytes(), shape.rows, shape.vectors>(given...);
      },
      m, n, k, alpha, a, a_row, a_column, b, b_row, beta, c, c_row);
}

template <class T>
void gemm_strip(int64_t m, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column,
                const T* b, int64_t b_row, T* packed, T beta, T* c, int64_t c_row) {
  at_level(
      [](auto bytes, auto... given) WEFT_INLINED {
        constexpr TileShape shape = tile_shape<T, bytes()>();
        gemm_strip_body<bytes(), shape.rows, shape.vectors>(given...);
      },
      m, k, alpha, a, a_row, a_column, b, b_row, packed, beta, c, c_row);
}

template <class T>
void gemm_block(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c,
                int64_t c_row, const Ahead& ahead) {
  at_level(
      [](auto bytes, auto... given) WEFT_INLINED {
        constexpr TileShape shape = tile_shape<T, bytes()>();
        gemm_block_body<bytes(), shape.rows, shape.vectors>(given...);
      },
      m, n, k, alpha, a, b, beta, c, c_row, ahead);
}

template <class T>
T dot_contiguous(int64_t n, const T* a, const T* b) {
  return at_level(
      [](auto bytes, auto... given) WEFT_INLINED { return dot_body<bytes()>(given...); }, n, a, b);
}

#define INSTANTIATE(T)                                                                             \
  template void gemm_packed<T>(int64_t, int64_t, int64_t, T, const T*, int64_t, int64_t, const T*, \
                               int64_t, T, T*, int64_t);                                           \
  template void gemm_strip<T>(int64_t, int64_t, T, const T*, int64_t, int64_t, const T*, int64_t,  \
                              T*, T, T*, int64_t);                                                 \
  template void gemm_block<T>(int64_t, int64_t, int64_t, T, const T*, const T*, T, T*, int64_t,    \
                              const Ahead&);                                                       \
  template T dot_contiguous<T>(int64_t, const T*, const T*);
WEFT_GEMM_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace weft::blas
