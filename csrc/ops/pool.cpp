// Pooling in two dimensions: max with indices, average, adaptive average, and their gradients.
//
// All work plane by plane on (..., H, W); threads take planes. The 16-bit floats compute in
// float32.
#include <climits>
#include <cmath>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "native_convolution.h"
#include "ops/conv.h"
#include "ops/support.h"
#include "ops_convolution.h"

namespace weft::native {
namespace {

struct Axis {
  int64_t size, out, kernel, stride, padding, dilation;

  struct Range {
    int64_t begin, end;
  };
  // Input positions of the window at output position i, before and after clipping.
  Range window(int64_t i) const {
    const int64_t begin = i * stride - padding;
    return {begin, std::min(begin + (kernel - 1) * dilation + 1, size + padding)};
  }
  Range clipped(int64_t i) const {
    Range range = window(i);
    // The first tap inside: windows step by the dilation.
    while (range.begin < 0) range.begin += dilation;
    range.end = std::min(range.end, size);
    return range;
  }
};

struct Pooling {
  int64_t planes;
  Axis h, w;
  Dims out_sizes;

  int64_t in_plane() const { return h.size * w.size; }
  int64_t out_plane() const { return h.out * w.out; }
};

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
  const int64_t room = size + 2 * axis.padding - axis.dilation * (axis.kernel - 1) - 1;
  const int64_t rounded = room + (ceil_mode ? axis.stride - 1 : 0);
  axis.out = rounded < 0 ? 0 : rounded / axis.stride + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (axis.out - 1) * axis.stride >= size + axis.padding) --axis.out;
  WEFT_CHECK(axis.out > 0, op, ": expected a kernel no larger than the padded input, got size ",
             size, ", kernel_size ", axis.kernel, ", padding ", axis.padding, ", dilation ",
             axis.dilation);
  return axis;
}

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
  p.out_sizes = Dims(input);
  p.out_sizes[rows] = p.h.out;
  p.out_sizes[rows + 1] = p.w.out;
  return p;
}

void check_grad(const char* op, const Tensor& grad, IntList expected) {
  WEFT_CHECK(same(grad.sizes(), expected), op, ": expected a gradient of shape ", AsTuple{expected},
             ", got ", AsTuple{grad.sizes()});
}

// Threads take planes; one has at least some thousand elements to do.
template <class Fn>
void for_each_plane(int64_t planes, int64_t work, Fn&& body) {
  const int64_t grain = (int64_t{1} << 14) / std::max<int64_t>(1, work) + 1;
  parallel_for(planes, grain, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

// Real numbers; the 16-bit floats come as float32 (see operand).
template <class Fn>
void dispatch_real(const char* op, DType dtype, Fn&& fn) {
  dispatch(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_complex_number<T> || is_small_float<T> || std::is_same_v<T, bool>) {
      WEFT_CHECK(false, op, ": expected a real dtype, got ", dtype);
    } else {
      fn(type);
    }
  });
}
Tensor operand(const Tensor& tensor) {
  return in_order(as_dtype(tensor, compute_type(tensor.dtype())));
}

template <class T>
bool wins(T value, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    return value > best || std::isnan(value);
  } else {
    return value > best;
  }
}

// The largest element of one window: rows and columns of taps inside the image.
template <class T>
int64_t max_of_window(const Pooling& p, const T* in, Axis::Range rows, Axis::Range columns) {
  int64_t best = rows.begin * p.w.size + columns.begin;
  T value = in[best];
  for (int64_t r = rows.begin; r < rows.end; r += p.h.dilation) {
    const int64_t line = r * p.w.size;
    for (int64_t at = line + columns.begin; at < line + columns.end; at += p.w.dilation) {
      if (!wins(in[at], value)) continue;
      value = in[at];
      best = at;
    }
  }
  return best;
}

template <class T>
void max_plane(const Pooling& p, std::span<const Axis::Range> columns, const T* in, T* out,
               int64_t* indices) {
  for (int64_t y = 0; y < p.h.out; ++y) {
    const Axis::Range rows = p.h.clipped(y);
    for (const Axis::Range& range : columns) {
      const int64_t best = max_of_window(p, in, rows, range);
      *out++ = in[best];
      *indices++ = best;
    }
  }
}

