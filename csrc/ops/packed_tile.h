// A tile of a product with packed strips (packed_gemm.h): what its functions are given, and what
// becomes of its sums.
#pragma once

#include <cstring>

#include "ops/packed_gemm.h"
#include "ops/vector.h"

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

template <int kCount>
struct BytesOf {
  typedef uint8_t type __attribute__((vector_size(kCount)));
};

// Numbers held between two, rounded to even: what is added leaves no bits behind the point. NaN
// becomes the lowest one.
template <class Floats>
WEFT_INLINE auto rounded_words(const Floats& given, const Held& held) {
  Floats x = given;
  using Whole = weft::Vector<int32_t, sizeof(Floats)>;
  constexpr float kPoint = 12582912.0f;  // 1.5 * 2^23
  constexpr int32_t kBits = 0x4B400000;  // its bits
  x = x > held.low ? x : Floats{} + held.low;
  x = x < held.high ? x : Floats{} + held.high;
  x += kPoint;
  return Whole(reinterpret_cast<Whole>(x) - (kBits - held.zero_point));
}
// The same as bytes.
template <class Floats>
WEFT_INLINE auto rounded(const Floats& given, const Held& held) {
  return __builtin_convertvector(rounded_words(given, held), typename BytesOf<sizeof(Floats) / sizeof(float)>::type);
}

// Writes what `to` makes of the sums of some rows.
template <int Rows, int Vectors, class Vector>
WEFT_INLINE void write_requantised(const Task& t, const Vector (&sums)[Rows][Vectors],
                                   int64_t first) {
  using Whole = weft::Vector<int32_t, sizeof(Vector)>;
  using Floats = weft::Vector<float, sizeof(Vector)>;
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
  const Requantised& to = *t.to;
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    const int64_t j = v * kWidth;
    Whole columns, zeros{};
    Floats bias, scale;
    std::memcpy(&columns, to.columns + j, sizeof(Vector));
    std::memcpy(&bias, to.bias + j, sizeof(Vector));
    std::memcpy(&scale, to.scale + j, sizeof(Vector));
    if (to.weight_zeros) std::memcpy(&zeros, to.weight_zeros + j, sizeof(Vector));
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
      Whole whole = reinterpret_cast<Whole>(sums[r][v]) + columns;
      if (to.weight_zeros) whole -= zeros * to.row_sums[first + r];
      Floats x = __builtin_convertvector(whole, Floats);
      const int64_t at = (first + r) * t.c_row + j;
      if (!to.to_bytes) {
        x = x * scale + bias;
        if (to.relu) x = x <= Floats{} ? Floats{} : x;
        std::memcpy(t.c + at, &x, sizeof(x));
        continue;
      }
      const auto bytes = rounded(Floats((x + bias) * scale), to.held);
      std::memcpy(reinterpret_cast<uint8_t*>(t.c) + at, &bytes, sizeof(bytes));
    }
  }
}

// Applies the sink to the sums of some rows and writes them, from row `first` of a tile on. Each
// part of the sink is asked for once: most tiles have nothing to add.
template <int Rows, int Vectors, class Vector>
WEFT_INLINE void write_rows(const Task& t, Vector (&sums)[Rows][Vectors], int64_t first = 0) {
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
  const int64_t row = t.c_row, at = first * row;
  if constexpr (!std::is_same_v<std::remove_reference_t<decltype(sums[0][0][0])>, float>) {
    if (t.to) return write_requantised(t, sums, first);
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
