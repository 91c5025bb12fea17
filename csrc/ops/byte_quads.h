// Vectors of words of four bytes: sums of the products of unsigned and signed bytes, and bytes of
// several vectors put into words. Inlined into functions of a level (levels.h).
#pragma once

#include "ops/vector.h"

namespace weft::blas {

// An instruction of two operands on halves of 16 bytes each: `code` without its "v" or "p".
#if defined(__x86_64__)
#define WEFT_DEFINE_BYTES(name, code)                         \
  template <class V>                                          \
  WEFT_INLINE V name(const V& a, const V& b) {                \
    V made = a;                                               \
    if constexpr (sizeof(V) == 16) {                          \
      asm("p" code " %1, %0" : "+x"(made) : "x"(b));          \
    } else {                                                  \
      asm("vp" code " %1, %0, %0" : "+v"(made) : "v"(b));     \
    }                                                         \
    return made;                                              \
  }
WEFT_DEFINE_BYTES(low_bytes, "unpcklbw")
WEFT_DEFINE_BYTES(high_bytes, "unpckhbw")
WEFT_DEFINE_BYTES(low_halves, "unpcklwd")
WEFT_DEFINE_BYTES(high_halves, "unpckhwd")
WEFT_DEFINE_BYTES(halves_of, "ackssdw")
WEFT_DEFINE_BYTES(bytes_of, "ackuswb")
WEFT_DEFINE_BYTES(sum_of_pairs, "maddwd")
#undef WEFT_DEFINE_BYTES
#endif

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
    sum += sum_of_pairs(a, b);
#else
    using Words = weft::Vector<int32_t, sizeof(V)>;
    const Words both = reinterpret_cast<Words>(b), low = both << 16;
    sum += (a & 0xFFFF) * reinterpret_cast<V>(Words(low >> 16));
    sum += (a >> 16) * reinterpret_cast<V>(Words(both >> 16));
#endif
  }
};

}  // namespace weft::blas
