// Matrix products of tensors: mm, addmm, bmm, baddbmm, mv, dot, linear, matmul.
//
// float16 and bfloat16 compute in float32. Operands are read where they lie, whatever their
// strides.
#include <type_traits>

#include "native_linalg.h"
#include "ops/blas.h"
#include "ops/gemm.h"
#include "ops/packed_product.h"
#include "ops/support.h"
#include "ops/views.h"
#include "ops_linalg.h"
#include "ops_views.h"

namespace weft::native {
namespace {

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, ": expected tensors of one dtype, got ", a.dtype(),
             " and ", b.dtype());
  WEFT_CHECK_AS(NotImplemented, a.dtype() != DType::Bool, op, ": expected a numeric dtype, got ",
                a.dtype());
}

void check_dims(const char* op, const Tensor& tensor, int64_t dims) {
  WEFT_CHECK(tensor.dim() == dims, op, ": expected ", dims, "-d tensors, got shape ",
             AsTuple{tensor.sizes()});
}

void check_inner(const char* op, const Tensor& a, const Tensor& b, bool match) {
  WEFT_CHECK(match, op, ": expected shapes (..., k) and (k, n), got ", AsTuple{a.sizes()}, " and ",
             AsTuple{b.sizes()});
}

bool is_one(const Scalar& s) { return !s.is_complex() && s.to_double() == 1; }

// Whether a product of these sizes is worth packing for: not vectors, nor a few numbers.
bool is_large(IntList sizes, int64_t k) {
  const auto rows = static_cast<double>(sizes.size() > 1 ? sizes[sizes.size() - 2] : 1);
  return sizes.back() >= 8 && rows * static_cast<double>(sizes.back() * k) >= 32.0 * 32 * 32;
}

// Allocates the result and runs the product; an undefined `start` counts as 0.
Tensor product(const char* op, IntList sizes, const Tensor& start, const Tensor& a, const Tensor& b,
               const Scalar& beta, const Scalar& alpha, Gemm& run) {
  const DType dtype = a.dtype();
  const DType compute = compute_type(dtype);
  const bool starts = start.defined() && (beta.is_complex() || beta.to_double() != 0);
  if (compute != dtype) {
    if (multiplies_in_pairs(dtype) && is_large(sizes, a.sizes().back()) && is_one(alpha) &&
        (!starts || is_one(beta))) {
      Tensor out = Tensor::empty(sizes, compute, a.device(), op);
      run(out, starts ? as_dtype(start, compute) : Tensor(), a, b, 1, 1);
      return as_dtype(out, dtype);
    }
    return as_dtype(
        product(op, sizes, start, as_dtype(a, compute), as_dtype(b, compute), beta, alpha, run),
        dtype);
  }
  Tensor out = Tensor::empty(sizes, compute, a.device(), op);
  run(out, starts ? start : Tensor(), a, b, starts ? beta : Scalar(0), alpha);
  return out;
}

void check_start(const char* op, const Tensor& self, const Tensor& a, IntList sizes,
                 const Scalar& beta, const Scalar& alpha) {
  WEFT_CHECK(self.dtype() == a.dtype(), op, ": expected tensors of one dtype, got ", self.dtype(),
             " and ", a.dtype());
  const bool is_row = self.dim() == 1 && !sizes.empty() && self.sizes()[0] == sizes.back();
  WEFT_CHECK(is_row || same(broadcast_sizes(op, self.sizes(), sizes), sizes), op,
             ": expected a self that broadcasts to ", AsTuple{sizes}, ", got shape ",
             AsTuple{self.sizes()});
  WEFT_CHECK((!beta.is_complex() && !alpha.is_complex()) || is_complex(a.dtype()), op,
             ": expected real alpha and beta for dtype ", a.dtype(), ", got ", alpha, " and ",
             beta);
}

