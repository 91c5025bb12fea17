// What becomes of the sums of a product of bytes (packed_gemm.h): quantised numbers.
#pragma once

#include <cstring>

#include "ops/vector.h"

namespace weft::blas {

// Bytes that stand for numbers: `low` and `high` are those of 0 and 255 steps, or 0 for ReLU.
struct Held {
  float low = 0, high = 0;  // less the zero point
  int32_t zero_point = 0;
};

// What becomes of sums of Int8Quads: quantised numbers, or the floats that they stand for.
//   x = sum + columns[j] - weight_zeros[j] * row_sums[i]
//   uint8_t: rounded((x + bias[j]) * scale[j], held); float: x * scale[j] + bias[j]
// Arrays of columns go on to whole pairs of strips.
struct Requantised {
  const int32_t* columns;
  const float *bias, *scale;
  const int32_t *weight_zeros = nullptr, *row_sums = nullptr;  // both, or where zeros are 0 none
  bool to_bytes = true, relu = false;
  Held held;

  Requantised at(int64_t row, int64_t column) const {
    Requantised moved = *this;
    moved.columns += column, moved.bias += column, moved.scale += column;
    if (weight_zeros) moved.weight_zeros += column, moved.row_sums += row;
    return moved;
  }
};

template <int kCount>
struct BytesOf {
  typedef uint8_t type __attribute__((vector_size(kCount)));
};

// Numbers held between two, rounded to even: what is added leaves no bits behind the point. NaN
// becomes the lowest one.
template <class Floats>
WEFT_INLINE void rounded_words(weft::Vector<int32_t, sizeof(Floats)>& to, const Floats& given,
                               const Held& held) {
  Floats x = given;
  using Whole = weft::Vector<int32_t, sizeof(Floats)>;
  constexpr float kPoint = 12582912.0f;  // 1.5 * 2^23
  constexpr int32_t kBits = 0x4B400000;  // its bits
  x = x > held.low ? x : Floats{} + held.low;
  x = x < held.high ? x : Floats{} + held.high;
  x += kPoint;
  to = reinterpret_cast<Whole>(x) - (kBits - held.zero_point);
}
// Writes what `to` makes of the sums of some rows.
template <int Rows, int Vectors, class Vector>
WEFT_INLINE void write_requantised(const Requantised& to, const Vector (&sums)[Rows][Vectors],
                                   int64_t first, float* c, int64_t c_row) {
  using Whole = weft::Vector<int32_t, sizeof(Vector)>;
  using Floats = weft::Vector<float, sizeof(Vector)>;
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
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
      const int64_t at = (first + r) * c_row + j;
      if (!to.to_bytes) {
        x = x * scale + bias;
        if (to.relu) x = x <= Floats{} ? Floats{} : x;
        std::memcpy(c + at, &x, sizeof(x));
        continue;
      }
      rounded_words(whole, Floats((x + bias) * scale), to.held);
      const auto bytes = __builtin_convertvector(whole, typename BytesOf<kWidth>::type);
      std::memcpy(reinterpret_cast<uint8_t*>(c) + at, &bytes, sizeof(bytes));
    }
  }
}

}  // namespace weft::blas
