// Padding with a constant, and resampling along one dimension: each entry of the result is a
// weighted sum of a few entries of the input. Nearest, linear, cubic and antialiased interpolation
// differ only in their tables of indices and weights.
#include "core/thread_pool.h"
#include "native_padding.h"
#include "ops/factory.h"
#include "ops/memory_order.h"
#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {
namespace {

// A stretch of one dimension, in the input and in the padded result.
struct Overlap {
  int64_t from, to, length;
};

Overlap overlap_of(int64_t size, int64_t before, int64_t after) {
  return {std::max<int64_t>(0, -before), std::max<int64_t>(0, before),
          size + std::min<int64_t>(0, before) + std::min<int64_t>(0, after)};
}

}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value) {
  const char* op = "constant_pad_nd";
  const auto pairs = static_cast<int64_t>(pad.size() / 2);
  WEFT_CHECK(pad.size() % 2 == 0 && pairs <= self.dim(), op, ": expected two numbers for each of ",
             "at most ", self.dim(), " dims, got ", AsTuple{pad});
  check_number(value, self.dtype(), op);
  Dims sizes(self.sizes());
  Layout source = self.layout();
  std::vector<Overlap> parts;
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t dim = self.dim() - 1 - i, before = pad[2 * i], after = pad[2 * i + 1];
    sizes[dim] += before + after;
    WEFT_CHECK(sizes[dim] >= 0, op, ": expected sizes of at least 0 after padding, got ",
               sizes[dim], " for dim ", dim, " of shape ", AsTuple{self.sizes()}, " and pad ",
               AsTuple{pad});
    parts.push_back(overlap_of(self.sizes()[dim], before, after));
    if (parts.back().length > 0) {
      source = views::narrow(source, dim, parts.back().from, parts.back().length);
    }
  }
  const Tensor out = empty_as(op, self, sizes, self.dtype());
  copy_into(
      out,
      Tensor::scalar(value, self.dtype()).with_layout({Dims(sizes), Dims(sizes.size(), 0), 0}));
  Layout target = out.layout();
  for (int64_t i = 0; i < pairs; ++i) {
    const Overlap& part = parts[static_cast<size_t>(i)];
    if (part.length <= 0) return out;
    target = views::narrow(target, self.dim() - 1 - i, part.to, part.length);
  }
  if (self.numel() > 0) copy_into(out.with_layout(target), self.with_layout(source));
  return out;
}

namespace {

// The tables of a resampling, checked, as the loops want them.
struct Taps {
  int64_t outputs, taps;
  Tensor index, weight;
};

Taps taps_of(const char* op, const Tensor& index, const Tensor& weight, int64_t size, DType kind) {
  WEFT_CHECK(index.dim() == 2 && index.dtype() == DType::I64 && same(index.sizes(), weight.sizes()),
             op, ": expected an int64 index and weights of one shape (outputs, taps), got ",
             index.dtype(), " of shape ", AsTuple{index.sizes()}, " and shape ",
             AsTuple{weight.sizes()});
  Taps result{index.size(0), index.size(1), in_order(index), in_order(as_dtype(weight, kind))};
  const auto* at = result.index.data_as<const int64_t>();
  for (int64_t i = 0; i < result.outputs * result.taps; ++i) {
    WEFT_CHECK_INDEX(at[i] >= 0 && at[i] < size, op, ": expected indices in [0, ", size - 1,
                     "], got ", at[i]);
  }
  return result;
}

// Lines [begin, end) of outer x outputs, of one element each.
template <class T>
void resample_elements(const Split3& s, const Taps& t, const T* in, T* out, int64_t begin,
                       int64_t end) {
  for (int64_t line = begin; line < end;) {
    const int64_t first = line % t.outputs, stop = std::min(end, line - first + t.outputs);
    const T* from = in + line / t.outputs * s.size;
    const auto* index = t.index.data_as<const int64_t>() + first * t.taps;
    const auto* weight = t.weight.data_as<const T>() + first * t.taps;
    if (t.taps == 2) {
      for (; line < stop; ++line, index += 2, weight += 2) {
        out[line] = weight[0] * from[index[0]] + weight[1] * from[index[1]];
      }
    }
    for (; line < stop; ++line, index += t.taps, weight += t.taps) {
      T sum(0);
      for (int64_t k = 0; k < t.taps; ++k) sum += weight[k] * from[index[k]];
      out[line] = sum;
    }
  }
}

// The same for lines of `inner` elements.
template <class T>
void resample_lines(const Split3& s, const Taps& t, const T* in, T* out, int64_t begin,
                    int64_t end) {
  const auto* index = t.index.data_as<const int64_t>();
  const auto* weight = t.weight.data_as<const T>();
  if (s.inner == 1) return resample_elements(s, t, in, out, begin, end);
  for (int64_t line = begin; line < end; ++line) {
    const int64_t row = line % t.outputs * t.taps;
    const T* from = in + line / t.outputs * s.size * s.inner;
    T* to = out + line * s.inner;
    std::fill_n(to, s.inner, T(0));
    for (int64_t k = row; k < row + t.taps; ++k) {
      const T* entry = from + index[k] * s.inner;
      const T w = weight[k];
      for (int64_t j = 0; j < s.inner; ++j) to[j] += w * entry[j];
    }
  }
}

template <class T>
void share_out(const Split3& s, const Taps& t, const T* grad, T* out, int64_t begin, int64_t end) {
  const auto* index = t.index.data_as<const int64_t>();
  const auto* weight = t.weight.data_as<const T>();
  for (int64_t o = begin; o < end; ++o) {
    const T* from = grad + o * t.outputs * s.inner;
    T* to = out + o * s.size * s.inner;
    for (int64_t k = 0; k < t.outputs * t.taps; ++k) {
      const T* line = from + k / t.taps * s.inner;
      T* entry = to + index[k] * s.inner;
      const T w = weight[k];
      for (int64_t j = 0; j < s.inner; ++j) entry[j] += w * line[j];
    }
  }
}

}  // namespace

