// Pooling in two dimensions: max with or without indices, average, and their gradients.
//
// The forward passes go line by line (pool.h), the gradients plane by plane; threads take lines and
// planes. The 16-bit floats compute in float32, integers of up to 16 bits in int32.
#include "ops/pool.h"

#include <climits>

#include "native_convolution.h"
#include "ops/conv.h"
#include "ops/factory.h"
#include "ops_convolution.h"

namespace weft::native {
namespace pool {
namespace {

Axis make_axis(const char* op, int64_t size, size_t at, IntList kernel, IntList stride,
               IntList padding, IntList dilation, bool ceil_mode) {
  Axis axis{};
  axis.size = size;
  axis.kernel = conv::pair_at(op, "kernel_size", kernel, at);
  axis.stride = stride.empty() ? axis.kernel : conv::pair_at(op, "stride", stride, at);
  axis.padding = conv::pair_at(op, "padding", padding, at);
  axis.dilation = conv::pair_at(op, "dilation", dilation, at);
  WEFT_CHECK(axis.kernel > 0 && axis.kernel <= INT_MAX, op, ": expected kernel_size > 0, got ",
             AsTuple{kernel});
  WEFT_CHECK(axis.stride > 0 && axis.stride <= INT_MAX, op, ": expected stride > 0, got ",
             AsTuple{stride});
  WEFT_CHECK(axis.dilation > 0 && axis.dilation <= INT_MAX, op, ": expected dilation > 0, got ",
             AsTuple{dilation});
  WEFT_CHECK(axis.padding >= 0 && axis.padding <= axis.kernel / 2, op,
             ": expected padding of at most half the kernel size, got padding ", AsTuple{padding},
             " and kernel_size ", AsTuple{kernel});
  const int64_t span = size + 2 * axis.padding - axis.dilation * (axis.kernel - 1) - 1;
  const int64_t rounded = span + (ceil_mode ? axis.stride - 1 : 0);
  axis.out = rounded < 0 ? 0 : rounded / axis.stride + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (axis.out - 1) * axis.stride >= size + axis.padding) --axis.out;
  WEFT_CHECK(axis.out > 0, op, ": expected a kernel no larger than the padded input, got size ",
             size, ", kernel_size ", axis.kernel, ", padding ", axis.padding, ", dilation ",
             axis.dilation);
  return axis;
}

}  // namespace

int64_t count_planes(const char* op, IntList input) {
  WEFT_CHECK(input.size() == 3 || input.size() == 4, op,
             ": expected an input of shape (N, C, H, W) or (C, H, W), got ", AsTuple{input});
  const size_t rows = input.size() - 2;
  WEFT_CHECK(input[rows] > 0 && input[rows + 1] > 0, op,
             ": expected H and W of at least 1, got shape ", AsTuple{input});
  int64_t planes = 1;
  for (size_t i = 0; i < rows; ++i) planes *= input[i];
  return planes;
}

Pooling make_pooling(const char* op, IntList input, IntList kernel, IntList stride, IntList padding,
                     IntList dilation, bool ceil_mode) {
  Pooling p{};
  p.planes = count_planes(op, input);
  const size_t rows = input.size() - 2;
  p.h = make_axis(op, input[rows], 0, kernel, stride, padding, dilation, ceil_mode);
  p.w = make_axis(op, input[rows + 1], 1, kernel, stride, padding, dilation, ceil_mode);
  p.channels = input[rows - 1];
  p.out_sizes = Dims(input);
  p.out_sizes[rows] = p.h.out;
  p.out_sizes[rows + 1] = p.w.out;
  return p;
}

}  // namespace pool

