// Batch normalisation: statistics of each channel over the batch, and the gradients.
//
// Sums run in float64, as PyTorch's do on the CPU.
#include <cmath>
#include <vector>

#include "core/thread_pool.h"
#include "native_convolution.h"
#include "ops/norm_lines.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// The input as [batch, channels, inner]; `count` values a channel.
struct Channels {
  int64_t batch, channels, inner;
  int64_t count() const { return batch * inner; }
  // Lines long enough for loops of their own: a thread then takes a channel from its first sum to
  // its result while it is in the cache.
  bool has_lines() const { return inner >= 16; }
  int64_t line(int64_t n, int64_t channel) const { return (n * channels + channel) * inner; }
};

// body(channel), threads over channels.
template <class Fn>
void for_each_channel(const Channels& c, Fn&& body) {
  const int64_t grain = (int64_t{1} << 14) / std::max<int64_t>(1, c.count()) + 1;
  parallel_for(c.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) body(channel);
  });
}

Channels channels_of(const char* op, const Tensor& input) {
  WEFT_CHECK(input.dim() >= 2, op, ": expected an input of shape (N, C, ...), got ",
             AsTuple{input.sizes()});
  const Split3 split = split_at(input.sizes(), 1);
  return {split.outer, split.size, split.inner};
}

void check_vector(const char* op, const char* what, const Tensor& tensor, const Channels& c) {
  if (!tensor.defined()) return;
  WEFT_CHECK(tensor.dim() == 1 && tensor.numel() == c.channels, op, ": expected a ", what,
             " of shape (", c.channels, ",), got ", AsTuple{tensor.sizes()});
}

Tensor operand(const Tensor& tensor, DType dtype) {
  return tensor.defined() ? in_order(as_dtype(tensor, dtype)) : Tensor();
}

template <class T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_as<const T>() : nullptr;
}

// sums[k][c] += term k of (element, channel): `Terms` running sums for each channel.
// term(element, channel, out) writes its values to out[0..Terms).
template <int Terms, class Term>
void channel_sums(const Channels& c, double (*sums)[Terms], Term&& term) {
  auto add = [&](int64_t first, int64_t last) {
    for (int64_t n = 0; n < c.batch; ++n) {
      for (int64_t ch = first; ch < last; ++ch) {
        // Four partial sums break the chain of dependent additions.
        double partial[4][Terms] = {};
        const int64_t start = (n * c.channels + ch) * c.inner;
        for (int64_t i = 0; i < c.inner; ++i) {
          double values[Terms];
          term(start + i, ch, values);
          for (int t = 0; t < Terms; ++t) partial[i & 3][t] += values[t];
        }
        for (int t = 0; t < Terms; ++t) {
          sums[ch][t] += (partial[0][t] + partial[1][t]) + (partial[2][t] + partial[3][t]);
        }
      }
    }
  };
  const int64_t grain = (int64_t{1} << 14) / std::max<int64_t>(1, c.count()) + 1;
  parallel_for(c.channels, std::max<int64_t>(grain, c.inner == 1 ? 16 : 1), add);
}

// body(element, channel) over everything, threads over images and channels.
template <class Fn>
void for_each_element(const Channels& c, Fn&& body) {
  const int64_t grain = (int64_t{1} << 15) / std::max<int64_t>(1, c.inner) + 1;
  parallel_for(c.batch * c.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t channel = line % c.channels;
      for (int64_t i = line * c.inner; i < (line + 1) * c.inner; ++i) body(i, channel);
    }
  });
}

// What training finds out about each channel.
struct Statistics {
  explicit Statistics(int64_t channels)
      : mean(static_cast<size_t>(channels)), squares(mean.size()), invstd(mean.size()) {}
  std::vector<double> mean, squares, invstd;  // squares: sum of (x - mean)^2
};

