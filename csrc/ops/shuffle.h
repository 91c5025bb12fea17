// Shuffles of vectors in registers, and the transposition of squares of numbers that is made of
// them.
#pragma once

#include <utility>

#include "ops/vector.h"

namespace weft::shuffles {

// A pattern's at(i) says where lane i comes from: of two vectors, the second's counting on.

template <int N, int K, int... P>
struct Within {  // the same in each quarter of 16 bytes, or K lanes
  static constexpr int kPattern[] = {P...};
  static constexpr int at(int i) {
    const int from = kPattern[i % K];
    return i / K * K + (from < K ? from : from - K + N);
  }
};

template <int N, int K, int... P>
struct Quarters {  // whole quarters
  static constexpr int kPattern[] = {P...};
  static constexpr int at(int i) {
    constexpr int kCount = N / K;
    const int from = kPattern[i / K];
    return (from < kCount ? from * K : (from - kCount) * K + N) + i % K;
  }
};

template <int Start>
struct Every2nd {
  static constexpr int at(int i) { return 2 * i + Start; }
};
template <int N, int Start>
struct Alternating {
  static constexpr int at(int i) { return Start + i / 2 + i % 2 * N; }
};

template <class Pattern, class T, class V, int... I>
WEFT_INLINE void shuffle(const V& a, const V& b, V& result, std::integer_sequence<int, I...>) {
  using Mask = typename VectorOf<T, sizeof(V)>::mask;
  constexpr Mask kMask = {Pattern::at(I)...};
  result = __builtin_shuffle(a, b, kMask);
}
template <class Pattern, class T, class V>
WEFT_INLINE void shuffle(const V& a, const V& b, V& result) {
  shuffle<Pattern, T>(a, b, result, std::make_integer_sequence<int, sizeof(V) / sizeof(T)>());
}

// rows[0..K) are transposed within quarters of 16 bytes: quarter k of columns[q] is column
// k * K + q.
template <class T, class V>
WEFT_INLINE void turn_quarters(const V (&rows)[4], V (&columns)[4]) {
  constexpr int N = sizeof(V) / sizeof(T);
  V ab_low, ab_high, cd_low, cd_high;
  shuffle<Within<N, 4, 0, 4, 1, 5>, T>(rows[0], rows[1], ab_low);
  shuffle<Within<N, 4, 2, 6, 3, 7>, T>(rows[0], rows[1], ab_high);
  shuffle<Within<N, 4, 0, 4, 1, 5>, T>(rows[2], rows[3], cd_low);
  shuffle<Within<N, 4, 2, 6, 3, 7>, T>(rows[2], rows[3], cd_high);
  shuffle<Within<N, 4, 0, 1, 4, 5>, T>(ab_low, cd_low, columns[0]);
  shuffle<Within<N, 4, 2, 3, 6, 7>, T>(ab_low, cd_low, columns[1]);
  shuffle<Within<N, 4, 0, 1, 4, 5>, T>(ab_high, cd_high, columns[2]);
  shuffle<Within<N, 4, 2, 3, 6, 7>, T>(ab_high, cd_high, columns[3]);
}
template <class T, class V>
WEFT_INLINE void turn_quarters(const V (&rows)[2], V (&columns)[2]) {
  constexpr int N = sizeof(V) / sizeof(T);
  shuffle<Within<N, 2, 0, 2>, T>(rows[0], rows[1], columns[0]);
  shuffle<Within<N, 2, 1, 3>, T>(rows[0], rows[1], columns[1]);
}

// Then whole quarters change places: quarter g of columns[k] is quarter k of fours[g].
template <class T, class V>
WEFT_INLINE void turn_whole(const V (&fours)[4], V (&columns)[4]) {
  constexpr int N = sizeof(V) / sizeof(T), K = 16 / sizeof(T);
  using Even = Quarters<N, K, 0, 2, 4, 6>;
  using Odd = Quarters<N, K, 1, 3, 5, 7>;
  V near_even, near_odd, far_even, far_odd;
  shuffle<Even, T>(fours[0], fours[1], near_even);
  shuffle<Odd, T>(fours[0], fours[1], near_odd);
  shuffle<Even, T>(fours[2], fours[3], far_even);
  shuffle<Odd, T>(fours[2], fours[3], far_odd);
  shuffle<Even, T>(near_even, far_even, columns[0]);
  shuffle<Even, T>(near_odd, far_odd, columns[1]);
  shuffle<Odd, T>(near_even, far_even, columns[2]);
  shuffle<Odd, T>(near_odd, far_odd, columns[3]);
}
template <class T, class V>
WEFT_INLINE void turn_whole(const V (&fours)[2], V (&columns)[2]) {
  constexpr int N = sizeof(V) / sizeof(T), K = 16 / sizeof(T);
  shuffle<Quarters<N, K, 0, 2>, T>(fours[0], fours[1], columns[0]);
  shuffle<Quarters<N, K, 1, 3>, T>(fours[0], fours[1], columns[1]);
}
template <class T, class V>
WEFT_INLINE void turn_whole(const V (&fours)[1], V (&columns)[1]) {
  columns[0] = fours[0];
}

// write(i, column i) for a square as wide as a register, whose rows read(row, j) gives: fours of
// rows are turned within quarters of a register, then the quarters change places.
template <class T, class V, class Read, class Write>
WEFT_INLINE void turn_square(const Read& read, const Write& write) {
  constexpr int K = 16 / sizeof(T), Q = sizeof(V) / 16;
  V fours[K][Q];
  for (int g = 0; g < Q; ++g) {
    V rows[K], columns[K];
    for (int r = 0; r < K; ++r) read(rows[r], g * K + r);
    turn_quarters<T>(rows, columns);
    for (int q = 0; q < K; ++q) fours[q][g] = columns[q];
  }
  for (int q = 0; q < K; ++q) {
    V columns[Q];
    turn_whole<T>(fours[q], columns);
    for (int k = 0; k < Q; ++k) write(k * K + q, columns[k]);
  }
}

}  // namespace weft::shuffles
