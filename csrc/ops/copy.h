// Copies between tensors of any layout and dtype.
#pragma once

#include "core/tensor.h"

namespace weft {

// dst[...] = src, broadcast and converted. Raises RuntimeError naming `op` when the shapes do not
// fit, dst is read-only or reaches an element twice. Both may share memory.
void copy_into(const Tensor& dst, const Tensor& src, const char* op);

// The same into new memory: shapes are known to fit, nothing is checked.
void copy_new(const Tensor& dst, const Tensor& src);

// A new row-major tensor with the elements of `src`.
Tensor contiguous_copy(const Tensor& src);

// A new dense tensor that keeps the order in memory of src's dimensions.
Tensor clone_preserve(const Tensor& src);

// Uninitialised, dense, with the order in memory of the dimensions of `like`.
Tensor empty_preserve(const Tensor& like, DType dtype);

// Raises RuntimeError when an integer dtype cannot hold the value; in unsigned ones, negative
// numbers that wrap are fine.
void check_range(const Scalar& value, DType dtype, const char* op);

// Sets every element. Raises RuntimeError when an integer dtype cannot hold the value.
void fill(const Tensor& dst, const Scalar& value, const char* op = "fill_");

}  // namespace weft
