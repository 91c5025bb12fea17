// The words of shape formulas (`shape=` of the operator table) in C++, for the rows whose results'
// sizes are asked before they are computed. For what an operator refuses they give anything.
#pragma once

#include <algorithm>

#include "core/layout.h"

namespace weft::sizes {

inline int64_t at(IntList sizes, size_t dim) { return dim < sizes.size() ? sizes[dim] : 0; }
inline int64_t same(int64_t a, int64_t) { return a; }
inline Dims reversed(IntList sizes) {
  Dims result(sizes);
  std::reverse(result.begin(), result.end());
  return result;
}

// A product of the last two dimensions; a vector is a row on the left, a column on the right.
Dims matmul(IntList first, IntList second);

// What a convolution with filters (out, in, kernel...) gives; one number stands for all dimensions.
Dims convolved(IntList image, IntList filters, IntList stride, IntList padding, IntList dilation);

}  // namespace weft::sizes
