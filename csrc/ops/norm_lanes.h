// Vectors of lanes that sums of float64 are kept in, filled from elements of T: float or double.
#pragma once

#include <cstdint>
#include <cstring>

#include "ops/levels.h"

namespace weft::native::norm {

// Sums keep several vectors of lanes, so that no addition waits for the one before.
constexpr int64_t kLanes = 8, kSums = 4;
template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T>
using Lanes = typename LanesOf<T>::type;
using Wide = Lanes<double>;

template <class T>
WEFT_INLINE void load(Lanes<T>& lanes, const T* from) {
  std::memcpy(&lanes, from, sizeof(lanes));
}
template <class T>
WEFT_INLINE void load_wide(Wide& lanes, const T* from) {
  Lanes<T> narrow;
  load(narrow, from);
  lanes = __builtin_convertvector(narrow, Wide);
}

}  // namespace weft::native::norm