// Of matrices (2 dims) or batches of them (3), added to `start` where there is one.
Tensor matrix_product(const char* op, int64_t dims, const Tensor& start, const Tensor& a,
                      const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  check_dims(op, a, dims);
  check_dims(op, b, dims);
  check_operands(op, a, b);
  const Dims &x = a.sizes(), &y = b.sizes();
  const size_t last = x.size() - 1;
  check_inner(op, a, b, x[last] == y[last - 1] && (dims == 2 || x[0] == y[0]));
  const int64_t batch[] = {x[0], x[last - 1], y[last]};
  const IntList sizes(dims == 2 ? batch + 1 : batch, x.size());
  if (start.defined()) check_start(op, start, a, sizes, beta, alpha);
  return product(op, sizes, start, a, b, beta, alpha, dims == 2 ? gemm : gemm_batched);
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& mat2) {
  return matrix_product("mm", 2, {}, self, mat2, 0, 1);
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  return matrix_product("addmm", 2, self, mat1, mat2, beta, alpha);
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  return matrix_product("bmm", 3, {}, self, mat2, 0, 1);
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  return matrix_product("baddbmm", 3, self, batch1, batch2, beta, alpha);
}

Tensor _int_mm(const Tensor& self, const Tensor& mat2) {
  const char* op = "_int_mm";
  check_dims(op, self, 2);
  check_dims(op, mat2, 2);
  WEFT_CHECK(self.dtype() == DType::I8 && mat2.dtype() == DType::I8, op,
             ": expected matrices of int8, got ", self.dtype(), " and ", mat2.dtype());
  check_inner(op, self, mat2, self.sizes()[1] == mat2.sizes()[0]);
  const int64_t sizes[] = {self.sizes()[0], mat2.sizes()[1]};
  if (self.numel() == 0 || mat2.numel() == 0) {
    return product(op, sizes, {}, as_dtype(self, DType::I32), as_dtype(mat2, DType::I32), 0, 1,
                   gemm);
  }
  const Tensor out = Tensor::empty(sizes, DType::I32, self.device(), op);
  auto matrix = [](const Tensor& t) {
    return blas::Matrix<const uint8_t>{reinterpret_cast<const uint8_t*>(t.data_as<const int8_t>()),
                                       t.strides()[0], t.strides()[1]};
  };
  blas::int8_gemm(sizes[0], sizes[1], self.sizes()[1], matrix(self), matrix(mat2),
                  out.data_as<int32_t>());
  return out;
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  check_dims("mv", self, 2);
  check_dims("mv", vec, 1);
  check_operands("mv", self, vec);
  check_inner("mv", self, vec, self.sizes()[1] == vec.sizes()[0]);
  const Tensor column = vec.with_layout({{vec.sizes()[0], 1}, {vec.strides()[0], 1}, vec.offset()});
  const int64_t sizes[] = {self.sizes()[0]};
  return product("mv", sizes, {}, self, column, 0, 1, gemm);
}

Tensor dot(const Tensor& self, const Tensor& tensor) {
  check_dims("dot", self, 1);
  check_dims("dot", tensor, 1);
  check_operands("dot", self, tensor);
  WEFT_CHECK(self.numel() == tensor.numel(), "dot: expected vectors of one length, got shapes ",
             AsTuple{self.sizes()}, " and ", AsTuple{tensor.sizes()});
  const DType dtype = self.dtype(), compute = compute_type(dtype);
  if (compute != dtype) {
    return as_dtype(dot(as_dtype(self, compute), as_dtype(tensor, compute)), dtype);
  }
  Tensor out = Tensor::empty({}, dtype, self.device(), "dot");
  dispatch_numeric(dtype, [&]<class T>(std::type_identity<T>) {
    *out.data_as<T>() = blas::dot(self.numel(), self.data_as<const T>(), self.strides()[0],
                                  tensor.data_as<const T>(), tensor.strides()[0]);
  });
  return out;
}

