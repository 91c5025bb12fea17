// One line of pooled values: the maxima or means of the windows of neighbouring results. Written
// once over vectors; pool_line.cpp compiles it per instruction set.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace weft::native::pool {

// T of this file: float, double, int32_t, int64_t, uint64_t; uint8_t for maxima without places.
template <class T>
using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// A row or a column of a window: an element lies at the sum of both `at`, and its place in the
// image is the sum of both `index`.
struct Tap {
  int64_t at, index;
};
// The windows of n results: result x reads x elements further on, at places x * step further on.
struct Window {
  std::span<const Tap> rows, columns;
  int64_t n, step;
  int64_t start;  // the place that a window of lowest values has
};

template <class T>
inline constexpr T kLowest =
    std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                         : std::numeric_limits<T>::lowest();

// The greatest element of each window, NaN before all, and the place of the first of equals in
// `indices` (null: not wanted).
template <class T>
void max_line(const Window& window, const T* from, T* out, int64_t* indices);

// Sums of the windows over divisor, or over divisor * counts[x] unless `counts` is null.
template <class T>
void mean_line(const Window& window, const T* from, T divisor, const T* counts, T* out);

}  // namespace weft::native::pool
