#include "ops/packed_gemm.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/thread_pool.h"
#include "ops/amx.h"
#include "ops/byte_quads.h"
#include "ops/packed_tile.h"
#include "ops/vector.h"

namespace weft::blas {
namespace {

// What a tile does with an element of a row of a, and with as many columns of b as a register has.
struct Floats {
  using Number = float;
  template <class Vector>
  WEFT_INLINE static void add(Vector& sum, const float* x, const Vector& line) {
    sum += *x * line;
  }
};
#if defined(__x86_64__)
struct BFloat16Pairs {
  using Number = float;
  template <class Vector>
  WEFT_INLINE static void add(Vector& sum, const float* x, const Vector& line) {
    using Words = weft::Vector<int32_t, sizeof(Vector)>;
    int32_t word;
    std::memcpy(&word, x, sizeof(word));
    const Words words = Words{} + word;
    Vector next = sum; /* an array that asm writes to would lie in memory */
    asm("vdpbf16ps %2, %1, %0" : "+v"(next) : "v"(line), "v"(words));
    sum = next;
  }
};
#endif
template <class By>
struct Int8Quads {
  using Number = uint32_t;
  template <class Vector>
  WEFT_INLINE static void add(Vector& sum, const float* x, const Vector& line) {
    uint32_t word;
    std::memcpy(&word, x, sizeof(word));
    By::add(sum, Vector{} + word, line);
  }
};

// One tile of the result, all of whose columns are wanted. The loops over its sums are unrolled:
// else these would lie in memory before and behind the loop over k.
template <class Of, int Rows, int Strips, int Bytes>
WEFT_INLINE void tile(const Task& t) {
  using Vector = weft::Vector<typename Of::Number, Bytes>;
  constexpr int64_t kBytes = sizeof(float);
  constexpr int kWidth = Bytes / sizeof(float), kVectors = Strips * kStrip / kWidth;
  Vector sums[Rows][kVectors];
  const int64_t c_row = t.c_row;
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Vector{};
    for (int s = 0; s < Strips; ++s) {  // what the end needs is on its way
      __builtin_prefetch(t.c + r * c_row + s * kStrip, 1);
    }
  }
  const float* b = t.b;
  const int64_t a_row = t.a_row, strip = t.strip, ahead_step = t.ahead_step;
  const char* ahead = t.ahead;
  for (const float *a = t.a, *end = a + t.k; a != end; ++a, b += kStrip) {
    Vector line[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const int column = v * kWidth;
      std::memcpy(&line[v], b + column / kStrip * strip + column % kStrip, sizeof(Vector));
    }
    for (int s = 0; s < Strips; ++s) __builtin_prefetch(ahead + s * strip * kBytes, 0, 2);
    ahead += ahead_step;
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) Of::add(sums[r][v], a + r * a_row, line[v]);
    }
  }
  write_rows(t, sums);
}

// The functions of one level; `target` is its attribute, `width` the bytes of a register.
#define DEFINE_TILES(name, Of, target, width, rows)                                         \
  template <int Rows, int Strips>                                                           \
  target [[gnu::noinline]] void tile_##name(const Task& t) {                                \
    tile<Of, Rows, Strips, width>(t);                                                       \
  }                                                                                         \
  template <int Strips, int... Rows>                                                        \
  constexpr std::array<Tiles::Fn*, sizeof...(Rows)> table_##name(                           \
      std::integer_sequence<int, Rows...>) {                                                \
    return {tile_##name<Rows + 1, Strips>...};                                              \
  }                                                                                         \
  Tiles tiles_##name() {                                                                    \
    constexpr int kRows = rows, kStrips = width == 64 ? 2 : 1;                              \
    constexpr std::make_integer_sequence<int, kRows> kAll;                                  \
    static constexpr auto of = table_##name<kStrips>(kAll), of_one = table_##name<1>(kAll); \
    return {kRows, kStrips, of.data(), of_one.data()};                                      \
  }
#define DEFINE(level, target, width)                                              \
  DEFINE_TILES(level, Floats, target, width, (by_register_file<width>(12, 6, 3))) \
  DEFINE_TILES(halves_##level, Int8Quads<ByHalves>, target, width,                \
               (by_register_file<width>(12, 4, 2)))
WEFT_LEVELS(DEFINE)
#undef DEFINE

