#include "ops/small_gemm.h"

#include <cstring>
#include <type_traits>

#include "ops/vector.h"

namespace weft::blas {
namespace {

template <class T>
using Lanes = Vector<T, kLanes * sizeof(T)>;

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
template <class T>
WEFT_INLINE void store(const Lanes<T>& sums, int64_t n, T beta, T* out) {
  if (n >= kLanes && beta == T(0)) {
    std::memcpy(out, &sums, sizeof(sums));
    return;
  }
  T values[kLanes];
  std::memcpy(values, &sums, sizeof(values));
  if (n > kLanes) n = kLanes;
  if (beta == T(0)) {
    for (int64_t j = 0; j < n; ++j) out[j] = values[j];
  } else {
    for (int64_t j = 0; j < n; ++j) out[j] = static_cast<T>(values[j] + times(beta, out[j]));
  }
}

// Writes a tile of finished sums, all of whose columns are wanted.
template <int Rows, int Vectors, class T>
WEFT_INLINE void store(const Lanes<T> (&sums)[Rows][Vectors], T alpha, T beta, T* c,
                       int64_t c_row) {
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      T* const to = c + r * c_row + v * kLanes;
      Lanes<T> result = sums[r][v] * alpha;
      if (beta != T(0)) {
        Lanes<T> old;
        load(old, to);
        result += old * beta;
      }
      weft::store(result, to);
    }
  }
}

// One tile of Rows x (Vectors * 16) results, of which n columns are wanted. With Keep, what is read
// of b is left in `packed`, rows kStripColumns apart.
template <int Rows, int Vectors, bool Keep = false, class T>
WEFT_INLINE void tile(int64_t n, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column,
                      const T* b, int64_t b_row, T beta, T* c, int64_t c_row,
                      [[maybe_unused]] T* packed = nullptr) {
  Lanes<T> sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {  // not "= {}", which sets them in memory
    for (int v = 0; v < Vectors; ++v) sums[r][v] = Lanes<T>{};
  }
  for (int64_t p = 0; p < k; ++p) {
    Lanes<T> line[Vectors];
    for (int v = 0; v < Vectors; ++v) load(line[v], b + p * b_row + v * kLanes);
    if constexpr (Keep) {
      std::memcpy(packed + p * kStripColumns, line, sizeof(line));
      // The next strip comes while this one is multiplied: rows lie too far apart for the processor
      // to guess it.
      for (int v = 0; v < Vectors; ++v) {
        __builtin_prefetch(b + p * b_row + kStripColumns + v * kLanes, 0, 2);
      }
    }
    for (int r = 0; r < Rows; ++r) {
      const T x = a[r * a_row + p * a_column];
      for (int v = 0; v < Vectors; ++v) sums[r][v] += x * line[v];
    }
  }
  if (n >= Vectors * kLanes) return store<Rows, Vectors>(sums, alpha, beta, c, c_row);
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      const Lanes<T> result = sums[r][v] * alpha;
      store<T>(result, n - v * kLanes, beta, c + r * c_row + v * kLanes);
    }
  }
}

// All rows of one strip of Vectors * 16 columns: tiles of Rows, then of 4, then single rows.
template <int Rows, int Vectors, class T>
WEFT_INLINE void strip(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,
                       int64_t a_column, const T* b, int64_t b_row, T beta, T* c, int64_t c_row) {
  int64_t i = 0;
  for (; i + Rows <= m; i += Rows) {
    tile<Rows, Vectors>(n, k, alpha, a + i * a_row, a_row, a_column, b, b_row, beta, c + i * c_row,
                        c_row);
  }
  for (; i + 4 <= m; i += 4) {
    tile<4, Vectors>(n, k, alpha, a + i * a_row, a_row, a_column, b, b_row, beta, c + i * c_row,
                     c_row);
  }
  for (; i < m; ++i) {
    tile<1, Vectors>(n, k, alpha, a + i * a_row, a_row, a_column, b, b_row, beta, c + i * c_row,
                     c_row);
  }
}

