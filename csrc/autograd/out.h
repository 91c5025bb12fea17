// out=: the tensors of a call that its results are written to.
#pragma once

#include "core/tensor.h"

namespace weft::autograd {

// Gives a tensor other sizes, row-major from its offset on; the storage grows where it is too
// small, and new elements are undefined. RuntimeError where the tensor requires grad, or where the
// storage may not grow.
void resize(const char* op, const Tensor& tensor, const Dims& sizes);

// Gives `out` the sizes of a result. Warns where `out` has elements, which are lost.
void resize_out(const char* op, const Tensor& out, IntList sizes);

// RuntimeError where `out` or an operand requires grad while gradients are recorded.
void check_out_graph(const char* op, bool needs_graph);

// The dtype of what an operator makes for `out`: RuntimeError where another one is asked for.
DType out_dtype(const char* op, std::optional<DType> dtype, const Tensor& out);

// For operators that make their own result: writes it to `out`, and returns `out`. RuntimeError
// where the dtype of `out` does not hold that of the result.
Tensor write_out(const char* op, const Tensor& result, const Tensor& out);

}  // namespace weft::autograd
