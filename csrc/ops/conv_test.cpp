#include "ops/conv.h"

#include "core/thread_pool.h"
#include "native_convolution.h"
#include "native_copying.h"
#include "ops/samples_testing.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

struct Case {
  int64_t batch, in, out, height, width, kernel_h, kernel_w;
  Dims stride, padding, dilation;
  int64_t groups;
};

const Case kCases[] = {
    {2, 3, 4, 7, 6, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 4, 6, 9, 9, 3, 2, {2, 1}, {0, 1}, {1, 2}, 2},
    {3, 4, 8, 6, 6, 3, 3, {2, 2}, {1, 1}, {1, 1}, 4},  // depthwise, two outputs a channel
    {2, 5, 3, 4, 4, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1},  // pointwise
    {2, 2, 2, 5, 5, 5, 5, {1, 1}, {4, 4}, {1, 1}, 1},
    {1, 1, 1, 8, 3, 2, 2, {3, 2}, {2, 1}, {3, 1}, 1},
    {0, 2, 3, 5, 5, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},
    {3, 40, 9, 20, 40, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},  // several blocks of lines
    {2, 40, 12, 31, 50, 3, 3, {2, 2}, {1, 1}, {1, 1}, 2},
    {2, 32, 24, 9, 7, 3, 3, {2, 3}, {1, 2}, {1, 1}, 1},  // whole strips of channels
    {2, 32, 16, 11, 12, 3, 2, {1, 1}, {1, 0}, {2, 1}, 2},
    {1, 16, 130, 6, 5, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
};

// Calls body(output element, input element, weight element) for every product of a convolution.
template <class Fn>
void for_each_product(const native::conv::Geometry& g, Fn&& body) {
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.out_channels; ++o)
      for (int64_t y = 0; y < g.out_height; ++y)
        for (int64_t x = 0; x < g.out_width; ++x)
          for (int64_t c = 0; c < g.group_in(); ++c)
            for (int64_t i = 0; i < g.kernel_h; ++i)
              for (int64_t j = 0; j < g.kernel_w; ++j) {
                const int64_t r = y * g.stride_h + i * g.dilation_h - g.pad_h;
                const int64_t s = x * g.stride_w + j * g.dilation_w - g.pad_w;
                if (r < 0 || s < 0 || r >= g.height || s >= g.width) continue;
                const int64_t channel = o / g.group_out() * g.group_in() + c;
                body(((n * g.out_channels + o) * g.out_height + y) * g.out_width + x,
                     ((n * g.in_channels + channel) * g.height + r) * g.width + s,
                     ((o * g.group_in() + c) * g.kernel_h + i) * g.kernel_w + j);
              }
}

template <class T>
void check_case(const Case& c, double tolerance) {
  const Tensor x = noise<T>({c.batch, c.in, c.height, c.width}, 1);
  const Tensor w = noise<T>({c.out, c.in / c.groups, c.kernel_h, c.kernel_w}, 2);
  const Tensor b = noise<T>({c.out}, 3);
  const native::conv::Geometry g = native::conv::geometry(
      "conv2d", x.sizes(), w.sizes(), {c.stride, c.padding, c.dilation, c.groups});
  const Dims out_sizes{c.batch, c.out, g.out_height, g.out_width};
  const Tensor grad = noise<T>(out_sizes, 4);
  Tensor out = native::zeros_of(out_sizes, x.dtype(), {}, "test");
  Tensor grad_x = native::zeros_of(x.sizes(), x.dtype(), {}, "test");
  Tensor grad_w = native::zeros_of(w.sizes(), x.dtype(), {}, "test");
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data_as<T>()[i] = b.data_as<T>()[i / (g.out_height * g.out_width) % c.out];
  }
  const T *px = x.data_as<T>(), *pw = w.data_as<T>(), *pg = grad.data_as<T>();
  T *py = out.data_as<T>(), *pgx = grad_x.data_as<T>(), *pgw = grad_w.data_as<T>();
  for_each_product(g, [&](int64_t to, int64_t from, int64_t tap) {
    py[to] += px[from] * pw[tap];
    pgx[from] += pg[to] * pw[tap];
    pgw[tap] += pg[to] * px[from];
  });
  const auto compare = [&](MemoryFormat format) {
    auto in = [&](const Tensor& t) { return native::clone(t, static_cast<int64_t>(format)); };
    auto check = [&](const Tensor& got, const Tensor& expected) {
      CHECK_NEAR(distance<T>(native::in_order(got), expected), 0, tolerance);
    };
    check(native::conv2d(in(x), in(w), b, c.stride, c.padding, c.dilation, c.groups), out);
    check(native::_conv2d_backward_input(in(grad), in(w), x.sizes(), c.stride, c.padding,
                                         c.dilation, c.groups),
          grad_x);
    check(native::_conv2d_backward_weight(in(grad), in(x), w.sizes(), c.stride, c.padding,
                                          c.dilation, c.groups),
          grad_w);
  };
  const int before = num_threads();
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    compare(MemoryFormat::Contiguous);
    compare(MemoryFormat::ChannelsLast);
  }
  set_num_threads(before);
}

}  // namespace

