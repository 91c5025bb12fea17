#include "ops/box_muller.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "testing.h"

namespace weft {

TEST(box_muller_against_libm) {
  constexpr int64_t kBlocks = 4000;
  std::vector<float> data(kBlocks * 16);
  uint32_t state = 1;
  for (float& value : data) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-24f;
  }
  data[0] = 0;
  data[1] = 1 - 0x1p-24f;  // the smallest logarithm argument
  for (int i = 0; i < 8; ++i) data[8 + i] = static_cast<float>(i) / 8;
  const std::vector<float> start = data;
  native::box_muller(data.data(), kBlocks, 1, 2);
  for (int64_t block = 0; block < kBlocks; ++block) {
    for (int64_t j = block * 16; j < block * 16 + 8; ++j) {
      const double radius = std::sqrt(-2 * std::log(1 - double{start[j]}));
      const double theta = 2 * std::numbers::pi * double{start[j + 8]};
      CHECK_NEAR(data[j], radius * std::cos(theta) * 2 + 1, 4e-6);
      CHECK_NEAR(data[j + 8], radius * std::sin(theta) * 2 + 1, 4e-6);
    }
  }
}

}  // namespace weft
