// What brings sequences into rows and back.
#include <algorithm>
#include <cstring>

#include "ops/fft_vector.h"

namespace weft::fft {
namespace {

// ---- shuffles ----
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

// ---- transposition of kRow x kRow ----

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

// to(i)[j] = scale * from(j)[i], all of kRow x kRow.
template <class V, class T, class From, class To>
WEFT_INLINE void transpose(const From& from, const To& to, T scale) {
  constexpr int N = sizeof(V) / sizeof(T), K = 16 / sizeof(T), Q = sizeof(V) / 16;
  for (int64_t down = 0; down < kRow<T>; down += N) {
    for (int64_t along = 0; along < kRow<T>; along += N) {
      V fours[K][Q];
      for (int g = 0; g < Q; ++g) {
        V rows[K], columns[K];
        for (int r = 0; r < K; ++r) {
          load(rows[r], from(down + g * K + r) + along);
          rows[r] = rows[r] * scale;
        }
        turn_quarters<T>(rows, columns);
        for (int q = 0; q < K; ++q) fours[q][g] = columns[q];
      }
      for (int q = 0; q < K; ++q) {
        V columns[Q];
        turn_whole<T>(fours[q], columns);
        for (int k = 0; k < Q; ++k) store(columns[k], to(along + k * K + q) + down);
      }
    }
  }
}

// ---- moves ----

template <class T>
WEFT_INLINE void bring(const Lanes<T>& lanes, int64_t t) {
  for (int64_t l = 0; l < kRow<T>; ++l) __builtin_prefetch(lanes.lane[l] + t, 0, 2);
}

// Calls body(t) for tiles of kRow elements of [0, count); the last may go over some of
// the one before again. False if there are not enough for one.
template <class T, class Body>
WEFT_INLINE bool by_tiles(int64_t count, const Body& body) {
  if (count < kRow<T>) return false;
  const int64_t last = count - kRow<T>;
  for (int64_t t = 0; t < last; t += kRow<T>) body(t);
  body(last);
  return true;
}

// Calls body(of_line, of_row, t) for tiles of lines: where line l and element t + i of all stand.
// False if there are not enough elements for one.
template <class T, class Body>
WEFT_INLINE bool by_tiles_of_lines(const Lanes<T>& lanes, int64_t count, const Rows<T>& rows,
                                   const Body& body) {
  if (rows.real) {
    return by_tiles<T>(count, [&](int64_t t) __attribute__((always_inline)) {
      body([&](int64_t l) { return lanes.lane[l] + t; },
           [&](int64_t i) { return rows.entry(t + i) + rows.part(0); }, t);
    });
  }
  // Pairs are whole: their count is even.
  const int64_t parts[2] = {rows.part(0), rows.part(1)};
  return by_tiles<T>(count, [&](int64_t t) __attribute__((always_inline)) {
    const int64_t first = t / 2;
    body([&](int64_t l) { return lanes.lane[l] + t; },
         [&](int64_t i) { return rows.entry(first + i / 2) + parts[i % 2]; }, t);
  });
}

template <class V, class T>
WEFT_INLINE void gather_body(const Lanes<T>& lanes, int64_t count, const Rows<T>& rows,
                             const Lanes<T>* next) {
  using Access = typename Lanes<T>::Access;
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  const int64_t real_part = rows.part(0), imaginary_part = rows.part(1);
  if (lanes.access == Access::Contiguous) {
    const auto tile = [&](const auto& line, const auto& row, int64_t t)
                          __attribute__((always_inline)) {
                            transpose<V>(line, row, T(1));
                            if (next) bring(*next, t);
                          };
    if (by_tiles_of_lines(lanes, count, rows, tile)) return;
  }
  if (lanes.access == Access::Interleaved) {
    for (int64_t t = 0; t < count; ++t) std::memcpy(rows.at(t), lanes.at(0, t), 64);
    return;
  }
  if (lanes.access == Access::InterleavedPairs) {
    for (int64_t k = 0; k < count / 2; ++k) {
      const T* from = lanes.lane[0] + k * lanes.step;
      T* const entry = rows.entry(k);
      for (int64_t l = 0; l < kRow<T>; l += kLanes, from += 2 * kLanes) {
        V low, high, re, im;
        load(low, from);
        load(high, from + kLanes);
        shuffle<Every2nd<0>, T>(low, high, re);
        shuffle<Every2nd<1>, T>(low, high, im);
        store(re, entry + real_part + l);
        store(im, entry + imaginary_part + l);
      }
    }
    return;
  }
  for (int64_t t = 0; t < count; ++t) {
    T* const row = rows.at(t);
    for (int64_t l = 0; l < kRow<T>; ++l) row[l] = *lanes.at(std::min(l, lanes.count - 1), t);
  }
}

template <class V, class T>
WEFT_INLINE void scatter_body(const Lanes<T>& lanes, int64_t count, T scale, const Rows<T>& rows,
                              const Lanes<T>* next) {
  using Access = typename Lanes<T>::Access;
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  const int64_t real_part = rows.part(0), imaginary_part = rows.part(1);
  if (lanes.access == Access::Contiguous) {
    const auto tile = [&](const auto& line, const auto& row, int64_t t)
                          __attribute__((always_inline)) {
                            transpose<V>(row, line, scale);
                            if (next) bring(*next, t);
                          };
    if (by_tiles_of_lines(lanes, count, rows, tile)) return;
  }
  if (lanes.access == Access::Interleaved) {
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t l = 0; l < kRow<T>; l += kLanes) {
        V value;
        load(value, rows.at(t) + l);
        store(value * scale, lanes.at(0, t) + l);
      }
    }
    return;
  }
  if (lanes.access == Access::InterleavedPairs) {
    for (int64_t k = 0; k < count / 2; ++k) {
      T* to = lanes.lane[0] + k * lanes.step;
      const T* const entry = rows.entry(k);
      for (int64_t l = 0; l < kRow<T>; l += kLanes, to += 2 * kLanes) {
        V re, im, low, high;
        load(re, entry + real_part + l);
        load(im, entry + imaginary_part + l);
        shuffle<Alternating<kLanes, 0>, T>(re, im, low);
        shuffle<Alternating<kLanes, kLanes / 2>, T>(re, im, high);
        store(low * scale, to);
        store(high * scale, to + kLanes);
      }
    }
    return;
  }
  for (int64_t t = 0; t < count; ++t) {
    const T* const row = rows.at(t);
    for (int64_t l = 0; l < lanes.count; ++l) *lanes.at(l, t) = row[l] * scale;
  }
}

