#include "ops/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <numbers>
#include <utility>

#include "core/mutex.h"
#include "ops/levels.h"

namespace weft::fft {
namespace {

// Passes --------------------------------------------------------------------------------------
// One stage: x[count * radix][width] to y[count][radix][width], where `width` grows from the number
// of lanes by every radix before.

template <class T>
struct Parts {
  T* __restrict re;
  T* __restrict im;
};

template <class T>
struct Pair {
  T re, im;
};

template <class T>
WEFT_INLINE Pair<T> operator+(Pair<T> a, Pair<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
WEFT_INLINE Pair<T> operator-(Pair<T> a, Pair<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
WEFT_INLINE Pair<T> operator*(T a, Pair<T> b) {
  return {a * b.re, a * b.im};
}
// Times -i.
template <class T>
WEFT_INLINE Pair<T> quarter(Pair<T> a) {
  return {a.im, -a.re};
}

template <class T>
WEFT_INLINE void butterfly(Pair<T> (&a)[2]) {
  const Pair<T> sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class T>
WEFT_INLINE void butterfly(Pair<T> (&a)[3]) {
  constexpr T kSine = static_cast<T>(0.86602540378443864676L);
  const Pair<T> sum = a[1] + a[2], turned = quarter(kSine * (a[1] - a[2]));
  const Pair<T> middle = a[0] - T(0.5) * sum;
  a[0] = a[0] + sum;
  a[1] = middle + turned;
  a[2] = middle - turned;
}

template <class T>
WEFT_INLINE void butterfly(Pair<T> (&a)[4]) {
  const Pair<T> even = a[0] + a[2], even_difference = a[0] - a[2];
  const Pair<T> odd = a[1] + a[3], odd_difference = quarter(a[1] - a[3]);
  a[0] = even + odd;
  a[1] = even_difference + odd_difference;
  a[2] = even - odd;
  a[3] = even_difference - odd_difference;
}

template <class T>
WEFT_INLINE void butterfly(Pair<T> (&a)[5]) {
  constexpr T kCosine1 = static_cast<T>(0.30901699437494742410L);
  constexpr T kCosine2 = static_cast<T>(-0.80901699437494742410L);
  constexpr T kSine1 = static_cast<T>(0.95105651629515357212L);
  constexpr T kSine2 = static_cast<T>(0.58778525229247312917L);
  const Pair<T> outer = a[1] + a[4], inner = a[2] + a[3];
  const Pair<T> outer_gap = a[1] - a[4], inner_gap = a[2] - a[3];
  const Pair<T> first = a[0] + kCosine1 * outer + kCosine2 * inner;
  const Pair<T> second = a[0] + kCosine2 * outer + kCosine1 * inner;
  const Pair<T> first_turned = quarter(kSine1 * outer_gap + kSine2 * inner_gap);
  const Pair<T> second_turned = quarter(kSine2 * outer_gap - kSine1 * inner_gap);
  a[0] = a[0] + outer + inner;
  a[1] = first + first_turned;
  a[4] = first - first_turned;
  a[2] = second + second_turned;
  a[3] = second - second_turned;
}

// Calls body(0), body(1) and so on with constants: a loop would not be unrolled before the one
// around it is put into registers.
template <class Body, int... I>
WEFT_INLINE void unrolled(std::integer_sequence<int, I...>, const Body& body) {
  (body(std::integral_constant<int, I>()), ...);
}

template <int R, class T>
WEFT_INLINE void pass(const Stage<T>& stage, int64_t width, Parts<T> x, Parts<T> y) {
  using Constants = std::make_integer_sequence<int, R>;
  const int64_t apart = width * stage.count;
  for (int64_t p = 0; p < stage.count; ++p) {
    const T* __restrict in_re = x.re + width * p;
    const T* __restrict in_im = x.im + width * p;
    T* __restrict out_re = y.re + width * R * p;
    T* __restrict out_im = y.im + width * R * p;
    T cosines[R], sines[R];
    cosines[0] = 1;
    sines[0] = 0;
    for (int k = 1; k < R; ++k) {
      cosines[k] = stage.cosines[p * (R - 1) + k - 1];
      sines[k] = stage.sines[p * (R - 1) + k - 1];
    }
#pragma GCC ivdep
    for (int64_t q = 0; q < width; ++q) {
      Pair<T> a[R];
      unrolled(Constants(), [&](auto j) __attribute__((always_inline)) {
        a[j] = {in_re[q + apart * j], in_im[q + apart * j]};
      });
      butterfly(a);
      out_re[q] = a[0].re;
      out_im[q] = a[0].im;
      unrolled(Constants(), [&](auto k) __attribute__((always_inline)) {
        if constexpr (k > 0) {
          out_re[q + width * k] = a[k].re * cosines[k] - a[k].im * sines[k];
          out_im[q + width * k] = a[k].re * sines[k] + a[k].im * cosines[k];
        }
      });
    }
  }
}

// For other primes: every result from every entry.
template <class T>
WEFT_INLINE void pass_of_prime(const Stage<T>& stage, int64_t width, Parts<T> x, Parts<T> y) {
  const int64_t radix = stage.radix;
  for (int64_t p = 0; p < stage.count; ++p) {
    for (int64_t k = 0; k < radix; ++k) {
      T* __restrict out_re = y.re + width * (radix * p + k);
      T* __restrict out_im = y.im + width * (radix * p + k);
      for (int64_t j = 0; j < radix; ++j) {
        const T* __restrict in_re = x.re + width * (p + stage.count * j);
        const T* __restrict in_im = x.im + width * (p + stage.count * j);
        const T c = stage.root_cosines[j * k % radix], s = stage.root_sines[j * k % radix];
        for (int64_t q = 0; q < width; ++q) {
          const T re = in_re[q] * c - in_im[q] * s, im = in_re[q] * s + in_im[q] * c;
          out_re[q] = j ? out_re[q] + re : re;
          out_im[q] = j ? out_im[q] + im : im;
        }
      }
      if (k == 0) continue;
      const T c = stage.cosines[p * (radix - 1) + k - 1], s = stage.sines[p * (radix - 1) + k - 1];
      for (int64_t q = 0; q < width; ++q) {
        const T re = out_re[q], im = out_im[q];
        out_re[q] = re * c - im * s;
        out_im[q] = re * s + im * c;
      }
    }
  }
}

template <class T>
WEFT_INLINE void any_pass(const Stage<T>& stage, int64_t width, Parts<T> x, Parts<T> y) {
  switch (stage.radix) {
    case 2:
      return pass<2>(stage, width, x, y);
    case 3:
      return pass<3>(stage, width, x, y);
    case 4:
      return pass<4>(stage, width, x, y);
    case 5:
      return pass<5>(stage, width, x, y);
    default:
      return pass_of_prime(stage, width, x, y);
  }
}

#define WEFT_FFT_PASS(suffix, attribute, bytes)                                                    \
  template <class T>                                                                               \
  attribute void run_pass_##suffix(const Stage<T>& stage, int64_t width, Parts<T> x, Parts<T> y) { \
    any_pass(stage, width, x, y);                                                                  \
  }
WEFT_LEVELS(WEFT_FFT_PASS)
#undef WEFT_FFT_PASS

template <class T>
void run_pass(const Stage<T>& stage, int64_t width, Parts<T> x, Parts<T> y) {
  WEFT_PICK(run_pass, stage, width, x, y);
}

// exp(-2 pi i / n) to the power i.
struct Turn {
  double cosine, sine;
};

Turn turn(int64_t i, int64_t n) {
  // Eighths of a turn apart, so that the angle is small and its cosine and sine are exact ones.
  const int64_t eighths = 8 * (i % n);
  const int64_t octant = eighths / n;
  const double angle =
      std::numbers::pi / 4 * static_cast<double>(eighths - octant * n) / static_cast<double>(n);
  const double c = std::cos(angle), s = std::sin(angle), root = std::numbers::sqrt2 / 2;
  double cosine = c, sine = s;
  if (octant % 2) {
    cosine = (c - s) * root;
    sine = (c + s) * root;
  }
  for (int64_t quarter_turn = 0; quarter_turn < octant / 2; ++quarter_turn) {
    const double before = cosine;
    cosine = -sine;
    sine = before;
  }
  return {cosine, -sine};
}

// Lengths -------------------------------------------------------------------------------------

// The next factor to take: 4 and 5 first, for they save multiplications.
int64_t next_factor(int64_t n) {
  for (const int64_t factor : {4, 5, 3, 2}) {
    if (n % factor == 0) return factor;
  }
  for (int64_t factor = 7; factor * factor <= n; factor += 2) {
    if (n % factor == 0) return factor;
  }
  return n;
}

int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  while (n > 1) {
    const int64_t factor = next_factor(n);
    largest = std::max(largest, factor);
    n /= factor;
  }
  return largest;
}

// The least product of 2, 3 and 5 from `least` on.
int64_t smooth_size(int64_t least) {
  for (int64_t n = least;; ++n) {
    int64_t rest = n;
    for (const int64_t factor : {2, 3, 5}) {
      while (rest % factor == 0) rest /= factor;
    }
    if (rest == 1) return n;
  }
}

}  // namespace

template <class T>
Plan<T>::Plan(int64_t n) : n_(n) {
  if (largest_factor(n) > kMostRadix) {
    make_chirp();
  } else {
    make_stages(n);
  }
}

template <class T>
void Plan<T>::make_stages(int64_t left) {
  while (left > 1) {
    const int64_t radix = next_factor(left), whole = left;
    left /= radix;
    Stage<T> stage{radix, left, {}, {}, {}, {}};
    stage.cosines.reserve(static_cast<size_t>(left * (radix - 1)));
    stage.sines.reserve(static_cast<size_t>(left * (radix - 1)));
    for (int64_t p = 0; p < left; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        const Turn at = turn(p * k, whole);
        stage.cosines.push_back(static_cast<T>(at.cosine));
        stage.sines.push_back(static_cast<T>(at.sine));
      }
    }
    for (int64_t i = 0; radix > 5 && i < radix; ++i) {
      const Turn at = turn(i, radix);
      stage.root_cosines.push_back(static_cast<T>(at.cosine));
      stage.root_sines.push_back(static_cast<T>(at.sine));
    }
    stages_.push_back(std::move(stage));
  }
}

template <class T>
void Plan<T>::make_chirp() {
  const int64_t longer = smooth_size(2 * n_ - 1);
  inner_ = std::make_unique<Plan>(longer);
  std::vector<T> re(static_cast<size_t>(longer)), im(static_cast<size_t>(longer));
  for (int64_t k = 0; k < n_; ++k) {
    // k^2 counts half turns, modulo the 2 n that make whole ones.
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) *
                                             static_cast<unsigned __int128>(k) % (2 * n_));
    const Turn at = turn(square, 2 * n_);
    chirp_re_.push_back(static_cast<T>(at.cosine));
    chirp_im_.push_back(static_cast<T>(at.sine));
    const int64_t mirrored = k ? longer - k : 0;
    re[k] = re[mirrored] = static_cast<T>(at.cosine / static_cast<double>(longer));
    im[k] = im[mirrored] = static_cast<T>(-at.sine / static_cast<double>(longer));
  }
  std::vector<T> work(static_cast<size_t>(inner_->work(1)));
  inner_->run(1, re.data(), im.data(), work.data());
  kernel_re_ = std::move(re);
  kernel_im_ = std::move(im);
}