// The tile of a level: as many sums as leave room in its registers. `width`: bytes of a register.
struct TileShape {
  int rows, vectors;
};
template <class T>
constexpr TileShape tile_shape(int width) {
  if (std::is_integral_v<T>) return {width == 16 ? 1 : 3, 1};  // four types: keep their code short
  const bool wide_item = sizeof(T) == 8;
  if (width == 64) return wide_item ? TileShape{12, 1} : TileShape{12, 2};
  if (width == 32) return wide_item ? TileShape{3, 1} : TileShape{6, 1};
  return wide_item ? TileShape{1, 1} : TileShape{2, 1};
}

template <int Rows, int Vectors, class T>
WEFT_INLINE void gemm_packed_body(int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                                  int64_t a_row, int64_t a_column, const T* b, int64_t b_row,
                                  T beta, T* c, int64_t c_row) {
  int64_t j = 0;
  if constexpr (Vectors > 1) {
    for (; n - j > (Vectors - 1) * kLanes; j += Vectors * kLanes) {
      strip<Rows, Vectors>(m, n - j, k, alpha, a, a_row, a_column, b + j, b_row, beta, c + j,
                           c_row);
    }
  }
  for (; j < n; j += kLanes) {
    strip<Rows, 1>(m, n - j, k, alpha, a, a_row, a_column, b + j, b_row, beta, c + j, c_row);
  }
}

// The first tile of rows packs the strip while it waits for it; the others read it from there.
template <int Rows, int Vectors, class T>
WEFT_INLINE void gemm_strip_body(int64_t m, int64_t k, T alpha, const T* a, int64_t a_row,
                                 int64_t a_column, const T* b, int64_t b_row, T* packed, T beta,
                                 T* c, int64_t c_row) {
  constexpr int64_t kColumns = Vectors * kLanes;
  for (int64_t j = 0; j < kStripColumns; j += kColumns) {
    tile<Rows, Vectors, true>(kColumns, k, alpha, a, a_row, a_column, b + j, b_row, beta, c + j,
                              c_row, packed + j);
    strip<Rows, Vectors>(m - Rows, kColumns, k, alpha, a + Rows * a_row, a_row, a_column,
                         packed + j, kStripColumns, beta, c + Rows * c_row + j, c_row);
  }
}

// One tile of packed operands, all of whose columns are wanted.
template <int Rows, int Vectors, class T>
WEFT_INLINE void block_tile(int64_t k, T alpha, const T* a, const T* b, T beta, T* c, int64_t c_row,
                            const Ahead& ahead, const char* next) {
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(c + r * c_row + v * kLanes, 1);
  }
  Lanes<T> sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) sums[r][v] = Lanes<T>{};
  }
  for (const T* end = a + k; a != end;) {
    for (int l = 0; l < ahead.lanes; ++l) __builtin_prefetch(next + l * ahead.lane, 0, 2);
    next += ahead.step;
    for (const T* stop = end - a > kLanes ? a + kLanes : end; a != stop; ++a, b += kStripColumns) {
      Lanes<T> line[Vectors];
      for (int v = 0; v < Vectors; ++v) load(line[v], b + v * kLanes);
      for (int r = 0; r < Rows; ++r) {
        const T x = a[r * kPackedRow];
        for (int v = 0; v < Vectors; ++v) sums[r][v] += x * line[v];
      }
    }
  }
  store<Rows, Vectors>(sums, alpha, beta, c, c_row);
}

