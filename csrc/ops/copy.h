// Copies between tensors of any layout and dtype.
#pragma once

#include "core/tensor.h"

namespace weft {

// dst[...] = src, broadcast and converted. Raises RuntimeError naming `op` when the shapes do not
// fit, dst is read-only or reaches an element twice. Both may share memory.
void copy_into(const Tensor& dst, const Tensor& src, const char* op);

// The same into new memory: shapes are known to fit, nothing is checked.
void copy_new(const Tensor& dst, const Tensor& src);

// The same where one of them is not on the CPU.
void copy_on_devices(const Tensor& dst, const Tensor& src);

// The tensor itself when it is on the device, else a row-major copy there.
Tensor on_device(const Tensor& src, Device device);

// A new row-major tensor with the elements of `src`.
Tensor contiguous_copy(const Tensor& src);

// A new dense tensor that keeps the order in memory of src's dimensions.
Tensor clone_preserve(const Tensor& src);

// Uninitialised, dense, with the order in memory of the dimensions of `like`.
Tensor empty_preserve(const Tensor& like, DType dtype, Device device);

// Raises RuntimeError when an integer dtype cannot hold the value; in unsigned ones, negative
// numbers that wrap are fine.
void check_range(const Scalar& value, DType dtype, const char* op);

// The same, and no finite number becomes infinite in 16 bits; for what refuses that as well.
void check_number(const Scalar& value, DType dtype, const char* op);

// Sets every element. Raises RuntimeError when an integer dtype cannot hold the value.
void fill(const Tensor& dst, const Scalar& value, const char* op = "fill_");

}  // namespace weft
