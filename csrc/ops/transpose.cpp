#include "ops/transpose.h"

#include <algorithm>
#include <cstring>

#include "ops/levels.h"
#include "ops/strided.h"

namespace weft::transpose {
namespace {

// Four by four in registers: the compiler's vectors, whatever the machine.
using Lanes = uint32_t __attribute__((vector_size(16)));

inline Lanes lanes_at(const char* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
inline void put(char* to, Lanes lanes) { std::memcpy(to, &lanes, sizeof(lanes)); }

inline void four_by_four(char* dst, const char* src, int64_t dst_stride, int64_t src_stride) {
  const Lanes a = lanes_at(src), b = lanes_at(src + src_stride);
  const Lanes c = lanes_at(src + 2 * src_stride), d = lanes_at(src + 3 * src_stride);
  const Lanes low = {0, 4, 1, 5}, high = {2, 6, 3, 7};
  const Lanes ab_low = __builtin_shuffle(a, b, low), ab_high = __builtin_shuffle(a, b, high);
  const Lanes cd_low = __builtin_shuffle(c, d, low), cd_high = __builtin_shuffle(c, d, high);
  const Lanes first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
  put(dst, __builtin_shuffle(ab_low, cd_low, first));
  put(dst + dst_stride, __builtin_shuffle(ab_low, cd_low, second));
  put(dst + 2 * dst_stride, __builtin_shuffle(ab_high, cd_high, first));
  put(dst + 3 * dst_stride, __builtin_shuffle(ab_high, cd_high, second));
}

// Sixteen by sixteen in wide registers: fours of rows are turned within quarters of a register,
// then the quarters change places.
using Wide = uint32_t __attribute__((vector_size(64)));

WEFT_INLINE void sixteen_by_sixteen(char* dst, const char* src, int64_t dst_stride,
                                    int64_t src_stride) {
  const Wide low = {0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29};
  const Wide high = low + 2;
  const Wide firsts = {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29};
  const Wide seconds = firsts + 2;
  const Wide even = {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27};
  const Wide odd = even + 4;
  Wide fours[4][4];  // [g][q]: quarter k holds column 4 * k + q of rows 4 * g to 4 * g + 3
  for (int g = 0; g < 4; ++g) {
    Wide row[4];
    for (int r = 0; r < 4; ++r) std::memcpy(&row[r], src + (4 * g + r) * src_stride, 64);
    const Wide ab_low = __builtin_shuffle(row[0], row[1], low);
    const Wide ab_high = __builtin_shuffle(row[0], row[1], high);
    const Wide cd_low = __builtin_shuffle(row[2], row[3], low);
    const Wide cd_high = __builtin_shuffle(row[2], row[3], high);
    fours[g][0] = __builtin_shuffle(ab_low, cd_low, firsts);
    fours[g][1] = __builtin_shuffle(ab_low, cd_low, seconds);
    fours[g][2] = __builtin_shuffle(ab_high, cd_high, firsts);
    fours[g][3] = __builtin_shuffle(ab_high, cd_high, seconds);
  }
  for (int q = 0; q < 4; ++q) {
    const Wide near_even = __builtin_shuffle(fours[0][q], fours[1][q], even);
    const Wide near_odd = __builtin_shuffle(fours[0][q], fours[1][q], odd);
    const Wide far_even = __builtin_shuffle(fours[2][q], fours[3][q], even);
    const Wide far_odd = __builtin_shuffle(fours[2][q], fours[3][q], odd);
    const Wide columns[4] = {
        __builtin_shuffle(near_even, far_even, even), __builtin_shuffle(near_odd, far_odd, even),
        __builtin_shuffle(near_even, far_even, odd), __builtin_shuffle(near_odd, far_odd, odd)};
    for (int k = 0; k < 4; ++k) std::memcpy(dst + (4 * k + q) * dst_stride, &columns[k], 64);
  }
}

// A square of one cache line in each direction. It goes through a buffer: read in whole lines and
// written in whole lines, because rows a power of two apart share few places in the cache.
template <class T>
void square(char* dst, const char* src, int64_t dst_stride, int64_t src_stride) {
  constexpr int64_t item = sizeof(T), line = 64, side = line / item;
  alignas(64) char buffer[side * line];
  for (int64_t j = 0; j < side; ++j) std::memcpy(buffer + j * line, src + j * src_stride, line);
  for (int64_t i = 0; i < side; i += 4) {
    if constexpr (item == 4) {
      for (int64_t j = 0; j < side; j += 4) {
        four_by_four(dst + i * dst_stride + j * item, buffer + j * line + i * item, dst_stride,
                     line);
      }
    } else {
      for (int64_t k = i; k < i + 4; ++k) {
        char* to = dst + k * dst_stride;
        for (int64_t j = 0; j < side; ++j) {
          strided::copy_element<T>(to + j * item, buffer + j * line + k * item);
        }
      }
    }
  }
}

template <class T>
void edge(char* dst, const char* src, int64_t rows, int64_t columns, int64_t dst_stride,
          int64_t src_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    strided::move_line<strided::Direction::Gather, T>(
        dst + i * dst_stride, const_cast<char*>(src) + i * static_cast<int64_t>(sizeof(T)), columns,
        src_stride);
  }
}

#if defined(__x86_64__)
WEFT_TARGET_V4 void wide_squares(char* dst, const char* src, int64_t rows, int64_t columns,
                                 int64_t dst_stride, int64_t src_stride) {
  for (int64_t j = 0; j < columns; j += 16) {
    for (int64_t i = 0; i < rows; i += 16) {
      sixteen_by_sixteen(dst + i * dst_stride + j * 4, src + i * 4 + j * src_stride, dst_stride,
                         src_stride);
    }
  }
}
#endif

template <class T>
void squares(char* dst, const char* src, int64_t rows, int64_t columns, int64_t dst_stride,
             int64_t src_stride) {
  constexpr int64_t item = sizeof(T), side = 64 / item;
#if defined(__x86_64__)
  if (item == 4 && tile::active_isa() == tile::Isa::V4) {
    return wide_squares(dst, src, rows, columns, dst_stride, src_stride);
  }
#endif
  for (int64_t j = 0; j < columns; j += side) {
    for (int64_t i = 0; i < rows; i += side) {
      square<T>(dst + i * dst_stride + j * item, src + i * item + j * src_stride, dst_stride,
                src_stride);
    }
  }
}

template <class T>
void copy_as(char* dst, const char* src, int64_t rows, int64_t columns, int64_t dst_stride,
             int64_t src_stride) {
  constexpr int64_t item = sizeof(T), side = 64 / item;
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  squares<T>(dst, src, whole_rows, whole_columns, dst_stride, src_stride);
  edge<T>(dst + whole_columns * item, src + whole_columns * src_stride, whole_rows,
          columns - whole_columns, dst_stride, src_stride);
  edge<T>(dst + whole_rows * dst_stride, src + whole_rows * item, rows - whole_rows, columns,
          dst_stride, src_stride);
}

}  // namespace

void copy(char* dst, const char* src, size_t item, int64_t rows, int64_t columns,
          int64_t dst_stride, int64_t src_stride) {
  switch (item) {
    case 1:
      return copy_as<uint8_t>(dst, src, rows, columns, dst_stride, src_stride);
    case 2:
      return copy_as<uint16_t>(dst, src, rows, columns, dst_stride, src_stride);
    case 4:
      return copy_as<uint32_t>(dst, src, rows, columns, dst_stride, src_stride);
    case 8:
      return copy_as<uint64_t>(dst, src, rows, columns, dst_stride, src_stride);
    default:
      return copy_as<strided::Bytes16>(dst, src, rows, columns, dst_stride, src_stride);
  }
}

}  // namespace weft::transpose
