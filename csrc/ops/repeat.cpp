// Entries repeated, put on diagonals, and views that change the tensor itself.
#include <algorithm>
#include <numeric>

#include "native_indexing.h"
#include "native_layout.h"
#include "ops/factory.h"
#include "ops/index_plan.h"
#include "ops/views.h"
#include "ops_arithmetic.h"
#include "ops_clamp_where.h"
#include "ops_compare.h"
#include "ops_copying.h"
#include "ops_indexing.h"
#include "ops_layout.h"
#include "ops_views.h"

namespace weft::native {
namespace {

const int64_t kFlat[] = {-1};

void check_output_size(std::optional<int64_t> wanted, int64_t got) {
  WEFT_CHECK(!wanted || *wanted == got, "repeat_interleave: expected output_size ", got, ", got ",
             wanted.value_or(0));
}

// 0 counts[0] times, 1 counts[1] times, ...
Tensor spread_indices(const Tensor& counts) {
  const char* op = "repeat_interleave";
  WEFT_CHECK_AS(NotImplemented, counts.dtype() == DType::I64 || counts.dtype() == DType::I32, op,
                ": expected int64 or int32 repeats, got ", counts.dtype());
  WEFT_CHECK(counts.dim() <= 1, op, ": expected repeats of 0 or 1 dims, got shape ",
             AsTuple{counts.sizes()});
  const Tensor values = in_order(as_dtype(counts, DType::I64));
  const int64_t* from = values.data_as<const int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    WEFT_CHECK(from[i] >= 0, op, ": expected repeats >= 0, got ", from[i]);
    WEFT_CHECK(!__builtin_add_overflow(total, from[i], &total), op,
               ": expected a size that fits in memory, got more than 2^63 entries");
  }
  const int64_t sizes[] = {total};
  Tensor out = Tensor::empty(sizes, DType::I64, values.device(), op);
  auto* to = out.data_as<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) to = std::fill_n(to, from[i], i);
  return out;
}

// How many pairs (r, c) of r < row, c < col have c <= r + offset.
__int128 pairs_below(__int128 row, __int128 col, __int128 offset) {
  const __int128 zero = 0, first = std::clamp(-offset, zero, row);
  const __int128 whole = std::clamp(col - offset, first, row);  // from here on rows are not cut
  return (whole - first) * (first + whole + 2 * offset + 1) / 2 + (row - whole) * col;
}

Tensor triangle_indices(const char* op, int64_t row, int64_t col, int64_t offset, bool lower,
                        MaybeDType dtype, MaybeInt layout, MaybeDevice device,
                        MaybeBool pin_memory) {
  WEFT_CHECK(row >= 0 && col >= 0, op, ": expected sizes >= 0, got ", row, " and ", col);
  const DType kind = dtype.value_or(DType::I64);
  WEFT_CHECK_AS(NotImplemented, kind == DType::I32 || kind == DType::I64, op,
                ": expected dtype int32 or int64, got ", kind);
  offset = std::clamp(offset, -row, col);
  const __int128 count = lower ? pairs_below(row, col, offset)
                               : __int128{row} * col - pairs_below(row, col, __int128{offset} - 1);
  WEFT_CHECK(count <= INT64_MAX / 16, op, ": expected a size that fits in memory, got ",
             static_cast<double>(count), " pairs");
  const int64_t sizes[] = {2, static_cast<int64_t>(count)};
  Tensor out = make_empty(op, sizes, {DType::I64, layout, device, pin_memory, {}});
  auto *rows = out.data_as<int64_t>(), *columns = rows + sizes[1];
  // Rows that have no pair are left out: there may be many.
  for (int64_t r = lower ? -std::min<int64_t>(offset, 0) : 0, left = sizes[1]; left > 0; ++r) {
    const int64_t edge = std::clamp<int64_t>(lower ? r + offset + 1 : r + offset, 0, col);
    const int64_t from = lower ? 0 : edge, width = lower ? edge : col - edge;
    rows = std::fill_n(rows, width, r);
    std::iota(columns, columns + width, from);
    columns += width;
    left -= width;
  }
  return as_dtype(out, kind);
}

}  // namespace

