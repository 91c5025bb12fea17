// Register-tiled loops for matrix products too small for a BLAS call, for integers, and for
// matrix times vector. Written once over vectors of 16 lanes; small_gemm.cpp compiles them per
// instruction set.
#pragma once

#include <cstdint>

namespace weft::blas {

// The types of products here. Integers wrap around, signed ones pass through their unsigned twin.
#define WEFT_GEMM_TYPES(X) X(float) X(double) X(uint8_t) X(uint16_t) X(uint32_t) X(uint64_t)

// c = alpha * a @ b + beta * c. Row p of b starts at b + p * b_row and can be read in
// whole vectors of kLanes elements, whatever they are; only n columns of c are touched.
// Element (i, p) of a lies at a[i * a_row + p * a_column].
template <class T>
void gemm_packed(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,
                 int64_t a_column, const T* b, int64_t b_row, T beta, T* c, int64_t c_row);

constexpr int64_t kLanes = 16;
// Columns and rows that tiles come in, at most: blocks are best cut in multiples of them.
constexpr int64_t kStripColumns = 2 * kLanes;
constexpr int64_t kTileRows = 12;
// The same for one whole strip, kStripColumns columns of b, and at least kTileRows rows. Copies the
// strip to `packed`, k rows of kStripColumns, as it goes.
template <class T>
void gemm_strip(int64_t m, int64_t k, T alpha, const T* a, int64_t a_row, int64_t a_column,
                const T* b, int64_t b_row, T* packed, T beta, T* c, int64_t c_row);

// Rows of a packed block of a lie so far apart, and are at most kDepth long: no power of two, which
// would crowd them into few places of the cache.
constexpr int64_t kDepth = 256;
constexpr int64_t kPackedRow = kDepth + kLanes;

// Memory that is fetched while tiles are multiplied, so that it is near when it is packed. Tile t
// (of kTileRows rows) fetches the cache lines at `at` + t * tile + l * lane + s * step, for each l
// below `lanes` and each s below kDepth / kLanes. All in bytes.
struct Ahead {
  const char* at;
  int64_t tile, lane, step;
  int lanes;
};

// c = alpha * a @ b + beta * c for packed blocks: m rows of a, kPackedRow apart; k rows of
// kStripColumns of b, of which n columns are wanted.
template <class T>
void gemm_block(int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c,
                int64_t c_row, const Ahead& ahead);

// Sum of a[i] * b[i], both contiguous.
template <class T>
T dot_contiguous(int64_t n, const T* a, const T* b);

}  // namespace weft::blas
