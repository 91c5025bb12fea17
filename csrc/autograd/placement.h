// Where a tensor lies, changed in place: other sizes, another storage.
#pragma once

#include "core/tensor.h"

namespace weft::autograd {

// Gives a tensor other sizes, row-major from its offset on; the storage grows where it is too
// small, and new elements are undefined. RuntimeError where the tensor requires grad, or where the
// storage may not grow.
void resize(const char* op, const Tensor& tensor, const Dims& sizes);

// A tensor over a storage: RuntimeError where the layout leaves it or the dtype's alignment is off.
Tensor over_storage(const char* op, const Ref<Storage>& storage, DType dtype, Layout layout);

// The tensor lies over the storage from now on. RuntimeError as above, and where the tensor
// requires grad while gradients are recorded.
void set_storage(const char* op, const Tensor& tensor, const Ref<Storage>& storage, Layout layout);

}  // namespace weft::autograd