template <class T>
void train_lines(const Channels& c, const T* x, const T* weight, const T* bias, double eps,
                 Statistics& stats, T* out) {
  const auto count = static_cast<double>(c.count());
  for_each_channel(c, [&](int64_t ch) {
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < c.batch; ++n) sum += norm::sum(c.inner, x + c.line(n, ch));
    const double mean = sum / count;
    for (int64_t n = 0; n < c.batch; ++n) {
      squares += norm::squares(c.inner, x + c.line(n, ch), mean);
    }
    const double invstd = 1 / std::sqrt(squares / count + eps);
    const T scale = static_cast<T>(invstd) * (weight ? weight[ch] : T(1));
    const T shift = (bias ? bias[ch] : T(0)) - static_cast<T>(mean) * scale;
    for (int64_t n = 0; n < c.batch; ++n) {
      norm::scale(c.inner, x + c.line(n, ch), scale, shift, out + c.line(n, ch));
    }
    stats.mean[ch] = mean, stats.squares[ch] = squares, stats.invstd[ch] = invstd;
  });
}

// running = (1 - momentum) * running + momentum * fresh, whatever the running tensor's dtype.
void update_running(const Tensor& running, const std::vector<double>& fresh, double momentum) {
  if (!running.defined()) return;
  running.check_writable("batch_norm");
  const Tensor old = in_order(as_dtype(running, DType::F64));
  Tensor updated = Tensor::empty(running.sizes(), DType::F64, running.device());
  for (size_t c = 0; c < fresh.size(); ++c) {
    updated.data_as<double>()[c] =
        (1 - momentum) * old.data_as<const double>()[c] + momentum * fresh[c];
  }
  copy_into(running, updated);
}

// The same where the elements of a channel lie apart.
template <class T>
void train_elements(const Channels& c, const T* x, const T* weight, const T* bias, double eps,
                    Statistics& stats, T* out) {
  const auto count = static_cast<double>(c.count());
  auto sums = [](std::vector<double>& list) {
    return reinterpret_cast<double (*)[1]>(list.data());
  };
  // Two passes: the mean first, so that squares do not cancel.
  channel_sums<1>(c, sums(stats.mean), [&](int64_t i, int64_t, double* v) { v[0] = x[i]; });
  for (double& mean : stats.mean) mean /= count;
  channel_sums<1>(c, sums(stats.squares), [&](int64_t i, int64_t ch, double* v) {
    const double centred = x[i] - stats.mean[ch];
    v[0] = centred * centred;
  });
  std::vector<T> scale(stats.mean.size()), shift(stats.mean.size());
  for (size_t ch = 0; ch < scale.size(); ++ch) {
    stats.invstd[ch] = 1 / std::sqrt(stats.squares[ch] / count + eps);
    scale[ch] = static_cast<T>(stats.invstd[ch]) * (weight ? weight[ch] : T(1));
    shift[ch] = (bias ? bias[ch] : T(0)) - static_cast<T>(stats.mean[ch]) * scale[ch];
  }
  for_each_element(c, [&](int64_t i, int64_t ch) { out[i] = x[i] * scale[ch] + shift[ch]; });
}

// The gradients by lines; sums of the gradient, and of the gradient times the normalised input.
template <class T>
void backward_lines(const Channels& c, const T* grad, const T* x, const T* weight, const T* mean,
                    const T* invstd, double (*pairs)[2], T* out) {
  const auto count = static_cast<double>(c.count());
  for_each_channel(c, [&](int64_t ch) {
    norm::GradSums sums;
    for (int64_t n = 0; n < c.batch; ++n) {
      const int64_t at = c.line(n, ch);
      const norm::GradSums line = norm::grad_sums(c.inner, grad + at, x + at, mean[ch]);
      sums.plain += line.plain;
      sums.centred += line.centred;
    }
    const auto inverse = static_cast<double>(invstd[ch]);
    pairs[ch][0] = sums.plain;
    pairs[ch][1] = sums.centred * inverse;
    const norm::GradTerms<T> terms{mean[ch], static_cast<T>(sums.plain / count),
                                   static_cast<T>(pairs[ch][1] * inverse / count),
                                   invstd[ch] * (weight ? weight[ch] : T(1))};
    for (int64_t n = 0; n < c.batch; ++n) {
      const int64_t at = c.line(n, ch);
      norm::gradient(c.inner, grad + at, x + at, terms, out + at);
    }
  });
}

