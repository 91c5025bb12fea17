// Layout: how a tensor walks over its storage. A value type; knows neither dtype nor memory.
//
// Element [i0, i1, ...] lies at offset + i0*strides[0] + i1*strides[1] + ... (counted in elements).
// Strides may be zero (broadcast) or negative (reversed).
// Invariants: sizes.size() == strides.size(); every size >= 0; product of sizes fits in int64.
#pragma once

#include <array>

#include "core/dims.h"

namespace weft {

// PyTorch's numbers for memory formats. In channels_last the channels of an image (N, C, H, W), or
// of a volume (N, C, D, H, W), lie beside each other.
enum class MemoryFormat : int64_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
inline constexpr std::array kMemoryFormats{"contiguous_format", "preserve_format", "channels_last",
                                           "channels_last_3d"};

struct Layout {
  Dims sizes;
  Dims strides;
  int64_t offset = 0;

  // Row-major layout of the given sizes at offset 0. Raises RuntimeError on negative or overflowing
  // sizes.
  static Layout contiguous(IntList sizes);

  int64_t dim() const noexcept { return static_cast<int64_t>(sizes.size()); }
  int64_t numel() const noexcept {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
  }
  // Strides of dimensions of size 1 do not count; a layout without elements is contiguous.
  bool is_contiguous() const noexcept;
  bool has_format(MemoryFormat format) const noexcept;  // Preserve: any layout has it
  // The format that a result over such a layout takes on: the strides of single rows and columns
  // count, so that an image of one element can tell.
  MemoryFormat suggested_format() const noexcept;
  // True when no two indices reach the same element, as far as sorting strides can tell.
  bool is_non_overlapping() const noexcept;

  // Lowest and one-past-highest element reached, relative to the storage: {0, 0} when empty.
  struct Extent {
    int64_t begin, end;
  };
  Extent extent() const noexcept;

  friend bool operator==(const Layout&, const Layout&) = default;
};

// Product of sizes; raises RuntimeError naming `op` on a negative size or on overflow.
int64_t checked_numel(const char* op, IntList sizes);
Dims contiguous_strides(IntList sizes);
Dims strides_of(MemoryFormat format, IntList sizes);

// dim in [-ndim, ndim) to [0, ndim); raises IndexError "<op>: expected dim in [-2, 1], got 2".
// A 0-d tensor accepts -1 and 0.
int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim);
// Wraps and checks for repeats (RuntimeError).
Dims wrap_dims(const char* op, IntList dims, int64_t ndim);

// NumPy's rule. Raises RuntimeError "<op>: expected broadcastable shapes, got (2, 3) and (4,)".
Dims broadcast_sizes(const char* op, IntList a, IntList b);
// The same without an error: false where the sizes do not fit. `result` is none of the two.
bool broadcast_into(Dims& result, IntList a, IntList b);

}  // namespace weft
