// Views in another dtype: the same bytes, with sizes and strides counted in other elements.
#pragma once

#include "core/tensor.h"

namespace weft::views {

// Real and imaginary parts in a new last dimension; of a complex layout, in real elements.
Layout parts_of_complex(const Layout& layout);

// RuntimeError unless `self` is complex.
Tensor view_as_real(const Tensor& self);
// RuntimeError unless `self` is float32 or float64 and its last dimension holds pairs.
Tensor view_as_complex(const Tensor& self);
// RuntimeError unless the last dimension is contiguous and whole elements come out.
Tensor view_dtype(const Tensor& self, DType dtype);

}  // namespace weft::views
