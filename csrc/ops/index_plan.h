// How advanced indexing reaches into a tensor: three lists of element offsets whose sums are the
// places read or written.
//
//   result[before..., picked..., after...] = self[before_offset + picked_offset + after_offset]
#pragma once

#include <algorithm>
#include <vector>

#include "ops/support.h"

namespace weft::native {

struct IndexPlan {
  std::vector<int64_t> before;  // dimensions in front of the indexed ones
  std::vector<int64_t> picked;  // one entry for each element of the broadcast index tensors
  std::vector<int64_t> after;   // the dimensions behind; empty when they lie in order
  int64_t run = 1;              // elements behind one picked place
  Dims result_sizes;

  int64_t rows() const { return static_cast<int64_t>(before.size() * picked.size()); }
  // Calls of(row, offset of its first element) for some rows.
  template <class Of>
  void each_row(int64_t begin, int64_t end, const Of& of) const {
    const auto count = static_cast<int64_t>(picked.size());
    for (int64_t row = begin; row < end;) {
      const int64_t start = before[static_cast<size_t>(row / count)], at = row % count;
      const int64_t* offset = picked.data() + at;
      for (const int64_t stop = std::min(end, row - at + count); row < stop; ++row) {
        of(row, start + *offset++);
      }
    }
  }
  // Of element i of a row, relative to its first.
  int64_t element_offset(int64_t i) const {
    return after.empty() ? i : after[static_cast<size_t>(i)];
  }
};

// indices[d] selects along dimension d; undefined takes all of it; a mask (bool, uint8) takes as
// many dimensions as it has. Checks every index: IndexError
// "<op>: expected index in [-3, 2] for dim 0, got 5". With `negatives` off, [0, 2].
IndexPlan plan_index(const char* op, const Tensor& self, const TensorList& indices,
                     bool negatives = true);

// Offsets of all elements of a layout, in order, relative to its own offset.
std::vector<int64_t> element_offsets(IntList sizes, IntList strides);

// Raises unless each element of a tensor to be written is reached once.
void check_no_overlap(const char* op, const Tensor& self);

// How an element meets the values that are written to it, in turn.
enum class Fold { Set, Sum, Prod, Amax, Amin };
// Writes src to the elements that `index` names along `dim`, as scatter does.
void scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src, Fold fold);

// Whether so many indices are all in [low, size).
bool indices_fit(const int64_t* values, int64_t count, int64_t low, int64_t size);

// An index tensor as contiguous int64; raises IndexError unless it is int64 or int32.
Tensor index_values(const char* op, const Tensor& index);

}  // namespace weft::native
