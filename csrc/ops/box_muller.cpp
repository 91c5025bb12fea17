#include "ops/box_muller.h"

#include <cmath>
#include <cstring>

#include "ops/tile.h"

namespace weft::native {
namespace {

typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));

// Natural logarithm of x in (0, 1]: x = m * 2^e with m near 1, then the series of
// log((1 + s) / (1 - s)), whose terms fall by a factor of 30.
[[gnu::always_inline]] inline void log_of(const Floats& x, Floats& result) {
  constexpr int32_t kSqrtHalf = 0x3f3504f3;
  const Ints shifted = (Ints)x - kSqrtHalf;
  const Ints exponent = shifted >> 23;
  const Floats m = (Floats)((shifted & 0x7fffff) + kSqrtHalf);
  const Floats s = (m - 1.0f) / (m + 1.0f), z = s * s;
  const Floats tail = z * (2.0f / 3 + z * (2.0f / 5 + z * (2.0f / 7 + z * (2.0f / 9))));
  result = __builtin_convertvector(exponent, Floats) * 0.693147182f + s * (2.0f + tail);
}

// cos and sin of x turns, x in [0, 1): the quarter is taken off exactly, the rest is a short series.
[[gnu::always_inline]] inline void cos_sin_turns(const Floats& x, Floats& cosine, Floats& sine) {
  const Ints quarter = __builtin_convertvector(x * 4.0f + 0.5f, Ints);
  const Floats r = (x - __builtin_convertvector(quarter, Floats) * 0.25f) * 6.28318531f, z = r * r;
  const Floats s = r * (1.0f + z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880)))));
  const Floats c = 1.0f + z * (-0.5f + z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320 - z * (1.0f / 3628800)))));
  const Ints odd = (quarter & 1) != 0;
  const Ints c_sign = ((quarter + 1) & 2) << 30, s_sign = (quarter & 2) << 30;
  cosine = (Floats)((odd ? (Ints)s : (Ints)c) ^ c_sign);
  sine = (Floats)((odd ? (Ints)c : (Ints)s) ^ s_sign);
}

[[gnu::always_inline]] inline void box_muller_body(float* data, int64_t blocks, float mean, float std) {
  for (float* block = data; block != data + blocks * 16; block += 16) {
    Floats u, v, logarithm, cosine, sine;
    std::memcpy(&u, block, sizeof(u));
    std::memcpy(&v, block + 8, sizeof(v));
    log_of(1.0f - u, logarithm);
    const Floats squared = -2.0f * logarithm;
    Floats radius;
    for (int lane = 0; lane < 8; ++lane) radius[lane] = std::sqrt(squared[lane]);
    cos_sin_turns(v, cosine, sine);
    const Floats first = radius * cosine * std + mean, second = radius * sine * std + mean;
    std::memcpy(block, &first, sizeof(first));
    std::memcpy(block + 8, &second, sizeof(second));
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void box_muller_v3(float* data, int64_t blocks, float mean,
                                                        float std) {
  box_muller_body(data, blocks, mean, std);
}
#endif

}  // namespace

void box_muller(float* data, int64_t blocks, float mean, float std) {
#if defined(__x86_64__)
  if (tile::active_isa() >= tile::Isa::V3) return box_muller_v3(data, blocks, mean, std);
#endif
  box_muller_body(data, blocks, mean, std);
}

}  // namespace weft::native