Tensor repeat(const Tensor& self, IntList repeats) {
  const auto ndim = static_cast<int64_t>(repeats.size());
  const int64_t added = ndim - self.dim();
  WEFT_CHECK(added >= 0, "repeat: expected at least ", self.dim(), " repeats, got ",
             AsTuple{repeats});
  // (r0, n0, r1, n1, ...): every dimension gets one of repeats in front, by expanding.
  Dims single, tiled, sizes;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t size = d < added ? 1 : self.sizes()[d - added];
    WEFT_CHECK(repeats[d] >= 0, "repeat: expected repeats >= 0, got ", AsTuple{repeats});
    single.push_back(1);
    single.push_back(size);
    tiled.push_back(repeats[d]);
    tiled.push_back(size);
    int64_t whole = 0;
    WEFT_CHECK(!__builtin_mul_overflow(repeats[d], size, &whole),
               "repeat: expected sizes that fit in memory, got repeats ", AsTuple{repeats});
    sizes.push_back(whole);
  }
  const Tensor expanded = ops::expand(ops::reshape(self, single), tiled, false);
  return ops::reshape(ops::clone(expanded, 0), sizes);
}

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  Tensor out = spread_indices(repeats);
  check_output_size(output_size, out.numel());
  return as_dtype(out, repeats.dtype());
}

Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const char* op = "repeat_interleave";
  const Tensor x = dim && self.dim() > 0 ? self : ops::reshape(self, kFlat);
  const int64_t at = wrap_dim(op, dim.value_or(0), x.dim());
  Tensor counts = repeats;
  if (repeats.numel() == 1) {
    const int64_t sizes[] = {x.size(at)};
    counts = ops::expand(ops::reshape(repeats, kFlat), sizes, false);
  }
  WEFT_CHECK(counts.dim() == 1 && counts.numel() == x.size(at), op, ": expected ", x.size(at),
             " repeats, got shape ", AsTuple{repeats.sizes()});
  const Tensor index = spread_indices(counts);
  check_output_size(output_size, index.numel());
  return ops::index_select(x, at, index);
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const char* op = "repeat_interleave";
  WEFT_CHECK(repeats >= 0, op, ": expected repeats >= 0, got ", repeats);
  const Tensor x = dim && self.dim() > 0 ? self : ops::reshape(self, kFlat);
  const int64_t at = wrap_dim(op, dim.value_or(0), x.dim());
  Dims sizes = x.sizes(), each = sizes;
  each.insert(static_cast<size_t>(at) + 1, repeats);
  WEFT_CHECK(!__builtin_mul_overflow(x.size(at), repeats, &sizes[static_cast<size_t>(at)]), op,
             ": expected a size that fits in memory, got more than 2^63 entries");
  check_output_size(output_size, sizes[static_cast<size_t>(at)]);
  const Tensor repeated = ops::expand(ops::unsqueeze(x, at + 1), each, false);
  return ops::reshape(ops::clone(repeated, 0), sizes);
}

Tensor tile(const Tensor& self, IntList dims) {
  Dims repeats;
  const auto count = static_cast<int64_t>(dims.size());
  for (int64_t d = count; d < self.dim(); ++d) repeats.push_back(1);
  for (const int64_t n : dims) repeats.push_back(n);
  return ops::repeat(self, repeats);
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const char* op = "diag_embed";
  WEFT_CHECK(self.dim() >= 1, op, ": expected at least 1 dim, got a 0-d tensor");
  const int64_t ndim = self.dim() + 1;
  dim1 = wrap_dim(op, dim1, ndim);
  dim2 = wrap_dim(op, dim2, ndim);
  WEFT_CHECK(dim1 != dim2, op, ": expected two different dims, got ", dim1, " twice");
  WEFT_CHECK(offset > -(int64_t{1} << 40) && offset < (int64_t{1} << 40), op,
             ": expected an offset that fits in memory, got ", offset);
  const int64_t size = self.sizes().back() + (offset < 0 ? -offset : offset);
  Dims sizes;
  for (int64_t d = 0, next = 0; d < ndim; ++d) {
    sizes.push_back(d == dim1 || d == dim2 ? size : self.size(next++));
  }
  Tensor out = zeros_of(sizes, self.dtype(), self.device(), op);
  copy_into(out.with_layout(views::diagonal(out.layout(), offset, dim1, dim2)), self);
  return out;
}

