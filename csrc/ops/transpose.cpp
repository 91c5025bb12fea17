#include "ops/transpose.h"

#include <algorithm>
#include <cstring>

#include "ops/shuffle.h"
#include "ops/strided.h"

namespace weft::transpose {
namespace {

// A square as wide as a register of kBytes, of numbers of four bytes.
template <int kBytes>
WEFT_INLINE void turn_in_registers(char* dst, const char* src, int64_t dst_stride,
                                   int64_t src_stride) {
  using V = Vector<uint32_t, kBytes>;
  shuffles::turn_square<uint32_t, V>(
      [&](V& row, int j) WEFT_INLINED { std::memcpy(&row, src + j * src_stride, kBytes); },
      [&](int i, const V& column)
          WEFT_INLINED { std::memcpy(dst + i * dst_stride, &column, kBytes); });
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
        turn_in_registers<16>(dst + i * dst_stride + j * item, buffer + j * line + i * item,
                              dst_stride, line);
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
      turn_in_registers<64>(dst + i * dst_stride + j * 4, src + i * 4 + j * src_stride, dst_stride,
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
