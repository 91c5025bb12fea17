// Do two tensors share bytes? Asked before every write.
#pragma once

#include "core/tensor.h"

namespace weft {

enum class Overlap : uint8_t {
  None,
  Exact,  // same elements in the same order
  Some,   // anything else, or too hard to tell
};

// `reader` is taken as broadcast to the shape of `writer`.
Overlap overlap(const Tensor& writer, const Tensor& reader);

}  // namespace weft
