// What brings sequences into rows and back.
#include <algorithm>
#include <cstring>

#include "ops/fft_vector.h"
#include "ops/shuffle.h"

namespace weft::fft {
namespace {

using namespace shuffles;

// to(i)[j] = scale * from(j)[i], all of kRow x kRow.
template <class V, class T, class From, class To>
WEFT_INLINE void transpose(const From& from, const To& to, T scale) {
  constexpr int N = sizeof(V) / sizeof(T);
  for (int64_t down = 0; down < kRow<T>; down += N) {
    for (int64_t along = 0; along < kRow<T>; along += N) {
      turn_square<T, V>(
          [&](V& row, int j) WEFT_INLINED {
            load(row, from(down + j) + along);
            row = row * scale;
          },
          [&](int i, const V& column) WEFT_INLINED { store(column, to(along + i) + down); });
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

// Between memory and rows: out to memory with kOut, else in.
template <bool kOut, class V, class T>
WEFT_INLINE void move_body(const Lanes<T>& lanes, int64_t count, T scale, const Rows<T>& rows,
                           const Lanes<T>* next) {
  using Access = typename Lanes<T>::Access;
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  const int64_t real_part = rows.part(0), imaginary_part = rows.part(1);
  if (lanes.access == Access::Contiguous) {
    const auto tile = [&](const auto& line, const auto& row, int64_t t) WEFT_INLINED {
      if constexpr (kOut) {
        transpose<V>(row, line, scale);
      } else {
        transpose<V>(line, row, scale);
      }
      if (next) bring(*next, t);
    };
    if (by_tiles_of_lines(lanes, count, rows, tile)) return;
  }
  if (lanes.access == Access::Interleaved) {
    for (int64_t t = 0; t < count; ++t) {
      const T* const from = kOut ? rows.at(t) : lanes.at(0, t);
      T* const to = kOut ? lanes.at(0, t) : rows.at(t);
      for (int64_t l = 0; l < kRow<T>; l += kLanes) {
        V value;
        load(value, from + l);
        store(value * scale, to + l);
      }
    }
    return;
  }
  if (lanes.access == Access::InterleavedPairs) {
    for (int64_t k = 0; k < count / 2; ++k) {
      T* pairs = lanes.lane[0] + k * lanes.step;
      T* const entry = rows.entry(k);
      for (int64_t l = 0; l < kRow<T>; l += kLanes, pairs += 2 * kLanes) {
        V re, im, low, high;
        if constexpr (kOut) {
          load(re, entry + real_part + l);
          load(im, entry + imaginary_part + l);
          shuffle<Alternating<kLanes, 0>, T>(re, im, low);
          shuffle<Alternating<kLanes, kLanes / 2>, T>(re, im, high);
          store(low * scale, pairs);
          store(high * scale, pairs + kLanes);
        } else {
          load(low, pairs);
          load(high, pairs + kLanes);
          shuffle<Every2nd<0>, T>(low, high, re);
          shuffle<Every2nd<1>, T>(low, high, im);
          store(re, entry + real_part + l);
          store(im, entry + imaginary_part + l);
        }
      }
    }
    return;
  }
  for (int64_t t = 0; t < count; ++t) {
    T* const row = rows.at(t);
    for (int64_t l = 0; l < (kOut ? lanes.count : kRow<T>); ++l) {
      if constexpr (kOut) {
        *lanes.at(l, t) = row[l] * scale;
      } else {
        row[l] = *lanes.at(std::min(l, lanes.count - 1), t);
      }
    }
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
  at_level([&](auto bytes) WEFT_INLINED {
    move_body<false, Vector<T, bytes()>>(lanes, count, T(1), rows, next);
  });
}
template <class T>
void scatter(const Lanes<T>& lanes, int64_t count, T scale, const Rows<T>& rows,
             const Lanes<T>* next) {
  at_level([&](auto bytes) WEFT_INLINED {
    move_body<true, Vector<T, bytes()>>(lanes, count, scale, rows, next);
  });
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
