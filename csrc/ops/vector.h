// Vectors of numbers in registers, and in memory that need not be aligned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/levels.h"

namespace weft {

template <class T, int kBytes>
struct VectorOf {
  using Whole = std::conditional_t<sizeof(T) == 4, int32_t,
                                   std::conditional_t<sizeof(T) == 1, int8_t, int64_t>>;
  typedef T type __attribute__((vector_size(kBytes)));
  typedef Whole mask __attribute__((vector_size(kBytes)));
  typedef T loose __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
};
template <class T, int kBytes>
using Vector = typename VectorOf<T, kBytes>::type;

// Vectors go by reference: passed by value they would need the registers of their size everywhere.
// They are read and written as vectors, of one number as a T: GCC 12 left a memcpy of 32 bytes one
// through memory.
template <class V, class T>
WEFT_INLINE void load(V& value, const T* from) {
  if constexpr (std::is_same_v<V, T>) {
    value = *from;
  } else {
    value = *reinterpret_cast<const typename VectorOf<T, sizeof(V)>::loose*>(from);
  }
}
template <class V, class T>
WEFT_INLINE void store(const V& value, T* to) {
  if constexpr (std::is_same_v<V, T>) {
    *to = value;
  } else {
    *reinterpret_cast<typename VectorOf<T, sizeof(V)>::loose*>(to) = value;
  }
}

// kLanes numbers in registers of so many bytes. A vector wider than a register would lie in memory,
// and so would arrays whose loops are not unrolled.
template <class T, int kLanes, int Bytes>
struct LanesOf {
  static constexpr int kWidth = std::min<int>(Bytes / sizeof(T), kLanes), kCount = kLanes / kWidth;
  using Part = Vector<T, kWidth * sizeof(T)>;
  Part parts[kCount];

  // fn(part, its first lane).
  template <class Fn>
  WEFT_INLINE void each(Fn&& fn) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) fn(parts[i], i * kWidth);
  }
  WEFT_INLINE void clear() {
    each([](auto& part, int) WEFT_INLINED { part = Part{}; });
  }
  WEFT_INLINE void fill(T value) {
    each([&](auto& part, int) WEFT_INLINED { part = Part{} + value; });
  }
  WEFT_INLINE void read(const T* from) {
    each([&](auto& part, int lane) WEFT_INLINED { load(part, from + lane); });
  }
  WEFT_INLINE void write(T* to) {
    each([&](auto& part, int lane) WEFT_INLINED { weft::store(part, to + lane); });
  }
  WEFT_INLINE void add(T by, const LanesOf& others) {
    each([&](auto& part, int lane) WEFT_INLINED { part += by * others.parts[lane / kWidth]; });
  }
  WEFT_INLINE void scale(T factor) {
    each([&](auto& part, int) WEFT_INLINED { part *= factor; });
  }
};

}  // namespace weft
