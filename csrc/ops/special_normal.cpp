// The distribution function of the normal and its relatives: erfcx, log_ndtr, ndtri.
#include <cmath>
#include <limits>
#include <numbers>

#include "native_special.h"
#include "ops/special_map.h"

namespace weft::native {
namespace {

// exp(x^2) erfc(x): the product, and beyond 25 the asymptotic series (DLMF 7.12.1).
double erfcx_of(double x) {
  if (x < 25) {
    if (x < -26.7) return kInf;
    // The exponential would make the rounding of x * x hundreds of units: it is put right after.
    const double square = x * x, rest = std::fma(x, x, -square);
    return std::exp(square) * std::erfc(x) * (1 + rest);
  }
  const double inverse = 1 / (2 * x * x);
  double term = 1, sum = 1;
  for (int k = 1; k < 8; ++k) {
    term *= -(2 * k - 1) * inverse;
    sum += term;
  }
  return std::numbers::inv_sqrtpi / x * sum;
}

double log_ndtr_of(double x) {
  const double t = x / std::numbers::sqrt2;
  if (x < -1) return std::log(erfcx_of(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

// x >= 0 with erfc(x) = c for c in (0, 1]: Newton's method on the logarithm, which is concave, so
// that the steps cannot miss.
double erfc_inverse(double c) {
  if (c >= 1) return 0;
  const double tail = std::log(c) + std::log(2 - c), a = 0.147;  // Winitzki's guess
  const double middle = 2 / (std::numbers::pi * a) + tail / 2;
  double x = std::sqrt(std::max(0.0, std::sqrt(middle * middle - tail / a) - middle));
  for (int i = 0; i < 8; ++i) {
    const double scaled = erfcx_of(x);
    const double miss = std::log(scaled) - x * x - std::log(c);
    const double step = miss * scaled / (2 * std::numbers::inv_sqrtpi);
    x += step;
    if (std::abs(step) < 1e-16 * x) break;
  }
  return x;
}

double ndtri_of(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (p < 0.5) return -std::numbers::sqrt2 * erfc_inverse(2 * p);
  return std::numbers::sqrt2 * erfc_inverse(2 * (1 - p));
}

}  // namespace

Tensor special_erfcx(const Tensor& self) {
  full_special_dtype("special_erfcx", self.dtype());
  return mapped("special_erfcx", self, erfcx_of);
}
Tensor special_log_ndtr(const Tensor& self) {
  full_special_dtype("special_log_ndtr", self.dtype());
  return mapped("special_log_ndtr", self, log_ndtr_of);
}
Tensor special_ndtri(const Tensor& self) {
  full_special_dtype("special_ndtri", self.dtype());
  return mapped("special_ndtri", self, ndtri_of);
}

}  // namespace weft::native
