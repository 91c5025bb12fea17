#include <cmath>
#include <numbers>
#include <vector>

#include "ops/fft_plan.h"
#include "testing.h"

namespace weft {
namespace {

// Numbers in (-1, 1) that look random.
template <class T>
std::vector<T> noise(int64_t count) {
  std::vector<T> made(static_cast<size_t>(count));
  uint32_t state = 7;
  for (T& value : made) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<double>(state >> 8) * 0x1p-23 - 1);
  }
  return made;
}

// By the definition.
template <class T>
void check_against_sums(int64_t n, int64_t lanes, double tolerance) {
  const std::vector<T> in_re = noise<T>(n * lanes), in_im = noise<T>(n * lanes + 1);
  std::vector<T> re = in_re, im(in_im.begin() + 1, in_im.end());
  const std::vector<T> given_im = im;
  const auto plan = fft::kept<fft::Plan<T>>(n);
  std::vector<T> work(static_cast<size_t>(plan->work(lanes)));
  plan->run(lanes, re.data(), im.data(), work.data());
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t l = 0; l < lanes; ++l) {
      double sum_re = 0, sum_im = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(i * k % n) / n;
        const double c = std::cos(angle), s = std::sin(angle);
        sum_re += in_re[i * lanes + l] * c - given_im[i * lanes + l] * s;
        sum_im += in_re[i * lanes + l] * s + given_im[i * lanes + l] * c;
      }
      CHECK_NEAR(re[k * lanes + l], sum_re, tolerance);
      CHECK_NEAR(im[k * lanes + l], sum_im, tolerance);
    }
  }
}

}  // namespace

TEST(fft_of_every_length) {
  for (int64_t n = 1; n <= 140; ++n) check_against_sums<double>(n, n % 4 + 1, 1e-11);
  for (const int64_t n : {256, 360, 441, 509, 512, 1021}) check_against_sums<double>(n, 2, 1e-10);
  for (const int64_t n : {64, 97, 100, 131, 243}) check_against_sums<float>(n, 16, 1e-3);
}

TEST(fft_lanes_are_apart) {
  // A sequence has the same bits alone and beside others, one of which is not finite.
  constexpr int64_t kLanes = 9;
  for (const int64_t n : {12, 49, 128, 127}) {
    const auto plan = fft::kept<fft::Plan<float>>(n);
    std::vector<float> re = noise<float>(n * kLanes), im(re.rbegin(), re.rend());
    for (int64_t i = 0; i < n; ++i) re[i * kLanes + 3] = INFINITY;
    std::vector<float> alone_re, alone_im;
    for (int64_t i = 0; i < n; ++i) {
      alone_re.push_back(re[i * kLanes + 4]);
      alone_im.push_back(im[i * kLanes + 4]);
    }
    std::vector<float> work(static_cast<size_t>(plan->work(kLanes)));
    plan->run(kLanes, re.data(), im.data(), work.data());
    plan->run(1, alone_re.data(), alone_im.data(), work.data());
    for (int64_t i = 0; i < n; ++i) {
      CHECK_EQ(re[i * kLanes + 4], alone_re[i]);
      CHECK_EQ(im[i * kLanes + 4], alone_im[i]);
    }
  }
}

}  // namespace weft