Tensor block_diag(const TensorList& tensors) {
  const char* op = "block_diag";
  if (tensors.empty()) return Tensor::empty(Dims{1, 0}, default_dtype());
  int64_t columns = 0;
  TensorList blocks;
  for (const Tensor& tensor : tensors) {
    WEFT_CHECK(tensor.dim() <= 2, op, ": expected at most 2 dims, got shape ",
               AsTuple{tensor.sizes()});
    const int64_t sizes[] = {tensor.dim() == 2 ? tensor.size(0) : 1,
                             tensor.dim() == 0 ? 1 : tensor.size(-1)};
    blocks.push_back(ops::reshape(tensor, sizes));
    columns += sizes[1];
  }
  TensorList rows;
  int64_t before = 0;
  for (const Tensor& block : blocks) {
    const int64_t left[] = {block.size(0), before};
    before += block.size(1);
    const int64_t right[] = {block.size(0), columns - before};
    rows.push_back(ops::cat({zeros_of(left, block.dtype(), block.device(), op), block,
                             zeros_of(right, block.dtype(), block.device(), op)},
                            1));
  }
  return ops::cat(rows, 0);
}

Tensor fill_diagonal_(const Tensor& self, const Scalar& fill_value, bool wrap) {
  const char* op = "fill_diagonal_";
  WEFT_CHECK(self.dim() >= 2, op, ": expected at least 2 dims, got shape ", AsTuple{self.sizes()});
  int64_t step = 0, size = self.size(0);
  for (int64_t d = 0; d < self.dim(); ++d) {
    WEFT_CHECK(self.dim() == 2 || self.size(d) == self.size(0), op,
               ": expected equal sizes for more than 2 dims, got shape ", AsTuple{self.sizes()});
    size = std::min(size, self.size(d));
    step += self.stride(d);
  }
  const int64_t rows = self.size(0), columns = self.size(1), strides[] = {step};
  // The diagonal of a matrix begins anew below one row that it leaves free.
  const bool again = wrap && self.dim() == 2 && columns > 0;
  for (int64_t first = 0; first == 0 || (again && first < rows); first += columns + 1) {
    const int64_t sizes[] = {std::min(size, rows - first)};
    const int64_t offset = self.offset() + first * self.stride(0);
    ops::fill_(ops::as_strided(self, sizes, strides, offset), fill_value);
  }
  return self;
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, MaybeDType dtype, MaybeInt layout,
                    MaybeDevice device, MaybeBool pin_memory) {
  return triangle_indices("tril_indices", row, col, offset, true, dtype, layout, device,
                          pin_memory);
}

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, MaybeDType dtype, MaybeInt layout,
                    MaybeDevice device, MaybeBool pin_memory) {
  return triangle_indices("triu_indices", row, col, offset, false, dtype, layout, device,
                          pin_memory);
}

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  if (!dim) return ops::gather(ops::reshape(self, kFlat), 0, ops::reshape(indices, kFlat), false);
  WEFT_CHECK(indices.dtype() == DType::I64, op, ": expected int64 indices, got ", indices.dtype());
  WEFT_CHECK(self.dim() == indices.dim(), op, ": expected indices of ", self.dim(),
             " dims, got shape ", AsTuple{indices.sizes()});
  const auto at = static_cast<size_t>(wrap_dim(op, *dim, self.dim()));
  Dims left = self.sizes(), right = indices.sizes();
  if (self.dim() > 0) left[at] = right[at] = 1;
  Dims common = broadcast_sizes(op, left, right);
  Dims of_self = common, of_indices = common;
  if (self.dim() > 0) {
    of_self[at] = self.sizes()[at];
    of_indices[at] = indices.sizes()[at];
  }
  // Negative indices count from the end, as in NumPy; gather takes none.
  const Tensor from_end = ops::add(indices, Scalar(self.dim() > 0 ? self.sizes()[at] : 1));
  const Tensor wrapped = ops::where(ops::lt(indices, Scalar(0)), from_end, indices);
  return ops::gather(ops::expand(self, of_self, false), *dim,
                     ops::expand(wrapped, of_indices, false), false);
}

}  // namespace weft::native
