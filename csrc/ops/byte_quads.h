// Vectors of words of four bytes: sums of the products of unsigned and signed bytes, and bytes of
// several vectors put into words. Inlined into functions of a level (levels.h).
#pragma once

#include "ops/vector.h"

namespace weft::blas {

// An instruction of two operands on each 16 bytes. `code` without its "v" or "p"; of registers of
// 16 bytes by name, which the compiler writes as the level has it.
#if defined(__x86_64__)
#define WEFT_DEFINE_BYTES(name, code, Number, builtin)     \
  template <class V>                                       \
  WEFT_INLINE void name(V& made, const V& a, const V& b) { \
    if constexpr (sizeof(V) == 16) {                       \
      using Of = weft::Vector<Number, 16>;                 \
      made = (V)builtin((Of)a, (Of)b);                     \
    } else {                                               \
      V first = a;                                         \
      asm("vp" code " %1, %0, %0" : "+v"(first) : "v"(b)); \
      made = first;                                        \
    }                                                      \
  }
WEFT_DEFINE_BYTES(low_bytes, "unpcklbw", char, __builtin_ia32_punpcklbw128)
WEFT_DEFINE_BYTES(high_bytes, "unpckhbw", char, __builtin_ia32_punpckhbw128)
WEFT_DEFINE_BYTES(low_halves, "unpcklwd", int16_t, __builtin_ia32_punpcklwd128)
WEFT_DEFINE_BYTES(high_halves, "unpckhwd", int16_t, __builtin_ia32_punpckhwd128)
WEFT_DEFINE_BYTES(halves_of, "ackssdw", int32_t, __builtin_ia32_packssdw128)
WEFT_DEFINE_BYTES(bytes_of, "ackuswb", int16_t, __builtin_ia32_packuswb128)
WEFT_DEFINE_BYTES(sum_of_pairs, "maddwd", int16_t, __builtin_ia32_pmaddwd128)
#undef WEFT_DEFINE_BYTES
#endif

// As many numbers as a vector has bytes, in four vectors, and back. Of each 16 bytes a vector has
// four that follow each other. (As conversions of vectors GCC 12 does it byte by byte.)
template <class V, class Floats>
WEFT_INLINE void words_of(const V& bytes, Floats (&to)[4]) {
#if defined(__x86_64__)
  const V zero{};
  V low, high, words[4];
  low_bytes(low, bytes, zero), high_bytes(high, bytes, zero);
  low_halves(words[0], low, zero), high_halves(words[1], low, zero);
  low_halves(words[2], high, zero), high_halves(words[3], high, zero);
  for (int q = 0; q < 4; ++q) {
    to[q] = __builtin_convertvector(reinterpret_cast<weft::Vector<int32_t, sizeof(V)>>(words[q]),
                                    Floats);
  }
#else
  for (int q = 0; q < 4; ++q) {
    for (size_t l = 0; l < sizeof(V) / 4; ++l) {
      to[q][l] = reinterpret_cast<const uint8_t*>(&bytes)[l / 4 * 16 + q * 4 + l % 4];
    }
  }
#endif
}
template <class Words>
WEFT_INLINE void joined(Words& made, const Words (&words)[4]) {
#if defined(__x86_64__)
  Words low, high;
  halves_of(low, words[0], words[1]), halves_of(high, words[2], words[3]);
  bytes_of(made, low, high);
#else
  for (int q = 0; q < 4; ++q) {
    for (size_t l = 0; l < sizeof(Words) / 4; ++l) {
      reinterpret_cast<uint8_t*>(&made)[l / 4 * 16 + q * 4 + l % 4] =
          static_cast<uint8_t>(words[q][l]);
    }
  }
#endif
}

// sum += the products of the bytes of x (unsigned) and w. V: of 32-bit words.
struct ByFours {  // by an instruction for that
  template <class V>
  WEFT_INLINE static void add(V& sum, const V& x, const V& w) {
#if defined(__x86_64__)
    V next = sum; /* an array that asm writes to would lie in memory */
    asm("vpdpbusd %1, %2, %0" : "+v"(next) : "v"(w), "v"(x));
    sum = next;
#endif
  }
};
struct ByHalves {  // of the even and the odd bytes, as numbers of 16 bits
  template <class V>
  WEFT_INLINE static void add(V& sum, const V& x, const V& w) {
    using Halves = weft::Vector<int16_t, sizeof(V)>;
    constexpr uint32_t kEven = 0x00FF00FF;
    const Halves halves = reinterpret_cast<Halves>(w), low = halves << 8;
    add_pairs(sum, x & kEven, reinterpret_cast<V>(Halves(low >> 8)));
    add_pairs(sum, x >> 8 & kEven, reinterpret_cast<V>(Halves(halves >> 8)));
  }

 private:
  template <class V>
  WEFT_INLINE static void add_pairs(V& sum, const V& a, const V& b) {
#if defined(__x86_64__)
    V products;
    sum_of_pairs(products, a, b);
    sum += products;
#else
    using Words = weft::Vector<int32_t, sizeof(V)>;
    const Words both = reinterpret_cast<Words>(b), low = both << 16;
    sum += (a & 0xFFFF) * reinterpret_cast<V>(Words(low >> 16));
    sum += (a >> 16) * reinterpret_cast<V>(Words(both >> 16));
#endif
  }
};

}  // namespace weft::blas
