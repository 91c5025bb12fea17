#include "ops/box_muller.h"

#include <cmath>
#include <cstring>

#include "ops/tile.h"

namespace weft::native {
namespace {

// The polynomials are the single precision ones of the Cephes library, evaluated with fused
// multiply-adds in the order PyTorch's AVX2 code evaluates them: the results are bitwise its own.
typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));

#define WEFT_INLINE [[gnu::always_inline]] inline

// a * b + c, rounded once on every instruction set.
WEFT_INLINE void fused(const Floats& a, const Floats& b, const Floats& c, Floats& result) {
  for (int lane = 0; lane < 8; ++lane) result[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
}
WEFT_INLINE void fused(const Floats& a, const Floats& b, float c, Floats& result) {
  fused(a, b, Floats{} + c, result);
}
WEFT_INLINE void fused(const Floats& a, float b, const Floats& c, Floats& result) {
  fused(a, Floats{} + b, c, result);
}

// Natural logarithm of x in (0, 1]: x = (1 + m) * 2^e with 1 + m in [sqrt(1/2), sqrt(2)), then
// m - m^2 / 2 + m^3 P(m), and e * log(2) in two parts.
WEFT_INLINE void log_of(const Floats& x, Floats& result) {
  constexpr float kTerms[] = {-1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f,
                              1.4249322787e-1f,  -1.6668057665e-1f, 2.0000714765e-1f,
                              -2.4999993993e-1f, 3.3333331174e-1f};
  const Ints bits = (Ints)x;
  const Floats half = (Floats)((bits & 0x007fffff) | 0x3f000000);  // in [1/2, 1)
  const Ints small = half < 0.707106781186547524f;
  const Floats m = (half - 1.0f) + (Floats)((Ints)half & small);
  const Floats e = __builtin_convertvector((bits >> 23) - 126 + small, Floats);
  const Floats z = m * m;
  Floats p = Floats{} + 7.0376836292e-2f;
  for (const float term : kTerms) fused(p, m, term, p);
  fused(p * m, z, e * -2.12194440e-4f, p);
  fused(e, 0.693359375f, m + (p - z * 0.5f), result);
}

// cos and sin of x turns, x in [0, 1): eighths of a turn are taken off, the rest r is a short
// series, 1 - r^2 / 2 + r^4 C(r^2) or r + r^3 S(r^2).
WEFT_INLINE void cos_sin_turns(const Floats& turns, Floats& cosine, Floats& sine) {
  const Floats x = turns * 6.28318530717958647692f;
  const Ints eighths = (__builtin_convertvector(x * 1.27323954473516f, Ints) + 1) & ~1;
  const Floats y = __builtin_convertvector(eighths, Floats);
  Floats r, c, s;
  fused(y, -0.78515625f, x, r);
  fused(y, -2.4187564849853515625e-4f, r, r);
  fused(y, -3.77489497744594108e-8f, r, r);
  const Floats z = r * r;
  fused(z, 2.443315711809948e-5f, Floats{} - 1.388731625493765e-3f, c);
  fused(c, z, 4.166664568298827e-2f, c);
  fused(c * z, z, z * -0.5f, c);
  c = c + 1.0f;
  fused(z, -1.9515295891e-4f, Floats{} + 8.3321608736e-3f, s);
  fused(s, z, -1.6666654611e-1f, s);
  fused(s * z, r, r, s);
  const Ints odd = (eighths & 2) != 0;
  const Ints c_sign = ((eighths + 2) & 4) << 29, s_sign = (eighths & 4) << 29;
  cosine = (Floats)((odd ? (Ints)s : (Ints)c) ^ c_sign);
  sine = (Floats)((odd ? (Ints)c : (Ints)s) ^ s_sign);
}

WEFT_INLINE void box_muller_body(float* data, int64_t blocks, float mean, float std) {
  for (float* block = data; block != data + blocks * 16; block += 16) {
    Floats u, v, logarithm, cosine, sine, radius, first, second;
    std::memcpy(&u, block, sizeof(u));
    std::memcpy(&v, block + 8, sizeof(v));
    log_of(1.0f - u, logarithm);
    const Floats squared = -2.0f * logarithm;
    for (int lane = 0; lane < 8; ++lane) radius[lane] = std::sqrt(squared[lane]);
    cos_sin_turns(v, cosine, sine);
    fused(radius * cosine, std, Floats{} + mean, first);
    fused(radius * sine, std, Floats{} + mean, second);
    std::memcpy(block, &first, sizeof(first));
    std::memcpy(block + 8, &second, sizeof(second));
  }
}

#undef WEFT_INLINE

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
