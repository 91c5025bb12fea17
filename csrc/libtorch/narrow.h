// Arithmetic of Half and BFloat16 in C++: of two of a kind, and with other numbers.
#pragma once

#include <limits>

#include "dtype.h"

namespace c10 {
inline namespace over_weft {

// With a float or a double it is one of these; with an integer it stays narrow.
#define WEFT_TORCH_NARROW_OPERATOR(Narrow, symbol)                       \
  inline Narrow operator symbol(Narrow a, Narrow b) {                    \
    return static_cast<float>(a) symbol static_cast<float>(b);           \
  }                                                                      \
  inline Narrow& operator symbol## = (Narrow & a, Narrow b) {            \
    return a = static_cast<float>(a) symbol static_cast<float>(b);       \
  }                                                                      \
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> \
  auto operator symbol(Narrow a, T b) {                                  \
    if constexpr (std::is_floating_point_v<T>) {                         \
      return static_cast<T>(static_cast<float>(a)) symbol b;             \
    } else {                                                             \
      return Narrow(static_cast<float>(a) symbol static_cast<float>(b)); \
    }                                                                    \
  }                                                                      \
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> \
  auto operator symbol(T a, Narrow b) {                                  \
    if constexpr (std::is_floating_point_v<T>) {                         \
      return a symbol static_cast<T>(static_cast<float>(b));             \
    } else {                                                             \
      return Narrow(static_cast<float>(a) symbol static_cast<float>(b)); \
    }                                                                    \
  }
#define WEFT_TORCH_NARROW(Narrow)       \
  WEFT_TORCH_NARROW_OPERATOR(Narrow, +) \
  WEFT_TORCH_NARROW_OPERATOR(Narrow, -) \
  WEFT_TORCH_NARROW_OPERATOR(Narrow, *) \
  WEFT_TORCH_NARROW_OPERATOR(Narrow, /) \
  inline Narrow operator-(Narrow a) { return -static_cast<float>(a); }
WEFT_TORCH_NARROW(Half)
WEFT_TORCH_NARROW(BFloat16)
#undef WEFT_TORCH_NARROW
#undef WEFT_TORCH_NARROW_OPERATOR

}  // namespace over_weft
}  // namespace c10

namespace std {

// By the bits of the numbers.
#define WEFT_TORCH_LIMITS(Narrow, digits_of, largest, smallest, step, infinite, none)  \
  template <>                                                                          \
  class numeric_limits<::c10::Narrow> {                                                \
    using T = ::c10::Narrow;                                                           \
                                                                                       \
   public:                                                                             \
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false; \
    static constexpr bool is_exact = false, has_infinity = true, has_quiet_NaN = true; \
    static constexpr int digits = digits_of, radix = 2;                                \
    static constexpr T max() { return T(largest, T::from_bits()); }                    \
    static constexpr T lowest() { return T(0x8000 | largest, T::from_bits()); }        \
    static constexpr T min() { return T(smallest, T::from_bits()); }                   \
    static constexpr T epsilon() { return T(step, T::from_bits()); }                   \
    static constexpr T infinity() { return T(infinite, T::from_bits()); }              \
    static constexpr T quiet_NaN() { return T(none, T::from_bits()); }                 \
  };
WEFT_TORCH_LIMITS(Half, 11, 0x7BFF, 0x0400, 0x1400, 0x7C00, 0x7E00)
WEFT_TORCH_LIMITS(BFloat16, 8, 0x7F7F, 0x0080, 0x3C00, 0x7F80, 0x7FC0)
#undef WEFT_TORCH_LIMITS

}  // namespace std