Tiles tiles() { WEFT_PICK(tiles); }
Tiles tiles_halves() { WEFT_PICK(tiles_halves); }

#if defined(__x86_64__)
DEFINE_TILES(pairs, BFloat16Pairs, WEFT_TARGET_V4, 64, 12)
DEFINE_TILES(quads, Int8Quads<ByFours>, WEFT_TARGET_V4, 64, 12)

Tiles word_tiles(Elements of) {
  if (has_amx()) return amx_tiles(of);
  if (of == Elements::BFloat16Pairs) return tiles_pairs();
  return multiplies(of) ? tiles_quads() : tiles_halves();
}
#else
Tiles word_tiles(Elements) { return tiles_halves(); }
#endif
#undef DEFINE_TILES

// Copies the first n columns of some rows. They are too short for a call of memcpy each.
void copy_columns(const float* from, int64_t from_row, int64_t rows, int64_t n, float* to,
                  int64_t to_row) {
  constexpr int64_t kChunk = 4;
  for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row) {
    int64_t j = 0;
    for (; j + kChunk <= n; j += kChunk) std::memcpy(to + j, from + j, kChunk * sizeof(float));
    for (; j < n; ++j) std::memcpy(to + j, from + j, sizeof(float));
  }
}

// A tile of which only n columns are wanted: all of it in memory of its own.
void edge_tile(const Task& t, Tiles::Fn* fn, int64_t rows, int64_t n) {
  constexpr int64_t kColumns = 2 * kStrip;
  if (t.to && t.to->to_bytes) {
    alignas(64) uint8_t bytes[kAmxRows * kColumns];
    Task inner = t;
    inner.c = reinterpret_cast<float*>(bytes), inner.c_row = kColumns;
    fn(inner);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(bytes + r * kColumns, n, reinterpret_cast<uint8_t*>(t.c) + r * t.c_row);
    }
    return;
  }
  struct Whole {
    alignas(64) float at[kAmxRows * kColumns];
  } result, residual, bias;
  auto take = [&](const float* from, int64_t count, Whole& to) -> const float* {
    if (from == nullptr) return nullptr;
    std::memset(to.at, 0, static_cast<size_t>(count * kColumns) * sizeof(float));
    copy_columns(from, t.c_row, count, n, to.at, kColumns);
    return to.at;
  };
  Task inner = t;
  if (t.add) take(t.c, rows, result);
  inner.c = result.at, inner.c_row = kColumns;
  inner.sink.bias = take(t.sink.bias, 1, bias);
  inner.sink.residual = take(t.sink.residual, rows, residual);
  fn(inner);
  copy_columns(result.at, kColumns, rows, n, t.c, t.c_row);
}

}  // namespace

bool multiplies(Elements of) {
  if (of == Elements::Floats) return true;
#if defined(__x86_64__)
  if (tile::active_isa() != tile::Isa::V4) return false;
  return of == Elements::BFloat16Pairs ? __builtin_cpu_supports("avx512bf16")
                                       : __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

Split split_work(int64_t rows, int64_t most, int64_t columns, int64_t groups, int64_t depth) {
  constexpr int64_t kLeast = 24, kPair = 2 * kStrip;
  const double work = static_cast<double>(rows * groups) * static_cast<double>(columns * depth);
  const bool alone = in_parallel_region() || work < kParallelWork;
  const int64_t threads = alone ? 1 : num_threads();
  const int64_t pairs = std::max<int64_t>(1, columns / kPair);
  // Threads share what is larger: the strips by columns, or the rows.
  const bool by_columns = columns > rows && pairs >= threads && groups == 1;
  if (!by_columns) most = std::min(most, std::max(kLeast, (rows * groups + threads - 1) / threads));
  Split s{rows, columns, groups, 0, 0, 0, 0, 1};
  s.blocks = (rows + most - 1) / most;
  // As many blocks for each thread. Where there are many, one more or less does not matter.
  while (!by_columns && s.blocks * groups > threads && s.blocks * groups < 8 * threads &&
         s.blocks * groups % threads != 0 && rows / (s.blocks + 1) >= kLeast) {
    ++s.blocks;
  }
  s.block = (rows + s.blocks - 1) / s.blocks;
  const int64_t wanted =
      by_columns ? threads : (threads + s.blocks * groups - 1) / (s.blocks * groups);
  const int64_t parts = std::min(pairs, wanted);
  s.width = (pairs + parts - 1) / parts * kPair;
  s.parts = (pairs * kPair + s.width - 1) / s.width;
  if (alone) s.grain = s.pieces();
  return s;
}

Split::Piece Split::operator[](int64_t index) const {
  const int64_t first = index % blocks * block, part = index / blocks % parts;
  const int64_t column = part * width;
  return {index / blocks / parts, first, std::min(block, rows - first), column,
          part + 1 == parts ? columns - column : width};
}

namespace {

int64_t second_cache() {
  constexpr int64_t kLeast = 512 << 10;
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const int64_t bytes = std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), kLeast);
  return bytes;
#else
  return kLeast;
#endif
}

