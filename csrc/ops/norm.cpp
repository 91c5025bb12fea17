// Batch normalisation: statistics of each channel over the batch, and the gradients.
//
// Sums run in float64, as PyTorch's do on the CPU.
#include <cmath>
#include <vector>

#include "core/thread_pool.h"
#include "native_convolution.h"
#include "ops/elements_as.h"
#include "ops/factory.h"
#include "ops/norm_columns.h"
#include "ops/norm_lines.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// The input as [batch, channels, inner]; `count` values a channel. In rows of channels where these
// lie beside each other.
struct Channels {
  int64_t batch, channels, inner;
  MemoryFormat format;
  int64_t count() const { return batch * inner; }
  // Else lines: a thread takes a channel from its first sum to its result while it is in the cache.
  bool has_rows() const { return inner == 1 || format != MemoryFormat::Contiguous; }
  template <class T>
  ReadAs<T> read(const Tensor& image, int64_t n, int64_t channel) const {
    return {image, (n * channels + channel) * inner, inner};
  }
  template <class T>
  WriteAs<T> write(const Tensor& image, int64_t n, int64_t channel) const {
    return {image, (n * channels + channel) * inner, inner};
  }
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
  return {split.outer, split.size, split.inner, input.layout().suggested_format()};
}

// An image or its gradient, uninitialised.
Tensor image_of(const char* op, const Channels& c, const Tensor& like) {
  return make_empty(op, like.sizes(),
                    {like.dtype(), {}, like.device(), {}, static_cast<int64_t>(c.format)});
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

// The rows in blocks, which threads take: as many as the sizes say, so that sums do not depend on
// the number of threads.
class RowBlocks {
 public:
  explicit RowBlocks(const Channels& c)
      : rows_(c.count()), channels_(c.channels), count_(blocks_of(c)) {}
  int64_t count() const { return count_; }
  int64_t rows(int64_t block) const { return first(block + 1) - first(block); }
  int64_t first(int64_t block) const { return rows_ * block / count_; }

  // body(block, first element, rows, elements).
  template <class Fn>
  void for_each(Fn&& body) const {
    parallel_for(count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        body(b, first(b) * channels_, rows(b), rows(b) * channels_);
    });
  }

 private:
  static int64_t blocks_of(const Channels& c) {
    constexpr int64_t kElements = int64_t{1} << 15, kMost = 256;
    // No block without rows: it has no mean.
    const int64_t blocks = std::min({c.count() * c.channels / kElements, c.count(), kMost});
    return std::max<int64_t>(blocks, 1);
  }
  int64_t rows_, channels_, count_;
};

// What training finds out about each channel.
struct Statistics {
  explicit Statistics(int64_t channels)
      : mean(static_cast<size_t>(channels)), squares(mean.size()), invstd(mean.size()) {}
  std::vector<double> mean, squares, invstd;  // squares: sum of (x - mean)^2
};

