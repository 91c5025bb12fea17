// Matrix products of tensors: mm, addmm, bmm, baddbmm, mv, dot, linear, matmul.
//
// float16 and bfloat16 compute in float32. Operands are read where they lie, whatever their
// strides.
#include <type_traits>

#include "native_linalg.h"
#include "ops/blas.h"
#include "ops/heads.h"
#include "ops/matmul_ways.h"
#include "ops/support.h"
#include "ops/views.h"
#include "ops_linalg.h"
#include "ops_views.h"

namespace weft::native {
namespace {

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, ": expected tensors of one dtype, got ", a.dtype(),
             " and ", b.dtype());
  WEFT_CHECK(a.dtype() != DType::Bool, op, ": expected a numeric dtype, got ", a.dtype());
}

void check_dims(const char* op, const Tensor& tensor, int64_t dims) {
  WEFT_CHECK(tensor.dim() == dims, op, ": expected ", dims, "-d tensors, got shape ",
             AsTuple{tensor.sizes()});
}

void check_inner(const char* op, const Tensor& a, const Tensor& b, bool match) {
  WEFT_CHECK(match, op, ": expected shapes (..., k) and (k, n), got ", AsTuple{a.sizes()}, " and ",
             AsTuple{b.sizes()});
}

// Whether each row of a result starts from this one.
bool is_row(const Tensor& start, const Tensor& out) {
  const int64_t n = out.sizes().back();
  return start.dim() == 1 && start.numel() == n && start.strides()[0] == 1 && n > 0 &&
         start.dtype() == out.dtype();
}

// out[rows, n] = start, broadcast. A dense row of n, the bias of a layer, is worth a loop of its
// own.
void start_from(const Tensor& out, const Tensor& start) {
  if (!is_row(start, out)) return copy_into(out, start);
  const int64_t n = out.sizes().back();
  const size_t line = static_cast<size_t>(n) * out.item_size();
  const char* from = start.data_as<const char>();
  char* to = out.data_as<char>();
  for (int64_t row = out.numel() / n; row > 0; --row, to += line) std::memcpy(to, from, line);
}

// What is computed around a product: an epilogue sees it in these sizes (empty: as it is).
struct Ending {
  Around around = {};
  IntList sizes = {};
};

Finish finish_of(const Ending& ending, const Tensor& out) {
  Epilogue* const epilogue = ending.around.behind;
  if (!epilogue) return {};
  const Tensor seen =
      ending.sizes.empty() ? out : out.with_layout(Layout::contiguous(ending.sizes));
  return epilogue->begin(seen, out.sizes().back()) ? Finish(epilogue) : Finish();
}

