#include "ops/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <numbers>

#include "core/mutex.h"
#include "ops/fft_long.h"

namespace weft::fft {
namespace {

// The next factor to take: large ones first, for they save passes and products.
int64_t next_factor(int64_t n) {
  for (const int64_t factor : {8, 4, 5, 3, 2}) {
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

template <class T>
void put_turn(std::vector<T>& to, Turn at) {
  to.push_back(static_cast<T>(at.cosine));
  to.push_back(static_cast<T>(at.sine));
}

template <class T>
Stage<T> make_stage(int64_t radix, int64_t whole) {
  Stage<T> stage{radix, whole / radix, {}, {}};
  stage.turns.reserve(static_cast<size_t>(2 * (stage.count - 1) * (radix - 1)));
  for (int64_t p = 1; p < stage.count; ++p) {
    for (int64_t k = 1; k < radix; ++k) put_turn(stage.turns, turn(p * k, whole));
  }
  for (int64_t i = 0; radix > 5 && radix % 2 && i < radix; ++i) {
    put_turn(stage.roots, turn(i, radix));
  }
  return stage;
}

}  // namespace

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

Turn chirp(int64_t k, int64_t n) {
  // k^2 counts half turns, modulo the 2 n that make whole ones.
  const auto factor = static_cast<unsigned __int128>(k);
  return turn(static_cast<int64_t>(factor * factor % static_cast<unsigned __int128>(2 * n)), 2 * n);
}

int64_t smooth_size(int64_t least) {
  for (int64_t n = least;; ++n) {
    int64_t rest = n;
    for (const int64_t factor : {2, 3, 5}) {
      while (rest % factor == 0) rest /= factor;
    }
    if (rest == 1) return n;
  }
}

template <class T>
Plan<T>::Plan(int64_t n) : n_(n) {
  if (largest_factor(n) > kMostRadix) {
    make_chirp();
  } else {
    make_stages();
  }
  order_.push_back(static_cast<int32_t>(n));
}

template <class T>
void Plan<T>::make_stages() {
  for (int64_t left = n_; left > 1; left = stages_.back().count) {
    stages_.push_back(make_stage<T>(next_factor(left), left));
  }
  // A stage leaves results k, k + radix, k + 2 radix and so on to block k.
  for (int64_t k = 0; k < n_; ++k) {
    int64_t place = 0, rest = k;
    for (const Stage<T>& stage : stages_) {
      place += rest % stage.radix * stage.count;
      rest /= stage.radix;
    }
    order_.push_back(static_cast<int32_t>(place));
  }
}

template <class T>
void Plan<T>::make_chirp() {
  const int64_t longer = smooth_size(2 * n_ - 1);
  inner_ = std::make_unique<Plan>(longer);
  std::vector<T> rows(static_cast<size_t>(longer * kEntry<T>));
  for (int64_t k = 0; k < n_; ++k) {
    const Turn at = chirp(k, n_);
    put_turn(chirp_, at);
    for (const int64_t place : {k, k ? longer - k : 0}) {
      rows[place * kEntry<T>] = static_cast<T>(at.cosine / static_cast<double>(longer));
      rows[place * kEntry<T> + kRow<T>] = static_cast<T>(-at.sine / static_cast<double>(longer));
    }
    order_.push_back(static_cast<int32_t>(k));
  }
  inner_->run(rows.data(), nullptr);
  for (int64_t k = 0; k < longer; ++k) {
    const T* const entry = rows.data() + inner_->order()[k] * kEntry<T>;
    kernel_.push_back(entry[0]);
    kernel_.push_back(-entry[kRow<T>]);
  }
}

template <class T>
int64_t Plan<T>::work() const {
  return inner_ ? 2 * inner_->size() * kEntry<T> : 0;
}

template <class T>
void Plan<T>::run(T* rows, T* work) const {
  if (!inner_) return run_stages(stages_, rows);
  const int64_t longer = inner_->size();
  T* const first = work;
  T* const second = work + longer * kEntry<T>;
  times_factors<T>(n_, chirp_.data(), nullptr, rows, first, false);
  std::fill(first + n_ * kEntry<T>, second, T(0));
  inner_->run(first, nullptr);
  // The inverse is the transform of what has real and imaginary parts exchanged, and a product's
  // are exchanged if those of one factor are and the other is the conjugate.
  times_factors<T>(longer, kernel_.data(), inner_->order(), first, second, true);
  inner_->run(second, nullptr);
  times_factors<T>(n_, chirp_.data(), inner_->order(), second, rows, true);
}

template <class T>
HalfTurns<T>::HalfTurns(int64_t n) : n_(n) {
  for (int64_t k = 0; k <= n / 2; ++k) put_turn(turns_, turn(k, n));
}

template <class Made>
std::shared_ptr<const Made> cached(int64_t n) {
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
template std::shared_ptr<const Plan<float>> cached(int64_t);
template std::shared_ptr<const Plan<double>> cached(int64_t);
template std::shared_ptr<const HalfTurns<float>> cached(int64_t);
template std::shared_ptr<const HalfTurns<double>> cached(int64_t);
template std::shared_ptr<const LongPlan<float>> cached(int64_t);
template std::shared_ptr<const LongPlan<double>> cached(int64_t);

}  // namespace weft::fft
