// Padding with a constant, and resampling along one dimension: each entry of the result is a
// weighted sum of a few entries of the input. Nearest, linear, cubic and antialiased interpolation
// differ only in their tables of indices and weights.
#include "core/thread_pool.h"
#include "native_padding.h"
#include "ops/factory.h"
#include "ops/memory_order.h"
#include "ops/strided.h"
#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {
namespace {

// Writes a dense tensor into a padded one, each byte of which is written once.
class Padder {
 public:
  // before: the entries in front of each dimension.
  Padder(const Tensor& self, const Tensor& out, IntList before, const Scalar& value)
      : from_(self.data_as<const char>()), to_(out.data_as<char>()), item_(self.item_size()) {
    value.store(self.dtype(), element_);
    const Dims &sizes = self.sizes(), &padded = out.sizes();
    size_t first = 0, last = sizes.size() - 1;
    while (first < last && sizes[first] == padded[first]) outer_ *= sizes[first++];
    auto in = static_cast<int64_t>(item_);
    while (last > first && sizes[last] == padded[last]) in *= sizes[last--];
    for (auto [d, out_bytes] = std::pair(last + 1, in); d-- > first;) {
      levels_.insert(levels_.begin(), {sizes[d], before[d], padded[d], in, out_bytes});
      in *= sizes[d], out_bytes *= padded[d];
    }
  }

  // Threads take lines or, of several padded dimensions, entries of the first.
  void run() const {
    constexpr int64_t kLong = int64_t{1} << 16;
    const Level& level = levels_[0];
    const int64_t block = level.size * level.in;
    if (levels_.size() == 1) {
      const int64_t unit = level.padded * level.out;
      return parallel_for(outer_, kLong / unit + 1, [&](int64_t begin, int64_t end) {
        write_lines(from_ + begin * block, to_ + begin * unit, end - begin);
      });
    }
    parallel_for(outer_ * level.padded, kLong / level.out + 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) {
        const int64_t at = begin % level.padded - level.before;
        char* const to = to_ + begin * level.out;
        if (at < 0 || at >= level.size) {
          spread(to, level.out);
        } else {
          write(1, from_ + begin / level.padded * block + at * level.in, to);
        }
      }
    });
  }

 private:
  struct Level {
    int64_t size, before, padded;  // entries
    int64_t in, out;               // bytes of an entry
  };

  void write(size_t depth, const char* from, char* to) const {
    if (depth + 1 == levels_.size()) return write_lines(from, to, 1);
    const Level& level = levels_[depth];
    spread(to, level.before * level.out);
    to += level.before * level.out;
    if (depth + 2 == levels_.size()) {
      write_lines(from, to, level.size);
    } else {
      for (int64_t i = 0; i < level.size; ++i) {
        write(depth + 1, from + i * level.in, to + i * level.out);
      }
    }
    spread(to + level.size * level.out, (level.padded - level.before - level.size) * level.out);
  }
  // So many lines along the last padded dimension.
  void write_lines(const char* from, char* to, int64_t count) const {
    constexpr int64_t kShort = 1024, kNear = 16384;
    const Level& level = levels_.back();
    const int64_t length = level.size * level.in, unit = level.padded * level.out;
    const int64_t low = level.before * level.out, item = static_cast<int64_t>(item_);
    // Three runs of a short line cost more than two passes over many.
    const int64_t together = length < kShort ? kNear / unit + 1 : 1;
    for (int64_t n; count > 0; count -= n, from += n * length, to += n * unit) {
      n = std::min(together, count);
      if (together > 1) {
        spread(to, n * unit);
        strided::move<strided::Direction::Scatter>(const_cast<char*>(from), to + low, item_, n,
                                                   length / item, unit, item);
      } else {
        spread(to, low);
        strided::copy_line(to + low, from, static_cast<size_t>(length));
        spread(to + low + length, unit - low - length);
      }
    }
  }
  // The value in so many bytes.
  void spread(char* to, int64_t bytes) const {
    if (bytes == 0) return;
    strided::move<strided::Direction::Gather>(to, const_cast<char*>(element_), item_, 1,
                                              bytes / static_cast<int64_t>(item_), 0, 0);
  }

  const char* from_;
  char* to_;
  size_t item_;
  int64_t outer_ = 1;
  std::vector<Level> levels_;  // from the first padded dimension to the last
  alignas(16) char element_[16];
};

}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value) {
  const char* op = "constant_pad_nd";
  const auto pairs = static_cast<int64_t>(pad.size() / 2);
  WEFT_CHECK(pad.size() % 2 == 0 && pairs <= self.dim(), op, ": expected two numbers for each of ",
             "at most ", self.dim(), " dims, got ", AsTuple{pad});
  check_number(value, self.dtype(), op);
  const MemoryOrder order(self);
  Dims sizes(self.sizes()), before(sizes.size(), 0);
  Layout kept = self.layout();  // what negative widths do not cut off
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t dim = self.dim() - 1 - i, low = pad[2 * i], high = pad[2 * i + 1];
    const int64_t cut = std::min(std::max<int64_t>(0, -low), sizes[dim]);
    const int64_t rest = sizes[dim] - cut - std::max<int64_t>(0, -high);
    kept = views::narrow(kept, dim, cut, std::max<int64_t>(0, rest));
    sizes[dim] += low + high;
    before[order.dim(dim, self.dim())] =
        std::clamp<int64_t>(low, 0, std::max<int64_t>(0, sizes[dim]));
    WEFT_CHECK(sizes[dim] >= 0, op, ": expected sizes of at least 0 after padding, got ",
               sizes[dim], " for dim ", dim, " of shape ", AsTuple{self.sizes()}, " and pad ",
               AsTuple{pad});
  }
  const Tensor out = empty_as(op, self, sizes, self.dtype()), inside = self.with_layout(kept);
  const Tensor dense = order.turned(inside);
  const bool grows = !same(sizes, kept.sizes);
  if (grows && self.on_cpu() && inside.numel() > 0 && dense.is_contiguous()) {
    Padder(dense, order.turned(out), before, value).run();
    return out;
  }
  const Layout repeated = {Dims(sizes), Dims(sizes.size(), 0), 0};
  if (grows) copy_into(out, Tensor::scalar(value, self.dtype()).with_layout(repeated));
  if (inside.numel() == 0) return out;
  Layout target = out.layout();
  for (int64_t d = 0; d < self.dim(); ++d) {
    target = views::narrow(target, d, before[order.dim(d, self.dim())], kept.sizes[d]);
  }
  copy_into(out.with_layout(target), inside);
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
