// Gamma, Dirichlet, binomial and Poisson numbers, from the draws and by the algorithms of PyTorch's
// CPU kernels, so that the same seed gives the same numbers. Elements are drawn one after the
// other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>

#include "native_randoms.h"
#include "ops/random.h"
#include "ops/support.h"
#include "ops_views.h"

namespace weft::native {
namespace {

// A cube of a normal number, accepted nearly always; below a concentration of 1 a sample of
// concentration + 1 is multiplied by a power of a uniform number: Marsaglia and Tsang, A simple
// method for generating gamma variables, ACM Transactions on Mathematical Software 26, 2000.
// T: the dtype of the concentration, in which its own arithmetic is done.
template <class T>
double draw_gamma(T concentration, Generator& source) {
  double scale = 1;
  if (concentration < 1) {
    if (concentration == 0) return 0;
    scale = std::pow(1 - source.uniform_double(), double{1 / concentration});
    concentration += 1;
  }
  const double d = concentration - 1.0f / 3, c = 1 / std::sqrt(9 * d);  // a third in float32
  while (true) {
    double normal, root;
    do {
      normal = draw_normal(source);
      root = 1 + c * normal;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - source.uniform_double();
    const double squared = normal * normal;
    if (u < 1 - 0.0331f * squared * squared) return scale * d * v;
    if (std::log(u) < 0.5 * squared + d * (1 - v + std::log(v))) return scale * d * v;
    if (std::isnan(v)) return v;
  }
}

// Adds up the numbers of trials until a success: Devroye, Non-uniform random variate generation,
// 1986, X.4. As many draws as there are successes.
double count_by_waiting(double trials, double chance, Generator& source) {
  const double rate = std::log1p(-chance);
  double passed = 0, successes = 0;
  while (true) {
    passed += std::ceil(std::log(source.uniform_double()) / rate);
    if (passed > trials) return successes;
    ++successes;
  }
}

// How many uniform numbers can be multiplied until the product is at most exp(-rate): Knuth, The
// Art of Computer Programming, volume 2, 3.4.1. Takes rate + 1 draws on average.
double count_by_product(double rate, Generator& source) {
  const double least = std::exp(-rate);
  double count = 0, product = source.uniform_double();
  for (; product > least; product *= source.uniform_double()) ++count;
  return count;
}

// Transformed rejection with squeeze (Hoermann, 1993): a count around `center` from two uniform
// numbers, accepted at once where it lies well inside, else by accept(count, edge, v).
struct Proposal {
  double a, b, center, shift, squeeze;

  template <class Accept>
  double draw(Generator& source, const Accept& accept) const {
    while (true) {
      const double u = source.uniform_double() - 0.5, v = source.uniform_double();
      const double edge = 0.5 - std::abs(u);
      if (edge == 0) continue;
      const double count = std::floor((2 * a / edge + b) * u + center + shift);
      if ((edge >= 0.07 && v <= squeeze) || accept(count, edge, v)) return count;
    }
  }
};

// log(k!) less Stirling's approximation of it; the table of the paper below, then its series.
double stirling_tail(double k) {
  static constexpr double kTail[] = {0.08106146679532726, 0.04134069595540929, 0.02767792568499834,
                                     0.02079067210376509, 0.01664469118982119, 0.01387612882307075,
                                     0.01189670994589177, 0.01041126526197209, 0.009255462182712733,
                                     0.008330563433362871};
  if (k <= 9) return kTail[static_cast<size_t>(k)];
  const double next = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / next) / next) / (k + 1);
}

// Algorithm BTRS of W. Hoermann, The generation of binomial random variates, Journal of Statistical
// Computation and Simulation 46, 1993. For chances up to 0.5 and 10 successes or more on average.
double reject_successes(double trials, double chance, Generator& source) {
  const double root = std::sqrt(trials * chance * (1 - chance)), b = 1.15 + 2.53 * root;
  const double a = -0.0873 + 0.0248 * b + 0.01 * chance, odds = chance / (1 - chance);
  const double alpha = (2.83 + 5.1 / b) * root, mode = std::floor((trials + 1) * chance);
  // The logarithm of the probability of `count` over that of the mode.
  const auto bound = [=](double count) {
    const double above = trials - mode + 1, left = trials - count + 1;
    const double tails = stirling_tail(mode) + stirling_tail(trials - mode) - stirling_tail(count) -
                         stirling_tail(trials - count);
    return (mode + 0.5) * std::log((mode + 1) / (odds * above)) +
           (trials + 1) * std::log(above / left) +
           (count + 0.5) * std::log(odds * left / (count + 1)) + tails;
  };
  return Proposal{a, b, trials * chance + 0.5, 0, 0.92 - 4.2 / b}.draw(
      source, [&](double count, double edge, double v) {
        if (count < 0 || count > trials) return false;
        return std::log(v * alpha / (a / (edge * edge) + b)) <= bound(count);
      });
}

// Algorithm PTRS of W. Hoermann, The transformed rejection method for generating Poisson random
// variables, Insurance: Mathematics and Economics 12, 1993. For rates of at least 10.
double reject_events(double rate, Generator& source) {
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double log_rate = std::log(rate), log_inverse_alpha = std::log(1.1239 + 1.1328 / (b - 3.4));
  return Proposal{a, b, rate, 0.43, 0.9277 - 3.6224 / (b - 2)}.draw(
      source, [&](double count, double edge, double v) {
        if (count < 0 || (edge < 0.013 && v > edge)) return false;
        const double proposal = std::log(v) + log_inverse_alpha - std::log(a / (edge * edge) + b);
        return proposal <= count * log_rate - rate - std::lgamma(count + 1);
      });
}

double count_successes(double trials, double chance, Generator& source) {
  if (std::isnan(trials) || std::isnan(chance)) return std::numeric_limits<double>::quiet_NaN();
  if (trials <= 0 || chance <= 0) return 0;
  if (chance >= 1) return trials;
  const bool turned = chance > 0.5;
  if (turned) chance = 1 - chance;
  const double count = trials * chance >= 10 ? reject_successes(trials, chance, source)
                                             : count_by_waiting(trials, chance, source);
  return turned ? trials - count : count;
}

// Gamma numbers as float64 of the concentrations' sizes, none below `least`. The arithmetic of the
// concentrations is done in `dtype`.
Tensor draw_gammas(const char* op, const Tensor& self, DType dtype, double least,
                   const Ref<Generator>& generator) {
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()), op, ": expected a floating dtype, got ",
                self.dtype());
  const Tensor drawn = Tensor::empty(self.sizes(), DType::F64, self.device(), op);
  const Tensor dense = in_order(as_dtype(self, dtype));
  Generator& source = *generator_or_default(generator);
  const std::lock_guard lock(source);
  dispatch_float(op, dtype, [&]<class T>(std::type_identity<T>) {
    const auto* concentrations = dense.data_as<const T>();
    double* out = drawn.data_as<double>();
    std::transform(concentrations, concentrations + dense.numel(), out, [&](auto concentration) {
      const double value = draw_gamma(concentration, source);
      return value < least ? least : value;  // nan stays
    });
  });
  return drawn;
}

