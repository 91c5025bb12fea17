#include "ops/running_sum.h"

#include "ops/levels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

// Of `Lines` lines at once, `size` elements each: one sum waits for the addition before, several
// hide the wait.
template <int Lines>
void one_by_one(int64_t begin, int64_t size, const float* in, float* out, double* sums) {
  for (int64_t i = begin; i < size; ++i) {
    for (int r = 0; r < Lines; ++r) {
      sums[r] += static_cast<double>(in[r * size + i]);
      out[r * size + i] = static_cast<float>(sums[r]);
    }
  }
}

void portable(int64_t lines, int64_t size, const float* in, float* out) {
  int64_t line = 0;
  for (; line + 4 <= lines; line += 4) {
    double sums[4] = {};
    one_by_one<4>(0, size, in + line * size, out + line * size, sums);
  }
  for (; line < lines; ++line) {
    double sums[1] = {};
    one_by_one<1>(0, size, in + line * size, out + line * size, sums);
  }
}

#if defined(__x86_64__)

// Eight elements at a time: their running sums in three steps of shifting and adding, and then what
// came before.
WEFT_TARGET_V4 inline __m512d running_eight(__m512d x) {
  const __m512i zero = _mm512_setzero_si512();
  for (int step = 0; step < 3; ++step) {
    const __m512i bits = _mm512_castpd_si512(x);
    const __m512i shifted = step == 0   ? _mm512_alignr_epi64(bits, zero, 7)
                            : step == 1 ? _mm512_alignr_epi64(bits, zero, 6)
                                        : _mm512_alignr_epi64(bits, zero, 4);
    x = _mm512_add_pd(x, _mm512_castsi512_pd(shifted));
  }
  return x;
}

WEFT_TARGET_V4 void by_eights(int64_t lines, int64_t size, const float* in, float* out) {
  const __m512i last = _mm512_set1_epi64(7);
  const int64_t whole = size / 8 * 8;
  for (int64_t line = 0; line < lines; ++line, in += size, out += size) {
    __m512d before = _mm512_setzero_pd();
    for (int64_t i = 0; i < whole; i += 8) {
      const __m512d sums = running_eight(_mm512_cvtps_pd(_mm256_loadu_ps(in + i)));
      _mm256_storeu_ps(out + i, _mm512_cvtpd_ps(_mm512_add_pd(sums, before)));
      // Apart from `sums` of the next turn: the chain from turn to turn is one addition long.
      before = _mm512_add_pd(before, _mm512_permutexvar_pd(last, sums));
    }
    double sum = _mm512_cvtsd_f64(before);
    one_by_one<1>(whole, size, in, out, &sum);
  }
}

#endif

}  // namespace

void running_sum(int64_t lines, int64_t size, const float* in, float* out) {
#if defined(__x86_64__)
  if (tile::active_isa() == tile::Isa::V4) return by_eights(lines, size, in, out);
#endif
  portable(lines, size, in, out);
}

}  // namespace weft
