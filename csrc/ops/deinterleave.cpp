#include "ops/deinterleave.h"

#include "ops/vector.h"

namespace weft::native {
namespace {

template <int kBytes, class T>
WEFT_INLINE void deinterleave_body(const T* from, int64_t count, T* even, T* odd) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  typename VectorOf<T, kBytes>::mask evens;
  for (int64_t l = 0; l < kLanes; ++l) evens[l] = 2 * l;
  Vector<T, kBytes> low, high;
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

}  // namespace

template <class Word>
void deinterleave_words(const Word* from, int64_t count, Word* even, Word* odd) {
  at_level([&](auto bytes) WEFT_INLINED { deinterleave_body<bytes()>(from, count, even, odd); });
}
template void deinterleave_words(const uint32_t*, int64_t, uint32_t*, uint32_t*);
template void deinterleave_words(const uint64_t*, int64_t, uint64_t*, uint64_t*);

}  // namespace weft::native
