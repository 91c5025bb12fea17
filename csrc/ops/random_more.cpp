// Random operators made of the fills: new tensors, permutations, samples, dropout.
#include <cmath>
#include <vector>

#include "native_factories.h"
#include "native_randoms.h"
#include "ops/factory.h"
#include "ops/random.h"
#include "ops/support.h"
#include "ops_arithmetic.h"
#include "ops_indexing.h"
#include "ops_reductions.h"

namespace weft::native {
namespace {

void check_deviations(const Tensor& std) {
  WEFT_CHECK(!is_complex(std.dtype()), "normal: expected std of a real dtype, got ", std.dtype());
  if (std.numel() == 0 || std.device().type != DeviceType::CPU) return;
  const double least = ops::min(std).item().to_double();
  WEFT_CHECK(least >= 0, "normal: expected std >= 0, got ", least);
}

// Whether a dtype holds every integer up to `most`.
void check_holds(DType dtype, int64_t most) {
  WEFT_CHECK_AS(NotImplemented, dtype != DType::Bool && !is_complex(dtype),
                "randperm: expected a real dtype other than bool, got ", dtype);
  const bool holds = dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      return most <= 0 || std::in_range<T>(most);
    }
    return dtype != DType::F16 || most <= 2048;
  });
  WEFT_CHECK(holds, "randperm: expected n that ", dtype, " can count to, got ", most + 1);
}

}  // namespace

Tensor randint(int64_t low, int64_t high, IntList size, const Ref<Generator>& generator,
               MaybeDType dtype, MaybeInt layout, MaybeDevice device, MaybeBool pin_memory) {
  WEFT_CHECK(low < high, "randint: expected low < high, got ", low, " and ", high);
  return random_(empty(size, dtype.value_or(DType::I64), layout, device, pin_memory, {}), low, high,
                 generator);
}

Tensor randperm(int64_t n, const Ref<Generator>& generator, MaybeDType dtype, MaybeInt layout,
                MaybeDevice device, MaybeBool pin_memory) {
  WEFT_CHECK(n >= 0, "randperm: expected n >= 0, got ", n);
  const DType kind = dtype.value_or(DType::I64);
  check_holds(kind, n - 1);
  const int64_t size[] = {n};
  Tensor out = empty(size, DType::I64, layout, device, pin_memory, {});
  int64_t* data = out.data_as<int64_t>();
  for (int64_t i = 0; i < n; ++i) data[i] = i;
  Generator& source = *generator_or_default(generator);
  {
    // Fisher-Yates, one draw a place; beyond 2^32 / 20 places the remainder would show its bias.
    const std::lock_guard lock(source);
    const bool wide = n >= int64_t{0xffffffff} / 20;
    for (int64_t i = 0; i + 1 < n; ++i) {
      const uint64_t draw = wide ? source.random64() : source.random();
      std::swap(data[i], data[i + static_cast<int64_t>(draw % static_cast<uint64_t>(n - i))]);
    }
  }
  return as_dtype(out, kind);
}

Tensor normal(const Tensor& mean, const Tensor& std, const Ref<Generator>& generator) {
  const Dims sizes = broadcast_sizes("normal", mean.sizes(), std.sizes());
  const DType dtype = promote(mean.dtype(), std.dtype());
  check_deviations(std);
  const Tensor noise =
      normal_(Tensor::empty(sizes, dtype, mean.device(), "normal"), 0, 1, generator);
  return ops::add(ops::mul(noise, std), mean);
}
Tensor normal(const Tensor& mean, double std, const Ref<Generator>& generator) {
  const Tensor noise = normal_(Tensor::empty(mean.sizes(), mean.dtype(), mean.device(), "normal"),
                               0, std, generator);
  return ops::add(noise, mean);
}
Tensor normal(double mean, const Tensor& std, const Ref<Generator>& generator) {
  check_deviations(std);
  const Tensor noise =
      normal_(Tensor::empty(std.sizes(), std.dtype(), std.device(), "normal"), 0, 1, generator);
  return ops::add(ops::mul(noise, std), Scalar(mean));
}

// Composite: the mask is drawn as PyTorch draws it, the product is recorded.
Tensor dropout(const Tensor& input, double p, bool train) {
  WEFT_CHECK(p >= 0 && p <= 1, "dropout: expected p in [0, 1], got ", p);
  if (!train || p == 0 || input.numel() == 0) return input;
  if (p == 1)
    return ops::mul(input, zeros_of(input.sizes(), input.dtype(), input.device(), "dropout"));
  return ops::mul(input, dropout_mask(input, p));
}

namespace {

// Places of `count` draws with replacement from one row of weights.
void draw_row(const double* weights, int64_t categories, int64_t count, Generator& source,
              int64_t* out) {
  std::vector<double> cumulative(static_cast<size_t>(categories));
  double total = 0;
  for (int64_t c = 0; c < categories; ++c) cumulative[static_cast<size_t>(c)] = total += weights[c];
  for (double& value : cumulative) value /= total;
  cumulative.back() = 1;
  for (int64_t i = 0; i < count; ++i) {
    const double u = source.uniform_double();
    const auto found = std::lower_bound(cumulative.begin(), cumulative.end(), u);
    out[i] = found - cumulative.begin();
  }
}

void check_weights(const Tensor& weights, int64_t rows, int64_t categories) {
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    for (int64_t c = 0; c < categories; ++c) {
      const double value = weights.data_as<const double>()[r * categories + c];
      WEFT_CHECK(value >= 0 && std::isfinite(value),
                 "multinomial: expected finite weights >= 0, got ", value);
      total += value;
    }
    WEFT_CHECK(total > 0, "multinomial: expected weights with a positive sum, got ", total);
  }
}

}  // namespace

Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement,
                   const Ref<Generator>& generator) {
  WEFT_CHECK(self.dim() == 1 || self.dim() == 2, "multinomial: expected 1 or 2 dims, got shape ",
             AsTuple{self.sizes()});
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()),
                "multinomial: expected a floating dtype, got ", self.dtype());
  const int64_t categories = self.sizes().back(), rows = self.dim() == 1 ? 1 : self.sizes()[0];
  WEFT_CHECK(num_samples > 0 && (replacement || num_samples <= categories) && categories > 0,
             "multinomial: expected num_samples in [1, ",
             replacement ? "..." : std::to_string(categories), "], got ", num_samples);
  const Tensor weights = in_order(as_dtype(self, DType::F64));
  check_weights(weights, rows, categories);
  Dims sizes = self.sizes();
  sizes.back() = num_samples;
  if (!replacement || num_samples == 1) {
    // A race of exponential clocks: the first to ring are a sample without replacement.
    Tensor clocks =
        exponential_(Tensor::empty(self.sizes(), self.dtype(), self.device()), 1, generator);
    return std::get<1>(ops::topk(ops::div(self, clocks), num_samples, -1, true, true));
  }
  Tensor out = Tensor::empty(sizes, DType::I64, self.device(), "multinomial");
  Generator& source = *generator_or_default(generator);
  const std::lock_guard lock(source);
  for (int64_t r = 0; r < rows; ++r) {
    draw_row(weights.data_as<const double>() + r * categories, categories, num_samples, source,
             out.data_as<int64_t>() + r * num_samples);
  }
  return out;
}

}  // namespace weft::native
