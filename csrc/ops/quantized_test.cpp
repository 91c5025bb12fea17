#include "ops/quantized.h"

#include <cmath>

#include "ops/byte_quads.h"
#include "testing.h"

namespace weft {
namespace {

using native::quantized::Rows;

uint32_t state = 1;
uint8_t drawn() {
  state = state * 1664525 + 1013904223;
  return static_cast<uint8_t>(state >> 24);
}

// Rows and columns of all rests, with the zero points of both factors.
TEST(sums_of_bytes_are_requantised) {
  const int64_t shapes[][3] = {{1, 3, 1}, {13, 33, 5}, {50, 70, 130}, {7, 32, 600}};
  for (const auto& [m, n, words] : shapes) {
    const int64_t k = words * 4, whole = blas::strips_of(n) * blas::kStrip;
    std::vector<uint8_t> a(static_cast<size_t>(m * k));
    std::vector<int8_t> b(static_cast<size_t>(whole * k));
    for (auto& each : a) each = drawn();
    std::vector<float> bias(static_cast<size_t>(whole)), scale(bias.size());
    std::vector<int32_t> columns(bias.size()), zeros(bias.size());
    auto at = [&](int64_t p, int64_t j) -> int8_t& {  // of strips
      return b[static_cast<size_t>(j / 16 * words * 64 + p / 4 * 64 + j % 16 * 4 + p % 4)];
    };
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) at(p, j) = static_cast<int8_t>(drawn());
      columns[j] = drawn() - 128, zeros[j] = drawn() % 9 - 4;
      bias[j] = static_cast<float>(drawn()) * 10, scale[j] = 0.0001f * static_cast<float>(j + 1);
    }
    const blas::Requantised to{columns.data(), bias.data(), scale.data(), zeros.data(),
                               nullptr,        true,        false,        {-7, 248, 7}};
    std::vector<uint8_t> out(static_cast<size_t>(m * n));
    native::quantized::multiply(
        m, n, words,
        [&](int64_t first, int64_t, float*) {
          return Rows{reinterpret_cast<const float*>(a.data() + first * k), words};
        },
        reinterpret_cast<const float*>(b.data()), to, out.data(), n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        int32_t sum = columns[j];
        for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * (at(p, j) - zeros[j]);
        const float x = (static_cast<float>(sum) + bias[j]) * scale[j];
        const float held = std::fmin(std::fmax(std::nearbyint(x) + 7, 0.0f), 255.0f);
        CHECK_EQ(static_cast<int>(out[static_cast<size_t>(i * n + j)]), static_cast<int>(held));
      }
    }
  }
}

// Numbers between two integers go to the even one, and those beyond the bytes to their ends.
TEST(numbers_are_rounded_to_even_and_held) {
  Vector<float, 16> x{0.5f, 1.5f, -1e30f, 1e30f};
  Vector<int32_t, 16> words;
  blas::rounded_words(words, x, {-3, 252, 3});
  const int32_t wanted[] = {3, 5, 0, 255};
  for (int i = 0; i < 4; ++i) CHECK_EQ(words[i], wanted[i]);
  x[0] = std::nanf("");
  blas::rounded_words(words, x, {-3, 252, 3});
  CHECK_EQ(words[0], 0);
}

// Bytes taken apart and put together lie as before.
TEST(bytes_go_to_words_and_back) {
  Vector<uint32_t, 16> bytes{0x03020100, 0x07060504, 0x0B0A0908, 0xFF0E0D0C};
  Vector<float, 16> numbers[4];
  Vector<int32_t, 16> words[4];
  blas::words_of(bytes, numbers);
  CHECK_EQ(numbers[1][2], 6.0f);
  for (int q = 0; q < 4; ++q) words[q] = __builtin_convertvector(numbers[q], Vector<int32_t, 16>);
  Vector<int32_t, 16> again;
  blas::joined(again, words);
  for (int i = 0; i < 4; ++i) CHECK_EQ(static_cast<uint32_t>(again[i]), bytes[i]);
}

}  // namespace
}  // namespace weft
