// The loops of batch norm over rows of channels: the values of a channel lie a row apart.
//
// T: float, double. Sums run in float64.
#pragma once

#include <cstdint>

namespace weft::native::norm {

// sums[c] = sum of x[r, c] over the rows, and of (x[r, c] - mean[c])^2.
template <class T>
void column_sums(int64_t rows, int64_t channels, const T* x, double* sums);
template <class T>
void column_squares(int64_t rows, int64_t channels, const T* x, const double* mean, double* sums);

// out = x * scale + shift.
template <class T>
void scale_columns(int64_t rows, int64_t channels, const T* x, const T* scale, const T* shift,
                   T* out);

// sums[c] = sum of grad * (x - mean).
template <class T>
void column_products(int64_t rows, int64_t channels, const T* grad, const T* x, const T* mean,
                     double* sums);

// out = (grad - level - (x - mean) * slope) * scale, for each channel.
template <class T>
struct ColumnTerms {
  const T *mean, *level, *slope, *scale;
};
template <class T>
void column_gradient(int64_t rows, int64_t channels, const T* grad, const T* x,
                     const ColumnTerms<T>& terms, T* out);

}  // namespace weft::native::norm
