// Running sums, products, extrema and logarithms of sums along one dimension.
#include <cmath>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "core/thread_pool.h"
#include "native_indexing.h"
#include "native_scans.h"
#include "ops/accumulate.h"
#include "ops/running_sum.h"
#include "ops/support.h"
#include "ops_arithmetic.h"
#include "ops_compare.h"
#include "ops_copying.h"
#include "ops_indexing.h"
#include "ops_views.h"

namespace weft::native {
namespace {

// Calls fn(first element, distance of neighbours) for every line of a contiguous tensor along dim.
template <class Fn>
void for_each_line(const Tensor& tensor, int64_t dim, Fn&& fn) {
  if (tensor.numel() == 0) return;
  const Split3 split = split_at(tensor.sizes(), dim);
  parallel_for(split.outer * split.inner, (int64_t{1} << 14) / split.size + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   fn(i / split.inner * split.size * split.inner + i % split.inner, split.inner);
                 }
               });
}

int64_t length_along(const Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.sizes()[static_cast<size_t>(dim)];
}

template <class T>
bool is_nan(T value) {
  if constexpr (is_small_float<T>) {
    return std::isnan(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value);
  } else {
    return false;
  }
}

template <class T>
bool at_least(T a, T b) {
  if constexpr (is_small_float<T>) {
    return static_cast<float>(a) >= static_cast<float>(b);
  } else {
    return a >= b;
  }
}

std::tuple<Tensor, Tensor> running_extremum(const char* op, const Tensor& self, int64_t dim,
                                            bool greatest) {
  dim = wrap_dim(op, dim, self.dim());
  const Tensor x = in_order(plain_bools(self));
  const Tensor values = Tensor::empty(self.sizes(), self.dtype(), self.device(), op);
  const Tensor indices = Tensor::empty(self.sizes(), DType::I64, self.device(), op);
  const int64_t length = length_along(self, dim);
  dispatch(self.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_number<T>) {
      WEFT_CHECK_AS(NotImplemented, false, op, ": expected a dtype with an order, got ",
                    self.dtype());
    } else {
      const T* from = x.data_as<const T>();
      T* to = values.data_as<T>();
      auto* where = indices.data_as<int64_t>();
      for_each_line(x, dim, [&](int64_t at, int64_t step) {
        T best = from[at];
        int64_t index = 0;
        for (int64_t i = 0; i < length; ++i, at += step) {
          const T value = from[at];
          const bool better = greatest ? at_least(value, best) : at_least(best, value);
          if (is_nan(value) || (better && !is_nan(best))) {
            best = value;
            index = i;
          }
          to[at] = best;
          where[at] = index;
        }
      });
    }
  });
  return {values, indices};
}

// log(exp(a) + exp(b)) without overflow.
double add_logs(double a, double b) {
  const double high = std::fmax(a, b), low = std::fmin(a, b);
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (high == low && std::isinf(low)) return a;
  return high + std::log1p(std::exp(low - high));
}

// The angle goes on from that of the greater number, beyond pi too, as in PyTorch.
std::complex<double> add_logs(std::complex<double> a, std::complex<double> b) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (a != a || b != b) return {nan, nan};
  const auto [low, high] = a.real() < b.real() ? std::pair(a, b) : std::pair(b, a);
  if (high.real() == low.real() && std::isinf(low.real())) {
    if (low.real() < 0) return {low.real(), 0};
    return std::log(std::exp(a) + std::exp(b));
  }
  const std::complex<double> ratio = std::exp(low - high);
  const double x = ratio.real(), y = ratio.imag();
  return high + std::complex<double>(0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x));
}

// The running add_logs along a dimension, in the numbers T.
template <class T>
Tensor running_log_sum(const Tensor& self, int64_t dim) {
  const Tensor x = in_order(as_dtype(self, dtype_of<T>::value));
  const Tensor out = Tensor::empty(self.sizes(), x.dtype(), self.device(), "logcumsumexp");
  const int64_t length = length_along(self, dim);
  const T* from = x.data_as<const T>();
  T* to = out.data_as<T>();
  for_each_line(x, dim, [&](int64_t at, int64_t step) {
    T total = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < length; ++i, at += step) {
      to[at] = total = add_logs(total, from[at]);
    }
  });
  return as_dtype(out, self.dtype());
}

// What running sums and products begin with, and how they take the next element.
struct Plus {
  static constexpr int kStart = 0;

  template <class T>
  static void take(T& total, T value) {
    accumulate(total, value);
  }
};
struct Times {
  static constexpr int kStart = 1;

  template <class T>
  static void take(T& total, T value) {
    if constexpr (std::is_integral_v<T>) {
      total = static_cast<T>(static_cast<uint64_t>(total) * static_cast<uint64_t>(value));
    } else {
      total *= value;
    }
  }
};