template <class T>
void train_lines(const Channels& c, const Tensor& x, const T* weight, const T* bias, double eps,
                 Statistics& stats, const Tensor& out) {
  const auto count = static_cast<double>(c.count());
  for_each_channel(c, [&](int64_t ch) {
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < c.batch; ++n) sum += norm::sum<T>(c.inner, c.read<T>(x, n, ch));
    const double mean = sum / count;
    for (int64_t n = 0; n < c.batch; ++n) {
      squares += norm::squares<T>(c.inner, c.read<T>(x, n, ch), mean);
    }
    const double invstd = 1 / std::sqrt(squares / count + eps);
    const T scale = static_cast<T>(invstd) * (weight ? weight[ch] : T(1));
    const T shift = (bias ? bias[ch] : T(0)) - static_cast<T>(mean) * scale;
    for (int64_t n = 0; n < c.batch; ++n) {
      norm::scale<T>(c.inner, c.read<T>(x, n, ch), scale, shift, c.write<T>(out, n, ch));
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

// The same over rows. Each block finds its mean, and squares around that; both are put together:
//   sum (x - mean)^2 = sum over blocks of (squares + rows * (mean of the block - mean)^2)
// (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
// variances).
template <class T>
void train_rows(const Channels& c, const Tensor& x, const T* weight, const T* bias, double eps,
                Statistics& stats, const Tensor& out) {
  const RowBlocks blocks(c);
  const auto channels = static_cast<size_t>(c.channels);
  std::vector<double> means(static_cast<size_t>(blocks.count()) * channels), squares(means.size());
  blocks.for_each([&](int64_t block, int64_t first, int64_t rows, int64_t elements) {
    const ReadAs<T> from(x, first, elements);
    double* const mean = means.data() + block * c.channels;
    norm::column_sums<T>(rows, c.channels, from, mean);
    for (size_t ch = 0; ch < channels; ++ch) mean[ch] /= static_cast<double>(rows);
    norm::column_squares<T>(rows, c.channels, from, mean, squares.data() + block * c.channels);
  });
  const auto count = static_cast<double>(c.count());
  std::vector<T> scale(channels), shift(channels);
  for (size_t ch = 0; ch < channels; ++ch) {
    double sum = 0, sum_of_squares = 0;
    for (int64_t b = 0; b < blocks.count(); ++b) {
      sum += means[static_cast<size_t>(b) * channels + ch] * static_cast<double>(blocks.rows(b));
    }
    const double mean = sum / count;
    for (int64_t b = 0; b < blocks.count(); ++b) {
      const size_t at = static_cast<size_t>(b) * channels + ch;
      const double apart = means[at] - mean;
      sum_of_squares += squares[at] + static_cast<double>(blocks.rows(b)) * apart * apart;
    }
    const double invstd = 1 / std::sqrt(sum_of_squares / count + eps);
    scale[ch] = static_cast<T>(invstd) * (weight ? weight[ch] : T(1));
    shift[ch] = (bias ? bias[ch] : T(0)) - static_cast<T>(mean) * scale[ch];
    stats.mean[ch] = mean, stats.squares[ch] = sum_of_squares, stats.invstd[ch] = invstd;
  }
  blocks.for_each([&](int64_t, int64_t first, int64_t rows, int64_t elements) {
    norm::scale_columns<T>(rows, c.channels, ReadAs<T>(x, first, elements), scale.data(),
                           shift.data(), WriteAs<T>(out, first, elements));
  });
}

// The gradients by lines; sums of the gradient, and of the gradient times the normalised input.
template <class T>
void backward_lines(const Channels& c, const Tensor& grad, const Tensor& x, const T* weight,
                    const T* mean, const T* invstd, double (*pairs)[2], const Tensor& out) {
  const auto count = static_cast<double>(c.count());
  for_each_channel(c, [&](int64_t ch) {
    norm::GradSums sums;
    for (int64_t n = 0; n < c.batch; ++n) {
      const norm::GradSums line =
          norm::grad_sums<T>(c.inner, c.read<T>(grad, n, ch), c.read<T>(x, n, ch), mean[ch]);
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
      norm::gradient<T>(c.inner, c.read<T>(grad, n, ch), c.read<T>(x, n, ch), terms,
                        c.write<T>(out, n, ch));
    }
  });
}

template <class T>
void backward_rows(const Channels& c, const Tensor& grad, const Tensor& x, const T* weight,
                   const T* mean, const T* invstd, double (*pairs)[2], const Tensor& out) {
  const RowBlocks blocks(c);
  const auto channels = static_cast<size_t>(c.channels);
  std::vector<double> plain(static_cast<size_t>(blocks.count()) * channels), centred(plain.size());
  blocks.for_each([&](int64_t block, int64_t first, int64_t rows, int64_t elements) {
    const ReadAs<T> g(grad, first, elements);
    const int64_t at = block * c.channels;
    norm::column_sums<T>(rows, c.channels, g, plain.data() + at);
    norm::column_products<T>(rows, c.channels, g, ReadAs<T>(x, first, elements), mean,
                             centred.data() + at);
  });
  const auto count = static_cast<double>(c.count());
  std::vector<T> level(channels), slope(channels), scale(channels);
  for (size_t ch = 0; ch < channels; ++ch) {
    const auto inverse = static_cast<double>(invstd[ch]);
    for (size_t at = ch; at < plain.size(); at += channels) {
      pairs[ch][0] += plain[at];
      pairs[ch][1] += centred[at] * inverse;
    }
    level[ch] = static_cast<T>(pairs[ch][0] / count);
    slope[ch] = static_cast<T>(pairs[ch][1] * inverse / count);
    scale[ch] = invstd[ch] * (weight ? weight[ch] : T(1));
  }
  blocks.for_each([&](int64_t, int64_t first, int64_t rows, int64_t elements) {
    norm::column_gradient<T>(
        rows, c.channels, ReadAs<T>(grad, first, elements), ReadAs<T>(x, first, elements),
        {mean, level.data(), slope.data(), scale.data()}, WriteAs<T>(out, first, elements));
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
  const Tensor x = in_format(op, input, c.format, input.dtype()), w = operand(weight, compute),
               b = operand(bias, compute);
  const int64_t per_channel[] = {c.channels};
  const Tensor out = image_of(op, c, input);
  Tensor mean = Tensor::empty(per_channel, compute, input.device()),
         invstd = Tensor::empty(per_channel, compute, input.device());
  Statistics stats(c.channels);
  dispatch_float(op, compute, [&]<class T>(std::type_identity<T>) {
    (c.has_rows() ? train_rows<T> : train_lines<T>)(c, x, data_or_null<T>(w), data_or_null<T>(b),
                                                    eps, stats, out);
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      mean.data_as<T>()[ch] = static_cast<T>(stats.mean[ch]);
      invstd.data_as<T>()[ch] = static_cast<T>(stats.invstd[ch]);
    }
  });
  update_running(running_mean, stats.mean, momentum);
  for (double& squares : stats.squares) squares /= static_cast<double>(c.count() - 1);
  update_running(running_var, stats.squares, momentum);
  return {out, mean, invstd};
}

std::tuple<Tensor, Tensor, Tensor> _batch_norm_backward(const Tensor& grad_output,
                                                        const Tensor& input, const Tensor& weight,
                                                        const Tensor& mean, const Tensor& invstd) {
  const char* op = "_batch_norm_backward";
  const Channels c = channels_of(op, input);
  WEFT_CHECK(grad_output.sizes() == input.sizes(), op, ": expected a gradient of shape ",
             AsTuple{input.sizes()}, ", got ", AsTuple{grad_output.sizes()});
  const DType compute = compute_type(input.dtype());
  const Tensor g = in_format(op, grad_output, c.format, grad_output.dtype()),
               x = in_format(op, input, c.format, input.dtype());
  const Tensor w = operand(weight, compute), m = operand(mean, compute),
               r = operand(invstd, compute);
  const int64_t per_channel[] = {c.channels};
  const Tensor grad_input = image_of(op, c, input);
  Tensor grad_weight = Tensor::empty(per_channel, compute, input.device()),
         grad_bias = Tensor::empty(per_channel, compute, input.device());
  dispatch_float(op, compute, [&]<class T>(std::type_identity<T>) {
    std::vector<double> sums(static_cast<size_t>(2 * c.channels));
    auto* pairs = reinterpret_cast<double (*)[2]>(sums.data());
    (c.has_rows() ? backward_rows<T> : backward_lines<T>)(c, g, x, data_or_null<T>(w),
                                                          m.data_as<const T>(),
                                                          r.data_as<const T>(), pairs, grad_input);
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      grad_bias.data_as<T>()[ch] = static_cast<T>(pairs[ch][0]);
      grad_weight.data_as<T>()[ch] = static_cast<T>(pairs[ch][1]);
    }
  });
  const DType vector = weight.defined() ? weight.dtype() : compute;
  return {grad_input, as_dtype(grad_weight, vector), as_dtype(grad_bias, vector)};
}

}  // namespace weft::native
