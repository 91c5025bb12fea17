#include "runtime/arithmetic.h"

#include <limits>

#include "testing.h"

namespace weft::builtins {
namespace {

TEST(divide_integers_at_the_ends) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  CHECK_EQ(divide(least, int64_t{1}), -0x1p63);
  CHECK_EQ(divide(int64_t{1}, least), -0x1p-63);
  CHECK_EQ(divide(least, least), 1.0);
  CHECK_EQ(divide((int64_t{1} << 53) + 1, int64_t{1}), 0x1p53);
  CHECK_EQ(divide(int64_t{-7}, int64_t{2}), -3.5);
}

}  // namespace
}  // namespace weft::builtins