// The same where only n columns are wanted: in a copy of what c holds.
template <int Rows, int Vectors, class T>
WEFT_INLINE void edge_tile(int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c,
                           int64_t c_row, const Ahead& ahead, const char* next) {
  constexpr int64_t kColumns = Vectors * kLanes;
  if (n >= kColumns) {
    return block_tile<Rows, Vectors>(k, alpha, a, b, beta, c, c_row, ahead, next);
  }
  alignas(64) T whole[Rows * kColumns] = {};
  const size_t line = static_cast<size_t>(n) * sizeof(T);
  for (int r = 0; r < Rows && beta != T(0); ++r) {
    std::memcpy(whole + r * kColumns, c + r * c_row, line);
  }
  block_tile<Rows, Vectors>(k, alpha, a, b, beta, whole, kColumns, ahead, next);
  for (int r = 0; r < Rows; ++r) std::memcpy(c + r * c_row, whole + r * kColumns, line);
}

template <int Rows, int Vectors, class T>
WEFT_INLINE void gemm_block_body(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b,
                                 T beta, T* c, int64_t c_row, const Ahead& ahead) {
  constexpr int64_t kColumns = Vectors * kLanes;
  const char* next = ahead.at;
  for (int64_t j = 0; j < n; j += kColumns) {
    int64_t i = 0;
    for (; i + Rows <= m; i += Rows, next += ahead.tile) {
      edge_tile<Rows, Vectors>(n - j, k, alpha, a + i * kPackedRow, b + j, beta, c + i * c_row + j,
                               c_row, ahead, next);
    }
    if constexpr (Rows > 4) {
      for (; i + 4 <= m; i += 4) {
        edge_tile<4, Vectors>(n - j, k, alpha, a + i * kPackedRow, b + j, beta, c + i * c_row + j,
                              c_row, ahead, next);
      }
    }
    for (; i < m; ++i) {
      edge_tile<1, Vectors>(n - j, k, alpha, a + i * kPackedRow, b + j, beta, c + i * c_row + j,
                            c_row, ahead, next);
    }
  }
}

template <class T>
WEFT_INLINE T dot_body(int64_t n, const T* a, const T* b) {
  Lanes<T> sums[4] = {};
  Lanes<T> left, right;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int u = 0; u < 4; ++u) {
      load(left, a + i + u * kLanes);
      load(right, b + i + u * kLanes);
      sums[u] += left * right;
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    load(left, a + i);
    load(right, b + i);
    sums[0] += left * right;
  }
  T tail = 0;
  for (; i < n; ++i) tail = static_cast<T>(tail + times(a[i], b[i]));
  const Lanes<T> total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int lane = 0; lane < kLanes; ++lane) tail = static_cast<T>(tail + total[lane]);
  return tail;
}

}  // namespace

template <class T>
void gemm_packed(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,
                 int64_t a_column, const T* b, int64_t b_row, T beta, T* c, int64_t c_row) {
  at_level(
      [](auto bytes, auto... given) WEFT_INLINED {
        constexpr TileShape shape = tile_shape<T>(bytes());
        gemm_packed_body<shape.rows, shape.vectors>(given...);
      },
      m, n, k, alpha, a, a_row, a_column, b, b_row, beta, c, c_row);
}

template <class T>
void gemm_strip(int64_t m, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column,
                const T* b, int64_t b_row, T* packed, T beta, T* c, int64_t c_row) {
  at_level(
      [](auto bytes, auto... given) WEFT_INLINED {
        constexpr TileShape shape = tile_shape<T>(bytes());
        gemm_strip_body<shape.rows, shape.vectors>(given...);
      },
      m, k, alpha, a, a_row, a_column, b, b_row, packed, beta, c, c_row);
}

template <class T>
void gemm_block(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c,
                int64_t c_row, const Ahead& ahead) {
  at_level(
      [](auto bytes, auto... given) WEFT_INLINED {
        constexpr TileShape shape = tile_shape<T>(bytes());
        gemm_block_body<shape.rows, shape.vectors>(given...);
      },
      m, n, k, alpha, a, b, beta, c, c_row, ahead);
}

template <class T>
T dot_contiguous(int64_t n, const T* a, const T* b) {
  return at_level([](auto, auto... given) WEFT_INLINED { return dot_body(given...); }, n, a, b);
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