template <class T>
void backward_elements(const Channels& c, const T* grad, const T* x, const T* weight, const T* mean,
                       const T* invstd, double (*pairs)[2], T* out) {
  channel_sums<2>(c, pairs, [&](int64_t i, int64_t ch, double* v) {
    v[0] = grad[i];
    v[1] = double{grad[i]} * double{x[i] - mean[ch]} * double{invstd[ch]};
  });
  const auto count = static_cast<double>(c.count());
  for_each_element(c, [&](int64_t i, int64_t ch) {
    const T normalised = (x[i] - mean[ch]) * invstd[ch];
    const T centred = grad[i] - static_cast<T>(pairs[ch][0] / count) -
                      normalised * static_cast<T>(pairs[ch][1] / count);
    out[i] = centred * invstd[ch] * (weight ? weight[ch] : T(1));
  });
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _batch_norm_train(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, double momentum,
                                                     double eps) {
  const char* op = "batch_norm";
  const Channels c = channels_of(op, input);
  check_vector(op, "weight", weight, c);
  check_vector(op, "bias", bias, c);
  check_vector(op, "running_mean", running_mean, c);
  check_vector(op, "running_var", running_var, c);
  WEFT_CHECK_VALUE(c.count() > 1, op,
                   ": expected more than 1 value per channel when training, got shape ",
                   AsTuple{input.sizes()});
  const DType compute = compute_type(input.dtype());
  const Tensor x = operand(input, compute), w = operand(weight, compute),
               b = operand(bias, compute);
  const int64_t per_channel[] = {c.channels};
  Tensor out = Tensor::empty(input.sizes(), compute, input.device(), op);
  Tensor mean = Tensor::empty(per_channel, compute, input.device()),
         invstd = Tensor::empty(per_channel, compute, input.device());
  Statistics stats(c.channels);
  dispatch_float(op, compute, [&](auto type) {
    using T = typename decltype(type)::type;
    const T *from = x.data_as<const T>(), *scale = data_or_null<T>(w), *shift = data_or_null<T>(b);
    (c.has_lines() ? train_lines<T> : train_elements<T>)(c, from, scale, shift, eps, stats,
                                                         out.data_as<T>());
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      mean.data_as<T>()[ch] = static_cast<T>(stats.mean[ch]);
      invstd.data_as<T>()[ch] = static_cast<T>(stats.invstd[ch]);
    }
  });
  update_running(running_mean, stats.mean, momentum);
  for (double& squares : stats.squares) squares /= static_cast<double>(c.count() - 1);
  update_running(running_var, stats.squares, momentum);
  return {as_dtype(out, input.dtype()), mean, invstd};
}

std::tuple<Tensor, Tensor, Tensor> _batch_norm_backward(const Tensor& grad_output,
                                                        const Tensor& input, const Tensor& weight,
                                                        const Tensor& mean, const Tensor& invstd) {
  const char* op = "_batch_norm_backward";
  const Channels c = channels_of(op, input);
  WEFT_CHECK(grad_output.sizes() == input.sizes(), op, ": expected a gradient of shape ",
             AsTuple{input.sizes()}, ", got ", AsTuple{grad_output.sizes()});
  const DType compute = compute_type(input.dtype());
  const Tensor g = operand(grad_output, compute), x = operand(input, compute);
  const Tensor w = operand(weight, compute), m = operand(mean, compute),
               r = operand(invstd, compute);
  const int64_t per_channel[] = {c.channels};
  Tensor grad_input = Tensor::empty(input.sizes(), compute, input.device(), op);
  Tensor grad_weight = Tensor::empty(per_channel, compute, input.device()),
         grad_bias = Tensor::empty(per_channel, compute, input.device());
  dispatch_float(op, compute, [&](auto type) {
    using T = typename decltype(type)::type;
    std::vector<double> sums(static_cast<size_t>(2 * c.channels));
    auto* pairs = reinterpret_cast<double (*)[2]>(sums.data());
    (c.has_lines() ? backward_lines<T>
                   : backward_elements<T>)(c, g.data_as<const T>(), x.data_as<const T>(),
                                           data_or_null<T>(w), m.data_as<const T>(),
                                           r.data_as<const T>(), pairs, grad_input.data_as<T>());
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      grad_bias.data_as<T>()[ch] = static_cast<T>(pairs[ch][0]);
      grad_weight.data_as<T>()[ch] = static_cast<T>(pairs[ch][1]);
    }
  });
  const DType vector = weight.defined() ? weight.dtype() : compute;
  return {as_dtype(grad_input, input.dtype()), as_dtype(grad_weight, vector),
          as_dtype(grad_bias, vector)};
}

}  // namespace weft::native
