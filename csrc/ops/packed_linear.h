// Rows times the weight of a layer, in strips of the weight (packed_gemm.h): those kept with its
// storage, or packed as they are met until there are some, with the same bits. The result is
// float32, the factors that or bfloat16.
#pragma once

#include "core/tensor.h"

namespace weft::native {

// out = start + rows @ weight^T, for a start that is undefined or a row. Leaves what this way does
// not fit: other dtypes, strides and shapes, and returns whether it ran.
bool packed_linear(const Tensor& out, const Tensor& start, const Tensor& rows,
                   const Tensor& weight);

}  // namespace weft::native
