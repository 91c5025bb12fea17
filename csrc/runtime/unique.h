// Whether a tensor is the program's alone.
#pragma once

#include "core/tensor.h"

namespace weft {

// Whether nobody but the caller's one reference can see the tensor's memory, all of which it is.
// Views whose base is theirs alone are good: a product's result is one, seen in another shape.
bool is_unique(const Tensor& tensor);

}  // namespace weft