// The same for windows of 2 x 2 that tile the image.
template <class T>
void max_plane_2x2(const Pooling& p, const T* in, T* out, int64_t* indices) {
  for (int64_t y = 0; y < p.h.out; ++y) {
    const int64_t top = 2 * y * p.w.size, bottom = top + p.w.size;
    for (int64_t x = 0; x < p.w.out; ++x) {
      int64_t best = top + 2 * x;
      best = wins(in[top + 2 * x + 1], in[best]) ? top + 2 * x + 1 : best;
      best = wins(in[bottom + 2 * x], in[best]) ? bottom + 2 * x : best;
      best = wins(in[bottom + 2 * x + 1], in[best]) ? bottom + 2 * x + 1 : best;
      *out++ = in[best];
      *indices++ = best;
    }
  }
}

bool is_2x2(const Axis& axis) {
  return axis.kernel == 2 && axis.stride == 2 && axis.padding == 0 && axis.dilation == 1 &&
         2 * axis.out <= axis.size;
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& self, IntList kernel_size,
                                                   IntList stride, IntList padding,
                                                   IntList dilation, bool ceil_mode) {
  const char* op = "max_pool2d";
  const Pooling p =
      make_pooling(op, self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  const Tensor x = operand(self);
  Tensor out = Tensor::empty(p.out_sizes, x.dtype(), x.device(), op);
  Tensor indices = Tensor::empty(p.out_sizes, DType::I64, x.device(), op);
  const bool plain = is_2x2(p.h) && is_2x2(p.w);
  std::vector<Axis::Range> columns;
  for (int64_t i = 0; i < p.w.out && !plain; ++i) columns.push_back(p.w.clipped(i));
  dispatch_real(op, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    for_each_plane(p.planes, p.out_plane() * p.h.kernel * p.w.kernel, [&](int64_t plane) {
      const T* from = x.data_as<const T>() + plane * p.in_plane();
      T* to = out.data_as<T>() + plane * p.out_plane();
      int64_t* at = indices.data_as<int64_t>() + plane * p.out_plane();
      plain ? max_plane_2x2(p, from, to, at) : max_plane<T>(p, columns, from, to, at);
    });
  });
  return {as_dtype(out, self.dtype()), indices};
}

Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return std::get<0>(
      ops::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

namespace {

struct Planes {
  int64_t count, in, out;
};
// The planes of an index tensor of max_pool2d into inputs of the given size.
Planes planes_of(const char* op, IntList input_size, const Tensor& indices) {
  const int64_t count = count_planes(op, input_size);
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
  return {count, in, out};
}

}  // namespace

Tensor _max_pool2d_backward(const Tensor& grad_output, const Tensor& indices, IntList input_size) {
  const char* op = "_max_pool2d_backward";
  check_grad(op, grad_output, indices.sizes());
  const Tensor at = in_order(indices), grad = operand(grad_output);
  const Planes p = planes_of(op, input_size, at);
  Tensor out = zeros_of(input_size, grad.dtype(), grad.device(), op);
  dispatch_real(op, grad.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    for_each_plane(p.count, p.out, [&](int64_t plane) {
      const T* from = grad.data_as<const T>() + plane * p.out;
      const int64_t* places = at.data_as<const int64_t>() + plane * p.out;
      T* to = out.data_as<T>() + plane * p.in;
      for (int64_t i = 0; i < p.out; ++i) to[places[i]] = static_cast<T>(to[places[i]] + from[i]);
    });
  });
  return as_dtype(out, grad_output.dtype());
}

Tensor _max_pool2d_gather(const Tensor& self, const Tensor& indices) {
  const char* op = "_max_pool2d_gather";
  const Tensor at = in_order(indices), x = in_order(self);
  const Planes p = planes_of(op, x.sizes(), at);
  Tensor out = Tensor::empty(indices.sizes(), x.dtype(), x.device(), op);
  dispatch_size(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    for_each_plane(p.count, p.out, [&](int64_t plane) {
      const T* from = x.data_as<const T>() + plane * p.in;
      const int64_t* places = at.data_as<const int64_t>() + plane * p.out;
      T* to = out.data_as<T>() + plane * p.out;
      for (int64_t i = 0; i < p.out; ++i) to[i] = from[places[i]];
    });
  });
  return out;
}

