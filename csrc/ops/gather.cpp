// gather and scatter: along one dimension, an index tensor says which element goes with each place.
#include "core/thread_pool.h"
#include "native_indexing.h"
#include "ops/accumulate.h"
#include "ops/index_plan.h"

namespace weft::native {
namespace {

// How lines of the index tensor (along its last dimension) meet the elements of a tensor of the
// same number of dimensions: element i of a line lies at base + i * step, plus, for the tensor that
// is indexed, index * stride.
struct IndexLines {
  std::vector<int64_t> base;
  int64_t step = 0;
};

IndexLines lines_of(const Tensor& index, Dims strides) {
  IndexLines lines;
  lines.step = strides.back();
  Dims sizes = index.sizes();
  strides.erase(strides.size() - 1);
  sizes.erase(sizes.size() - 1);
  lines.base = element_offsets(sizes, strides);
  return lines;
}

// An indexed tensor: the index supplies the part of the offset along `dim`.
struct LinePlan {
  Tensor index;  // contiguous int64, checked
  IndexLines lines;
  int64_t stride;  // along dim
  int64_t length;  // of a line
  // Whether two lines never meet the same element.
  bool disjoint;

  const int64_t* line(int64_t i) const { return index.data_as<const int64_t>() + i * length; }
};

// Checks that index fits inside `limit` in every dimension but `dim` (dim < 0: in every one).
void check_fits(const char* op, const char* what, const Tensor& index, const Tensor& limit,
                int64_t dim) {
  bool fits = index.dim() == limit.dim();
  for (int64_t d = 0; fits && d < index.dim(); ++d) {
    fits = d == dim || index.sizes()[d] <= limit.sizes()[d];
  }
  WEFT_CHECK(fits, op, ": expected an index no larger than ", what, " ", AsTuple{limit.sizes()},
             dim < 0 ? "" : " outside dim ", dim < 0 ? "" : std::to_string(dim), ", got shape ",
             AsTuple{index.sizes()});
}

void check_range(const char* op, const Tensor& index, int64_t dim, int64_t size) {
  const int64_t* values = index.data_as<const int64_t>();
  const int64_t count = index.numel();
  if (indices_fit(values, count, 0, size)) return;
  for (int64_t i = 0; i < count; ++i) {
    WEFT_CHECK(values[i] >= 0 && values[i] < size, op, ": expected index in [0, ", size - 1,
               "] for dim ", dim, ", got ", values[i]);
  }
}

LinePlan plan_lines(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  WEFT_CHECK(index.dtype() == DType::I64 || index.dtype() == DType::I32, op,
             ": expected an int64 or int32 index, got ", index.dtype());
  const Tensor dense = in_order(as_dtype(index, DType::I64));
  check_range(op, dense, dim, self.sizes()[dim]);
  Dims strides = self.strides();
  strides[dim] = 0;
  return {dense, lines_of(dense, std::move(strides)), self.strides()[dim], dense.sizes().back(),
          dim == self.dim() - 1};
}

// body(first line, last line) over all lines; on several threads where `safe`.
template <class Fn>
void for_lines(const LinePlan& plan, bool safe, Fn&& body) {
  const auto count = static_cast<int64_t>(plan.lines.base.size());
  if (!safe) return body(0, count);
  parallel_for(count, (int64_t{1} << 14) / std::max<int64_t>(plan.length, 1) + 1, body);
}

// write(element of self, element of src) for every index.
template <class T, class Fn>
void for_each_pair(const LinePlan& plan, const IndexLines& source, T* self, const T* src,
                   Fn&& write) {
  for_lines(plan, plan.disjoint, [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const int64_t* index = plan.line(l);
      T* to = self + plan.lines.base[static_cast<size_t>(l)];
      const T* from = src + source.base[static_cast<size_t>(l)];
      for (int64_t i = 0; i < plan.length; ++i) {
        write(to[i * plan.lines.step + index[i] * plan.stride], from[i * source.step]);
      }
    }
  });
}

// a folded with b, in the type arithmetic is done in.
template <Fold kFold, class T>
T folded(T a, T b) {
  if constexpr (kFold == Fold::Sum) {
    accumulate(a, b);
    return a;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kFold == Fold::Amax ? a || b : a && b;
  } else if constexpr (!is_computed<T>) {
    using Compute = ComputeType<T>;
    return T(folded<kFold>(static_cast<Compute>(a), static_cast<Compute>(b)));
  } else if constexpr (kFold == Fold::Prod && std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else if constexpr (kFold == Fold::Prod) {
    return a * b;
  } else if constexpr (is_complex_number<T>) {
    return a;  // refused before
  } else {
    if (a != a) return a;
    return b != b || (kFold == Fold::Amax) == (a < b) ? b : a;
  }
}

// One value seen in the shape of index.
Tensor filled(const Scalar& value, const Tensor& index, DType dtype) {
  check_number(value, dtype, "scatter");
  const Tensor number = Tensor::scalar(value, dtype);
  return number.with_layout({index.sizes(), Dims(index.sizes().size()), 0});
}

}  // namespace

void scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src, Fold fold) {
  dim = wrap_dim(op, dim, self.dim());
  WEFT_CHECK(src.dtype() == self.dtype(), op, ": expected tensors of one dtype, got ", self.dtype(),
             " and ", src.dtype());
  self.check_writable(op);
  check_no_overlap(op, self);
  if (index.numel() == 0) return;
  const Tensor target = as_vector(self), positions = as_vector(index);
  Tensor from = as_vector(src);
  check_fits(op, "self", positions, target, dim);
  check_fits(op, "src", positions, from, -1);
  if (from.storage() == target.storage()) from = contiguous_copy(from);
  const LinePlan plan = plan_lines(op, target, dim, positions);
  const IndexLines source = lines_of(positions, from.strides());
  if (fold == Fold::Set) {
    dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
      for_each_pair(plan, source, target.data_as<T>(), from.data_as<const T>(),
                    [](T& to, const T& value) { to = value; });
    });
    return;
  }
  dispatch(self.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto fold_all = [&]<Fold kFold>() {
      for_each_pair(plan, source, target.data_as<T>(), from.data_as<const T>(),
                    [](T& to, const T& value) { to = folded<kFold>(to, value); });
    };
    switch (fold) {
      case Fold::Prod:
        return fold_all.template operator()<Fold::Prod>();
      case Fold::Amax:
        return fold_all.template operator()<Fold::Amax>();
      case Fold::Amin:
        return fold_all.template operator()<Fold::Amin>();
      default:
        return fold_all.template operator()<Fold::Sum>();
    }
  });
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  dim = wrap_dim("gather", dim, self.dim());
  Tensor out = Tensor::empty(index.sizes(), self.dtype(), self.device(), "gather");
  if (index.numel() == 0) return out;
  const Tensor from = as_vector(self), positions = as_vector(index);
  check_fits("gather", "self", positions, from, dim);
  const LinePlan plan = plan_lines("gather", from, dim, positions);
  dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
    for_lines(plan, true, [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        const int64_t* at = plan.line(l);
        const T* line = from.data_as<const T>() + plan.lines.base[static_cast<size_t>(l)];
        T* to = out.data_as<T>() + l * plan.length;
        if (plan.lines.step == 0 && plan.stride == 1) {
          for (int64_t i = 0; i < plan.length; ++i) to[i] = line[at[i]];
          continue;
        }
        for (int64_t i = 0; i < plan.length; ++i)
          to[i] = line[i * plan.lines.step + at[i] * plan.stride];
      }
    });
  });
  return out;
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into("scatter", self, dim, index, src, Fold::Set);
  return self;
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter_(self, dim, index, filled(value, index, self.dtype()));
}

Tensor scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into("scatter_add", self, dim, index, src, Fold::Sum);
  return self;
}

}  // namespace weft::native
