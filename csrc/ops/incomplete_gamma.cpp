// Incomplete gamma functions, and the derivatives of samples of gamma and beta distributions for
// the parameters that they came from.
//
// All are integrals of a density up to a point, or from it on, over the density at that point:
// smooth functions that decay on a half-line, which one quadrature computes in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "native_special.h"
#include "ops/special_map.h"

namespace weft::native {
namespace {

// The integral from 0 to infinity of a function that varies over `near` and has decayed by some
// multiples of `far`. u = near * exp(s - exp(-s)) makes the trapezoidal rule converge exponentially
// in its steps (Takahasi and Mori, 1974: double exponential formulas).
template <class Fn>
double half_line(double near, double far, Fn&& integrand) {
  constexpr double kStep = 0.2;
  const double ratio = far / near;
  const bool longer = ratio > 1 && ratio < kInf;
  const int last = 20 + (longer ? static_cast<int>(std::ceil(std::log(ratio) / kStep)) : 0);
  double total = 0;
  for (int node = -18; node < last; ++node) {
    const double s = kStep * node, fall = std::exp(-s), u = near * std::exp(s - fall);
    total += integrand(u) * u * (kStep * (1 + fall));
  }
  return total;
}

// Where exp(-slope * u - curvature * u**2 / 2) has fallen to 1 / e, at most 1.
double width(double slope, double curvature) {
  slope = std::max(slope, 0.0);
  curvature = std::max(curvature, 0.0);
  return std::min(2 / (slope + std::sqrt(slope * slope + 2 * curvature)), 1.0);
}

// The gamma density on one side of x, over its value there. Below the mean, and up to 1,
// t = x * exp(-u); above it t = x * (1 + u).
struct Tail {
  double a, x;
  bool below = x <= a || x <= 1;

  // The integral, over x. `factor` is a function of log(t / x).
  template <class Fn>
  double integral(Fn&& factor) const {
    if (below) {
      return half_line(width(a - x, x), (1 + x) / a, [&](double u) {
        return std::exp(-a * u - x * std::expm1(-u)) * factor(-u);
      });
    }
    return half_line(width(x - a + 1, a - 1), 1 / x, [&](double u) {
      const double away = std::log1p(u);
      return std::exp((a - 1) * away - x * u) * factor(away);
    });
  }
};

// The gamma density at x, times x.
double scaled_density(double a, double x) {
  if (a < 20) return std::exp(a * std::log(x) - x) * a / std::tgamma(a + 1);
  // Stirling's series: the terms that cancel are never made.
  const double off = (x - a) / a, inverse = 1 / a, square = inverse * inverse;
  const double series =
      inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  const double ratio = off < -0.5 ? std::log(x / a) : std::log1p(off);
  return std::sqrt(a / (2 * std::numbers::pi)) * std::exp(a * (ratio - off) - series);
}

// The regularised incomplete gamma function: of what is below x, or above it.
double incomplete_gamma(double a, double x, bool upper) {
  const bool full = x == kInf || a == 0, empty = x == 0 || a == kInf;
  if (!(a >= 0 && x >= 0) || (full && empty)) return kNan;
  if (full || empty) return full == upper ? 0 : 1;
  // What is above x is as small as a is: it is no difference from 1.
  const bool below = (!upper || a > 1) && (x <= a || x <= 1);
  const Tail side{std::clamp(a, 1e-300, 1e300), std::clamp(x, 1e-300, 1e300), below};
  const double share = scaled_density(side.a, side.x) * side.integral([](double) { return 1.0; });
  return std::clamp(side.below == upper ? 1 - share : share, 0.0, 1.0);
}

Tensor incomplete_gammas(const char* op, const Tensor& a, const Tensor& x, bool upper) {
  const DType kind = common_dtype(a, x);
  WEFT_CHECK_AS(NotImplemented, is_floating(kind), op, ": expected a floating dtype, got ", kind);
  return mapped_pairs<double>(op, a, x, kind, [upper](double shape, double at) {
    return incomplete_gamma(shape, at, upper);
  });
}

// dx/da of a sample x of the gamma distribution of shape a and rate 1, by implicit differentiation
// of the distribution function (Figurnov, Mohamed, Mnih, 2018).
double gamma_slope(double a, double x) {
  const Tail side{a, std::max(x, std::numeric_limits<double>::min())};
  const double offset = std::log(side.x) - digamma_of(a);
  const double total = side.x * side.integral([=](double away) { return offset + away; });
  return side.below ? -total : total;
}

// (dx/da) / (1 - x) of a sample x of Beta(a, sum - a), in the same way. Below the mean
// t = x * exp(-u), and above it 1 - t = (1 - x) * exp(-u).
double beta_slope(double x, double a, double sum) {
  x = std::max(x, std::numeric_limits<double>::min());
  const bool below = x * sum <= a;
  const double e = below ? a : sum - a, f = below ? sum - a : a;
  const double odds = below ? x / (1 - x) : (1 - x) / x;
  const double near = width(e - (f - 1) * odds, (f - 1) * odds * (1 + odds));
  const double far = (1 + std::max(f - 1, 0.0) * std::log1p(odds)) / e;
  const double offset = std::log(x) - digamma_of(a) + digamma_of(sum);
  const double total = half_line(near, far, [=](double u) {
    const double bend = std::log1p(-odds * std::expm1(-u));
    return std::exp((f - 1) * bend - e * u) * (offset + (below ? -u : bend));
  });
  return below ? -odds * total : total;
}

}  // namespace

Tensor igamma(const Tensor& self, const Tensor& other) {
  return incomplete_gammas("igamma", self, other, false);
}
Tensor igammac(const Tensor& self, const Tensor& other) {
  return incomplete_gammas("igammac", self, other, true);
}

Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output) {
  const char* op = "_standard_gamma_grad";
  return mapped_pairs<double>(op, self, output, special_dtype(op, output.dtype()), gamma_slope);
}

Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  const char* op = "_dirichlet_grad";
  return mapped_as<double>(op, special_dtype(op, x.dtype()), beta_slope, x, alpha, total);
}

}  // namespace weft::native