namespace {

using pool::Line;
using pool::Pooling;

void check_grad(const char* op, const Tensor& grad, IntList expected) {
  WEFT_CHECK(same(grad.sizes(), expected), op, ": expected a gradient of shape ", AsTuple{expected},
             ", got ", AsTuple{grad.sizes()});
}

// The type that maxima of a dtype are computed in.
DType max_type(const char* op, DType dtype) {
  WEFT_CHECK_AS(NotImplemented, dtype != DType::Bool && !is_complex(dtype), op,
                ": expected a real dtype, got ", dtype);
  if (dtype == DType::U32) return DType::I64;
  return is_integral(dtype) && item_size(dtype) < 4 ? DType::I32 : compute_type(dtype);
}

template <class Fn>
void dispatch_max(DType dtype, Fn&& fn) {
  const bool known = dispatch_among<float, double, uint8_t, int32_t, int64_t, uint64_t>(dtype, fn);
  WEFT_CHECK_AS(NotImplemented, known, "max_pool2d: expected a dtype of max_type, got ", dtype);
}

// That of an operand which is read where it lies, and of its result.
MemoryFormat format_of(const Tensor& x) {
  return goes_by_channels(x) ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
}

// An uninitialised tensor in the order of x's memory.
Tensor like(const Tensor& x, IntList sizes, DType dtype, const char* op) {
  const auto format = static_cast<int64_t>(format_of(x));
  return make_empty(op, sizes, {dtype, {}, x.device(), {}, format});
}

// Calls fn(Line) for each line of results, in the order of the operand's memory.
template <class T, class Fn>
void for_each_line(const Pooling& p, const Tensor& x, T border, Fn&& fn) {
  if (goes_by_channels(x)) return pool::for_each_position(p, x.data_as<const T>(), fn);
  if constexpr (sizeof(T) > 1) {
    const Tensor dense = in_order(x);
    pool::for_each_row(p, dense.data_as<const T>(), border, fn);
  }
}

// Maxima; indices only where `at` is defined.
template <class T>
void max_of(const Pooling& p, const Tensor& x, const Tensor& out, const Tensor& at) {
  int64_t* const indices = at.defined() ? at.data_as<int64_t>() : nullptr;
  for_each_line<T>(p, x, pool::kLowest<T>, [&](const Line<T>& line) {
    T* const to = out.data_as<T>() + line.at;
    pool::max_line(line.window, line.from, to, indices ? indices + line.at : nullptr);
    if (!indices || line.window.step == 0) return;
    // Windows that begin in front of the row: the border is no place.
    for (int64_t i = 0; i < p.w.out && p.w.begin(i) < 0; ++i) {
      if (to[i] == pool::kLowest<T>) {
        indices[line.at + i] = p.h.start(line.y) * p.w.size + p.w.start(i);
      }
    }
  });
}

std::tuple<Tensor, Tensor> max_pool(const Tensor& self, IntList kernel_size, IntList stride,
                                    IntList padding, IntList dilation, bool ceil_mode,
                                    bool with_indices) {
  const char* op = "max_pool2d";
  const Pooling p =
      pool::make_pooling(op, self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  const bool as_bytes =
      self.dtype() == DType::U8 && goes_by_channels(self) && !with_indices;  // of quantised images
  const Tensor x = as_bytes ? self : as_dtype(self, max_type(op, self.dtype()));
  const Tensor out = like(x, p.out_sizes, x.dtype(), op);
  const Tensor indices = with_indices ? like(x, p.out_sizes, DType::I64, op) : Tensor();
  dispatch_max(x.dtype(), [&]<class T>(std::type_identity<T>) { max_of<T>(p, x, out, indices); });
  return {as_dtype(out, self.dtype()), indices};
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntList kernel_size,
                                                   IntList stride, IntList padding,
                                                   IntList dilation, bool ceil_mode) {
  return max_pool(self, kernel_size, stride, padding, dilation, ceil_mode, true);
}

// Indices lead the gradient back: where none is recorded they are not needed.
Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  const auto* autograd = self.impl()->autograd.get();
  if (self.on_cpu() && !(autograd && autograd->records())) {
    return std::get<0>(max_pool(self, kernel_size, stride, padding, dilation, ceil_mode, false));
  }
  return std::get<0>(
      ops::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

namespace {

struct Planes {
  static constexpr int64_t kMost = 64;  // taken together
  int64_t count, in, out;
  int64_t step = 1;  // from a position to the next one: the number of channels where these lie so
};

// Calls fn(start in the input, in the result, planes that lie beside each other there). Threads
// take those; one has at least some thousand elements to do.
template <class Fn>
void for_each_planes(const Planes& p, int64_t work, Fn&& fn) {
  constexpr int64_t kMost = Planes::kMost;
  const int64_t parts = (p.step + kMost - 1) / kMost, pieces = p.count / p.step * parts;
  const int64_t grain = pool::kGrain / std::max<int64_t>(1, work * std::min(kMost, p.step)) + 1;
  parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / parts * p.step, first = i % parts * kMost;
      fn(image * p.in + first, image * p.out + first, std::min(kMost, p.step - first));
    }
  });
}

// The planes of an index tensor of max_pool2d into inputs of the given size.
Planes planes_of(const char* op, IntList input_size, const Tensor& indices) {
  const int64_t count = pool::count_planes(op, input_size);
  const size_t ndim = input_size.size();
  bool fits = indices.dim() == static_cast<int64_t>(ndim) && indices.dtype() == DType::I64;
  for (size_t i = 0; fits && i + 2 < ndim; ++i) fits = indices.sizes()[i] == input_size[i];
  WEFT_CHECK(fits, op, ": expected int64 indices for input ", AsTuple{input_size}, ", got ",
             indices.dtype(), " of shape ", AsTuple{indices.sizes()});
  const int64_t in = input_size[ndim - 1] * input_size[ndim - 2];
  const int64_t out = indices.sizes()[ndim - 1] * indices.sizes()[ndim - 2];
  const int64_t* at = indices.data_as<const int64_t>();
  for (int64_t i = 0; i < count * out; ++i) {
    WEFT_CHECK_INDEX(at[i] >= 0 && at[i] < in, op, ": expected indices in [0, ", in - 1, "], got ",
                     at[i]);
  }
  return {count, in, out, goes_by_channels(indices) ? indices.size(1) : 1};
}

}  // namespace