namespace {

// A tensor of shape [..., k] seen as [rows, k], copied only where its strides do not allow that.
Tensor as_rows(const Tensor& tensor) {
  if (tensor.dim() == 2) return tensor;
  const int64_t k = tensor.sizes().back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.sizes().size(); ++i) rows *= tensor.sizes()[i];
  const int64_t sizes[] = {rows, k};
  if (auto strides = views::view_strides(tensor.layout(), sizes)) {
    return tensor.with_layout({Dims(IntList(sizes)), std::move(*strides), tensor.offset()});
  }
  const Tensor dense = in_order(tensor);
  return dense.with_layout({Dims(IntList(sizes)), {k, 1}, dense.offset()});
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  WEFT_CHECK(input.dim() >= 1, "linear: expected an input of at least 1 dim, got a 0-d tensor");
  WEFT_CHECK(weight.dim() == 1 || weight.dim() == 2, "linear: expected a 2-d weight, got shape ",
             AsTuple{weight.sizes()});
  check_operands("linear", input, weight);
  const bool vector = weight.dim() == 1;  // a weight of shape (k,) gives one number a row
  const Tensor matrix = vector ? weight.with_layout(views::unsqueeze(weight.layout(), 0)) : weight;
  const int64_t k = matrix.sizes()[1], n = matrix.sizes()[0];
  WEFT_CHECK(input.sizes().back() == k, "linear: expected an input of shape (..., ", k, "), got ",
             AsTuple{input.sizes()}, " for weight ", AsTuple{weight.sizes()});
  const Tensor rows = as_rows(input);
  const int64_t flat[] = {rows.sizes()[0], n};
  if (bias.defined()) check_start("linear", bias, input, flat, 1, 1);
  const Tensor out = product("linear", flat, bias, rows, matrix, 1, 1, gemm_transposed);
  if (input.dim() == 2 && !vector) return out;
  Dims sizes = input.sizes();
  if (vector) {
    sizes.resize(sizes.size() - 1);
  } else {
    sizes.back() = n;
  }
  return out.with_layout(Layout::contiguous(sizes));
}

// The gradient of linear to its weight: grad_output^T @ input over all leading dimensions.
Tensor _linear_backward_weight(const Tensor& grad_output, const Tensor& input) {
  check_operands("linear", grad_output, input);
  const Tensor grads = transposed(as_rows(grad_output)), rows = as_rows(input);
  const int64_t sizes[] = {grads.sizes()[0], rows.sizes()[1]};
  return product("linear", sizes, {}, grads, rows, 0, 1, gemm);
}

namespace {

// The batch dimensions of both operands broadcast and flattened: a 3-d tensor.
Tensor as_batch(const Tensor& tensor, IntList batch) {
  Dims sizes(batch);
  sizes.push_back(tensor.size(-2));
  sizes.push_back(tensor.size(-1));
  int64_t count = 1;
  for (int64_t size : batch) count *= size;
  const int64_t flat[] = {count, tensor.size(-2), tensor.size(-1)};
  return ops::reshape(ops::expand(tensor, sizes), flat);
}

Tensor batched_matmul(const Tensor& self, const Tensor& other) {
  const IntList a(self.sizes()), b(other.sizes());
  const Dims batch = broadcast_sizes("matmul", a.first(a.size() - 2), b.first(b.size() - 2));
  check_inner("matmul", self, other, self.size(-1) == other.size(-2));
  Dims sizes = batch;
  sizes.push_back(self.size(-2));
  sizes.push_back(other.size(-1));
  return ops::view(ops::bmm(as_batch(self, batch), as_batch(other, batch)), sizes);
}

// Left operand of at least 3 dims times a matrix or vector: one product over all its rows.
Tensor folded_matmul(const Tensor& self, const Tensor& other) {
  check_inner("matmul", self, other, self.size(-1) == other.size(0));
  if (self.numel() == 0) return batched_matmul(self, other);
  const int64_t flat[] = {-1, self.size(-1)};
  Dims sizes = self.sizes();
  sizes.back() = other.size(-1);
  return ops::view(ops::mm(ops::reshape(self, flat), other), sizes);
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim(), b = other.dim();
  WEFT_CHECK(a >= 1 && b >= 1, "matmul: expected tensors of at least 1 dim, got shapes ",
             AsTuple{self.sizes()}, " and ", AsTuple{other.sizes()});
  if (a == 2 && b == 2) return ops::mm(self, other);
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  if (a == 1) return ops::squeeze(matmul(ops::unsqueeze(self, 0), other), -2);
  if (b == 1) return ops::squeeze(matmul(self, ops::unsqueeze(other, 1)), -1);
  return b == 2 ? folded_matmul(self, other) : batched_matmul(self, other);
}

}  // namespace weft::native
