#include "ops/deinterleave.h"

#include "ops/fft_vector.h"

namespace weft::native {
namespace {

using fft::load;
using fft::store;

template <int kBytes, class T>
WEFT_INLINE void deinterleave_body(const T* from, int64_t count, T* even, T* odd) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  typename fft::VectorOf<T, kBytes>::mask evens;
  for (int64_t l = 0; l < kLanes; ++l) evens[l] = 2 * l;
  fft::Vector<T, kBytes> low, high;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    load(low, from + 2 * i);
    load(high, from + 2 * i + kLanes);
    store(__builtin_shuffle(low, high, evens), even + i);
    if (odd) store(__builtin_shuffle(low, high, evens + 1), odd + i);
  }
  for (; i < count; ++i) {
    even[i] = from[2 * i];
    if (odd) odd[i] = from[2 * i + 1];
  }
}

#define DEFINE(level, target, width)                                                \
  template <class T>                                                                \
  target void deinterleave_##level(const T* from, int64_t count, T* even, T* odd) { \
    deinterleave_body<width>(from, count, even, odd);                               \
  }
WEFT_LEVELS(DEFINE)
#undef DEFINE

}  // namespace

template <class Word>
void deinterleave_words(const Word* from, int64_t count, Word* even, Word* odd) {
  WEFT_PICK(deinterleave, from, count, even, odd);
}
template void deinterleave_words(const uint32_t*, int64_t, uint32_t*, uint32_t*);
template void deinterleave_words(const uint64_t*, int64_t, uint64_t*, uint64_t*);

}  // namespace weft::native
