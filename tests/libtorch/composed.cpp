// Functions that are no operators of a table but composed of such: values and gradients, as sums by
// weights. The text beside this file is what PyTorch's own library prints.
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

#include "words.h"

namespace composed {

using at::Tensor;
double weighed(const Tensor& y) {
  if (y.is_complex()) return weighed(at::view_as_real(y.resolve_conj()));
  const auto w = torch::arange(y.numel(), torch::kDouble).reshape(y.sizes()).cos();
  return (y.to(torch::kDouble).detach() * w).sum().item<double>();
}
void show(const char* name, const Tensor& y) {
  std::cout << name << " " << y.sizes() << " " << y.dtype() << " " << weighed(y) << "\n";
}
void show(const char* name, at::TensorList all) {
  for (const Tensor& each : all) show(name, each);
}
template <class... Parts>
void show(const char* name, const std::tuple<Parts...>& parts) {
  std::apply([&](const auto&... each) { (show(name, each), ...); }, parts);
}
void show(const char* name, double number) { std::cout << name << " " << number << "\n"; }
// The value, and the gradient of its sum.
template <class Function>
void graded(const char* name, const Tensor& x, Function&& function) {
  const Tensor leaf = x.detach().clone().set_requires_grad(true), y = function(leaf);
  show(name, y);
  const Tensor sum = y.is_complex() ? at::view_as_real(y).square().sum() : y.square().sum();
  show("  grad", torch::autograd::grad({sum}, {leaf})[0]);
}
// Second gradients, through the gradient of a composition.
template <class Function>
void twice(const char* name, const Tensor& x, Function&& function) {
  const Tensor leaf = x.detach().clone().set_requires_grad(true);
  const Tensor first =
      torch::autograd::grad({function(leaf).pow(3).sum()}, {leaf}, {}, true, true)[0];
  show(name, torch::autograd::grad({first.square().sum()}, {leaf})[0]);
}
#define GRADED(name, x, ...) \
  graded(#name, x, [&](const Tensor& t) { return at::name(t, __VA_ARGS__); })
#define GRADED_ALONE(name, x) graded(#name, x, [&](const Tensor& t) { return at::name(t); })

void spectra(const Tensor& x) {
  GRADED_ALONE(fft_fft, x);
  GRADED(fft_rfft, x, 6, 0, "ortho");
  GRADED_ALONE(fft_fft2, x);
  GRADED_ALONE(fft_rfftn, x);
  show("irfft", at::fft_irfft(at::fft_rfft(x), 5));
  show("ihfft", at::fft_ihfft(x));
  show("hfft", at::fft_hfft(at::fft_fft(x)));
  show("shift", at::fft_fftshift(x, {1}));
  show("freq", at::fft_fftfreq(7, 0.5));
  show("rfreq", at::fft_rfftfreq(7, 0.5, at::kDouble));
  const Tensor signal = at::arange(64, at::kFloat).sin(), window = at::hann_window(16);
  const Tensor waves = at::stft(signal, 16, 4, 16, window, false, true, true);
  show("stft", waves);
  show("istft", at::istft(waves, 16, 4, 16, window));
}

void windows() {
  show("hann", at::hann_window(9));
  show("hann", at::hann_window(9, false, at::kDouble));
  show("hamming", at::hamming_window(8, true, 0.5, 0.4));
  show("blackman", at::blackman_window(8));
  show("bartlett", at::bartlett_window(8, false));
  show("kaiser", at::kaiser_window(8, true, 10.0));
  show("logspace", at::logspace(0, 3, 5));
  show("range", at::range(1, 9, 2));
}

void stacks(const Tensor& x) {
  const Tensor row = x[0], other = x[1];
  show("hstack", at::hstack({row, other}));
  show("vstack", at::vstack({row, other}));
  show("dstack", at::dstack({row, other}));
  show("column", at::column_stack({row, other}));
  show("rows", at::row_stack({x, x}));
  show("concat", at::concat({x, x}, 1));
  show("hsplit", at::hsplit(x, 5));
  show("vsplit", x.vsplit({1, 3}));
  show("mesh", at::meshgrid({row, other}, "xy"));
  show("mesh", at::meshgrid({row, other}));
  show("cartesian", at::cartesian_prod({row, other}));
  show("combinations", at::combinations(row));
  show("broadcast", at::broadcast_tensors({x, row}));
  show("atleast", at::atleast_3d(row));
  show("atleast", at::atleast_2d({row, x}));
  show("pad", at::pad_sequence({row, other.narrow(0, 0, 3)}, true, -1));
  show("vander", at::vander(row));
  show("complex", at::complex(row, other));
  show("polar", at::polar(row, other));
}

void matrices(const Tensor& x) {
  const Tensor a = at::matmul(x, x.t()) + at::eye(4);
  GRADED_ALONE(matrix_exp, a * 0.1);
  GRADED(linalg_matrix_norm, a, "nuc");
  GRADED_ALONE(linalg_norm, a);
  GRADED(linalg_pinv, x, 1e-6);
  GRADED_ALONE(linalg_cond, a);
  GRADED_ALONE(cov, x);
  show("corrcoef", x.corrcoef());
  show("rank", at::linalg_matrix_rank(x));
  show("power", at::linalg_matrix_power(a, 3));
  show("multi", at::linalg_multi_dot({a, x, x.t()}));
  show("solve", std::get<0>(at::linalg_solve_ex(a, x)));
  show("lstsq", std::get<0>(at::linalg_lstsq(a, x)));
  const auto [factors, pivots] = at::linalg_lu_factor(a);
  show("lu", at::linalg_lu_solve(factors, pivots, x));
  show("chain", at::chain_matmul({a, x}));
  show("vecdot", at::linalg_vecdot(x, x));
  show("trapezoid", at::trapezoid(x));
  show("cumulative", at::cumulative_trapezoid(x, 0.5));
  show("gradient", at::gradient(x, 0.5, 1));
  show("quantile", at::quantile(x, 0.3, 1));
  show("quantile", at::quantile(x, at::arange(3) * 0.5, 0, true, "midpoint"));
  show("histogram", at::histogram(x, 4));
  show("segment", at::segment_reduce(x, "sum", at::arange(1, 3).new_full({2}, 2)));
  show("renorm", at::index_reduce(x, 0, at::arange(2), x.narrow(0, 2, 2), "amax"));
}

void networks(const Tensor& x) {
  const Tensor image = x.reshape({1, 2, 2, 5}), line = x.reshape({1, 2, 10}),
               volume = x.reshape({1, 1, 2, 2, 5});
  GRADED_ALONE(selu, x);
  GRADED(celu, x, 0.7);
  GRADED_ALONE(mish, x);
  GRADED(glu, x, 0);
  GRADED(hardshrink, x, 0.3);
  GRADED(softshrink, x, 0.3);
  GRADED(threshold, x, 0.1, 20);
  GRADED(prelu, image, at::arange(1, 3) * 0.25f);
  GRADED(group_norm, image, 2);
  GRADED(instance_norm, image, {}, {}, {}, {}, true, 0.1, 1e-5, false);
  GRADED(rms_norm, x, {5});
  GRADED(conv3d, volume, at::ones({2, 1, 1, 2, 3}), {}, {1, 1, 2}, {0, 1, 1});
  GRADED(conv2d, image, at::ones({1, 2, 2, 2}), {}, {1, 1}, "same");
  GRADED(conv_transpose1d, line, at::ones({2, 3, 4}), {}, {2}, {1});
  GRADED(conv_transpose3d, volume, at::ones({1, 2, 2, 1, 2}), {}, {2, 1, 1});
  GRADED(max_pool1d, line, {3}, {2}, {1});
  GRADED(max_pool3d, volume, {1, 2, 2});
  GRADED(avg_pool1d, line, {4});
  GRADED(avg_pool3d, volume, {2, 1, 3});
  GRADED(adaptive_avg_pool1d, line, {3});
  GRADED(adaptive_avg_pool3d, volume, {1, 2, 2});
  show("amax", at::adaptive_max_pool2d(image, {2, 3}));
  GRADED(reflection_pad1d, line, {2, 3});
  GRADED(replication_pad2d, image, {1, 2, 0, 1});
  GRADED(pad, image, {1, 1, 0, 1}, "circular");
  GRADED(upsample_nearest2d, image, {3, 7});
  GRADED(upsample_bilinear2d, image, {3, 7}, false);
  GRADED(upsample_bicubic2d, image, {4, 9}, true);
  GRADED(upsample_trilinear3d, volume, {3, 3, 4}, false);
  GRADED(im2col, image, {2, 2}, {1, 1}, {0, 0}, {1, 1});
  GRADED(bilinear, x, x.neg(), at::ones({2, 5, 5}));
  GRADED_ALONE(pdist, x);
  show("pixel", at::native_channel_shuffle(image, 2));
  const Tensor input = x.narrow(0, 0, 2), state = x.narrow(0, 2, 2), ones = at::ones({20, 5}) * 0.1;
  show("lstm_cell", at::lstm_cell(input, {state, state}, ones, ones));
  show("gru_cell", at::gru_cell(input, state, ones.narrow(0, 0, 15), ones.narrow(0, 0, 15)));
  show("rnn_cell", at::rnn_tanh_cell(input, state, ones.narrow(0, 0, 5), ones.narrow(0, 0, 5)));
  show("lstm", at::lstm(x.unsqueeze(1), {at::zeros({1, 1, 5}), at::zeros({1, 1, 5})}, {ones, ones},
                        false, 1, 0.0, false, false, false));
}

void losses(const Tensor& x) {
  const Tensor target = x.flip(0), chance = x.sigmoid(), sign = target.sign(),
               classes = at::arange(4);
  GRADED(smooth_l1_loss, x, target, 1, 0.5);
  GRADED(huber_loss, x, target, 2, 0.7);
  GRADED(soft_margin_loss, x, sign);
  GRADED(hinge_embedding_loss, x, sign);
  GRADED(kl_div, chance.log(), target.softmax(1), 2);
  GRADED(binary_cross_entropy, chance, target.sigmoid());
  GRADED(multi_margin_loss, x, classes);
  GRADED(poisson_nll_loss, x, chance, true, false, 1e-8, 1);
  GRADED(cosine_embedding_loss, x, target, sign.select(1, 0));
  GRADED(triplet_margin_loss, x, target, chance);
  GRADED(margin_ranking_loss, x, target, sign);
  GRADED(cosine_similarity, x, target);
  GRADED(pairwise_distance, x, target);
  twice("mish twice", x, [](const Tensor& t) { return at::mish(t); });
  twice("fft twice", x, [](const Tensor& t) { return at::view_as_real(at::fft_rfft(t)); });
}

void others(const Tensor& x) {
  show("bessel", at::special_bessel_j1(x.abs()));
  show("chebyshev", at::special_chebyshev_polynomial_t(x * 0.1, 3));
  show("hermite", at::special_hermite_polynomial_h(x * 0.1, at::arange(5)));
  show("zeta", at::special_zeta(2.5, x.abs() + 1));
  show("expit", at::special_expit(x));
  show("xlogy", at::special_xlog1py(x, 2));
  show("logsumexp", at::special_logsumexp(x, {1}));
  show("clip", at::clip(x, -1, 1));
  show("fix", x.fix());
  show("divide", x.divide(3, "floor"));
  show("swap", x.swapdims(0, 1));
  show("sum", x.sum_to_size({1, 5}));
  Tensor y = x.clone();
  y.arctan2_(x + 1).multiply_(2);
  at::selu_(y);
  at::threshold_(y, 0.2, -3);
  show("written", y);
  show("promoted", at::promote_types(at::kInt, at::kHalf) == at::kHalf);
  show("type", at::result_type(x, 2.0) == at::kFloat);
  std::cout << at::is_nonzero(x.sum()) << at::is_complex(x) << at::can_cast(at::kDouble, at::kInt)
            << "\n";
  try {
    at::meshgrid({x[0], x[1]}, "zz");
  } catch (const c10::Error&) {
    std::cout << "refused\n";
  }
}

void program(const Words&) {
  std::cout << std::fixed << std::setprecision(3);
  const Tensor x = (at::arange(20, at::kFloat) * 0.7).sin().mul(1.5).add(0.05).reshape({4, 5});
  spectra(x);
  windows();
  stacks(x);
  matrices(x);
  networks(x);
  losses(x);
  others(x);
}

}  // namespace composed
