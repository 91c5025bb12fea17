// The loops of batch norm over a line: values of one channel that follow each other.
//
// T: float, double. Sums run in float64.
#pragma once

#include <cstdint>

namespace weft::native::norm {

template <class T>
double sum(int64_t n, const T* x);
// Sum of (x - mean)^2.
template <class T>
double squares(int64_t n, const T* x, double mean);

// out = x * scale + shift.
template <class T>
void scale(int64_t n, const T* x, T scale, T shift, T* out);

struct GradSums {
  double plain = 0, centred = 0;  // of grad, and of grad * (x - mean)
};
template <class T>
GradSums grad_sums(int64_t n, const T* grad, const T* x, T mean);

// out = (grad - level - (x - mean) * slope) * scale.
template <class T>
struct GradTerms {
  T mean, level, slope, scale;
};
template <class T>
void gradient(int64_t n, const T* grad, const T* x, const GradTerms<T>& terms, T* out);

}  // namespace weft::native::norm