// Those of float32 are kept in float64, as PyTorch's are on the CPU.
template <class T>
using RunningTotal = std::conditional_t<
    std::is_same_v<T, float>, double,
    std::conditional_t<std::is_same_v<T, std::complex<float>>, std::complex<double>, T>>;

// Of `Rows` lines at once, `size` elements each: one total waits for the one before, several hide
// the wait.
template <class Step, int Rows, class T>
void running_rows(int64_t size, const T* in, T* out) {
  using Total = RunningTotal<T>;
  Total totals[Rows];
  std::fill_n(totals, Rows, Total(Step::kStart));
  for (int64_t i = 0; i < size; ++i) {
    for (int r = 0; r < Rows; ++r) {
      Step::take(totals[r], Total(in[r * size + i]));
      out[r * size + i] = static_cast<T>(totals[r]);
    }
  }
}

template <class Step, class T>
void running_lines(const Split3& split, const T* in, T* out) {
  using Total = RunningTotal<T>;
  parallel_for(split.outer, (int64_t{1} << 14) / std::max<int64_t>(1, split.size * split.inner) + 1,
               [&](int64_t begin, int64_t end) {
                 if constexpr (std::is_same_v<T, float> && std::is_same_v<Step, Plus>) {
                   if (split.inner == 1) {
                     const int64_t at = begin * split.size;
                     return running_sum(end - begin, split.size, in + at, out + at);
                   }
                 }
                 if (split.inner == 1) {
                   int64_t o = begin;
                   for (; o + 4 <= end; o += 4) {
                     running_rows<Step, 4>(split.size, in + o * split.size, out + o * split.size);
                   }
                   for (; o < end; ++o) {
                     running_rows<Step, 1>(split.size, in + o * split.size, out + o * split.size);
                   }
                   return;
                 }
                 std::vector<Total> totals(static_cast<size_t>(split.inner));
                 for (int64_t o = begin; o < end; ++o) {
                   std::fill(totals.begin(), totals.end(), Total(Step::kStart));
                   for (int64_t i = 0; i < split.size; ++i) {
                     const int64_t line = (o * split.size + i) * split.inner;
                     for (int64_t j = 0; j < split.inner; ++j) {
                       Step::take(totals[static_cast<size_t>(j)], Total(in[line + j]));
                       out[line + j] = static_cast<T>(totals[static_cast<size_t>(j)]);
                     }
                   }
                 }
               });
}

template <class Step>
Tensor running_total(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  dim = wrap_dim(op, dim, self.dim());
  const bool counts = category(self.dtype()) <= DTypeCategory::Integral;
  const DType kind = dtype ? *dtype : counts ? DType::I64 : self.dtype();
  const DType compute = compute_type(kind);
  const Tensor from = in_order(as_dtype(self, compute));
  Tensor out = Tensor::empty(self.sizes(), compute, self.device(), op);
  const Split3 split = self.dim() == 0 ? Split3{} : split_at(self.sizes(), dim);
  dispatch(compute, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_computed<T>) {
      if constexpr (std::is_same_v<T, bool>) {
        WEFT_CHECK_AS(NotImplemented, false, op, ": expected a numeric dtype, got ", compute);
      } else {
        running_lines<Step>(split, from.data_as<const T>(), out.data_as<T>());
      }
    }
  });
  return as_dtype(out, kind);
}

}  // namespace

Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return running_total<Plus>("cumsum", self, dim, dtype);
}

Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return running_total<Times>("cumprod", self, dim, dtype);
}

std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim) {
  return running_extremum("cummax", self, dim, true);
}

std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim) {
  return running_extremum("cummin", self, dim, false);
}

Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  dim = wrap_dim("logcumsumexp", dim, self.dim());
  if (is_complex(self.dtype())) return running_log_sum<std::complex<double>>(self, dim);
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()),
                "logcumsumexp: expected a floating or complex tensor, got ", self.dtype());
  return running_log_sum<double>(self, dim);
}

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  WEFT_CHECK(n >= 0, "diff: expected n >= 0, got ", n);
  WEFT_CHECK(self.dim() >= 1, "diff: expected at least 1 dim, got a 0-d tensor");
  dim = wrap_dim("diff", dim, self.dim());
  if (n == 0) return ops::clone(self, std::nullopt);
  TensorList parts;
  if (prepend.defined()) parts.push_back(prepend);
  parts.push_back(self);
  if (append.defined()) parts.push_back(append);
  Tensor x = parts.size() > 1 ? ops::cat(parts, dim) : self;
  for (; n > 0; --n) {
    const int64_t rest = std::max<int64_t>(x.size(dim) - 1, 0);
    if (rest == 0) return ops::narrow(x, dim, 0, 0);
    const Tensor upper = ops::narrow(x, dim, 1, rest), lower = ops::narrow(x, dim, 0, rest);
    x = x.dtype() == DType::Bool ? ops::ne(upper, lower) : ops::sub(upper, lower, Scalar(1));
  }
  return x;
}

}  // namespace weft::native
