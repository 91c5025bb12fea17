#include "ops/norm_columns.h"

#include "ops/norm_lanes.h"

namespace weft::native::norm {
namespace {

// What is summed: a vector of terms for the elements from `at` on, whose channels are from c on;
// and a single one.
template <class T>
struct Plain {
  const T* x;
  WEFT_INLINE void terms(Wide& out, int64_t at, int64_t) const { load_wide(out, x + at); }
  WEFT_INLINE double term(int64_t at, int64_t) const { return double{x[at]}; }
};
template <class T>
struct Square {
  const T* x;
  const double* mean;
  WEFT_INLINE void terms(Wide& out, int64_t at, int64_t c) const {
    Wide centre;
    load_wide(out, x + at);
    load(centre, mean + c);
    out = (out - centre) * (out - centre);
  }
  WEFT_INLINE double term(int64_t at, int64_t c) const {
    return (double{x[at]} - mean[c]) * (double{x[at]} - mean[c]);
  }
};
template <class T>
struct Centred {
  const T *grad, *x, *mean;
  WEFT_INLINE void terms(Wide& out, int64_t at, int64_t c) const {
    Wide value, centre;
    load_wide(out, grad + at);
    load_wide(value, x + at);
    load_wide(centre, mean + c);
    out *= value - centre;
  }
  WEFT_INLINE double term(int64_t at, int64_t c) const {
    return double{grad[at]} * (double{x[at]} - double{mean[c]});
  }
};

template <int64_t kVectors, class Terms>
WEFT_INLINE void strip(int64_t rows, int64_t channels, int64_t c, const Terms& of, double* sums) {
  Wide kept[kVectors] = {}, terms;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t s = 0; s < kVectors; ++s) {
      of.terms(terms, r * channels + c + s * kLanes, c + s * kLanes);
      kept[s] += terms;
    }
  }
  std::memcpy(sums + c, kept, sizeof(kept));
}

template <class Terms>
WEFT_INLINE void sum_body(int64_t rows, int64_t channels, Terms of, double* sums) {
  int64_t c = 0;
  for (; c + kSums * kLanes <= channels; c += kSums * kLanes) {
    strip<kSums>(rows, channels, c, of, sums);
  }
  for (; c + kLanes <= channels; c += kLanes) strip<1>(rows, channels, c, of, sums);
  if (c < channels && channels >= kLanes) {
    return strip<1>(rows, channels, channels - kLanes, of, sums);
  }
  for (; c < channels; ++c) {
    sums[c] = 0;
    for (int64_t r = 0; r < rows; ++r) sums[c] += of.term(r * channels + c, c);
  }
}

template <class T>
WEFT_INLINE void scale_body(int64_t rows, int64_t channels, const T* x, const T* scale,
                            const T* shift, T* __restrict out) {
  for (int64_t r = 0; r < rows; ++r, x += channels, out += channels) {
    for (int64_t c = 0; c < channels; ++c) out[c] = x[c] * scale[c] + shift[c];
  }
}

template <class T>
WEFT_INLINE void gradient_body(int64_t rows, int64_t channels, const T* grad, const T* x,
                               const ColumnTerms<T>& terms, T* __restrict out) {
  const ColumnTerms<T> t = terms;
  for (int64_t r = 0; r < rows; ++r, grad += channels, x += channels, out += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      out[c] = (grad[c] - t.level[c] - (x[c] - t.mean[c]) * t.slope[c]) * t.scale[c];
    }
  }
}

template <class Terms>
void sum(int64_t rows, int64_t channels, const Terms& of, double* sums) {
  at_level([&](auto) WEFT_INLINED { sum_body(rows, channels, of, sums); });
}

}  // namespace

template <class T>
void column_sums(int64_t rows, int64_t channels, const T* x, double* sums) {
  sum(rows, channels, Plain<T>{x}, sums);
}
template <class T>
void column_squares(int64_t rows, int64_t channels, const T* x, const double* mean, double* sums) {
  sum(rows, channels, Square<T>{x, mean}, sums);
}
template <class T>
void column_products(int64_t rows, int64_t channels, const T* grad, const T* x, const T* mean,
                     double* sums) {
  sum(rows, channels, Centred<T>{grad, x, mean}, sums);
}
template <class T>
void scale_columns(int64_t rows, int64_t channels, const T* x, const T* scale, const T* shift,
                   T* out) {
  at_level([&](auto) WEFT_INLINED { scale_body(rows, channels, x, scale, shift, out); });
}
template <class T>
void column_gradient(int64_t rows, int64_t channels, const T* grad, const T* x,
                     const ColumnTerms<T>& terms, T* out) {
  at_level([&](auto) WEFT_INLINED { gradient_body(rows, channels, grad, x, terms, out); });
}

#define INSTANTIATE(T)                                                                       \
  template void column_sums<T>(int64_t, int64_t, const T*, double*);                         \
  template void column_squares<T>(int64_t, int64_t, const T*, const double*, double*);       \
  template void column_products<T>(int64_t, int64_t, const T*, const T*, const T*, double*); \
  template void scale_columns<T>(int64_t, int64_t, const T*, const T*, const T*, T*);        \
  template void column_gradient<T>(int64_t, int64_t, const T*, const T*, const ColumnTerms<T>&, T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::native::norm
