// out=: the tensors of a call that its results are written to.
#pragma once

#include <initializer_list>

#include "core/tensor.h"

namespace weft::autograd {

// Gives `out` the sizes of a result. Warns where `out` has elements, which are lost.
void resize_out(const char* op, const Tensor& out, IntList sizes);

// RuntimeError where `out` or an operand requires grad while gradients are recorded.
void check_out_graph(const char* op, bool needs_graph);

// The dtype of what an operator makes for `out`: RuntimeError where another one is asked for.
DType out_dtype(const char* op, std::optional<DType> dtype, const Tensor& out);

// RuntimeError where `out` has not the dtype of a result, nor, with or_byte, uint8.
void check_out_dtype(const char* op, DType dtype, const Tensor& out, bool or_byte = false);

// RuntimeError where `out` shares memory with an operand, or within itself.
void check_distinct_out(const char* op, const Tensor& out,
                        std::initializer_list<const Tensor*> operands);

// For operators that make their own result: writes it to `out`, and returns `out`. RuntimeError
// where the dtype of `out` is another one.
Tensor write_out(const char* op, const Tensor& result, const Tensor& out);

// The same; the result is converted to a dtype of `out` that holds it.
Tensor cast_out(const char* op, const Tensor& result, const Tensor& out);

// The same; an `out` of as many elements keeps its shape, and gets them in its order.
Tensor fill_out(const char* op, const Tensor& result, const Tensor& out);

}  // namespace weft::autograd
