// A tile of a product with packed strips (packed_gemm.h): what its functions are given, and what
// becomes of its sums.
#pragma once

#include <cstring>

#include "ops/packed_gemm.h"
#include "ops/quantized_sink.h"

namespace weft::blas {

struct Task {
  int64_t rows, k;
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t strip;
  // A part of the strips to multiply next, which is fetched meanwhile: bytes for each row of b.
  const char* ahead;
  int64_t ahead_step;
  bool add;
  float* c;
  int64_t c_row;
  Sink sink;
  const Requantised* to;  // of this row and column on; null: c = sink(sums)
};

// Calls fn(row, vector) for a tile's: unrolled, so that sums stay in registers.
template <int Rows, int Vectors, class Fn>
WEFT_INLINE void for_each_vector(Fn&& fn) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) fn(r, v);
  }
}

// Applies the sink to the sums of some rows and writes them, from row `first` of a tile on. Each
// part of the sink is asked for once: most tiles have nothing to add.
template <int Rows, int Vectors, class Vector>
WEFT_INLINE void write_rows(const Task& t, Vector (&sums)[Rows][Vectors], int64_t first = 0) {
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
  const int64_t row = t.c_row, at = first * row;
  if constexpr (!std::is_same_v<std::remove_reference_t<decltype(sums[0][0][0])>, float>) {
    if (t.to) return write_requantised(*t.to, sums, first, t.c, t.c_row);
  }
  auto add = [&](const float* from, int64_t step) WEFT_INLINED {
    for_each_vector<Rows, Vectors>([&](int r, int v) WEFT_INLINED {
      Vector more;
      std::memcpy(&more, from + r * step + v * kWidth, sizeof(more));
      sums[r][v] += more;
    });
  };
  if (t.add) add(t.c + at, row);
  if (t.sink.bias) add(t.sink.bias, 0);
  if (t.sink.residual) add(t.sink.residual + at, row);
  if (t.sink.relu) {
    for_each_vector<Rows, Vectors>([&](int r, int v)
                                       WEFT_INLINED { hold(sums[r][v], t.sink.high); });
  }
  for_each_vector<Rows, Vectors>([&](int r, int v) WEFT_INLINED {
    std::memcpy(t.c + at + r * row + v * kWidth, &sums[r][v], sizeof(Vector));
  });
}

// Tiles of 1 to `rows` rows, of so many strips and of one.
struct Tiles {
  using Fn = void(const Task&);
  int64_t rows, strips;
  Fn *const *of, *const *of_one;
};

}  // namespace weft::blas
