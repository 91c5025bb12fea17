#include "ops/amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "ops/vector.h"

namespace weft::blas {
namespace {

bool processor_has_amx() {
  constexpr unsigned kBFloat16 = 1u << 22, kTiles = 1u << 24, kInt8 = 1u << 25;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (d & kBFloat16) && (d & kTiles) && (d & kInt8);
}

// Linux saves the 8 KB of registers only for processes that asked.
bool system_permits_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr int64_t kHalf = kAmxRows / 2;  // rows of a register
constexpr int64_t kWords = 16;           // of a row of a register
constexpr int64_t kBytes = sizeof(float);

// The registers: sums in 0 to 3, rows of a below each other in 4 and 5, strips of b beside each
// other in 6 and 7.
struct Shapes {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};

  explicit Shapes(int64_t count) {
    const auto upper = static_cast<uint8_t>(std::min(count, kHalf));
    const auto lower = static_cast<uint8_t>(std::max<int64_t>(count - kHalf, 1));
    const uint8_t of[] = {upper, upper, lower, lower, upper, lower, kHalf, kHalf};
    std::copy(std::begin(of), std::end(of), rows);
    std::fill_n(bytes, std::size(of), uint16_t{kWords * kBytes});
  }
};

// The instructions take the numbers of registers as text, and GCC does not see that they read
// memory: a barrier stands behind what is written for them.
#define WEFT_BARRIER(written) asm volatile("" ::"r"(written) : "memory")
#define WEFT_MULTIPLY(sum, a, b)                \
  do {                                          \
    if constexpr (kOf == Elements::Int8Quads) { \
      _tile_dpbusd(sum, a, b);                  \
    } else {                                    \
      _tile_dpbf16ps(sum, a, b);                \
    }                                           \
  } while (false)
#define WEFT_TARGET_AMX                                                       \
  __attribute__((                                                             \
      target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16," \
             "amx-int8,prefer-vector-width=512")))

// Adds the products of kWords words of up to 32 rows with those of one or two strips.
template <Elements kOf, int kStrips, bool kBoth>
WEFT_TARGET_AMX WEFT_INLINE void step(const float* a, int64_t a_row, const float* b,
                                      int64_t strip) {
  _tile_loadd(6, b, kStrip * kBytes);
  _tile_loadd(4, a, a_row * kBytes);
  WEFT_MULTIPLY(0, 4, 6);
  if constexpr (kStrips == 2) {
    _tile_loadd(7, b + strip, kStrip * kBytes);
    WEFT_MULTIPLY(1, 4, 7);
  }
  if constexpr (kBoth) {
    _tile_loadd(5, a + kHalf * a_row, a_row * kBytes);
    WEFT_MULTIPLY(2, 5, 6);
    if constexpr (kStrips == 2) WEFT_MULTIPLY(3, 5, 7);
  }
}

// The last words of the depth, filled up with 0.
template <Elements kOf, int kStrips, bool kBoth>
WEFT_TARGET_AMX void last_step(const Task& t, const float* a, const float* b, int64_t words) {
  alignas(64) float rows[kAmxRows * kWords] = {}, strips[kStrips * kWords * kStrip] = {};
  const auto count = static_cast<size_t>(words * kBytes);
  for (int64_t r = 0; r < t.rows; ++r) std::memcpy(rows + r * kWords, a + r * t.a_row, count);
  for (int64_t s = 0; s < kStrips; ++s) {
    std::memcpy(strips + s * kWords * kStrip, b + s * t.strip, count * kStrip);
  }
  WEFT_BARRIER(rows);
  WEFT_BARRIER(strips);
  step<kOf, kStrips, kBoth>(rows, kWords, strips, kWords * kStrip);
}

template <Elements kOf, int kStrips, bool kBoth>
WEFT_TARGET_AMX WEFT_INLINE void write_sums(const Task& t) {
  constexpr int64_t kRow = kStrips * kStrip;
  alignas(64) float sums[kAmxRows * kRow];
  _tile_stored(0, sums, kRow * kBytes);
  if constexpr (kStrips == 2) _tile_stored(1, sums + kStrip, kRow * kBytes);
  if constexpr (kBoth) {
    _tile_stored(2, sums + kHalf * kRow, kRow * kBytes);
    if constexpr (kStrips == 2) _tile_stored(3, sums + kHalf * kRow + kStrip, kRow * kBytes);
  }
  using Number = std::conditional_t<kOf == Elements::Int8Quads, uint32_t, float>;
  for (int64_t r = 0; r < t.rows; ++r) {
    Vector<Number, kStrip * kBytes> row[1][kStrips];
    std::memcpy(row, sums + r * kRow, sizeof(row));
    write_rows(t, row, r);
  }
}

template <Elements kOf, int kStrips, bool kBoth>
WEFT_TARGET_AMX void tile(const Task& t) {
  const Shapes shapes(t.rows);
  WEFT_BARRIER(&shapes);
  _tile_loadconfig(&shapes);  // all registers are 0
  const float *a = t.a, *b = t.b;
  const char* ahead = t.ahead;
  int64_t left = t.k;
  for (; left >= kWords; left -= kWords, a += kWords, b += kWords * kStrip) {
    for (int64_t at = 0; at < kWords * t.ahead_step; at += 64) {
      for (int s = 0; s < kStrips; ++s) __builtin_prefetch(ahead + s * t.strip * kBytes + at, 0, 2);
    }
    ahead += kWords * t.ahead_step;
    step<kOf, kStrips, kBoth>(a, t.a_row, b, t.strip);
  }
  if (left > 0) last_step<kOf, kStrips, kBoth>(t, a, b, left);
  write_sums<kOf, kStrips, kBoth>(t);
}

template <Elements kOf, int kStrips>
constexpr std::array<Tiles::Fn*, kAmxRows> table() {
  std::array<Tiles::Fn*, kAmxRows> fns;
  for (int64_t r = 0; r < kAmxRows; ++r) {
    fns[r] = r < kHalf ? tile<kOf, kStrips, false> : tile<kOf, kStrips, true>;
  }
  return fns;
}
template <Elements kOf>
Tiles tiles_of() {
  static constexpr auto kTwo = table<kOf, 2>(), kOne = table<kOf, 1>();
  return {kAmxRows, 2, kTwo.data(), kOne.data()};
}

}  // namespace

bool has_amx() {
  static const bool kHas = tile::active_isa() == tile::Isa::V4 && !std::getenv("WEFT_ISA") &&
                           processor_has_amx() && system_permits_amx();
  return kHas;
}

Tiles amx_tiles(Elements of) {
  return of == Elements::Int8Quads ? tiles_of<Elements::Int8Quads>()
                                   : tiles_of<Elements::BFloat16Pairs>();
}

WEFT_TARGET_AMX void release_amx() { _tile_release(); }

}  // namespace weft::blas

#else

namespace weft::blas {
bool has_amx() { return false; }
Tiles amx_tiles(Elements) { return {}; }
void release_amx() {}
}  // namespace weft::blas

#endif
