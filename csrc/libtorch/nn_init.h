// torch::nn::init fills tensors; torch::nn::utils: norms of gradients, sequences.
#pragma once

#include "nn_functional.h"
#include "nn_module.h"

namespace torch::nn {
inline namespace over_weft {
namespace init {

using at::Tensor;
using NonlinearityType = Word;
using FanModeType = Word;

namespace detail {

template <class Fill>
Tensor filled(Tensor tensor, Fill&& fill) {
  at::NoGradGuard no_grad;
  fill(tensor);
  return tensor;
}

}  // namespace detail

#define WEFT_FILL(name, parameters, call)                      \
  inline Tensor name parameters {                              \
    return detail::filled(tensor, [&](Tensor& x) { x.call; }); \
  }
WEFT_FILL(constant_, (Tensor tensor, at::Scalar value), fill_(value))
WEFT_FILL(ones_, (Tensor tensor), fill_(1))
WEFT_FILL(zeros_, (Tensor tensor), zero_())
WEFT_FILL(uniform_, (Tensor tensor, double low = 0, double high = 1), uniform_(low, high))
WEFT_FILL(normal_, (Tensor tensor, double mean = 0, double std = 1), normal_(mean, std))
#undef WEFT_FILL

// How many numbers of the input, and of the output, one of the other side is made of.
inline std::pair<int64_t, int64_t> fans_of(const Tensor& tensor) {
  TORCH_CHECK(tensor.dim() > 1, "init: expected at least 2 dims, got ", tensor.sizes());
  const int64_t kernel = tensor.numel() / (tensor.size(0) * tensor.size(1));
  return {tensor.size(1) * kernel, tensor.size(0) * kernel};
}
inline std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  return fans_of(tensor);
}
inline double calculate_gain(Word nonlinearity, double slope = 0.01) {
  switch (nonlinearity) {
    case kTanh:
      return 5.0 / 3.0;
    case kReLU:
      return std::sqrt(2.0);
    case kLeakyReLU:
      return std::sqrt(2.0 / (1 + slope * slope));
    default:
      return 1.0;
  }
}
inline Tensor xavier_uniform_(Tensor tensor, double gain = 1.0) {
  const auto [in, out] = fans_of(tensor);
  const double bound = std::sqrt(3.0) * gain * std::sqrt(2.0 / static_cast<double>(in + out));
  return init::uniform_(tensor, -bound, bound);
}
inline Tensor xavier_normal_(Tensor tensor, double gain = 1.0) {
  const auto [in, out] = fans_of(tensor);
  return init::normal_(tensor, 0, gain * std::sqrt(2.0 / static_cast<double>(in + out)));
}
inline double kaiming_std(const Tensor& tensor, double a, Word mode, Word nonlinearity) {
  const auto [in, out] = fans_of(tensor);
  return calculate_gain(nonlinearity, a) /
         std::sqrt(static_cast<double>(mode == kFanIn ? in : out));
}
inline Tensor kaiming_uniform_(Tensor tensor, double a = 0, Word mode = kFanIn,
                               Word nonlinearity = kLeakyReLU) {
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return init::uniform_(tensor, -bound, bound);
}
inline Tensor kaiming_normal_(Tensor tensor, double a = 0, Word mode = kFanIn,
                              Word nonlinearity = kLeakyReLU) {
  return init::normal_(tensor, 0, kaiming_std(tensor, a, mode, nonlinearity));
}
inline Tensor eye_(Tensor matrix) {
  return detail::filled(matrix, [](Tensor& x) { x.zero_().fill_diagonal_(1); });
}
inline Tensor orthogonal_(Tensor tensor, double gain = 1.0) {
  TORCH_CHECK(tensor.dim() > 1, "orthogonal_: expected at least 2 dims, got ", tensor.sizes());
  return detail::filled(tensor, [&](Tensor& x) {
    const int64_t rows = x.size(0), columns = x.numel() / rows;
    const Tensor flat = at::randn({rows, columns}, x.options());
    auto [q, r] = at::linalg_qr(rows < columns ? flat.t() : flat);
    q = q * r.diagonal().sign();
    x.copy_((rows < columns ? q.t() : q).reshape(x.sizes())).mul_(gain);
  });
}

// Ones in the middle of kernels, from each channel to that of its number.
inline Tensor dirac_(Tensor tensor) {
  TORCH_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "dirac_: expected 3 to 5 dims, got ",
              tensor.sizes());
  return detail::filled(tensor, [](Tensor& x) {
    x.zero_();
    for (int64_t i = 0; i < std::min(x.size(0), x.size(1)); ++i) {
      Tensor kernel = x.select(0, i).select(0, i);
      while (kernel.dim() > 0) kernel = kernel.select(0, kernel.size(0) / 2);
      kernel.fill_(1);
    }
  });
}
// Normal numbers, but for a share of zeros in each column.
inline Tensor sparse_(Tensor matrix, double sparsity, double std = 0.01) {
  TORCH_CHECK(matrix.dim() == 2, "sparse_: expected 2 dims, got ", matrix.sizes());
  return detail::filled(matrix, [&](Tensor& x) {
    x.normal_(0, std);
    const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(x.size(0))));
    for (int64_t column = 0; column < x.size(1); ++column) {
      const Tensor rows = at::randperm(x.size(0), at::kLong);
      x.select(1, column).index_fill_(0, rows.slice(0, 0, zeros), 0);
    }
  });
}

}  // namespace init

