// Products and convolutions with an epilogue or a prologue: the operators of the table that can be
// the head of a fusion group. The values are those of the operator without.
//
// The epilogue is asked (`begin`) before the values are computed. It is not asked where they are
// computed elsewhere than where the result lies, as those of 16-bit floats are. With a prologue one
// of the two factors stands for what it makes, of a convolution the image.
#pragma once

#include "core/scalar.h"
#include "core/tensor.h"
#include "ops/epilogue.h"

namespace weft::native {

Tensor mm(const Tensor& self, const Tensor& mat2, const Around& around);
Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha, const Around& around);
Tensor bmm(const Tensor& self, const Tensor& mat2, const Around& around);
Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha, const Around& around);
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, const Around& around);
// Records nothing, unlike the operator: no operand may require a gradient.
Tensor matmul(const Tensor& self, const Tensor& other, const Around& around);
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups, const Around& around);

}  // namespace weft::native
