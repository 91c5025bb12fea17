// The stages of a transform over rows, in place (decimation in frequency).
#include "ops/fft_vector.h"

namespace weft::fft {
namespace {

// ---- butterflies: transforms of a few entries in registers ----

template <class V, class T>
WEFT_INLINE void butterfly(Pair<V> (&a)[2], T) {
  const Pair<V> sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class V, class T>
WEFT_INLINE void butterfly(Pair<V> (&a)[3], T) {
  constexpr T kSine = static_cast<T>(0.86602540378443864676L);
  const Pair<V> sum = a[1] + a[2], across = quarter(kSine * (a[1] - a[2]));
  const Pair<V> middle = a[0] - T(0.5) * sum;
  a[0] = a[0] + sum;
  a[1] = middle + across;
  a[2] = middle - across;
}

template <class V, class T>
WEFT_INLINE void butterfly(Pair<V> (&a)[4], T) {
  const Pair<V> even = a[0] + a[2], even_difference = a[0] - a[2];
  const Pair<V> odd = a[1] + a[3], odd_difference = quarter(a[1] - a[3]);
  a[0] = even + odd;
  a[1] = even_difference + odd_difference;
  a[2] = even - odd;
  a[3] = even_difference - odd_difference;
}

template <class V, class T>
WEFT_INLINE void butterfly(Pair<V> (&a)[5], T) {
  constexpr T kCosine1 = static_cast<T>(0.30901699437494742410L);
  constexpr T kCosine2 = static_cast<T>(-0.80901699437494742410L);
  constexpr T kSine1 = static_cast<T>(0.95105651629515357212L);
  constexpr T kSine2 = static_cast<T>(0.58778525229247312917L);
  const Pair<V> outer = a[1] + a[4], inner = a[2] + a[3];
  const Pair<V> outer_gap = a[1] - a[4], inner_gap = a[2] - a[3];
  const Pair<V> first = a[0] + kCosine1 * outer + kCosine2 * inner;
  const Pair<V> second = a[0] + kCosine2 * outer + kCosine1 * inner;
  const Pair<V> first_across = quarter(kSine1 * outer_gap + kSine2 * inner_gap);
  const Pair<V> second_across = quarter(kSine2 * outer_gap - kSine1 * inner_gap);
  a[0] = a[0] + outer + inner;
  a[1] = first + first_across;
  a[4] = first - first_across;
  a[2] = second + second_across;
  a[3] = second - second_across;
}

template <class V, class T>
WEFT_INLINE void butterfly(Pair<V> (&a)[8], T zero) {
  constexpr T kRoot = static_cast<T>(0.70710678118654752440L);
  Pair<V> even[4] = {a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]};
  const Pair<V> first = a[1] - a[5], third = a[3] - a[7];
  // Times the eighths of a turn: 1, (1 - i) / sqrt 2, -i, (-1 - i) / sqrt 2.
  Pair<V> odd[4] = {a[0] - a[4], kRoot * Pair<V>{first.re + first.im, first.im - first.re},
                    quarter(a[2] - a[6]),
                    kRoot * Pair<V>{third.im - third.re, -third.re - third.im}};
  butterfly(even, zero);
  butterfly(odd, zero);
  for (int k = 0; k < 4; ++k) {
    a[2 * k] = even[k];
    a[2 * k + 1] = odd[k];
  }
}

// ---- stages ----

template <int R, bool Turned, class V, class T>
WEFT_INLINE void step(const T* turns, int64_t stride, T* x) {
  Pair<V> a[R];
  for (int j = 0; j < R; ++j) load(a[j], x + stride * j);
  butterfly(a, T(0));
  store(a[0], x);
  for (int k = 1; k < R; ++k) {
    if constexpr (Turned) a[k] = turned(a[k], turns[2 * k - 2], turns[2 * k - 1]);
    store(a[k], x + stride * k);
  }
}

template <int R, class V, class T>
WEFT_INLINE void pass(const Stage<T>& stage, int64_t blocks, T* x) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  const int64_t stride = stage.count * kEntry<T>;
  for (int64_t block = 0; block < blocks; ++block, x += R * stride) {
    for (int64_t l = 0; l < kRow<T>; l += kLanes) step<R, false, V>(x, stride, x + l);
    const T* turns = stage.turns.data();
    for (int64_t p = 1; p < stage.count; ++p, turns += 2 * (R - 1)) {
      T* const at = x + p * kEntry<T>;
      for (int64_t l = 0; l < kRow<T>; l += kLanes) step<R, true, V>(turns, stride, at + l);
    }
  }
}

// Another prime: results k and radix - k share the products of the sums and of the differences of
// entries j and radix - j.
template <class V, class T>
WEFT_INLINE void step_of_prime(const Stage<T>& stage, const T* turns, int64_t stride, T* x) {
  const int64_t radix = stage.radix, half = radix / 2;
  Pair<V> sums[kMostRadix / 2 + 1], gaps[kMostRadix / 2 + 1], first;
  load(first, x);
  Pair<V> total = first;
  for (int64_t j = 1; j <= half; ++j) {
    Pair<V> a, b;
    load(a, x + stride * j);
    load(b, x + stride * (radix - j));
    sums[j] = a + b;
    gaps[j] = a - b;
    total = total + sums[j];
  }
  store(total, x);
  for (int64_t k = 1; k <= half; ++k) {
    Pair<V> along = first, across = {};
    for (int64_t j = 1, at = k; j <= half; ++j, at = at + k < radix ? at + k : at + k - radix) {
      along = along + stage.roots[2 * at] * sums[j];
      across = across - stage.roots[2 * at + 1] * gaps[j];
    }
    across = quarter(across);
    Pair<V> low = along + across, high = along - across;
    if (turns) {
      const T* const of_low = turns + 2 * (k - 1);
      const T* const of_high = turns + 2 * (radix - k - 1);
      low = turned(low, of_low[0], of_low[1]);
      high = turned(high, of_high[0], of_high[1]);
    }
    store(low, x + stride * k);
    store(high, x + stride * (radix - k));
  }
}

template <class V, class T>
WEFT_INLINE void pass_of_prime(const Stage<T>& stage, int64_t blocks, T* x) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  const int64_t stride = stage.count * kEntry<T>, turns = 2 * (stage.radix - 1);
  for (int64_t block = 0; block < blocks; ++block, x += stage.radix * stride) {
    for (int64_t p = 0; p < stage.count; ++p) {
      const T* const of_entry = p ? stage.turns.data() + (p - 1) * turns : nullptr;
      for (int64_t l = 0; l < kRow<T>; l += kLanes) {
        step_of_prime<V>(stage, of_entry, stride, x + p * kEntry<T> + l);
      }
    }
  }
}