template <class T>
int64_t Plan<T>::work(int64_t lanes) const {
  if (!inner_) return 2 * n_ * lanes;
  return 2 * inner_->size() * lanes + inner_->work(lanes);
}

template <class T>
void Plan<T>::run(int64_t lanes, T* re, T* im, T* work) const {
  if (inner_) return run_chirp(lanes, re, im, work);
  run_stages(lanes, re, im, work);
}

template <class T>
void Plan<T>::run_stages(int64_t lanes, T* re, T* im, T* work) const {
  Parts<T> x{re, im}, y{work, work + n_ * lanes};
  int64_t width = lanes;
  for (const Stage<T>& stage : stages_) {
    run_pass(stage, width, x, y);
    std::swap(x, y);
    width *= stage.radix;
  }
  if (x.re != re) {
    std::copy_n(x.re, n_ * lanes, re);
    std::copy_n(x.im, n_ * lanes, im);
  }
}

template <class T>
void Plan<T>::run_chirp(int64_t lanes, T* re, T* im, T* work) const {
  const int64_t longer = inner_->size();
  T* const long_re = work;
  T* const long_im = work + longer * lanes;
  T* const rest = work + 2 * longer * lanes;
  const auto times = [lanes](T cosine, T sine, const T* from_re, const T* from_im, T* to_re,
                             T* to_im) {
    for (int64_t l = 0; l < lanes; ++l) {
      const T a = from_re[l], b = from_im[l];
      to_re[l] = a * cosine - b * sine;
      to_im[l] = a * sine + b * cosine;
    }
  };
  for (int64_t k = 0; k < n_; ++k) {
    const int64_t at = k * lanes;
    times(chirp_re_[k], chirp_im_[k], re + at, im + at, long_re + at, long_im + at);
  }
  std::fill(long_re + n_ * lanes, long_re + longer * lanes, T(0));
  std::fill(long_im + n_ * lanes, long_im + longer * lanes, T(0));
  inner_->run(lanes, long_re, long_im, rest);
  for (int64_t k = 0; k < longer; ++k) {
    const int64_t at = k * lanes;
    times(kernel_re_[k], kernel_im_[k], long_re + at, long_im + at, long_re + at, long_im + at);
  }
  inner_->run(lanes, long_im, long_re, rest);
  for (int64_t k = 0; k < n_; ++k) {
    const int64_t at = k * lanes;
    times(chirp_re_[k], chirp_im_[k], long_re + at, long_im + at, re + at, im + at);
  }
}

