#include "ops/transpose.h"

#include <algorithm>
#include <cstring>

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

template <class T>
void copy_as(char* dst, const char* src, int64_t rows, int64_t columns, int64_t dst_stride,
             int64_t src_stride) {
  constexpr int64_t item = sizeof(T), side = 64 / item;
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  for (int64_t j = 0; j < whole_columns; j += side) {
    for (int64_t i = 0; i < whole_rows; i += side) {
      square<T>(dst + i * dst_stride + j * item, src + i * item + j * src_stride, dst_stride,
                src_stride);
    }
  }
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
