#include "ops/fft_long.h"

#include <algorithm>
#include <cmath>

#include "core/thread_pool.h"
#include "ops/scratch.h"

namespace weft::fft {
namespace {

template <class T>
int64_t whole_rows(int64_t n) {
  return (n + kRow<T> - 1) / kRow<T> * kRow<T>;
}

// The divisor next to the root, from below.
int64_t middle_divisor(int64_t n) {
  auto divisor = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % divisor) --divisor;
  return divisor;
}

// Complex numbers from `at` on, `step` apart.
template <class T>
Lanes<T> lanes_from(const T* at, int64_t step, int64_t between, int64_t count) {
  using Access = typename Lanes<T>::Access;
  Lanes<T> lanes{step == 2 && count == kRow<T> ? Access::InterleavedPairs : Access::Strided,
                 count,
                 between,
                 1,
                 {}};
  for (int64_t l = 0; l < count; ++l) lanes.lane[l] = const_cast<T*>(at) + l * step;
  return lanes;
}

// Calls body(first, lanes, rows, work) for groups of `count` sequences of a plan's length.
template <class T, class Body>
void by_groups(const Plan<T>& plan, int64_t count, const Body& body) {
  const int64_t groups = (count + kRow<T> - 1) / kRow<T>;
  const int64_t rows = plan.size() * kEntry<T>;
  parallel_for(groups, 1 + 32768 / rows, [&](int64_t begin, int64_t end) {
    Scratch<T> scratch(rows + plan.work());
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kRow<T>;
      body(first, std::min(kRow<T>, count - first), scratch.data(), scratch.data() + rows);
    }
  });
}

}  // namespace

template <class T>
LongPlan<T>::LongPlan(int64_t n) : n_(n), n1_(middle_divisor(n)), n2_(n / n1_) {
  if (n1_ < kRow<T> && n >= kLeast) {
    make_chirp();
  } else {
    make_table();
  }
}

template <class T>
void LongPlan<T>::make_table() {
  columns_ = cached<Plan<T>>(n1_);
  rows_ = cached<Plan<T>>(n2_);
  width_ = whole_rows<T>(n2_);
  stride_ = whole_rows<T>(n1_);
  cosines_.resize(static_cast<size_t>(n2_ * stride_));
  sines_.resize(static_cast<size_t>(n2_ * stride_));
  for (int64_t i = 0; i < n2_; ++i) {
    for (int64_t k = 0; k < n1_; ++k) {
      const Turn at = turn(i * k, n_);
      cosines_[i * stride_ + k] = static_cast<T>(at.cosine);
      sines_[i * stride_ + k] = static_cast<T>(at.sine);
    }
  }
}

template <class T>
void LongPlan<T>::make_chirp() {
  const int64_t longer = smooth_size(std::max(kLeast, 2 * n_ - 1));
  inner_ = std::make_unique<LongPlan>(longer);
  kernel_.resize(static_cast<size_t>(2 * longer));
  for (int64_t k = 0; k < n_; ++k) {
    const Turn at = chirp(k, n_);
    chirp_.push_back(static_cast<T>(at.cosine));
    chirp_.push_back(static_cast<T>(at.sine));
    for (const int64_t place : {k, k ? longer - k : 0}) {
      kernel_[2 * place] = static_cast<T>(at.cosine / static_cast<double>(longer));
      kernel_[2 * place + 1] = static_cast<T>(-at.sine / static_cast<double>(longer));
    }
  }
  inner_->run(kernel_.data(), 2, kernel_.data(), 2, false, T(1));
}

template <class T>
void LongPlan<T>::run(const T* in, int64_t in_step, T* out, int64_t out_step, bool inverse,
                      T scale) const {
  if (inner_) return run_chirp(in, in_step, out, out_step, inverse, scale);
  Scratch<T> middle(n1_ * width_ * 2);
  run_columns(in, in_step, inverse, middle.data());
  run_rows(middle.data(), out, out_step, inverse, scale);
}

template <class T>
void LongPlan<T>::run_columns(const T* in, int64_t in_step, bool inverse, T* middle) const {
  by_groups(*columns_, n2_, [&](int64_t first, int64_t count, T* rows, T* work) {
    const auto from = lanes_from(in + first * in_step, in_step, n2_ * in_step, count);
    gather<T>(from, 2 * n1_, {.rows = rows, .exchange = inverse});
    columns_->run(rows, work);
    // Whole rows: the matrix has room for them.
    const auto to = lanes_from(middle + first * 2, 2, width_ * 2, kRow<T>);
    scatter<T>(to, 2 * n1_, T(1), {.rows = rows, .order = columns_->order()});
  });
}

template <class T>
void LongPlan<T>::run_rows(const T* middle, T* out, int64_t out_step, bool inverse, T scale) const {
  by_groups(*rows_, n1_, [&](int64_t first, int64_t count, T* rows, T* work) {
    Lanes<T> from{Lanes<T>::Access::Contiguous, count, 2, 1, {}};
    for (int64_t l = 0; l < kRow<T>; ++l) {
      const int64_t row = first + std::min(l, count - 1);
      from.lane[l] = const_cast<T*>(middle) + row * width_ * 2;
    }
    gather<T>(from, 2 * n2_, {.rows = rows});
    times_table<T>(n2_, cosines_.data() + first, sines_.data() + first, stride_, rows);
    rows_->run(rows, work);
    const auto to = lanes_from(out + first * out_step, out_step, n1_ * out_step, count);
    scatter<T>(to, 2 * n2_, scale, {.rows = rows, .order = rows_->order(), .exchange = inverse});
  });
}

