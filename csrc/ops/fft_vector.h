// Complex numbers in registers: the vocabulary of the Fourier kernels, for registers of any size.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/fft_rows.h"
#include "ops/levels.h"

namespace weft::fft {

template <class T, int kBytes>
struct VectorOf {
  using Whole = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T type __attribute__((vector_size(kBytes)));
  typedef Whole mask __attribute__((vector_size(kBytes)));
  typedef T loose __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
};
template <class T, int kBytes>
using Vector = typename VectorOf<T, kBytes>::type;

// Vectors go by reference: passed by value they would need the registers of their size everywhere.
// They are read and written as vectors: GCC 12 left a memcpy of 32 bytes one through memory.
template <class V, class T>
WEFT_INLINE void load(V& value, const T* from) {
  value = *reinterpret_cast<const typename VectorOf<T, sizeof(V)>::loose*>(from);
}
template <class V, class T>
WEFT_INLINE void store(const V& value, T* to) {
  *reinterpret_cast<typename VectorOf<T, sizeof(V)>::loose*>(to) = value;
}

// ---- complex numbers ----

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