// Whether the outer loop goes over bands of rows: each writes whole rows of the result, which the
// processor prefetches. Each of the `down` bands reads all strips. They must fit half of the second
// cache, and be less than what the rows read and write, since the first band waits for them.
bool goes_by_rows(int64_t m, int64_t n, int64_t k, int64_t down, int64_t strip, bool residual) {
  constexpr int64_t kLeast = 8, kBytes = sizeof(float);
  const int64_t row = k + (residual ? 3 : 2) * n;  // what is written is read before
  return down >= kLeast && n * k < m * row && n * strip / kStrip * kBytes <= second_cache() / 2;
}

}  // namespace

void gemm_strips(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, const float* b,
                 int64_t strip, bool add, float* c, int64_t c_row, const Sink& sink, Elements of,
                 const Requantised* to) {
  static const Tiles kTiles[] = {blas::tiles(), word_tiles(Elements::BFloat16Pairs),
                                 word_tiles(Elements::Int8Quads)};
  const Tiles& tiles = kTiles[static_cast<size_t>(of)];
  if (m == 0 || n == 0) return;
  const int64_t wide = tiles.strips * kStrip, across = (n + wide - 1) / wide;
  // Rows in tiles of about one size: the first ones have one more.
  const int64_t down = (m + tiles.rows - 1) / tiles.rows, least = m / down, larger = m % down;
  const bool by_rows = goes_by_rows(m, n, k, down, strip, sink.residual != nullptr);
  // Each tile fetches a share of what is read next: the first alone would ask for more than memory
  // gives in its time. By rows, the strips are there after the first tiles: then it is rows of a.
  constexpr int64_t kBytes = sizeof(float), kLine = kStrip * kBytes;
  const int64_t of_strips = by_rows ? kLine : (kLine + down - 1) / down;
  const int64_t of_rows = (least + 1) * a_row * kBytes / (across * std::max<int64_t>(k, 1)) + 1;
  auto multiply = [&](int64_t row, int64_t column) {
    const int64_t i = row * least + std::min(row, larger), rows = least + (row < larger);
    const int64_t j = column * wide, left = n - j, at = i * c_row + j;
    const bool one = left <= kStrip;
    const float* const strips = b + j / kStrip * strip;
    struct Ahead {
      const float* from;
      int64_t share, step;
    };
    const Ahead next = by_rows && row > 0
                           ? Ahead{a + (i + rows) * a_row, column, of_rows}
                           : Ahead{strips + tiles.strips * strip, by_rows ? 0 : row, of_strips};
    const char* ahead = reinterpret_cast<const char*>(next.from) + next.share * k * next.step;
    const Requantised here = to ? to->at(i, j) : Requantised{};
    // Bytes lie four times as close.
    float* const into =
        to && to->to_bytes ? reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(c) + at) : c + at;
    const Task t{rows,
                 k,
                 a + i * a_row,
                 a_row,
                 strips,
                 strip,
                 ahead,
                 next.step,
                 add,
                 into,
                 c_row,
                 sink.at(at, j),
                 to ? &here : nullptr};
    Tiles::Fn* const fn = (one ? tiles.of_one : tiles.of)[rows - 1];
    left < (one ? kStrip : wide) ? edge_tile(t, fn, rows, left) : fn(t);
  };
  if (by_rows) {
    for (int64_t i = 0; i < down; ++i)
      for (int64_t j = 0; j < across; ++j) multiply(i, j);
  } else {
    for (int64_t j = 0; j < across; ++j)
      for (int64_t i = 0; i < down; ++i) multiply(i, j);
  }
  if (of != Elements::Floats && has_amx()) release_amx();
}

}  // namespace weft::blas
