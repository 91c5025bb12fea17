// Raw strided moves of elements by size, without regard to their type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cwchar>
#include <type_traits>
#include <utility>

namespace weft::strided {

enum class Direction : uint8_t {
  Gather,   // strided to packed
  Scatter,  // packed to strided
};

struct Bytes16 {
  uint64_t low, high;
};

// Element accesses go through memcpy: operands may have any type.
template <class T>
inline T element_at(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
inline void copy_element(char* to, const char* from) {
  const T value = element_at<T>(from);
  std::memcpy(to, &value, sizeof(T));
}

// n elements, `stride` bytes apart at the strided side. Inlined with a constant stride it becomes
// vector code.
template <Direction direction, class T>
inline void move_line(char* __restrict packed, char* __restrict place, int64_t n, int64_t stride) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (direction == Direction::Gather) {
      copy_element<T>(packed + i * item, place + i * stride);
    } else {
      copy_element<T>(place + i * stride, packed + i * item);
    }
  }
}

// Elements from i on of n that lie from `from` backwards, in blocks of so many vectors; those that
// are left begin at the result. All of a block is read before any of it is written.
template <class T, int vectors>
inline int64_t reverse_blocks(char* packed, const char* from, int64_t i, int64_t n) {
  constexpr int64_t item = sizeof(T), kLanes = 16 / item;
  using Vector __attribute__((vector_size(16))) = T;
  const auto turned = []<size_t... lane>(Vector v, std::index_sequence<lane...>) {
    return __builtin_shufflevector(v, v, (kLanes - 1 - lane)...);
  };
  for (; i + vectors * kLanes <= n; i += vectors * kLanes) {
    Vector block[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      std::memcpy(&block[v], from - (i + (v + 1) * kLanes - 1) * item, sizeof(Vector));
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      block[v] = turned(block[v], std::make_index_sequence<kLanes>());
      std::memcpy(packed + (i + v * kLanes) * item, &block[v], sizeof(Vector));
    }
  }
  return i;
}

template <class T>
inline void reverse_line(char* packed, const char* from, int64_t n) {
  constexpr int64_t item = sizeof(T);
  int64_t i = 0;
  if constexpr (item < 16) {
    i = reverse_blocks<T, 4>(packed, from, i, n);
    i = reverse_blocks<T, 1>(packed, from, i, n);
  }
  for (; i < n; ++i) copy_element<T>(packed + i * item, from - i * item);
}

// memcpy of lines that may lie anywhere. Where `to` lies a little behind `from` within a page,
// loads wait for the stores before them, and the string instruction that the C library takes from
// 2 KB on falls to a tenth of its speed on AMD processors. From the end on no load is at the place
// of a store before it.
inline void copy_line(char* to, const char* from, size_t count) {
  constexpr size_t kPage = 4096, kNear = 64, kShort = 2048, kLong = size_t{1} << 20;
  using Block __attribute__((vector_size(64))) = char;
  const size_t behind = static_cast<size_t>(to - from) % kPage;
  if (behind > 0 && behind < kNear && count > kShort && count < kLong) {
    Block block;
    while (count >= sizeof(block)) {
      count -= sizeof(block);
      std::memcpy(&block, from + count, sizeof(block));
      std::memcpy(to + count, &block, sizeof(block));
    }
  }
  std::memcpy(to, from, count);
}

// Sets n packed elements to the one at `from`. The C library's fills know the machine's widest
// vectors.
template <class T>
inline void spread_line(char* packed, const char* from, int64_t n) {
  const T value = element_at<T>(from);
  if constexpr (sizeof(T) == 1) {
    std::memset(packed, value, static_cast<size_t>(n));
    return;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == sizeof(wchar_t)) {
    std::wmemset(reinterpret_cast<wchar_t*>(packed), static_cast<wchar_t>(value),
                 static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(packed + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

template <Direction direction, class T>
void move_as(char* packed, char* place, int64_t rows, int64_t length, int64_t row_stride,
             int64_t stride) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  constexpr bool gather = direction == Direction::Gather;
  for (int64_t r = 0; r < rows; ++r, packed += length * item, place += row_stride) {
    if (gather && stride == 0) {
      spread_line<T>(packed, place, length);
    } else if (stride == item) {
      copy_line(gather ? packed : place, gather ? place : packed,
                static_cast<size_t>(length * item));
    } else if (stride == 2 * item) {
      move_line<direction, T>(packed, place, length, 2 * item);
    } else if (gather && stride == -item) {
      reverse_line<T>(packed, place, length);
    } else {
      move_line<direction, T>(packed, place, length, stride);
    }
  }
}

// The same for short rows, where telling strides apart would cost more than it saves.
template <Direction direction, class T>
void move_short(char* packed, char* place, int64_t rows, int64_t length, int64_t row_stride,
                int64_t stride) {
  constexpr auto item = static_cast<int64_t>(sizeof(T));
  for (int64_t r = 0; r < rows; ++r, packed += length * item, place += row_stride) {
    for (int64_t i = 0; i < length; ++i) {
      if constexpr (direction == Direction::Gather) {
        copy_element<T>(packed + i * item, place + i * stride);
      } else {
        copy_element<T>(place + i * stride, packed + i * item);
      }
    }
  }
}

// Moves rows x length elements of `item` bytes between `packed` and the place with those byte
// strides.
template <Direction direction>
void move(char* packed, char* place, size_t item, int64_t rows, int64_t length, int64_t row_stride,
          int64_t stride) {
  constexpr int64_t kShort = 8;
  auto run = [&]<class T>(T) {
    const auto fn = length < kShort ? move_short<direction, T> : move_as<direction, T>;
    fn(packed, place, rows, length, row_stride, stride);
  };
  switch (item) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    case 8:
      return run(uint64_t{});
    default:
      return run(Bytes16{});
  }
}

}  // namespace weft::strided