Tensor _max_pool2d_backward(const Tensor& grad_output, const Tensor& indices, IntList input_size) {
  const char* op = "_max_pool2d_backward";
  check_grad(op, grad_output, indices.sizes());
  const Tensor at = goes_by_channels(indices) ? indices : in_order(indices);
  const Tensor grad = in_format(op, grad_output, format_of(at), max_type(op, grad_output.dtype()));
  const Planes p = planes_of(op, input_size, at);
  const Tensor out = like(at, input_size, grad.dtype(), op);
  fill(out, 0, op);
  dispatch_max(grad.dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_planes(p, p.out, [&](int64_t input, int64_t result, int64_t planes) {
      const T* from = grad.data_as<const T>() + result;
      const int64_t* places = at.data_as<const int64_t>() + result;
      T* to = out.data_as<T>() + input;
      for (int64_t i = 0; i < p.out * p.step; i += p.step) {
        for (int64_t c = 0; c < planes; ++c) {
          T& sum = to[places[i + c] * p.step + c];
          sum = static_cast<T>(sum + from[i + c]);
        }
      }
    });
  });
  return as_dtype(out, grad_output.dtype());
}

Tensor _max_pool2d_gather(const Tensor& self, const Tensor& indices) {
  const char* op = "_max_pool2d_gather";
  const Tensor at = goes_by_channels(indices) ? indices : in_order(indices);
  const Tensor x = in_format(op, self, format_of(at), self.dtype());
  const Planes p = planes_of(op, x.sizes(), at);
  const Tensor out = like(at, indices.sizes(), x.dtype(), op);
  dispatch_size(x.dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_planes(p, p.out, [&](int64_t input, int64_t result, int64_t planes) {
      const T* from = x.data_as<const T>() + input;
      const int64_t* places = at.data_as<const int64_t>() + result;
      T* to = out.data_as<T>() + result;
      for (int64_t i = 0; i < p.out * p.step; i += p.step) {
        for (int64_t c = 0; c < planes; ++c) to[i + c] = from[places[i + c] * p.step + c];
      }
    });
  });
  return out;
}

