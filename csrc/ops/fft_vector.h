// Complex numbers in registers: the vocabulary of the Fourier kernels, for registers of any size.
#pragma once

#include <type_traits>

#include "ops/fft_rows.h"
#include "ops/vector.h"

namespace weft::fft {

using weft::load;
using weft::store;

template <class V>
struct Pair {
  V re, im;
};

template <class V>
WEFT_INLINE Pair<V> operator+(const Pair<V>& a, const Pair<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
WEFT_INLINE Pair<V> operator-(const Pair<V>& a, const Pair<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T, class V>
  requires std::is_floating_point_v<T>
WEFT_INLINE Pair<V> operator*(T a, const Pair<V>& b) {
  return {a * b.re, a * b.im};
}
// Times -i.
template <class V>
WEFT_INLINE Pair<V> quarter(const Pair<V>& a) {
  return {a.im, -a.re};
}
// Times cosine + i sine, numbers or vectors.
template <class V, class C>
WEFT_INLINE Pair<V> turned(const Pair<V>& a, const C& cosine, const C& sine) {
  return {a.re * cosine - a.im * sine, a.re * sine + a.im * cosine};
}

// An entry of rows: see fft_rows.h.
template <class V, class T>
WEFT_INLINE void load(Pair<V>& value, const T* entry) {
  load(value.re, entry);
  load(value.im, entry + kRow<T>);
}
template <class V, class T>
WEFT_INLINE void store(const Pair<V>& value, T* entry) {
  store(value.re, entry);
  store(value.im, entry + kRow<T>);
}

}  // namespace weft::fft
