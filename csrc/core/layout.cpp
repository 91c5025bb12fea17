// Layout algebra: everything here is about sizes and strides alone.
#include "core/layout.h"

#include <algorithm>

#include "core/error.h"

namespace weft {
namespace {

int64_t saturate(__int128 value) {
  if (value > INT64_MAX) return INT64_MAX;
  if (value < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(value);
}

bool has_no_elements(const Layout& layout) {
  return std::find(layout.sizes.begin(), layout.sizes.end(), 0) != layout.sizes.end();
}

// Calls fn(dimension) from the innermost one in memory to the outermost one.
template <class Fn>
void for_each_outwards(MemoryFormat format, size_t dims, Fn&& fn) {
  const bool channels = format >= MemoryFormat::ChannelsLast;
  if (channels) fn(size_t{1});
  for (size_t i = dims; i-- > (channels ? 2 : 0);) fn(i);
  if (channels) fn(size_t{0});
}

size_t dims_of(MemoryFormat format) { return format == MemoryFormat::ChannelsLast ? 4 : 5; }

}  // namespace

int64_t checked_numel(const char* op, IntList sizes) {
  int64_t count = 1;
  // Strides are products too, so a size of 0 excuses no overflow of the others.
  int64_t stride = 1;
  bool overflow = false;
  for (const int64_t size : sizes) {
    WEFT_CHECK(size >= 0, op, ": expected sizes >= 0, got ", AsTuple{sizes});
    overflow |= __builtin_mul_overflow(stride, std::max<int64_t>(size, 1), &stride);
    count = size == 0 ? 0 : count;
  }
  WEFT_CHECK(!overflow, op, ": expected fewer than 2**63 elements, got sizes ", AsTuple{sizes});
  return count == 0 ? 0 : stride;
}

Dims contiguous_strides(IntList sizes) { return strides_of(MemoryFormat::Contiguous, sizes); }

Dims strides_of(MemoryFormat format, IntList sizes) {
  Dims strides(sizes);
  int64_t stride = 1;
  for_each_outwards(format, sizes.size(), [&](size_t i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  });
  return strides;
}

Layout Layout::contiguous(IntList sizes) {
  checked_numel("layout", sizes);
  return {Dims(sizes), contiguous_strides(sizes), 0};
}

bool Layout::is_contiguous() const noexcept {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) return has_no_elements(*this);
    expected *= sizes[i];
  }
  return true;
}

bool Layout::has_format(MemoryFormat format) const noexcept {
  if (format == MemoryFormat::Preserve) return true;
  if (format == MemoryFormat::Contiguous) return is_contiguous();
  if (sizes.size() != dims_of(format)) return false;
  int64_t expected = 1;
  bool fits = true;
  for_each_outwards(format, sizes.size(), [&](size_t i) {
    fits = fits && (sizes[i] == 1 || strides[i] == expected);
    expected *= sizes[i];
  });
  return fits || has_no_elements(*this);
}

MemoryFormat Layout::suggested_format() const noexcept {
  const auto format = sizes.size() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  if (sizes.size() != dims_of(format) || has_no_elements(*this)) return MemoryFormat::Contiguous;
  int64_t least = 1;  // what the strides so far reach over
  bool fits = true;
  for_each_outwards(format, sizes.size(), [&](size_t i) {
    fits = fits && strides[i] >= least;
    least = strides[i] * sizes[i];
  });
  // All the same where a batch has one element for each channel.
  const bool is_ambiguous = strides[0] == strides[1];
  return fits && !is_ambiguous ? format : MemoryFormat::Contiguous;
}

bool Layout::is_non_overlapping() const noexcept {
  if (has_no_elements(*this)) return true;
  // Sorted by stride, each dimension must step over all that the smaller ones reach.
  Dims order;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) order.push_back(static_cast<int64_t>(i));
  }
  const auto step = [this](int64_t i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    return stride < 0 ? -static_cast<__int128>(stride) : stride;
  };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return step(a) < step(b); });
  __int128 reach = 0;
  for (const int64_t i : order) {
    if (step(i) <= reach) return false;
    reach += step(i) * (sizes[static_cast<size_t>(i)] - 1);
  }
  return true;
}

Layout::Extent Layout::extent() const noexcept {
  if (has_no_elements(*this)) return {0, 0};
  __int128 low = offset, high = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const __int128 reach = static_cast<__int128>(strides[i]) * (sizes[i] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {saturate(low), saturate(high + 1)};
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim) {
  const int64_t limit = std::max<int64_t>(ndim, 1);
  WEFT_CHECK_INDEX(dim >= -limit && dim < limit, op, ": expected dim in [", -limit, ", ", limit - 1,
                   "], got ", dim);
  return dim < 0 ? dim + limit : dim;
}

Dims wrap_dims(const char* op, IntList dims, int64_t ndim) {
  Dims wrapped;
  for (const int64_t dim : dims) {
    const int64_t axis = wrap_dim(op, dim, ndim);
    WEFT_CHECK(std::find(wrapped.begin(), wrapped.end(), axis) == wrapped.end(), op,
               ": expected each dim at most once, got ", AsTuple{dims});
    wrapped.push_back(axis);
  }
  return wrapped;
}

bool broadcast_into(Dims& result, IntList a, IntList b) {
  const IntList longer = a.size() < b.size() ? b : a, shorter = a.size() < b.size() ? a : b;
  result = Dims(longer);
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& size = result[shift + i];
    if (size != shorter[i] && size != 1 && shorter[i] != 1) return false;
    if (size == 1) size = shorter[i];
  }
  return true;
}

Dims broadcast_sizes(const char* op, IntList a, IntList b) {
  Dims result;
  WEFT_CHECK(broadcast_into(result, a, b), op, ": expected broadcastable shapes, got ", AsTuple{a},
             " and ", AsTuple{b});
  return result;
}

}  // namespace weft
