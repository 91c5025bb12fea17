// Discrete Fourier transforms of one length, of several sequences at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace weft::fft {

// One factor of the length: `radix` subsequences of `count` entries become one of radix * count.
template <class T>
struct Stage {
  int64_t radix, count;
  std::vector<T> cosines, sines;  // [count, radix - 1] of the turns between the subsequences
  std::vector<T> root_cosines, root_sines;  // [radix], for a radix that has no butterfly
};

// Sequences are held lane by lane, real and imaginary parts apart: entry i of sequence l stands at
// i * lanes + l. So the loops over lanes are those that registers are filled from, and a sequence's
// result does not depend on its neighbours.
//
// Stockham's algorithm for factors up to kMostRadix, Bluestein's (a convolution with a chirp) for
// lengths with larger ones.
template <class T>
class Plan {
 public:
  static constexpr int64_t kMostRadix = 61;

  explicit Plan(int64_t n);
  int64_t size() const { return n_; }
  // How many elements of T `work` needs.
  int64_t work(int64_t lanes) const;
  // sum over i of x[i] exp(-2 pi i k / n), in place. With re and im exchanged it is the unscaled
  // inverse.
  void run(int64_t lanes, T* re, T* im, T* work) const;

 private:
  void make_stages(int64_t left);
  void make_chirp();
  void run_stages(int64_t lanes, T* re, T* im, T* work) const;
  void run_chirp(int64_t lanes, T* re, T* im, T* work) const;

  int64_t n_;
  std::vector<Stage<T>> stages_;
  // Bluestein's: a longer transform, the chirp, and the chirp's transform.
  std::unique_ptr<Plan> inner_;
  std::vector<T> chirp_re_, chirp_im_, kernel_re_, kernel_im_;
};

// exp(-2 pi i k / n) for k up to n / 2: what a real transform is taken apart by.
template <class T>
class HalfTurns {
 public:
  explicit HalfTurns(int64_t n);
  int64_t size() const { return n_; }
  T cosine(int64_t k) const { return cosines_[static_cast<size_t>(k)]; }
  T sine(int64_t k) const { return sines_[static_cast<size_t>(k)]; }

 private:
  int64_t n_;
  std::vector<T> cosines_, sines_;
};

// The Plan or HalfTurns of a length, kept for the next call.
template <class Made>
std::shared_ptr<const Made> kept(int64_t n);

}  // namespace weft::fft
