// Vectors of numbers in registers, and in memory that need not be aligned.
#pragma once

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

}  // namespace weft
