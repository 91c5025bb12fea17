#include "native_convolution.h"
#include "native_copying.h"
#include "native_losses.h"
#include "ops/samples_testing.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

}  // namespace

TEST(pool_max) {
  const Tensor x = tensor_of<float>({1, 3, 4}, {1, 5, 2, 0, 3, 4, 9, 8, 7, 6, 5, NAN});
  const auto [out, at] =
      native::max_pool2d_with_indices(x, Dims{2}, Dims{1}, Dims{0}, Dims{1}, false);
  CHECK_EQ(out.sizes(), (Dims{1, 2, 3}));
  CHECK_EQ(values<int64_t>(at), (Ints{1, 6, 6, 8, 6, 11}));
  const Tensor grad = native::_max_pool2d_backward(counting<float>({1, 2, 3}, 1), at, x.sizes());
  CHECK_EQ(values<float>(grad), (Floats{0, 1, 0, 0, 0, 0, 10, 0, 4, 0, 0, 6}));
  CHECK_EQ(values<float>(native::_max_pool2d_gather(counting<float>({1, 3, 4}), at)),
           (Floats{1, 6, 6, 8, 6, 11}));
  const auto padded = native::max_pool2d_with_indices(x, Dims{3}, Dims{2}, Dims{1}, Dims{1}, true);
  CHECK_EQ(std::get<0>(padded).sizes(), (Dims{1, 2, 3}));
  CHECK_THROWS_MSG(
      native::max_pool2d_with_indices(x, Dims{2}, Dims{}, Dims{2}, Dims{1}, false),
      "max_pool2d: expected padding of at most half the kernel size, got padding (2,) and "
      "kernel_size (2,)");
}

TEST(pool_average) {
  const Tensor x = counting<float>({1, 3, 3});
  CHECK_EQ(values<float>(native::avg_pool2d(x, Dims{2}, Dims{1}, Dims{0}, false, true, {})),
           (Floats{2, 3, 5, 6}));
  const Tensor padded = native::avg_pool2d(x, Dims{2}, Dims{2}, Dims{1}, false, false, {});
  CHECK_EQ(values<float>(padded), (Floats{0, 1.5f, 4.5f, 6}));
  const Tensor counted = native::avg_pool2d(x, Dims{2}, Dims{2}, Dims{1}, false, true, {});
  CHECK_EQ(values<float>(counted), (Floats{0, .75f, 2.25f, 6}));
  const Tensor grad = native::_avg_pool2d_backward(tensor_of<float>({1, 1, 1}, {9}), x.sizes(),
                                                   Dims{3}, Dims{}, Dims{0}, false, true, {});
  CHECK_EQ(values<float>(grad), Floats(9, 1));
}

TEST(pool_adaptive) {
  const Tensor x = counting<float>({1, 1, 5});
  CHECK_EQ(values<float>(native::adaptive_avg_pool2d(x, Dims{1, 2})), (Floats{1, 3}));
  CHECK_EQ(values<float>(native::_adaptive_avg_pool2d_backward(tensor_of<float>({1, 1, 2}, {3, 6}),
                                                               x.sizes(), Dims{1, 2})),
           (Floats{1, 1, 3, 2, 2}));
}

TEST(loss_nll) {
  const Tensor x = counting<float>({3, 2});
  const Tensor target = tensor_of<int64_t>({3}, {1, 0, -100});
  CHECK_EQ(values<float>(std::get<0>(native::nll_loss_forward(x, target, {}, 0, -100))),
           (Floats{-1, -2, 0}));
  const auto [mean, total] = native::nll_loss_forward(x, target, {}, 1, -100);
  CHECK_EQ(values<float>(mean), Floats{-1.5f});
  CHECK_EQ(values<float>(total), Floats{2});
  const Tensor weight = tensor_of<float>({2}, {1, 3});
  CHECK_EQ(values<float>(std::get<0>(native::nll_loss_forward(x, target, weight, 1, -100))),
           Floats{-1.25f});
  const Tensor grad = native::_nll_loss_backward(tensor_of<float>({}, {1}), x.sizes(), target,
                                                 weight, 1, -100, tensor_of<float>({}, {4}));
  CHECK_EQ(values<float>(grad), (Floats{0, -.75f, -.25f, 0, 0, 0}));
  CHECK_THROWS_AS(Index,
                  native::nll_loss_forward(x, tensor_of<int64_t>({3}, {0, 2, 0}), {}, 1, -100),
                  "nll_loss: expected a target in [0, 1], got 2");
}

TEST(norm_batch) {
  const Tensor x = tensor_of<double>({2, 1, 2}, {1, 2, 3, 6});
  const Tensor mean = tensor_of<double>({1}, {1}), var = tensor_of<double>({1}, {1});
  const auto [out, m, r] = native::_batch_norm_train(x, {}, {}, mean, var, 0.5, 0);
  CHECK_NEAR(m.data_as<double>()[0], 3, 0);
  CHECK_NEAR(out.data_as<double>()[3], 3 / std::sqrt(3.5), 1e-12);
  CHECK_NEAR(mean.data_as<double>()[0], 2, 0);
  CHECK_NEAR(var.data_as<double>()[0], 0.5 + 0.5 * 14.0 / 3, 1e-12);
  const auto grads = native::_batch_norm_backward(noise<double>({2, 1, 2}), x, {}, m, r);
  const auto gx = values<double>(std::get<0>(grads));
  CHECK_NEAR(gx[0] + gx[1] + gx[2] + gx[3], 0, 1e-12);
  CHECK_THROWS_AS(
      Value, native::_batch_norm_train(tensor_of<double>({1, 2}, {1, 2}), {}, {}, {}, {}, 0.1, 0),
      "batch_norm: expected more than 1 value per channel when training, got shape (1, 2)");
}

TEST(images_by_channels_are_pooled_and_normalised_as_planes_are) {
  for (const int64_t channels : {1, 5, 21, 70}) {
    const Tensor x = noise<double>({3, channels, 6, 5}), like = noise<double>({3, channels, 3, 3});
    auto each = [&](auto&& run) {
      const auto format = static_cast<int64_t>(MemoryFormat::ChannelsLast);
      const Tensor planes = run(x, like);
      const Tensor rows = run(native::clone(x, format), native::clone(like, format));
      CHECK_NEAR(distance<double>(native::in_order(rows), planes), 0, 1e-12);
    };
    const Dims two{2}, three{3}, one{1}, none{0};
    each([&](const Tensor& t, const Tensor& grad) {
      const auto [out, at] = native::max_pool2d_with_indices(t, three, two, one, one, false);
      return native::_max_pool2d_backward(grad, at, t.sizes());
    });
    each([&](const Tensor& t, const Tensor& grad) {
      return native::_avg_pool2d_backward(grad, t.sizes(), three, two, one, false, false, {});
    });
    each([&](const Tensor& t, const Tensor&) {
      return std::get<0>(native::_batch_norm_train(t, {}, {}, {}, {}, 0.1, 1e-5));
    });
    each([&](const Tensor& t, const Tensor&) {
      const auto [out, mean, invstd] = native::_batch_norm_train(t, {}, {}, {}, {}, 0.1, 1e-5);
      const Tensor slopes = native::max_pool2d(t, three, one, one, one, false);
      return std::get<0>(native::_batch_norm_backward(slopes, t, {}, mean, invstd));
    });
  }
}

}  // namespace weft
