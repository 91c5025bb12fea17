#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "ops/fft_long.h"
#include "ops/fft_plan.h"
#include "ops/fft_rows.h"
#include "testing.h"

namespace weft {
namespace {

using fft::kEntry;
using fft::kRow;
using Complex = std::complex<double>;

// Numbers in (-1, 1) that look random.
template <class T>
std::vector<T> entries(int64_t count) {
  std::vector<T> made(static_cast<size_t>(count));
  uint32_t state = 7;
  for (T& value : made) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<double>(state >> 8) * 0x1p-23 - 1);
  }
  return made;
}

// sum over i of at(i) exp(-2 pi i k / n), by the definition.
template <class At>
Complex sum_of(int64_t n, int64_t k, const At& at) {
  Complex sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += at(i) * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i * k % n) /
                                       static_cast<double>(n));
  }
  return sum;
}

template <class T>
Complex entry(const std::vector<T>& rows, int64_t at, int64_t lane) {
  return {rows[at * kEntry<T> + lane], rows[at * kEntry<T> + kRow<T> + lane]};
}

template <class T>
std::vector<T> transformed(std::vector<T> rows, const fft::Plan<T>& plan) {
  std::vector<T> work(static_cast<size_t>(plan.work()));
  plan.run(rows.data(), work.data());
  return rows;
}

template <class T>
void check_plan(int64_t n, double tolerance) {
  const std::vector<T> in = entries<T>(n * kEntry<T>);
  const auto plan = fft::cached<fft::Plan<T>>(n);
  const std::vector<T> out = transformed(in, *plan);
  for (int64_t k = 0; k < n; ++k) {
    for (const int64_t lane : {int64_t{0}, kRow<T> - 1}) {
      const Complex sum = sum_of(n, k, [&](int64_t i) { return entry(in, i, lane); });
      CHECK_NEAR(std::abs(entry(out, plan->order()[k], lane) - sum), 0, tolerance);
    }
  }
}

// Strided from and to memory of its own, there and back.
template <class T>
void check_long(int64_t n, double tolerance) {
  const std::vector<T> in = entries<T>(6 * n);
  const fft::LongPlan<T> plan(n);
  std::vector<T> out(static_cast<size_t>(2 * n)), back(static_cast<size_t>(4 * n));
  plan.run(in.data(), 6, out.data(), 2, false, T(0.5));
  for (int64_t k = 0; k < n; k += n / 50 + 1) {
    const Complex sum = sum_of(n, k, [&](int64_t i) { return Complex(in[6 * i], in[6 * i + 1]); });
    CHECK_NEAR(std::abs(Complex(out[2 * k], out[2 * k + 1]) - 0.5 * sum), 0, tolerance);
  }
  plan.run(out.data(), 2, back.data(), 4, true, T(2) / static_cast<T>(n));
  for (int64_t i = 0; i < n; ++i) {
    CHECK_NEAR(back[4 * i], in[6 * i], tolerance);
    CHECK_NEAR(back[4 * i + 1], in[6 * i + 1], tolerance);
  }
}

// Element t of lane l at l * stride + t * step, parts of a complex number `part` apart.
template <class T>
fft::Lanes<T> lanes_in(std::vector<T>& memory, typename fft::Lanes<T>::Access access, int64_t count,
                       int64_t stride, int64_t step, int64_t part) {
  fft::Lanes<T> lanes{access, count, step, part, {}};
  for (int64_t l = 0; l < kRow<T>; ++l) {
    lanes.lane[l] = memory.data() + std::min(l, count - 1) * stride;
  }
  return lanes;
}

// To rows and back, both of them by the names of elements.
template <class T>
void check_moves(typename fft::Lanes<T>::Access access, int64_t elements, int64_t count,
                 int64_t stride, int64_t step, int64_t part, bool exchange) {
  std::vector<T> memory = entries<T>(elements * kRow<T> * 4);
  std::vector<T> copy(memory.size(), T(9)), rows(static_cast<size_t>(elements * kEntry<T>));
  const auto from = lanes_in(memory, access, count, stride, step, part);
  const auto to = lanes_in(copy, access, count, stride, step, part);
  const fft::Rows<T> held{.rows = rows.data(), .exchange = exchange};
  fft::gather(from, elements, held);
  fft::scatter(to, elements, T(2), held);
  size_t written = 0;
  for (int64_t t = 0; t < elements; ++t) {
    const int64_t row = t / 2 * kEntry<T> + (exchange ? 1 - t % 2 : t % 2) * kRow<T>;
    for (int64_t l = 0; l < count; ++l) {
      CHECK_EQ(rows[row + l], *from.at(l, t));
      CHECK_EQ(*to.at(l, t), 2 * *from.at(l, t));
    }
    written += static_cast<size_t>(count);
  }
  CHECK_EQ(std::count(copy.begin(), copy.end(), T(9)), static_cast<int64_t>(copy.size() - written));
}