// Allocates the result, starts it from `start` (undefined: nothing) and runs the product.
Tensor product(const char* op, IntList sizes, const Tensor& start, const Tensor& a, const Tensor& b,
               const Scalar& beta, const Scalar& alpha, const Gemm& gemm,
               const Ending& ending = {}) {
  Prologue *const left = ending.around.left_of(), *const right = ending.around.right_of();
  const bool parts_of_a = left && gemm.takes_parts(a, b) && left->begin(a.sizes().back());
  const bool parts_of_b = right && gemm.takes_right(a, b) && right->begin(b.sizes().back());
  if ((left && !parts_of_a) || (right && !parts_of_b)) {
    const Tensor whole = ops::reshape(ending.around.before->whole(), (left ? a : b).sizes());
    return product(op, sizes, start, left ? whole : a, right ? whole : b, beta, alpha, gemm,
                   {ending.around.behind, ending.sizes});
  }
  const DType dtype = a.dtype();
  const DType compute = compute_type(dtype);
  if (compute != dtype) {
    return as_dtype(
        product(op, sizes, start, as_dtype(a, compute), as_dtype(b, compute), beta, alpha, gemm),
        dtype);
  }
  Tensor out = Tensor::empty(sizes, compute, a.device(), op);
  const bool starts = start.defined() && (beta.is_complex() || beta.to_double() != 0);
  const bool from_row = starts && !parts_of_b && is_row(start, out) && gemm.takes_row(a, b);
  if (starts && !from_row) start_from(out, start);
  const Scalar weight = starts ? beta : Scalar(0);
  const Finish finish = finish_of(ending, out);
  if (parts_of_b) {
    gemm.of_right(out, a, b, weight, alpha, finish, *right);
  } else if (parts_of_a || from_row) {
    gemm.of_parts(out, a, b, weight, alpha, finish, left, from_row ? start : Tensor());
  } else {
    gemm.into(out, a, b, weight, alpha, finish);
  }
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

Tensor mm_with(const Tensor& self, const Tensor& mat2, const Ending& ending) {
  check_dims("mm", self, 2);
  check_dims("mm", mat2, 2);
  check_operands("mm", self, mat2);
  check_inner("mm", self, mat2, self.sizes()[1] == mat2.sizes()[0]);
  const int64_t sizes[] = {self.sizes()[0], mat2.sizes()[1]};
  return product("mm", sizes, {}, self, mat2, 0, 1, kPlain, ending);
}

Tensor bmm_with(const Tensor& self, const Tensor& mat2, const Ending& ending) {
  check_dims("bmm", self, 3);
  check_dims("bmm", mat2, 3);
  check_operands("bmm", self, mat2);
  const Dims &a = self.sizes(), &b = mat2.sizes();
  check_inner("bmm", self, mat2, a[0] == b[0] && a[2] == b[1]);
  const int64_t sizes[] = {a[0], a[1], b[2]};
  return product("bmm", sizes, {}, self, mat2, 0, 1, kBatched, ending);
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& mat2) {
  return mm_with(self, mat2, {EpilogueScope::take()});
}

Tensor mm(const Tensor& self, const Tensor& mat2, const Around& around) {
  return mm_with(self, mat2, {around});
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  return addmm(self, mat1, mat2, beta, alpha, EpilogueScope::take());
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha, const Around& around) {
  check_dims("addmm", mat1, 2);
  check_dims("addmm", mat2, 2);
  check_operands("addmm", mat1, mat2);
  check_inner("addmm", mat1, mat2, mat1.sizes()[1] == mat2.sizes()[0]);
  const int64_t sizes[] = {mat1.sizes()[0], mat2.sizes()[1]};
  check_start("addmm", self, mat1, sizes, beta, alpha);
  return product("addmm", sizes, self, mat1, mat2, beta, alpha, kPlain, {around});
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  return bmm_with(self, mat2, {EpilogueScope::take()});
}

Tensor bmm(const Tensor& self, const Tensor& mat2, const Around& around) {
  return bmm_with(self, mat2, {around});
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  return baddbmm(self, batch1, batch2, beta, alpha, EpilogueScope::take());
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha, const Around& around) {
  check_dims("baddbmm", batch1, 3);
  check_dims("baddbmm", batch2, 3);
  check_operands("baddbmm", batch1, batch2);
  const Dims &a = batch1.sizes(), &b = batch2.sizes();
  check_inner("baddbmm", batch1, batch2, a[0] == b[0] && a[2] == b[1]);
  const int64_t sizes[] = {a[0], a[1], b[2]};
  check_start("baddbmm", self, batch1, sizes, beta, alpha);
  return product("baddbmm", sizes, self, batch1, batch2, beta, alpha, kBatched, {around});
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  check_dims("mv", self, 2);
  check_dims("mv", vec, 1);
  check_operands("mv", self, vec);
  check_inner("mv", self, vec, self.sizes()[1] == vec.sizes()[0]);
  const Tensor column = vec.with_layout({{vec.sizes()[0], 1}, {vec.strides()[0], 1}, vec.offset()});
  const int64_t sizes[] = {self.sizes()[0]};
  return product("mv", sizes, {}, self, column, 0, 1, kPlain);
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
  dispatch_numeric(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
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
  return linear(input, weight, bias, EpilogueScope::take());
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, const Around& around) {
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
  if (input.dim() == 2 && !vector) {
    return product("linear", flat, bias, rows, matrix, 1, 1, kTransposed, {around});
  }
  Dims sizes = input.sizes();
  if (vector) {
    sizes.resize(sizes.size() - 1);
  } else {
    sizes.back() = n;
  }
  const Tensor out =
      product("linear", flat, bias, rows, matrix, 1, 1, kTransposed, {around, sizes});
  return out.with_layout(Layout::contiguous(sizes));
}

// The gradient of linear to its weight: grad_output^T @ input over all leading dimensions.
Tensor _linear_backward_weight(const Tensor& grad_output, const Tensor& input) {
  check_operands("linear", grad_output, input);
  const Tensor grads = transposed(as_rows(grad_output)), rows = as_rows(input);
  const int64_t sizes[] = {grads.sizes()[0], rows.sizes()[1]};
  return product("linear", sizes, {}, grads, rows, 0, 1, kPlain);
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

Tensor batched_matmul(const Tensor& self, const Tensor& other, const Around& around) {
  const IntList a(self.sizes()), b(other.sizes());
  const Dims batch = broadcast_sizes("matmul", a.first(a.size() - 2), b.first(b.size() - 2));
  check_inner("matmul", self, other, self.size(-1) == other.size(-2));
  Dims sizes = batch;
  sizes.push_back(self.size(-2));
  sizes.push_back(other.size(-1));
  if (around.left_of() && !same(batch, a.first(a.size() - 2))) {
    return batched_matmul(around.before->whole(), other, around.behind);
  }
  if (around.right_of() && !same(batch, b.first(b.size() - 2))) {
    return batched_matmul(self, around.before->whole(), around.behind);
  }
  // What is made has no memory: it lies as if it were contiguous.
  const auto flat = [&](const Tensor& tensor, const Prologue* made) {
    if (!made) return as_batch(tensor, batch);
    int64_t count = 1;
    for (int64_t size : batch) count *= size;
    const int64_t sizes[] = {count, tensor.size(-2), tensor.size(-1)};
    return tensor.with_layout(Layout::contiguous(Dims(IntList(sizes))));
  };
  const Tensor left = flat(self, around.left_of()), right = flat(other, around.right_of());
  if (around.behind || around.before) {
    return bmm_with(left, right, {around, sizes}).with_layout(Layout::contiguous(sizes));
  }
  return ops::view(ops::bmm(left, right), sizes);
}

// Left operand of at least 3 dims times a matrix or vector: one product over all its rows.
Tensor folded_matmul(const Tensor& self, const Tensor& other, const Around& around) {
  check_inner("matmul", self, other, self.size(-1) == other.size(0));
  const int64_t flat[] = {-1, self.size(-1)};
  Dims sizes = self.sizes();
  if (self.numel() == 0) return batched_matmul(self, other, around);
  sizes.back() = other.size(-1);
  const Tensor rows = around.before ? as_rows(self) : ops::reshape(self, flat);
  if (around.behind || around.before) {
    return mm_with(rows, other, {around, sizes}).with_layout(Layout::contiguous(sizes));
  }
  return ops::view(ops::mm(rows, other), sizes);
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) { return matmul(self, other, Around()); }

Tensor matmul(const Tensor& self, const Tensor& other, const Around& around) {
  const int64_t a = self.dim(), b = other.dim();
  WEFT_CHECK(a >= 1 && b >= 1, "matmul: expected tensors of at least 1 dim, got shapes ",
             AsTuple{self.sizes()}, " and ", AsTuple{other.sizes()});
  if (around.before && (a < 2 || b < 2)) {
    const Tensor whole = around.before->whole();
    return matmul(around.right ? self : whole, around.right ? whole : other, around.behind);
  }
  if (a == 2 && b == 2) {
    return around.behind || around.before ? mm(self, other, around) : ops::mm(self, other);
  }
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  if (a == 1) return ops::squeeze(matmul(ops::unsqueeze(self, 0), other), -2);
  if (b == 1) return ops::squeeze(matmul(self, ops::unsqueeze(other, 1)), -1);
  return b == 2 ? folded_matmul(self, other, around) : batched_matmul(self, other, around);
}

}  // namespace weft::native
