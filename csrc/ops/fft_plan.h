// Discrete Fourier transforms of one length, of a group of sequences at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/fft_rows.h"

namespace weft::fft {

// exp(-2 pi i / n) to the power i.
struct Turn {
  double cosine, sine;
};
Turn turn(int64_t i, int64_t n);
// exp(-pi i / n) to the power k^2, which makes a transform of n a convolution.
Turn chirp(int64_t k, int64_t n);
// The least product of 2, 3 and 5 from `least` on.
int64_t smooth_size(int64_t least);

// A transform by rows (fft_rows.h): by stages for factors up to kMostRadix, by Bluestein's
// convolution with a chirp for lengths with larger ones.
template <class T>
class Plan {
 public:
  explicit Plan(int64_t n);
  int64_t size() const { return n_; }
  // How many elements of T `work` needs.
  int64_t work() const;
  // sum over i of x[i] exp(-2 pi i k / n), in place: entry k of the result is left at order()[k];
  // there is one place more, behind them.
  // Of what has real and imaginary parts exchanged, it is the unscaled inverse.
  void run(T* rows, T* work) const;
  const int32_t* order() const { return order_.data(); }

 private:
  void make_stages();
  void make_chirp();

  int64_t n_;
  std::vector<Stage<T>> stages_;
  std::vector<int32_t> order_;
  // Bluestein's: a longer transform, the chirp, and the conjugate of the other chirp's transform.
  std::unique_ptr<Plan> inner_;
  std::vector<T> chirp_, kernel_;
};

// exp(-2 pi i k / n) for k up to n / 2: what a real transform is taken apart by.
template <class T>
class HalfTurns {
 public:
  explicit HalfTurns(int64_t n);
  int64_t size() const { return n_; }
  const T* data() const { return turns_.data(); }  // [n / 2 + 1, 2]: cosine, sine

 private:
  int64_t n_;
  std::vector<T> turns_;
};

// The Plan, HalfTurns or LongPlan of a length, cached for the next call.
template <class Made>
std::shared_ptr<const Made> cached(int64_t n);

}  // namespace weft::fft
