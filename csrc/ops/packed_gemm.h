// Products with a right factor that was packed before, once for many of them: weights of layers.
// What becomes of the sums (bias, residual, ReLU) is written with them.
#pragma once

#include <limits>
#include <type_traits>

#include "ops/blas.h"
#include "ops/levels.h"

namespace weft::blas {

// A packed matrix: strips of kStrip columns, each k rows without gaps; an even number of them, and
// columns beyond n are 0.
inline constexpr int64_t kStrip = 16;
constexpr int64_t strips_of(int64_t n) { return (n + 2 * kStrip - 1) / (2 * kStrip) * 2; }
constexpr int64_t packed_size(int64_t k, int64_t n) { return strips_of(n) * k * kStrip; }

// Depth of a block of the factors: one of a strip stays in the nearest cache.
inline constexpr int64_t kBlockDepth = 384;

// result = min(relu(sum + bias[column] + residual[row, column]), high): each where it is asked for,
// with the bits of the operators in turn. The residual lies as the result does.
struct Sink {
  const float* bias = nullptr;
  const float* residual = nullptr;
  bool relu = false;
  float high = std::numeric_limits<float>::infinity();  // counts with relu only

  Sink at(int64_t place, int64_t column) const {
    return {bias ? bias + column : nullptr, residual ? residual + place : nullptr, relu, high};
  }
};

// What `relu` and `high` make of a vector of sums. NaN stays; numbers that are no floats have no
// high.
template <class Vector>
WEFT_INLINE void hold(Vector& sum, float high) {
  sum = sum <= Vector{} ? Vector{} : sum;
  if constexpr (std::is_same_v<std::remove_reference_t<decltype(sum[0])>, float>) {
    const Vector most = Vector{} + high;
    sum = sum >= most ? most : sum;
  }
}

// What an element of a factor is: a float, or in its four bytes small numbers that follow each
// other along k, whose products are added at once: two bfloat16, or four int8 (of a, unsigned),
// whose sums and Sink are int32, which wrap around, without ReLU.
enum class Elements : uint8_t { Floats, BFloat16Pairs, Int8Quads };
// Whether the processor has instructions for them. Int8Quads are multiplied in any case.
bool multiplies(Elements of);

struct Requantised;  // what becomes of sums of Int8Quads instead (quantized_sink.h)

// c = sink(c * add + a @ b) on this thread, for k rows of each of b's strips, which lie
// `strip` elements apart. Element (i, p) of a lies at a[i * a_row + p]. With `to`, c is made of
// what it says instead, c_row of them from row to row.
void gemm_strips(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, const float* b,
                 int64_t strip, bool add, float* c, int64_t c_row, const Sink& sink,
                 Elements of = Elements::Floats, const Requantised* to = nullptr);

// The results of groups in pieces for threads: rows in blocks, columns in parts. No part is
// narrower than the whole unless it has a pair of strips. Neighbours have the same columns.
struct Split {
  int64_t rows, columns, groups, block, blocks, width, parts;
  int64_t grain;  // pieces that a thread takes at least

  struct Piece {
    int64_t group, first, count, column, columns;  // count <= 0: empty
  };
  int64_t pieces() const { return blocks * parts * groups; }
  Piece operator[](int64_t index) const;
};
// At most `most` rows a block. `depth`: multiplications for each element of a result; few of them
// in all stay on one thread.
Split split_work(int64_t rows, int64_t most, int64_t columns, int64_t groups, int64_t depth);

}  // namespace weft::blas
