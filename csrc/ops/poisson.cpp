// poisson: numbers of events, from the draws and by the algorithms of PyTorch's CPU kernel, so that
// the same seed gives the same numbers.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>

#include "native_randoms.h"
#include "ops/random.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// How many uniform numbers can be multiplied until the product is at most exp(-rate): Knuth, The
// Art of Computer Programming, volume 2, 3.4.1. Takes rate + 1 draws on average.
double count_by_product(double rate, Generator& source) {
  const double least = std::exp(-rate);
  double count = 0, product = source.uniform_double();
  for (; product > least; product *= source.uniform_double()) ++count;
  return count;
}

// Transformed rejection with squeeze: algorithm PTRS of W. Hoermann, The transformed rejection
// method for generating Poisson random variables, Insurance: Mathematics and Economics 12, 1993.
// For rates of at least 10.
class TransformedRejection {
 public:
  explicit TransformedRejection(double rate)
      : rate_(rate),
        log_rate_(std::log(rate)),
        b_(0.931 + 2.53 * std::sqrt(rate)),
        a_(-0.059 + 0.02483 * b_),
        log_inverse_alpha_(std::log(1.1239 + 1.1328 / (b_ - 3.4))),
        squeeze_(0.9277 - 3.6224 / (b_ - 2)) {}

  double operator()(Generator& source) const {
    while (true) {
      const double u = source.uniform_double() - 0.5, v = source.uniform_double();
      const double edge = 0.5 - std::abs(u);
      if (edge == 0) continue;
      const double count = std::floor((2 * a_ / edge + b_) * u + rate_ + 0.43);
      if (edge >= 0.07 && v <= squeeze_) return count;
      if (count < 0 || (edge < 0.013 && v > edge)) continue;
      if (accepts(count, edge, v)) return count;
    }
  }

 private:
  bool accepts(double count, double edge, double v) const {
    const double proposal = std::log(v) + log_inverse_alpha_ - std::log(a_ / (edge * edge) + b_);
    return proposal <= count * log_rate_ - rate_ - std::lgamma(count + 1);
  }

  double rate_, log_rate_, b_, a_, log_inverse_alpha_, squeeze_;
};

double draw_count(double rate, Generator& source) {
  if (rate == 0) return 0;
  return rate < 10 ? count_by_product(rate, source) : TransformedRejection(rate)(source);
}

void check_rates(std::span<const double> rates) {
  for (const double rate : rates)
    WEFT_CHECK(rate >= 0 && std::isfinite(rate), "poisson: expected finite rates >= 0, got ", rate);
}

}  // namespace

Tensor poisson(const Tensor& self, const Ref<Generator>& generator) {
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()),
                "poisson: expected a floating dtype, got ", self.dtype());
  const Tensor dense = in_order(as_dtype(self, DType::F64));
  const std::span rates(dense.data_as<const double>(), static_cast<size_t>(dense.numel()));
  check_rates(rates);
  const Tensor counts = Tensor::empty(self.sizes(), DType::F64, self.device(), "poisson");
  Generator& source = *generator_or_default(generator);
  {
    const std::lock_guard lock(source);
    std::transform(rates.begin(), rates.end(), counts.data_as<double>(),
                   [&](double rate) { return draw_count(rate, source); });
  }
  return as_dtype(counts, self.dtype());
}

}  // namespace weft::native
