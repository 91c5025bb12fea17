// Every other element of a line: what kernels of stride 2 read.
#pragma once

#include <cstdint>
#include <type_traits>

namespace weft::native {

// even[i] = from[2 * i] and, unless null, odd[i] = from[2 * i + 1]. Word: uint32_t or uint64_t.
template <class Word>
void deinterleave_words(const Word* from, int64_t count, Word* even, Word* odd);

// The same for elements of 4 or 8 bytes.
template <class T>
void deinterleave(const T* from, int64_t count, T* even, T* odd) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  deinterleave_words(reinterpret_cast<const Word*>(from), count, reinterpret_cast<Word*>(even),
                     reinterpret_cast<Word*>(odd));
}

}  // namespace weft::native
