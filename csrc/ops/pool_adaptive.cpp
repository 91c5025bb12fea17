// Adaptive average pooling: windows chosen so that the result has the size asked for.
#include <climits>

#include "native_convolution.h"
#include "ops/conv.h"
#include "ops/pool.h"
#include "ops_reductions.h"

namespace weft::native {
namespace {

struct Adaptive {
  int64_t planes, height, width, out_height, out_width;
  Dims out_sizes;
};

// Window i of `out` over `size`: the ranges cover everything and may overlap.
int64_t window_begin(int64_t i, int64_t size, int64_t out) { return i * size / out; }
int64_t window_end(int64_t i, int64_t size, int64_t out) {
  return ((i + 1) * size + out - 1) / out;
}

Adaptive make_adaptive(const char* op, IntList input, IntList output) {
  const int64_t planes = pool::count_planes(op, input);
  const size_t rows = input.size() - 2;
  Adaptive a{planes,
             input[rows],
             input[rows + 1],
             conv::pair_at(op, "output_size", output, 0),
             conv::pair_at(op, "output_size", output, 1),
             Dims(input)};
  WEFT_CHECK(
      a.out_height >= 0 && a.out_width >= 0 && std::max(a.out_height, a.out_width) <= INT_MAX, op,
      ": expected output_size >= 0, got ", AsTuple{output});
  a.out_sizes[rows] = a.out_height;
  a.out_sizes[rows + 1] = a.out_width;
  return a;
}

// Calls body(output element, row begin, row end, column begin, column end) for each window.
template <class Fn>
void for_each_window(const Adaptive& a, Fn&& body) {
  for (int64_t y = 0; y < a.out_height; ++y) {
    const int64_t top = window_begin(y, a.height, a.out_height);
    const int64_t bottom = window_end(y, a.height, a.out_height);
    for (int64_t x = 0; x < a.out_width; ++x) {
      body(y * a.out_width + x, top, bottom, window_begin(x, a.width, a.out_width),
           window_end(x, a.width, a.out_width));
    }
  }
}

// The rows of a window first, whole columns of them at a time.
template <class T>
void mean_plane(const Adaptive& a, const T* in, T* out) {
  Scratch<T> sums(a.width);
  T* const line = sums.data();
  for (int64_t y = 0; y < a.out_height; ++y) {
    const int64_t top = window_begin(y, a.height, a.out_height);
    const int64_t bottom = window_end(y, a.height, a.out_height);
    std::copy_n(in + top * a.width, a.width, line);
    for (int64_t r = top + 1; r < bottom; ++r) {
      for (int64_t c = 0; c < a.width; ++c) line[c] += in[r * a.width + c];
    }
    for (int64_t x = 0; x < a.out_width; ++x) {
      const int64_t left = window_begin(x, a.width, a.out_width);
      const int64_t right = window_end(x, a.width, a.out_width);
      T sum(0);
      for (int64_t c = left; c < right; ++c) sum += line[c];
      *out++ = sum / static_cast<T>((bottom - top) * (right - left));
    }
  }
}

template <class T>
void spread_plane(const Adaptive& a, const T* grad, T* out) {
  for_each_window(a, [&](int64_t at, int64_t top, int64_t bottom, int64_t left, int64_t right) {
    const T share = grad[at] / static_cast<T>((bottom - top) * (right - left));
    for (int64_t r = top; r < bottom; ++r) {
      for (int64_t c = left; c < right; ++c) out[r * a.width + c] += share;
    }
  });
}

// Runs body(type, plane) with float or double, threads over planes.
template <class Fn>
void for_each_plane(const char* op, const Adaptive& a, DType dtype, Fn&& body) {
  const int64_t work = std::max<int64_t>(1, a.height * a.width + a.out_height * a.out_width);
  dispatch_float(op, dtype, [&](auto type) {
    parallel_for(a.planes, (int64_t{1} << 14) / work + 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) body(type, plane);
    });
  });
}

}  // namespace

Tensor adaptive_avg_pool2d(const Tensor& self, IntList output_size) {
  const char* op = "adaptive_avg_pool2d";
  const Adaptive a = make_adaptive(op, self.sizes(), output_size);
  if (a.planes > 0 && a.out_height == 1 && a.out_width == 1 && is_floating(self.dtype())) {
    const int64_t image[] = {-2, -1};
    return ops::mean(self, IntList(image), true, std::nullopt);
  }
  const Tensor x = in_order(as_dtype(self, compute_type(self.dtype())));
  Tensor out = Tensor::empty(a.out_sizes, x.dtype(), x.device(), op);
  for_each_plane(op, a, x.dtype(), [&]<class T>(std::type_identity<T>, int64_t plane) {
    mean_plane(a, x.data_as<const T>() + plane * a.height * a.width,
               out.data_as<T>() + plane * a.out_height * a.out_width);
  });
  return as_dtype(out, self.dtype());
}

Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, IntList input_size,
                                     IntList output_size) {
  const char* op = "_adaptive_avg_pool2d_backward";
  const Adaptive a = make_adaptive(op, input_size, output_size);
  WEFT_CHECK(grad_output.sizes() == a.out_sizes, op, ": expected a gradient of shape ",
             AsTuple{a.out_sizes}, ", got ", AsTuple{grad_output.sizes()});
  const Tensor grad = in_order(as_dtype(grad_output, compute_type(grad_output.dtype())));
  Tensor out = zeros_of(input_size, grad.dtype(), grad.device(), op);
  for_each_plane(op, a, grad.dtype(), [&]<class T>(std::type_identity<T>, int64_t plane) {
    spread_plane(a, grad.data_as<const T>() + plane * a.out_height * a.out_width,
                 out.data_as<T>() + plane * a.height * a.width);
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
