// Vectors of lanes that sums of float64 are kept in, filled from elements of T: float or double.
#pragma once

#include <cstdint>

#include "ops/vector.h"

namespace weft::native::norm {

// Sums keep several vectors of lanes, so that no addition waits for the one before.
constexpr int64_t kLanes = 8, kSums = 4;
template <class T>
using Lanes = Vector<T, kLanes * sizeof(T)>;
using Wide = Lanes<double>;

template <class T>
WEFT_INLINE void load_wide(Wide& lanes, const T* from) {
  Lanes<T> narrow;
  load(narrow, from);
  lanes = __builtin_convertvector(narrow, Wide);
}

}  // namespace weft::native::norm
