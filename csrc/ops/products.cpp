// Products made of other operators: cross, kron, tensordot, inner, powers of matrices.
#include "native_products.h"
#include "ops.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// Dimensions that are not in `taken`, in order.
Dims others(const Tensor& tensor, const Dims& taken) {
  Dims result;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (std::find(taken.begin(), taken.end(), d) == taken.end()) result.push_back(d);
  }
  return result;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims result = a;
  for (const int64_t d : b) result.push_back(d);
  return result;
}

Dims sizes_at(const Tensor& tensor, const Dims& dims) {
  Dims result;
  for (const int64_t d : dims) result.push_back(tensor.size(d));
  return result;
}

}  // namespace

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return ops::linalg_cross(self, other, *dim);
  int64_t at = 0;
  while (at < self.dim() && self.size(at) != 3) ++at;
  WEFT_CHECK(at < self.dim(), "cross: expected a dimension of 3 entries, got shape ",
             AsTuple{self.sizes()});
  return ops::linalg_cross(self, other, at - self.dim());
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t ndim = std::max(self.dim(), other.dim());
  Dims left, right, sizes;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t a = d - ndim + self.dim(), b = d - ndim + other.dim();
    left.push_back(a < 0 ? 1 : self.size(a));
    left.push_back(1);
    right.push_back(1);
    right.push_back(b < 0 ? 1 : other.size(b));
    sizes.push_back(left[left.size() - 2] * right.back());
  }
  return ops::reshape(ops::mul(ops::reshape(self, left), ops::reshape(other, right)), sizes);
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntList dims_self, IntList dims_other) {
  const char* op = "tensordot";
  WEFT_CHECK(dims_self.size() == dims_other.size(), op, ": expected as many dims of both, got ",
             AsTuple{dims_self}, " and ", AsTuple{dims_other});
  const Dims a = wrap_dims(op, dims_self, self.dim()), b = wrap_dims(op, dims_other, other.dim());
  // One entry against several multiplies each of them: their sum.
  Dims summed_self, summed_other;
  for (size_t i = 0; i < a.size(); ++i) {
    if (self.size(a[i]) == 1 && other.size(b[i]) != 1) summed_other.push_back(b[i]);
    if (other.size(b[i]) == 1 && self.size(a[i]) != 1) summed_self.push_back(a[i]);
  }
  if (!summed_self.empty() || !summed_other.empty()) {
    return tensordot(
        summed_self.empty() ? self : ops::sum(self, summed_self, true, self.dtype()),
        summed_other.empty() ? other : ops::sum(other, summed_other, true, other.dtype()), a, b);
  }
  int64_t inner = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    WEFT_CHECK(self.size(a[i]) == other.size(b[i]), op, ": expected equal sizes at dims ", a[i],
               " and ", b[i], ", got shapes ", AsTuple{self.sizes()}, " and ",
               AsTuple{other.sizes()});
    inner *= self.size(a[i]);
  }
  const Dims rows = others(self, a), columns = others(other, b);
  if (rows.empty() && columns.empty()) {
    // No product of matrices, which autocast would compute in a lower precision.
    const int64_t flat[] = {inner};
    return ops::dot(ops::reshape(ops::permute(self, a), flat),
                    ops::reshape(ops::permute(other, b), flat));
  }
  const Dims row_sizes = sizes_at(self, rows), column_sizes = sizes_at(other, columns);
  int64_t row_count = 1, column_count = 1;
  for (const int64_t size : row_sizes) row_count *= size;
  for (const int64_t size : column_sizes) column_count *= size;
  const int64_t left[] = {row_count, inner}, right[] = {inner, column_count};
  const Tensor x = ops::reshape(ops::permute(self, joined(rows, a)), left);
  const Tensor y = ops::reshape(ops::permute(other, joined(b, columns)), right);
  return ops::reshape(ops::mm(x, y), joined(row_sizes, column_sizes));
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  WEFT_CHECK(self.size(-1) == other.size(-1), "inner: expected equal last sizes, got shapes ",
             AsTuple{self.sizes()}, " and ", AsTuple{other.sizes()});
  const int64_t last[] = {-1};
  return ops::tensordot(self, other, last, last);
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  WEFT_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2),
             "matrix_power: expected square matrices, got shape ", AsTuple{self.sizes()});
  if (n == 0) {
    const Tensor one = ops::eye(self.size(-1), self.dtype());
    return ops::copy_(ops::clone(self), ops::expand(one, self.sizes(), false));  // gradient 0
  }
  Tensor power = n < 0 ? ops::linalg_inv(self) : self, result;
  for (uint64_t rest = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n); rest > 0;
       rest >>= 1) {
    if (rest & 1) result = result.defined() ? ops::matmul(result, power) : power;
    if (rest > 1) power = ops::matmul(power, power);
  }
  return n == 1 ? ops::clone(result) : result;
}

Tensor logdet(const Tensor& self) {
  const auto [sign, size] = ops::linalg_slogdet(self);
  if (is_complex(self.dtype())) return ops::add(ops::log(sign), size);
  return ops::where(ops::eq(sign, Scalar(-1)), Scalar(std::numeric_limits<double>::quiet_NaN()),
                    size);
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  const auto [u, s, vh] = ops::linalg_svd(self, !some, std::nullopt);
  if (!compute_uv) return {ops::zeros_like(u), s, ops::zeros_like(ops::adjoint(vh))};
  return {u, s, ops::adjoint(vh)};
}

}  // namespace weft::native