namespace utils {

using at::Tensor;

inline double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                              double norm_type = 2.0, bool error_if_nonfinite = false) {
  at::NoGradGuard no_grad;
  std::vector<Tensor> grads, norms;
  for (const Tensor& each : parameters) {
    if (each.grad().defined()) grads.push_back(each.grad());
  }
  if (grads.empty()) return 0.0;
  const bool is_largest = std::isinf(norm_type);
  for (const Tensor& each : grads) {
    norms.push_back(is_largest ? each.abs().max() : at::norm(each, norm_type));
  }
  const Tensor all = at::stack(norms), total = norms.size() == 1 ? norms[0]
                                               : is_largest      ? all.max()
                                                                 : at::norm(all, norm_type);
  const double found = total.item<double>();
  TORCH_CHECK(!error_if_nonfinite || std::isfinite(found),
              "clip_grad_norm_: expected a finite norm, got ", found);
  const Tensor scale = (max_norm / (total + 1e-6)).clamp_max(1.0);
  for (Tensor& each : grads) each.mul_(scale);
  return found;
}
inline double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type);
}
inline void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  at::NoGradGuard no_grad;
  for (const Tensor& each : parameters) {
    if (!each.grad().defined()) continue;
    Tensor grad = each.grad();
    grad.clamp_(at::Scalar(-clip_value), at::Scalar(clip_value));
  }
}
inline Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& each : parameters) flat.push_back(each.reshape({-1}));
  return at::cat(flat);
}
inline void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t from = 0;
  for (const Tensor& each : parameters) {
    each.set_data(vector.narrow(0, from, each.numel()).view(each.sizes()).detach());
    from += each.numel();
  }
}

namespace rnn {

// Sequences side by side, those that end early filled up.
inline Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false,
                           double padding_value = 0) {
  TORCH_CHECK(!sequences.empty(), "pad_sequence: expected sequences, got none");
  int64_t longest = 0;
  for (const Tensor& each : sequences) longest = std::max(longest, each.size(0));
  std::vector<Tensor> padded;
  for (const Tensor& each : sequences) {
    std::vector<int64_t> sides(static_cast<size_t>(2 * each.dim()), 0);
    sides.back() = longest - each.size(0);
    padded.push_back(at::constant_pad_nd(each, sides, padding_value));
  }
  return at::stack(padded, batch_first ? 0 : 1);
}

}  // namespace rnn
}  // namespace utils
}  // namespace over_weft
}  // namespace torch::nn
