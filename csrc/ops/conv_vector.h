// Vectors of numbers in memory that need not be aligned.
#pragma once

#include <cstring>

#include "ops/levels.h"

namespace weft::native::conv {

template <class Vector, class T>
WEFT_INLINE void load(Vector& vector, const T* from) {
  std::memcpy(&vector, from, sizeof(vector));
}
template <class Vector, class T>
WEFT_INLINE void store(const Vector& vector, T* to) {
  std::memcpy(to, &vector, sizeof(vector));
}

}  // namespace weft::native::conv