template <class T>
void LongPlan<T>::run_chirp(const T* in, int64_t in_step, T* out, int64_t out_step, bool inverse,
                            T scale) const {
  const int64_t longer = inner_->size(), real = inverse ? 1 : 0;
  Scratch<T> scratch(2 * longer);
  T* const x = scratch.data();
  for (int64_t k = 0; k < n_; ++k) {
    const T re = in[k * in_step + real], im = in[k * in_step + 1 - real];
    x[2 * k] = re * chirp_[2 * k] - im * chirp_[2 * k + 1];
    x[2 * k + 1] = re * chirp_[2 * k + 1] + im * chirp_[2 * k];
  }
  std::fill(x + 2 * n_, x + 2 * longer, T(0));
  inner_->run(x, 2, x, 2, false, T(1));
  for (int64_t k = 0; k < longer; ++k) {
    const T re = x[2 * k], im = x[2 * k + 1];
    x[2 * k] = re * kernel_[2 * k] - im * kernel_[2 * k + 1];
    x[2 * k + 1] = re * kernel_[2 * k + 1] + im * kernel_[2 * k];
  }
  inner_->run(x, 2, x, 2, true, scale);
  for (int64_t k = 0; k < n_; ++k) {
    const T re = x[2 * k], im = x[2 * k + 1];
    out[k * out_step + real] = re * chirp_[2 * k] - im * chirp_[2 * k + 1];
    out[k * out_step + 1 - real] = re * chirp_[2 * k + 1] + im * chirp_[2 * k];
  }
}

template <class T>
void half_of_long(int64_t n, const T* in, int64_t in_step, T* out, int64_t out_step, T scale) {
  const bool packed = n % 2 == 0 && in_step == 1;  // pairs of numbers are complex ones
  const int64_t length = packed ? n / 2 : n;
  const auto plan = cached<LongPlan<T>>(length);
  Scratch<T> scratch(2 * length);
  T* const z = scratch.data();
  for (int64_t i = 0; !packed && i < n; ++i) {
    z[2 * i] = in[i * in_step];
    z[2 * i + 1] = 0;
  }
  plan->run(packed ? in : z, 2, z, 2, false, packed ? scale / 2 : scale);
  if (!packed) {
    for (int64_t k = 0; k <= n / 2; ++k) std::copy_n(z + 2 * k, 2, out + k * out_step);
    return;
  }
  const auto turns = cached<HalfTurns<T>>(n);
  parallel_for(length / 2 + 1, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T* const near = z + 2 * k;
      const T* const far = k ? z + 2 * (length - k) : near;
      const T cosine = turns->data()[2 * k], sine = turns->data()[2 * k + 1];
      const T even_re = near[0] + far[0], even_im = near[1] - far[1];
      const T odd_re = near[1] + far[1], odd_im = far[0] - near[0];
      const T turn_re = odd_re * cosine - odd_im * sine, turn_im = odd_re * sine + odd_im * cosine;
      out[k * out_step] = even_re + turn_re;
      out[k * out_step + 1] = even_im + turn_im;
      out[(length - k) * out_step] = even_re - turn_re;
      out[(length - k) * out_step + 1] = turn_im - even_im;
    }
  });
}

template <class T>
void real_of_long(int64_t n, const T* in, int64_t in_step, T* out, int64_t out_step, T scale) {
  const bool packed = n % 2 == 0 && out_step == 1;
  const int64_t length = packed ? n / 2 : n;
  const auto plan = cached<LongPlan<T>>(length);
  Scratch<T> scratch(2 * length);
  T* const z = scratch.data();
  const auto real_part = [&](int64_t k) { return in[k * in_step]; };
  const auto imaginary_part = [&](int64_t k) {  // of real entries it is not looked at
    return k == 0 || 2 * k == n ? T(0) : in[k * in_step + 1];
  };
  if (!packed) {
    for (int64_t k = 0; k < n; ++k) {
      const bool mirrored = k > n / 2;
      const int64_t from = mirrored ? n - k : k;
      z[2 * k] = real_part(from);
      z[2 * k + 1] = mirrored ? -imaginary_part(from) : imaginary_part(from);
    }
    plan->run(z, 2, z, 2, true, scale);
    for (int64_t i = 0; i < n; ++i) out[i * out_step] = z[2 * i];
    return;
  }
  const auto turns = cached<HalfTurns<T>>(n);
  parallel_for(length, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T a = real_part(k), b = imaginary_part(k);
      const T c = real_part(length - k), d = imaginary_part(length - k);
      const T cosine = turns->data()[2 * k], sine = turns->data()[2 * k + 1];
      const T odd_re = (a - c) * cosine + (b + d) * sine;
      const T odd_im = (b + d) * cosine - (a - c) * sine;
      z[2 * k] = a + c - odd_im;
      z[2 * k + 1] = b - d + odd_re;
    }
  });
  plan->run(z, 2, out, 2, true, scale);
}

#define INSTANTIATE(T)                                                    \
  template class LongPlan<T>;                                             \
  template void half_of_long(int64_t, const T*, int64_t, T*, int64_t, T); \
  template void real_of_long(int64_t, const T*, int64_t, T*, int64_t, T);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::fft