// The least normal number.
double least_of(DType dtype) {
  return dtype == DType::F64 ? std::numeric_limits<double>::min()
                             : std::numeric_limits<float>::min();
}

}  // namespace

Tensor _standard_gamma(const Tensor& self, const Ref<Generator>& generator) {
  const DType dtype = self.dtype() == DType::F64 ? DType::F64 : DType::F32;
  return as_dtype(draw_gammas("_standard_gamma", self, dtype, least_of(dtype), generator),
                  self.dtype());
}

Tensor _sample_dirichlet(const Tensor& self, const Ref<Generator>& generator) {
  const char* op = "_sample_dirichlet";
  WEFT_CHECK(self.dim() > 0, op, ": expected 1 dim or more, got 0");
  const Tensor drawn = draw_gammas(op, self, DType::F64, least_of(DType::F64), generator);
  const int64_t count = self.sizes().back(), rows = count ? self.numel() / count : 0;
  // Inside of (0, 1), where densities are finite.
  const double least = least_of(self.dtype());
  const double most =
      self.dtype() == DType::F64 ? std::nextafter(1.0, 0.0) : std::nextafter(1.0F, 0.0F);
  for (int64_t r = 0; r < rows; ++r) {
    double* row = drawn.data_as<double>() + r * count;
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += row[i];
    for (int64_t i = 0; i < count; ++i) {
      const double share = row[i] / total;
      row[i] = std::clamp(share, least, most);
    }
  }
  return as_dtype(drawn, self.dtype());
}

Tensor binomial(const Tensor& count, const Tensor& prob, const Ref<Generator>& generator) {
  const char* op = "binomial";
  for (const Tensor* each : {&count, &prob})
    WEFT_CHECK(is_floating(each->dtype()), op, ": expected floating dtypes, got ", each->dtype());
  const Dims sizes = broadcast_sizes(op, count.sizes(), prob.sizes());
  const Tensor trials = in_order(as_dtype(ops::expand(count, sizes, false), DType::F64));
  const Tensor chances = in_order(as_dtype(ops::expand(prob, sizes, false), DType::F64));
  const Tensor drawn = Tensor::empty(sizes, DType::F64, count.device(), op);
  Generator& source = *generator_or_default(generator);
  {
    const std::lock_guard lock(source);
    const double *n = trials.data_as<const double>(), *p = chances.data_as<const double>();
    std::transform(
        n, n + drawn.numel(), p, drawn.data_as<double>(),
        [&](double trials, double chance) { return count_successes(trials, chance, source); });
  }
  return as_dtype(drawn, count.dtype());
}

Tensor poisson(const Tensor& self, const Ref<Generator>& generator) {
  const char* op = "poisson";
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()), op, ": expected a floating dtype, got ",
                self.dtype());
  const Tensor dense = in_order(as_dtype(self, DType::F64));
  const std::span rates(dense.data_as<const double>(), static_cast<size_t>(dense.numel()));
  for (const double rate : rates)
    WEFT_CHECK(rate >= 0 && std::isfinite(rate), op, ": expected finite rates >= 0, got ", rate);
  const Tensor counts = Tensor::empty(self.sizes(), DType::F64, self.device(), op);
  Generator& source = *generator_or_default(generator);
  {
    const std::lock_guard lock(source);
    std::ranges::transform(rates, counts.data_as<double>(), [&](double rate) {
      if (rate == 0) return 0.0;
      return rate < 10 ? count_by_product(rate, source) : reject_events(rate, source);
    });
  }
  return as_dtype(counts, self.dtype());
}

}  // namespace weft::native