Tensor _resample(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& weight) {
  const char* op = "_resample";
  dim = wrap_dim(op, dim, self.dim());
  WEFT_CHECK(self.dim() > 0, op, ": expected at least 1 dim, got a 0-d tensor");
  const DType kind = compute_type(self.dtype());
  const Taps t = taps_of(op, index, weight, self.size(dim), kind);
  const MemoryOrder order(self);
  const Tensor x = in_order(as_dtype(order.turned(self), kind));
  dim = order.dim(dim, self.dim());
  const Split3 s = split_at(x.sizes(), dim);
  Dims sizes(x.sizes());
  sizes[dim] = t.outputs;
  Tensor out = Tensor::empty(sizes, kind, self.device(), op);
  dispatch_float(op, kind, [&]<class T>(std::type_identity<T>) {
    parallel_for(s.outer * t.outputs, grain_of(s.inner * t.taps), [&](int64_t begin, int64_t end) {
      resample_lines(s, t, x.data_as<const T>(), out.data_as<T>(), begin, end);
    });
  });
  return order.back(as_dtype(out, self.dtype()));
}

Tensor _resample_backward(const Tensor& grad_output, int64_t dim, int64_t size, const Tensor& index,
                          const Tensor& weight) {
  const char* op = "_resample_backward";
  dim = wrap_dim(op, dim, grad_output.dim());
  const DType kind = compute_type(grad_output.dtype());
  const Taps t = taps_of(op, index, weight, size, kind);
  WEFT_CHECK(grad_output.size(dim) == t.outputs, op, ": expected a gradient of size ", t.outputs,
             " at dim ", dim, ", got shape ", AsTuple{grad_output.sizes()});
  const MemoryOrder order(grad_output);
  const Tensor grad = in_order(as_dtype(order.turned(grad_output), kind));
  dim = order.dim(dim, grad.dim());
  Dims sizes(grad.sizes());
  sizes[dim] = size;
  const Split3 s = split_at(sizes, dim);
  Tensor out = zeros_of(sizes, kind, grad_output.device(), op);
  dispatch_float(op, kind, [&]<class T>(std::type_identity<T>) {
    const int64_t work = t.outputs * t.taps * s.inner;
    parallel_for(s.outer, grain_of(work), [&](int64_t begin, int64_t end) {
      share_out(s, t, grad.data_as<const T>(), out.data_as<T>(), begin, end);
    });
  });
  return order.back(as_dtype(out, grad_output.dtype()));
}

}  // namespace weft::native