// ---- real sequences ----

template <class V, class T>
WEFT_INLINE void split_body(int64_t m, const T* turns, const int32_t* order, T* rows) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  for (int64_t k = 0; k <= m / 2; ++k) {
    T* const near = rows + order[k] * kEntry<T>;
    T* const far = rows + order[m - k] * kEntry<T>;
    const T* const mirror = k == 0 ? near : far;
    for (int64_t l = 0; l < kRow<T>; l += kLanes) {
      Pair<V> a, b;
      load(a, near + l);
      load(b, mirror + l);
      const Pair<V> even = {a.re + b.re, a.im - b.im}, odd = {a.im + b.im, b.re - a.re};
      const Pair<V> turn = turned(odd, turns[2 * k], turns[2 * k + 1]);
      store(even + turn, near + l);
      store(Pair<V>{even.re - turn.re, turn.im - even.im}, far + l);
    }
  }
}

template <class V, class T>
WEFT_INLINE void merge_body(int64_t m, const T* turns, T* rows) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  for (const int64_t k : {int64_t{0}, m}) std::memset(rows + k * kEntry<T> + kRow<T>, 0, 64);
  for (int64_t k = 0; k <= m / 2; ++k) {
    T* const near = rows + k * kEntry<T>;
    T* const far = rows + (m - k) * kEntry<T>;
    for (int64_t l = 0; l < kRow<T>; l += kLanes) {
      Pair<V> a, b;
      load(a, near + l);
      load(b, far + l);
      const Pair<V> even = {a.re + b.re, a.im - b.im}, odd = {a.re - b.re, a.im + b.im};
      const Pair<V> turn = turned(odd, turns[2 * k], -turns[2 * k + 1]);
      // Even and odd numbers are the real and the imaginary parts: even + i turn.
      store(Pair<V>{even.im + turn.re, even.re - turn.im}, near + l);
      store(Pair<V>{turn.re - even.im, even.re + turn.im}, far + l);
    }
  }
}

}  // namespace

template <class T>
void gather(const Lanes<T>& lanes, int64_t count, const Rows<T>& rows, const Lanes<T>* next) {
  at_level([&](auto bytes)
               WEFT_INLINED { gather_body<Vector<T, bytes()>>(lanes, count, rows, next); });
}
template <class T>
void scatter(const Lanes<T>& lanes, int64_t count, T scale, const Rows<T>& rows,
             const Lanes<T>* next) {
  at_level([&](auto bytes)
               WEFT_INLINED { scatter_body<Vector<T, bytes()>>(lanes, count, scale, rows, next); });
}
template <class T>
void split_half(int64_t m, const T* turns, const int32_t* order, T* rows) {
  at_level([&](auto bytes) WEFT_INLINED { split_body<Vector<T, bytes()>>(m, turns, order, rows); });
}
template <class T>
void merge_half(int64_t m, const T* turns, T* rows) {
  at_level([&](auto bytes) WEFT_INLINED { merge_body<Vector<T, bytes()>>(m, turns, rows); });
}

#define INSTANTIATE(T)                                                                 \
  template void gather(const Lanes<T>&, int64_t, const Rows<T>&, const Lanes<T>*);     \
  template void scatter(const Lanes<T>&, int64_t, T, const Rows<T>&, const Lanes<T>*); \
  template void split_half(int64_t, const T*, const int32_t*, T*);                     \
  template void merge_half(int64_t, const T*, T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::fft
