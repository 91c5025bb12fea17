// Adding into an element of any dtype, as in-place accumulation does it.
#pragma once

#include <type_traits>

#include "ops/support.h"

namespace weft::native {

// to += value: bool is "or", integers wrap around, what computes in a wider type rounds once.
template <class T>
inline void accumulate(T& to, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    to = to || value;
  } else if constexpr (!is_computed<T>) {
    to = T(static_cast<ComputeType<T>>(to) + static_cast<ComputeType<T>>(value));
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    to = static_cast<T>(static_cast<U>(static_cast<U>(to) + static_cast<U>(value)));
  } else {
    to += value;
  }
}

// value / count, for averages over uses.
template <class T>
inline T divide(T value, int64_t count) {
  if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else if constexpr (!is_computed<T>) {
    return T(divide(static_cast<ComputeType<T>>(value), count));
  } else if constexpr (is_complex_number<T>) {
    return value / static_cast<typename T::value_type>(count);
  } else {
    return static_cast<T>(value / static_cast<T>(count));
  }
}

}  // namespace weft::native
