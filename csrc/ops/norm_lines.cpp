#include "ops/norm_lines.h"

#include "ops/norm_lanes.h"

namespace weft::native::norm {
namespace {

WEFT_INLINE double total(const Wide* sums) {
  const Wide all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double result = 0;
  for (int i = 0; i < kLanes; ++i) result += all[i];
  return result;
}

template <class T>
WEFT_INLINE double sum_body(int64_t n, const T* x) {
  Wide sums[kSums] = {}, value;
  int64_t i = 0;
  for (; i + kLanes * kSums <= n; i += kLanes * kSums) {
    for (int s = 0; s < kSums; ++s) {
      load_wide(value, x + i + s * kLanes);
      sums[s] += value;
    }
  }
  double tail = 0;
  for (; i < n; ++i) tail += double{x[i]};
  return tail + total(sums);
}

template <class T>
WEFT_INLINE double squares_body(int64_t n, const T* x, double mean) {
  Wide sums[kSums] = {}, value;
  int64_t i = 0;
  for (; i + kLanes * kSums <= n; i += kLanes * kSums) {
    for (int s = 0; s < kSums; ++s) {
      load_wide(value, x + i + s * kLanes);
      value -= mean;
      sums[s] += value * value;
    }
  }
  double tail = 0;
  for (; i < n; ++i) tail += (double{x[i]} - mean) * (double{x[i]} - mean);
  return tail + total(sums);
}

template <class T>
WEFT_INLINE void scale_body(int64_t n, const T* x, T scale, T shift, T* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * scale + shift;
}

template <class T>
WEFT_INLINE GradSums grad_sums_body(int64_t n, const T* grad, const T* x, T mean) {
  Wide plain[kSums] = {}, centred[kSums] = {}, g, value;
  int64_t i = 0;
  for (; i + kLanes * kSums <= n; i += kLanes * kSums) {
    for (int s = 0; s < kSums; ++s) {
      load_wide(g, grad + i + s * kLanes);
      load_wide(value, x + i + s * kLanes);
      plain[s] += g;
      centred[s] += g * (value - double{mean});
    }
  }
  GradSums result;
  for (; i < n; ++i) {
    result.plain += double{grad[i]};
    result.centred += double{grad[i]} * (double{x[i]} - double{mean});
  }
  result.plain += total(plain);
  result.centred += total(centred);
  return result;
}

template <class T>
WEFT_INLINE void gradient_body(int64_t n, const T* grad, const T* x, const GradTerms<T>& terms,
                               T* out) {
  const GradTerms<T> t = terms;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = (grad[i] - t.level - (x[i] - t.mean) * t.slope) * t.scale;
  }
}

}  // namespace

template <class T>
double sum(int64_t n, const T* x) {
  return at_level([&](auto) WEFT_INLINED { return sum_body(n, x); });
}
template <class T>
double squares(int64_t n, const T* x, double mean) {
  return at_level([&](auto) WEFT_INLINED { return squares_body(n, x, mean); });
}
template <class T>
void scale(int64_t n, const T* x, T scale, T shift, T* out) {
  at_level([&](auto) WEFT_INLINED { scale_body(n, x, scale, shift, out); });
}
template <class T>
GradSums grad_sums(int64_t n, const T* grad, const T* x, T mean) {
  return at_level([&](auto) WEFT_INLINED { return grad_sums_body(n, grad, x, mean); });
}
template <class T>
void gradient(int64_t n, const T* grad, const T* x, const GradTerms<T>& terms, T* out) {
  at_level([&](auto) WEFT_INLINED { gradient_body(n, grad, x, terms, out); });
}

#define INSTANTIATE(T)                                            \
  template double sum<T>(int64_t, const T*);                      \
  template double squares<T>(int64_t, const T*, double);          \
  template void scale<T>(int64_t, const T*, T, T, T*);            \
  template GradSums grad_sums<T>(int64_t, const T*, const T*, T); \
  template void gradient<T>(int64_t, const T*, const T*, const GradTerms<T>&, T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::native::norm