template <class V, class T>
WEFT_INLINE void any_pass(const Stage<T>& stage, int64_t blocks, T* x) {
  switch (stage.radix) {
    case 2:
      return pass<2, V>(stage, blocks, x);
    case 3:
      return pass<3, V>(stage, blocks, x);
    case 4:
      return pass<4, V>(stage, blocks, x);
    case 5:
      return pass<5, V>(stage, blocks, x);
    case 8:
      return pass<8, V>(stage, blocks, x);
    default:
      return pass_of_prime<V>(stage, blocks, x);
  }
}

template <class V, class T>
WEFT_INLINE void times_factors_body(int64_t count, const T* factors, const int32_t* order,
                                    const T* from, T* to, bool exchange) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t l = 0; l < kRow<T>; l += kLanes) {
      Pair<V> value;
      load(value, from + (order ? order[k] : k) * kEntry<T> + l);
      if (exchange) value = {value.im, value.re};
      store(turned(value, factors[2 * k], factors[2 * k + 1]), to + k * kEntry<T> + l);
    }
  }
}

template <class V, class T>
WEFT_INLINE void times_table_body(int64_t count, const T* cosines, const T* sines, int64_t stride,
                                  T* rows) {
  constexpr int64_t kLanes = static_cast<int64_t>(sizeof(V) / sizeof(T));
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t l = 0; l < kRow<T>; l += kLanes) {
      Pair<V> value, factor;
      load(value, rows + k * kEntry<T> + l);
      load(factor.re, cosines + k * stride + l);
      load(factor.im, sines + k * stride + l);
      store(turned(value, factor.re, factor.im), rows + k * kEntry<T> + l);
    }
  }
}

template <class T>
void run_pass(const Stage<T>& stage, int64_t blocks, T* x) {
  at_level([&](auto bytes) WEFT_INLINED { any_pass<Vector<T, bytes()>>(stage, blocks, x); });
}

// A block that the nearest cache holds goes through all stages that are left before the next does.
constexpr int64_t kNearBytes = 32768;

template <class T>
void run_from(const Stage<T>* stage, const Stage<T>* end, T* x) {
  if (stage->radix * stage->count * kEntry<T> * static_cast<int64_t>(sizeof(T)) > kNearBytes) {
    run_pass(*stage, 1, x);
    if (stage + 1 == end) return;
    for (int64_t k = 0; k < stage->radix; ++k) {
      run_from(stage + 1, end, x + k * stage->count * kEntry<T>);
    }
    return;
  }
  for (int64_t blocks = 1; stage != end; blocks *= stage->radix, ++stage) {
    run_pass(*stage, blocks, x);
  }
}

}  // namespace

template <class T>
void run_stages(const std::vector<Stage<T>>& stages, T* rows) {
  if (!stages.empty()) run_from(stages.data(), stages.data() + stages.size(), rows);
}
template <class T>
void times_factors(int64_t count, const T* factors, const int32_t* order, const T* from, T* to,
                   bool exchange) {
  at_level([&](auto bytes) WEFT_INLINED {
    times_factors_body<Vector<T, bytes()>>(count, factors, order, from, to, exchange);
  });
}
template <class T>
void times_table(int64_t count, const T* cosines, const T* sines, int64_t stride, T* rows) {
  at_level([&](auto bytes) WEFT_INLINED {
    times_table_body<Vector<T, bytes()>>(count, cosines, sines, stride, rows);
  });
}

#define INSTANTIATE(T)                                                                \
  template void run_stages(const std::vector<Stage<T>>&, T*);                         \
  template void times_factors(int64_t, const T*, const int32_t*, const T*, T*, bool); \
  template void times_table(int64_t, const T*, const T*, int64_t, T*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::fft