TEST(conv_against_loops) {
  for (const Case& c : kCases) {
    check_case<float>(c, 1e-3);
    check_case<double>(c, 1e-12);
  }
}

TEST(conv_takes_an_image_without_batch) {
  const Tensor x = noise<float>({3, 5, 5}, 1), w = noise<float>({2, 3, 3, 3}, 2);
  const Tensor out = native::conv2d(x, w, {}, Dims{1}, Dims{1}, Dims{1}, 1);
  CHECK_EQ(out.sizes(), (Dims{2, 5, 5}));
  CHECK_EQ(native::_conv2d_backward_input(out, w, x.sizes(), Dims{1}, Dims{1}, Dims{1}, 1).sizes(),
           x.sizes());
  CHECK_EQ(native::_conv2d_backward_weight(out, x, w.sizes(), Dims{1}, Dims{1}, Dims{1}, 1).sizes(),
           w.sizes());
}

TEST(conv_errors) {
  const Tensor x = noise<float>({1, 3, 5, 5}), w = noise<float>({4, 3, 3, 3});
  auto run = [&](const Tensor& a, const Tensor& b, Dims stride, Dims padding, int64_t groups) {
    return native::conv2d(a, b, {}, stride, padding, Dims{1, 1}, groups);
  };
  CHECK_THROWS_MSG(run(noise<float>({5, 5}), w, {1}, {0}, 1),
                   "conv2d: expected an input of shape (N, C, H, W) or (C, H, W), got (5, 5)");
  CHECK_THROWS_MSG(
      run(x, noise<float>({4, 2, 3, 3}), {1}, {0}, 1),
      "conv2d: expected a weight of shape (O, C / groups, kH, kW) for input (1, 3, 5, 5) and "
      "groups 1, got (4, 2, 3, 3)");
  CHECK_THROWS_MSG(run(x, w, {0}, {0}, 1), "conv2d: expected stride >= 1, got (0,)");
  CHECK_THROWS_MSG(run(x, w, {1}, {-1}, 1), "conv2d: expected padding >= 0, got (-1,)");
  CHECK_THROWS_MSG(run(x, w, {1, 2, 3}, {0}, 1),
                   "conv2d: expected 1 or 2 values of stride, got (1, 2, 3)");
  CHECK_THROWS_MSG(run(x, noise<float>({4, 3, 7, 3}), {1}, {0}, 1),
                   "conv2d: expected a kernel no larger than the padded input (5, 5), got (7, 3)");
  CHECK_THROWS_MSG(run(x, native::as_dtype(w, DType::F64), {1}, {0}, 1),
                   "conv2d: expected tensors of one dtype, got float32 and float64");
}

}  // namespace weft
