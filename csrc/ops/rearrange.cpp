// Copies that put elements elsewhere (flip, roll), running sums, exact equality, and reshape.
#include <vector>

#include "core/thread_pool.h"
#include "native_compare.h"
#include "native_indexing.h"
#include "native_views.h"
#include "ops/accumulate.h"
#include "ops/factory.h"
#include "ops/running_sum.h"
#include "ops/support.h"
#include "ops/views.h"
#include "ops_copying.h"
#include "ops_indexing.h"
#include "ops_views.h"

namespace weft::native {

Tensor flip(const Tensor& self, IntList dims) {
  const Dims wrapped = wrap_dims("flip", dims, self.dim());
  if (self.dim() == 0) return contiguous_copy(self);
  Layout layout = self.layout();
  for (int64_t dim : wrapped) {
    if (layout.sizes[dim] > 0) layout.offset += (layout.sizes[dim] - 1) * layout.strides[dim];
    layout.strides[dim] = -layout.strides[dim];
  }
  const Tensor out = empty_as("flip", self, self.sizes(), self.dtype());
  copy_into(out, self.with_layout(std::move(layout)));
  return out;
}

namespace {

Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  dim = wrap_dim("roll", dim, self.dim());
  const int64_t size = self.sizes()[dim];
  const int64_t start = size == 0 ? 0 : ((shift % size) + size) % size;
  if (start == 0) return self;
  return ops::cat(
      {ops::narrow(self, dim, size - start, start), ops::narrow(self, dim, 0, size - start)}, dim);
}

}  // namespace

// Composite, as is repeat.
Tensor roll(const Tensor& self, IntList shifts, IntList dims) {
  if (dims.empty()) {
    WEFT_CHECK(shifts.size() == 1, "roll: expected one shift where no dims are given, got ",
               AsTuple{shifts});
    if (self.numel() == 0) return ops::clone(self, std::nullopt);
    const Tensor flat = ops::reshape(self, Dims{-1});
    return ops::clone(ops::view(roll_one(flat, shifts[0], 0), self.sizes()), std::nullopt);
  }
  WEFT_CHECK(shifts.size() == dims.size(), "roll: expected as many shifts as dims, got ",
             AsTuple{shifts}, " and ", AsTuple{dims});
  WEFT_CHECK_INDEX(self.dim() > 0, "roll: expected at least 1 dim, got a 0-d tensor");
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i) result = roll_one(result, shifts[i], dims[i]);
  return result.is_same(self) ? ops::clone(self, std::nullopt) : result;
}

Tensor _roll_back(const Tensor& self, IntList shifts, IntList dims) {
  Dims back(shifts);
  for (int64_t& shift : back) {
    WEFT_CHECK(shift != INT64_MIN, "roll: expected shifts above -2^63, got ", AsTuple{shifts});
    shift = -shift;
  }
  return ops::roll(self, back, dims);
}

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

namespace {

// Running sums of float32 are kept in float64, as PyTorch's are on the CPU.
template <class T>
using RunningSum = std::conditional_t<
    std::is_same_v<T, float>, double,
    std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>, T>>;

// Of `Rows` lines at once, `size` elements each: one sum waits for the addition before, several
// hide the wait.
template <int Rows, class T>
void running_rows(int64_t size, const T* in, T* out) {
  RunningSum<T> sums[Rows] = {};
  for (int64_t i = 0; i < size; ++i) {
    for (int r = 0; r < Rows; ++r) {
      accumulate(sums[r], RunningSum<T>(in[r * size + i]));
      out[r * size + i] = static_cast<T>(sums[r]);
    }
  }
}

template <class T>
void running_sums(const Split3& split, const T* in, T* out) {
  parallel_for(split.outer, (int64_t{1} << 14) / std::max<int64_t>(1, split.size * split.inner) + 1,
               [&](int64_t begin, int64_t end) {
                 if constexpr (std::is_same_v<T, float>) {
                   if (split.inner == 1) {
                     const int64_t at = begin * split.size;
                     return running_sum(end - begin, split.size, in + at, out + at);
                   }
                 }
                 if (split.inner == 1) {
                   int64_t o = begin;
                   for (; o + 4 <= end; o += 4) {
                     running_rows<4>(split.size, in + o * split.size, out + o * split.size);
                   }
                   for (; o < end; ++o) {
                     running_rows<1>(split.size, in + o * split.size, out + o * split.size);
                   }
                   return;
                 }
                 std::vector<RunningSum<T>> sums(static_cast<size_t>(split.inner));
                 for (int64_t o = begin; o < end; ++o) {
                   std::fill(sums.begin(), sums.end(), RunningSum<T>(0));
                   for (int64_t i = 0; i < split.size; ++i) {
                     const int64_t line = (o * split.size + i) * split.inner;
                     for (int64_t j = 0; j < split.inner; ++j) {
                       accumulate(sums[static_cast<size_t>(j)], RunningSum<T>(in[line + j]));
                       out[line + j] = static_cast<T>(sums[static_cast<size_t>(j)]);
                     }
                   }
                 }
               });
}

}  // namespace

Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  dim = wrap_dim("cumsum", dim, self.dim());
  const bool counts = category(self.dtype()) <= DTypeCategory::Integral;
  const DType kind = dtype ? *dtype : counts ? DType::I64 : self.dtype();
  const DType compute = compute_type(kind);
  const Tensor from = in_order(as_dtype(self, compute));
  Tensor out = Tensor::empty(self.sizes(), compute, self.device(), "cumsum");
  const Split3 split = self.dim() == 0 ? Split3{} : split_at(self.sizes(), dim);
  dispatch(compute, [&]<class T>(std::type_identity<T>) {
    if constexpr (!is_small_float<T>) {
      if constexpr (std::is_same_v<T, bool>) {
        WEFT_CHECK_AS(NotImplemented, false, "cumsum: expected a numeric dtype, got ", compute);
      } else {
        running_sums(split, from.data_as<const T>(), out.data_as<T>());
      }
    }
  });
  return as_dtype(out, kind);
}

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  const DType compute = compute_type(promote(self.dtype(), other.dtype()));
  const Tensor a = in_order(as_dtype(self, compute)), b = in_order(as_dtype(other, compute));
  bool same_values = true;
  dispatch(compute == DType::Bool ? DType::U8 : compute, [&]<class T>(std::type_identity<T>) {
    if constexpr (!is_small_float<T>) {
      same_values =
          std::equal(a.data_as<const T>(), a.data_as<const T>() + a.numel(), b.data_as<const T>());
    }
  });
  return same_values;
}

// Composite: a view where the strides allow one, else a view of a copy.
Tensor reshape(const Tensor& self, IntList shape) {
  const Dims sizes = views::infer_size("reshape", shape, self.numel());
  if (views::view_strides(self.layout(), sizes)) return ops::view(self, sizes);
  return ops::view(ops::clone(self, 0), sizes);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  start_dim = wrap_dim("flatten", start_dim, self.dim());
  end_dim = wrap_dim("flatten", end_dim, self.dim());
  WEFT_CHECK(start_dim <= end_dim, "flatten: expected start_dim <= end_dim, got ", start_dim,
             " and ", end_dim);
  if (self.dim() == 0) return ops::reshape(self, Dims{1});
  if (start_dim == end_dim) return self;
  Dims sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= start_dim && d <= end_dim) {
      joined *= self.sizes()[d];
      if (d == end_dim) sizes.push_back(joined);
    } else {
      sizes.push_back(self.sizes()[d]);
    }
  }
  return ops::reshape(self, sizes);
}

}  // namespace weft::native
