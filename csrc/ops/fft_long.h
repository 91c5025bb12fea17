// Discrete Fourier transforms of single long sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/fft_plan.h"

namespace weft::fft {

// The sequence as a matrix of n1 x n2: its columns are a group of sequences for Plan, and then,
// each entry turned by its place, its rows are (Bailey's four steps). Lengths without such a
// divisor are convolutions with a chirp, of a length that has one.
template <class T>
class LongPlan {
 public:
  // Shorter ones gain nothing.
  static constexpr int64_t kLeast = 256;

  explicit LongPlan(int64_t n);
  int64_t size() const { return n_; }
  // Complex numbers, `in_step` and `out_step` elements of T apart; in may be out. With `inverse`,
  // the unscaled inverse; either is multiplied by scale.
  void run(const T* in, int64_t in_step, T* out, int64_t out_step, bool inverse, T scale) const;

 private:
  void make_table();
  void make_chirp();
  void run_columns(const T* in, int64_t in_step, bool inverse, T* middle) const;
  void run_rows(const T* middle, T* out, int64_t out_step, bool inverse, T scale) const;
  void run_chirp(const T* in, int64_t in_step, T* out, int64_t out_step, bool inverse,
                 T scale) const;

  int64_t n_, n1_ = 1, n2_ = 1;
  int64_t width_ = 0, stride_ = 0;  // of a row of the matrix between the steps; of the table
  std::shared_ptr<const Plan<T>> columns_, rows_;
  std::vector<T> cosines_, sines_;  // [n2, n1] by stride_
  std::unique_ptr<LongPlan> inner_;
  std::vector<T> chirp_, kernel_;
};

// The first n / 2 + 1 entries of the transform of n real numbers, and those of an unscaled inverse;
// steps are in elements of T.
template <class T>
void half_of_long(int64_t n, const T* in, int64_t in_step, T* out, int64_t out_step, T scale);
template <class T>
void real_of_long(int64_t n, const T* in, int64_t in_step, T* out, int64_t out_step, T scale);

}  // namespace weft::fft