namespace {

struct Averaging {
  bool count_include_pad;
  int64_t divisor;  // 0: the size of the window
};

Averaging averaging(const char* op, bool count_include_pad, std::optional<int64_t> divisor) {
  WEFT_CHECK(!divisor || *divisor != 0, op, ": expected divisor_override other than 0, got 0");
  return {count_include_pad, divisor.value_or(0)};
}

constexpr int64_t kNoDilation[] = {1};

// What sums are divided by: the product of a row's and a column's count.
template <class T>
std::vector<T> counts_of(const pool::Axis& axis, const Averaging& mode, bool rows) {
  std::vector<T> counts;
  for (int64_t i = 0; i < axis.out; ++i) {
    const int64_t whole = std::min(axis.begin(i) + axis.kernel, axis.size + axis.padding);
    int64_t count = axis.last(i) - axis.first(i);
    if (mode.count_include_pad) count = whole - axis.begin(i);
    if (mode.divisor != 0) count = rows ? mode.divisor : 1;
    counts.push_back(static_cast<T>(count));
  }
  return counts;
}

template <class T>
void average(const Pooling& p, const Averaging& mode, const Tensor& x, const Tensor& out) {
  const std::vector<T> rows = counts_of<T>(p.h, mode, true),
                       columns = counts_of<T>(p.w, mode, false);
  for_each_line<T>(p, x, T(0), [&](const Line<T>& line) {
    const bool whole_row = line.window.step != 0;
    const T row = rows[static_cast<size_t>(line.y)];
    pool::mean_line(line.window, line.from,
                    whole_row ? row : row * columns[static_cast<size_t>(line.x)],
                    whole_row ? columns.data() : nullptr, out.data_as<T>() + line.at);
  });
}

// The transpose: each gradient shared out over its window.
template <class T>
void spread(const Pooling& p, const Averaging& mode, int64_t step, const T* grad, T* out) {
  const std::vector<T> rows = counts_of<T>(p.h, mode, true),
                       columns = counts_of<T>(p.w, mode, false);
  const Planes planes{p.planes, p.in_plane(), p.out_plane(), step};
  const int64_t work = p.out_plane() * p.h.kernel * p.w.kernel;
  for_each_planes(planes, work, [&](int64_t input, int64_t result, int64_t count) {
    const T* from = grad + result;
    T* to = out + input;
    for (int64_t i = 0; i < p.out_plane(); ++i, from += step) {
      const int64_t y = i / p.w.out, x = i % p.w.out;
      const T by = rows[static_cast<size_t>(y)] * columns[static_cast<size_t>(x)];
      T shares[Planes::kMost];
      for (int64_t c = 0; c < count; ++c) shares[c] = from[c] / by;
      const int64_t left = p.w.start(x), right = p.w.begin(x) + p.w.last(x);
      for (int64_t r = p.h.start(y); r < p.h.begin(y) + p.h.last(y); ++r) {
        for (int64_t at = (r * p.w.size + left) * step; at < (r * p.w.size + right) * step;
             at += step) {
          for (int64_t c = 0; c < count; ++c) to[at + c] += shares[c];
        }
      }
    }
  });
}

}  // namespace

Tensor avg_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  const char* op = "avg_pool2d";
  const Averaging mode = averaging(op, count_include_pad, divisor_override);
  const Pooling p =
      pool::make_pooling(op, self.sizes(), kernel_size, stride, padding, kNoDilation, ceil_mode);
  const Tensor x = as_dtype(self, compute_type(self.dtype()));
  const Tensor out = like(x, p.out_sizes, x.dtype(), op);
  const auto run = [&]<class T>(std::type_identity<T>) { average<T>(p, mode, x, out); };
  if (x.dtype() == DType::I64) {  // rounded towards zero, as PyTorch's
    run(std::type_identity<int64_t>{});
  } else {
    dispatch_float(op, x.dtype(), run);
  }
  return as_dtype(out, self.dtype());
}

Tensor _avg_pool2d_backward(const Tensor& grad_output, IntList input_size, IntList kernel_size,
                            IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                            std::optional<int64_t> divisor_override) {
  const char* op = "_avg_pool2d_backward";
  const Averaging mode = averaging(op, count_include_pad, divisor_override);
  const Pooling p =
      pool::make_pooling(op, input_size, kernel_size, stride, padding, kNoDilation, ceil_mode);
  check_grad(op, grad_output, p.out_sizes);
  const Tensor grad =
      in_format(op, grad_output, format_of(grad_output), compute_type(grad_output.dtype()));
  const Tensor out = like(grad, input_size, grad.dtype(), op);
  fill(out, 0, op);
  const int64_t step = goes_by_channels(grad) ? grad.size(1) : 1;
  dispatch_float(op, grad.dtype(), [&]<class T>(std::type_identity<T>) {
    spread(p, mode, step, grad.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
