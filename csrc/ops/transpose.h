// Blocked transposition of a matrix of elements, by element size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::transpose {

// Rows to work on at once: as many as fit in a cache line of the source. Wider bands were slower,
// their rows push each other out of the cache.
constexpr int64_t band(size_t item) { return 64 / static_cast<int64_t>(item); }

// dst[i, j] = src[i, j] for rows x columns elements of `item` bytes, where dst is contiguous along
// columns (rows dst_stride bytes apart) and src along rows (columns src_stride bytes apart).
void copy(char* dst, const char* src, size_t item, int64_t rows, int64_t columns,
          int64_t dst_stride, int64_t src_stride);

}  // namespace weft::transpose