template <class T>
void check_half(int64_t m, double tolerance) {
  const std::vector<T> in = entries<T>(m * kEntry<T>);
  const auto plan = fft::cached<fft::Plan<T>>(m);
  const auto turns = fft::cached<fft::HalfTurns<T>>(2 * m);
  std::vector<T> rows = transformed(in, *plan);
  rows.resize(static_cast<size_t>((m + 1) * kEntry<T>));
  fft::split_half(m, turns->data(), plan->order(), rows.data());
  const int64_t lane = 1;
  const auto number = [&](int64_t i) { return in[i / 2 * kEntry<T> + i % 2 * kRow<T> + lane]; };
  std::vector<T> ordered;
  for (int64_t k = 0; k <= m; ++k) {
    const Complex sum = sum_of(2 * m, k, [&](int64_t i) { return Complex(number(i)); });
    CHECK_NEAR(std::abs(entry(rows, plan->order()[k], lane) - 2.0 * sum), 0, tolerance);
    const T* const found = rows.data() + plan->order()[k] * kEntry<T>;
    ordered.insert(ordered.end(), found, found + kEntry<T>);
  }
  ordered[kRow<T> + lane] = ordered[m * kEntry<T> + kRow<T> + lane] = NAN;  // not looked at
  fft::merge_half(m, turns->data(), ordered.data());
  const std::vector<T> back = transformed(ordered, *plan);
  for (int64_t i = 0; i < m; ++i) {
    const Complex found = entry(back, plan->order()[i], lane) / static_cast<double>(4 * m);
    CHECK_NEAR(found.imag(), number(2 * i), tolerance);
    CHECK_NEAR(found.real(), number(2 * i + 1), tolerance);
  }
}

}  // namespace

TEST(fft_of_every_length) {
  for (int64_t n = 1; n <= 140; ++n) check_plan<double>(n, 1e-11);
  for (const int64_t n : {256, 360, 441, 509, 512, 1021}) check_plan<double>(n, 1e-10);
  for (const int64_t n : {64, 97, 100, 131, 243}) check_plan<float>(n, 1e-3);
}

TEST(fft_of_long_sequences) {
  for (const int64_t n : {256, 300, 509, 514, 1000, 4096}) check_long<double>(n, 1e-9);
  for (const int64_t n : {7, 128, 1000, 1021}) check_long<float>(n, 1e-2);
}

TEST(fft_moves) {
  using Floats = fft::Lanes<float>;
  using Doubles = fft::Lanes<double>;
  for (const bool exchange : {false, true}) {
    for (const int64_t count : {1, 5, 8}) {
      for (const int64_t elements : {2, 6, 16, 20, 34}) {
        check_moves<float>(Floats::Access::Contiguous, elements, 2 * count, elements, 2, 1,
                           exchange);
        check_moves<double>(Doubles::Access::Contiguous, elements, count, elements, 2, 1, exchange);
        check_moves<double>(Doubles::Access::Strided, elements, count, 2, 4 * count, 1, exchange);
        check_moves<float>(Floats::Access::Strided, elements, count, 1, 4 * count, 2 * count,
                           exchange);
      }
    }
    check_moves<float>(Floats::Access::InterleavedPairs, 6, 16, 2, 40, 1, exchange);
    check_moves<double>(Doubles::Access::InterleavedPairs, 6, 8, 2, 18, 1, exchange);
    check_moves<float>(Floats::Access::Interleaved, 6, 16, 1, 36, 18, exchange);
    check_moves<double>(Doubles::Access::Interleaved, 6, 8, 1, 20, 10, exchange);
  }
}

TEST(fft_of_real_sequences) {
  for (int64_t m = 1; m <= 40; ++m) check_half<double>(m, 1e-11);
  for (const int64_t m : {64, 67, 200}) check_half<float>(m, 1e-3);
}

TEST(fft_lanes_are_apart) {
  // A sequence has the same bits whatever stands beside it, not finite numbers for one.
  for (const int64_t n : {12, 49, 128, 127}) {
    const auto plan = fft::cached<fft::Plan<float>>(n);
    std::vector<float> rows = entries<float>(n * kEntry<float>);
    const std::vector<float> expected = transformed(rows, *plan);
    for (int64_t i = 0; i < n; ++i) rows[i * kEntry<float> + 3] = INFINITY;
    const std::vector<float> found = transformed(rows, *plan);
    for (int64_t i = 0; i < n * kEntry<float>; ++i) {
      if (i % kRow<float> != 3) CHECK_EQ(found[i], expected[i]);
    }
  }
}

}  // namespace weft