namespace {

struct Averaging {
  bool count_include_pad;
  int64_t divisor;  // 0: the size of the window
};

// Calls body(output element, rows, columns, divisor) for each window.
template <class Fn>
void for_each_window(const Pooling& p, const Averaging& mode, Fn&& body) {
  for (int64_t y = 0; y < p.h.out; ++y) {
    const Axis::Range rows = p.h.clipped(y), all_rows = p.h.window(y);
    for (int64_t x = 0; x < p.w.out; ++x) {
      const Axis::Range columns = p.w.clipped(x), all_columns = p.w.window(x);
      const int64_t whole = (all_rows.end - all_rows.begin) * (all_columns.end - all_columns.begin);
      const int64_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
      const int64_t divisor = mode.divisor != 0        ? mode.divisor
                              : mode.count_include_pad ? whole
                                                       : inside;
      body(y * p.w.out + x, rows, columns, divisor);
    }
  }
}

Averaging averaging(const char* op, bool count_include_pad, std::optional<int64_t> divisor) {
  WEFT_CHECK(!divisor || *divisor != 0, op, ": expected divisor_override other than 0, got 0");
  return {count_include_pad, divisor.value_or(0)};
}

constexpr int64_t kNoDilation[] = {1};

// Means of the windows; and `spread`, the transpose: each gradient shared out over its window.
template <class T>
void average(const Pooling& p, const Averaging& mode, const T* in, T* out) {
  for_each_plane(p.planes, p.out_plane() * p.h.kernel * p.w.kernel, [&](int64_t plane) {
    const T* from = in + plane * p.in_plane();
    T* to = out + plane * p.out_plane();
    for_each_window(p, mode,
                    [&](int64_t at, Axis::Range rows, Axis::Range columns, int64_t divisor) {
                      T sum(0);
                      for (int64_t r = rows.begin; r < rows.end; ++r) {
                        for (int64_t c = columns.begin; c < columns.end; ++c)
                          sum += from[r * p.w.size + c];
                      }
                      to[at] = sum / static_cast<T>(divisor);
                    });
  });
}

template <class T>
void spread(const Pooling& p, const Averaging& mode, const T* grad, T* out) {
  for_each_plane(p.planes, p.out_plane() * p.h.kernel * p.w.kernel, [&](int64_t plane) {
    const T* from = grad + plane * p.out_plane();
    T* to = out + plane * p.in_plane();
    for_each_window(p, mode,
                    [&](int64_t at, Axis::Range rows, Axis::Range columns, int64_t divisor) {
                      const T share = from[at] / static_cast<T>(divisor);
                      for (int64_t r = rows.begin; r < rows.end; ++r) {
                        for (int64_t c = columns.begin; c < columns.end; ++c)
                          to[r * p.w.size + c] += share;
                      }
                    });
  });
}

}  // namespace

Tensor avg_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  const char* op = "avg_pool2d";
  const Averaging mode = averaging(op, count_include_pad, divisor_override);
  const Pooling p =
      make_pooling(op, self.sizes(), kernel_size, stride, padding, kNoDilation, ceil_mode);
  const Tensor x = operand(self);
  Tensor out = Tensor::empty(p.out_sizes, x.dtype(), x.device(), op);
  dispatch_float(op, x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    average(p, mode, x.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, self.dtype());
}

Tensor _avg_pool2d_backward(const Tensor& grad_output, IntList input_size, IntList kernel_size,
                            IntList stride, IntList padding, bool ceil_mode, bool count_include_pad,
                            std::optional<int64_t> divisor_override) {
  const char* op = "_avg_pool2d_backward";
  const Averaging mode = averaging(op, count_include_pad, divisor_override);
  const Pooling p =
      make_pooling(op, input_size, kernel_size, stride, padding, kNoDilation, ceil_mode);
  check_grad(op, grad_output, p.out_sizes);
  const Tensor grad = operand(grad_output);
  Tensor out = zeros_of(input_size, grad.dtype(), grad.device(), op);
  dispatch_float(op, grad.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    spread(p, mode, grad.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
