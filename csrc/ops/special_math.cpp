// Special functions computed in double, element by element: digamma, polygamma, Bessel.
#include <cmath>
#include <limits>
#include <numbers>

#include "native_special.h"
#include "ops/special_map.h"
#include "ops_special.h"

namespace weft::native {
namespace {

// A number as the sum of two doubles, the second the rounding errors of the first: about 100 bits.
struct Twofold {
  double high, low;

  double value() const { return std::isfinite(high) ? high + low : high; }

  void add(double term, double error = 0) {
    const double sum = high + term, back = sum - high;
    low += (high - (sum - back)) + (term - back) + error;
    high = sum;
  }
  // *this * factor / divisor, for a divisor that is a whole number.
  Twofold scaled(Twofold factor, double divisor) const {
    const double product = high * factor.high;
    const double error =
        std::fma(high, factor.high, -product) + (high * factor.low + low * factor.high);
    const double quotient = product / divisor;
    return {quotient, (std::fma(-quotient, divisor, product) + error) / divisor};
  }
};

// Bernoulli's numbers B2, B4, ... over 2k: the asymptotic series of digamma.
constexpr double kDigamma[] = {1.0 / 12,  -1.0 / 120,      1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760., 1.0 / 12};

// Hurwitz's zeta(s, q) for s > 1 by Euler and Maclaurin: a sum up to q + 12, then the series.
double zeta_of(double s, double q) {
  if (q <= 0 && q == std::floor(q)) return kInf;
  if (q <= 0 && s != std::floor(s)) return kNan;
  // Of the terms q**-s, (q + 1)**-s, ... one that is not beyond 1 is all that an infinite s leaves.
  if (std::isinf(s) && !std::isnan(q)) return q < 1 ? kInf : q == 1 ? 1 : 0;
  // B2k / (2k)!
  constexpr double kTerms[] = {1.0 / 12,          -1.0 / 720,
                               1.0 / 30240,       -1.0 / 1209600,
                               1.0 / 47900160,    -691.0 / 1307674368000.0,
                               1.0 / 74724249600, -3617.0 / 10670622842880000.0};
  Twofold sum{0, 0};
  while (q < 12) {
    sum.add(std::pow(q, -s));
    q += 1;
  }
  const double power = std::pow(q, -s);
  sum.add(power * q / (s - 1) + 0.5 * power);
  double factor = s * power / q;
  for (int k = 0; k < 8; ++k) {
    sum.add(factor * kTerms[k]);
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
  }
  return sum.value();
}

// What the modified Bessel function of order 0 or 1 has beside exp(x), at large x.
// A few roundings of double are too many here.
using Wide = long double;
Wide bessel_tail(int order, double x) {
  Wide term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    const Wide odd = 2 * k - 1;
    term *= (odd * odd - 4 * order) / (8 * k * static_cast<Wide>(x));
    sum += term;
    if (std::abs(term) < 1e-17L * sum) break;
  }
  return sum / std::sqrt(2 * std::numbers::pi_v<Wide> * x);
}

// The function itself at small x >= 0, by its power series.
// All terms are positive, but their roundings would add up to a dozen units.
double bessel_series(int order, double x) {
  const double half = x / 2;
  const Twofold square = {half * half, std::fma(half, half, -half * half)};
  Twofold term = {order == 0 ? 1 : half, 0}, sum = term;
  for (int k = 1; k < 200 && term.high > 1e-17 * sum.high; ++k) {
    term = term.scaled(square, static_cast<double>(k) * (k + order));
    sum.add(term.high, term.low);
  }
  return sum.value();
}

constexpr double kLargeBessel = 40;

// An even or odd function from its values at x >= 0.
double signed_like(int order, double x, double size) {
  return order == 0 ? size : std::copysign(size, x);
}

double bessel_of(int order, double x) {
  const double at = std::abs(x);
  if (std::isnan(x)) return x;
  if (at == kInf) return signed_like(order, x, kInf);
  if (at <= kLargeBessel) return signed_like(order, x, bessel_series(order, at));
  // The exponential in two halves: it may overflow before the result does.
  const Wide half = std::exp(static_cast<Wide>(at) / 2);
  return signed_like(order, x, static_cast<double>(half * bessel_tail(order, at) * half));
}

// exp(-|x|) times the function.
double scaled_bessel_of(int order, double x) {
  const double at = std::abs(x);
  if (std::isnan(x)) return x;
  if (at == kInf) return signed_like(order, x, 0);
  const double size = at <= kLargeBessel ? bessel_series(order, at) * std::exp(-at)
                                         : static_cast<double>(bessel_tail(order, at));
  return signed_like(order, x, size);
}

}  // namespace

double digamma_of(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    // Reflected; the angle is taken of the distance to an integer, so that it stays exact.
    const double fraction = x - std::nearbyint(x);
    return digamma_of(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * fraction);
  }
  if (x == kInf) return kInf;
  Twofold sum{0, 0};
  while (x < 10) {
    sum.add(-1 / x);
    x += 1;
  }
  const double inverse = 1 / (x * x);
  double series = 0;
  for (int i = 6; i >= 0; --i) series = (series + kDigamma[i]) * inverse;
  sum.add(std::log(x), -0.5 / x - series);
  return sum.value();
}

Tensor polygamma(int64_t n, const Tensor& self) {
  WEFT_CHECK(n >= 0, "polygamma: expected n >= 0, got ", n);
  if (n == 0) return ops::digamma(self);
  const auto order = static_cast<double>(n);
  const double scale = (n % 2 == 1 ? 1 : -1) * std::tgamma(order + 1);
  return mapped("polygamma", self, [=](double x) {
    if (std::isinf(x)) return x > 0 ? 0.0 : kNan;
    return scale * zeta_of(order + 1, x);
  });
}

Tensor special_zeta(const Tensor& self, const Tensor& other) {
  const char* op = "special_zeta";
  const DType kind = full_special_dtype(op, common_dtype(self, other));
  return mapped_pairs<double>(op, self, other, kind, [](double s, double q) {
    if (s == 1) return kInf;
    return s < 1 ? kNan : zeta_of(s, q);
  });
}

}  // namespace weft::native

// What kernels call for float64.
extern "C" {
double weft_digamma(double x) { return weft::native::digamma_of(x); }
double weft_i0(double x) { return weft::native::bessel_of(0, x); }
double weft_i1(double x) { return weft::native::bessel_of(1, x); }
double weft_i0e(double x) { return weft::native::scaled_bessel_of(0, x); }
double weft_i1e(double x) { return weft::native::scaled_bessel_of(1, x); }
}
