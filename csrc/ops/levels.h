// Code compiled once for each instruction-set level of tile.h, from bodies that are inlined into
// each; tile::active_isa() picks at run time.
#pragma once

#include <type_traits>

#include "ops/tile.h"

#define WEFT_INLINE [[gnu::always_inline]] inline
#define WEFT_INLINED __attribute__((always_inline))  // the same behind the parameters of a lambda

// WEFT_LEVELS(X) expands X(suffix, attribute, bytes of a register) for every level;
// WEFT_PICK(fn, args...) calls fn_<suffix> of the active one.
#if defined(__x86_64__)
#define WEFT_TARGET_V3 __attribute__((target("avx2,fma,bmi,bmi2")))
#define WEFT_TARGET_V4 \
  __attribute__((      \
      target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#define WEFT_LEVELS(X) X(v2, , 16) X(v3, WEFT_TARGET_V3, 32) X(v4, WEFT_TARGET_V4, 64)
#define WEFT_PICK(fn, ...)              \
  switch (::weft::tile::active_isa()) { \
    case ::weft::tile::Isa::V4:         \
      return fn##_v4(__VA_ARGS__);      \
    case ::weft::tile::Isa::V3:         \
      return fn##_v3(__VA_ARGS__);      \
    default:                            \
      return fn##_v2(__VA_ARGS__);      \
  }
#else
#define WEFT_LEVELS(X) X(v2, , 16)
#define WEFT_PICK(fn, ...) return fn##_v2(__VA_ARGS__)
#endif

namespace weft {

// Bytes of all registers of a level, of which a tile's sums should leave some free.
template <int kBytes>
#if defined(__x86_64__)
constexpr int kRegisterFile = kBytes * (kBytes == 64 ? 32 : 16);
#else
constexpr int kRegisterFile = kBytes * 32;
#endif

// A number by that: with 2048 bytes, with 512, with fewer.
template <int kBytes>
constexpr int by_register_file(int of_2048, int of_512, int of_fewer) {
  constexpr int kFile = kRegisterFile<kBytes>;
  return kFile == 2048 ? of_2048 : kFile == 512 ? of_512 : of_fewer;
}

// run(bytes of a register, a constant; what is given) at the active level. `run` is a WEFT_INLINED
// lambda that calls WEFT_INLINE bodies. Few arguments may be captured instead of given: in loops of
// some elements it shows that they are read from memory.
#define WEFT_DEFINE(level, target, width)                       \
  template <class Run, class... Given>                          \
  target auto run_##level(const Run& run, Given... given) {     \
    return run(std::integral_constant<int, width>{}, given...); \
  }
WEFT_LEVELS(WEFT_DEFINE)
#undef WEFT_DEFINE

template <class Run, class... Given>
WEFT_INLINE auto at_level(const Run& run, Given... given) {
  WEFT_PICK(run, run, given...);
}

}  // namespace weft