template <class T>
HalfTurns<T>::HalfTurns(int64_t n) : n_(n) {
  for (int64_t k = 0; k <= n / 2; ++k) {
    const Turn at = turn(k, n);
    cosines_.push_back(static_cast<T>(at.cosine));
    sines_.push_back(static_cast<T>(at.sine));
  }
}

template <class Made>
std::shared_ptr<const Made> kept(int64_t n) {
  constexpr size_t kMost = 16;
  using All = std::deque<std::shared_ptr<const Made>>;
  static Mutex mutex;
  static All* all = new All;
  const auto lock = [] {
    if (mutex.lock()) all = new All;  // a fork left the other one half changed
    return std::unique_lock(mutex, std::adopt_lock);
  };
  {
    const auto held = lock();
    for (const auto& one : *all) {
      if (one->size() == n) return one;
    }
  }
  auto made = std::make_shared<const Made>(n);  // others may go on meanwhile
  const auto held = lock();
  all->push_front(made);
  if (all->size() > kMost) all->pop_back();
  return made;
}

template class Plan<float>;
template class Plan<double>;
template class HalfTurns<float>;
template class HalfTurns<double>;
template std::shared_ptr<const Plan<float>> kept(int64_t);
template std::shared_ptr<const Plan<double>> kept(int64_t);
template std::shared_ptr<const HalfTurns<float>> kept(int64_t);
template std::shared_ptr<const HalfTurns<double>> kept(int64_t);

}  // namespace weft::fft
