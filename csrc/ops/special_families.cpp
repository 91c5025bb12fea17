// Functions that come in families: Bessel functions and orthogonal polynomials, chosen by name.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "native_special.h"
#include "ops/special_map.h"

namespace weft::native {
namespace {

// exp(x) K(x) of order 0 or 1: the integral of exp(-x (cosh t - 1)) cosh(order t) over t >= 0
// (DLMF 10.32.9). The trapezoidal rule converges geometrically here; its steps follow the width of
// the integrand, 1 / sqrt(x) for a large x.
double scaled_k(int order, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInf;
  if (std::isinf(x)) return 0;
  const double step = std::min(1.0 / 16, 0.5 / std::sqrt(x));
  double sum = 0.5;
  for (int i = 1; i < 16000; ++i) {
    const double t = i * step;
    const double half = std::sinh(t / 2);
    const double power = -2 * x * half * half;
    const double term =
        std::exp(power + (order == 0 ? 0 : t)) * (order == 0 ? 1 : (1 + std::exp(-2 * t)) / 2);
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum * step;
}

// Airy's function of the first kind by Bessel functions of order 1/3 (DLMF 9.6.2, 9.6.6).
double airy_ai_of(double x) {
  if (!std::isfinite(x)) return kNan;
  if (x == 0) return 0.35502805388781724;
  const double root = std::sqrt(std::abs(x)), z = 2 * std::abs(x) * root / 3;
  if (x > 0)
    return z > 740
               ? 0
               : root * std::cyl_bessel_k(1.0 / 3, z) / (std::numbers::pi * std::numbers::sqrt3);
  return root / 2 *
         (std::cyl_bessel_j(1.0 / 3, z) - std::cyl_neumann(1.0 / 3, z) / std::numbers::sqrt3);
}

using Function = double (*)(double);

Function bessel_by_name(std::string_view kind) {
  if (kind == "airy_ai") return airy_ai_of;
  if (kind == "bessel_j0") return [](double x) { return ::j0(x); };
  if (kind == "bessel_j1") return [](double x) { return ::j1(x); };
  if (kind == "bessel_y0") return [](double x) { return x < 0 ? kNan : ::y0(x); };
  if (kind == "bessel_y1") return [](double x) { return x < 0 ? kNan : ::y1(x); };
  if (kind == "modified_bessel_k0") return [](double x) { return scaled_k(0, x) * std::exp(-x); };
  if (kind == "modified_bessel_k1") return [](double x) { return scaled_k(1, x) * std::exp(-x); };
  if (kind == "scaled_modified_bessel_k0") return [](double x) { return scaled_k(0, x); };
  if (kind == "scaled_modified_bessel_k1") return [](double x) { return scaled_k(1, x); };
  if (kind == "spherical_bessel_j0") {
    return [](double x) { return std::isinf(x) ? 0.0 : x == 0 ? 1.0 : std::sin(x) / x; };
  }
  return nullptr;
}

// Polynomials by their recurrence p[k + 1] = (a x + b) p[k] - c p[k - 1].
struct Recurrence {
  double first_scale, first_shift;  // p[1] = first_scale x + first_shift
  struct Step {
    double a, b, c;
  };
  Step (*step)(double k);
};

struct Named {
  std::string_view name;
  Recurrence rule;
};

constexpr Recurrence::Step chebyshev(double) { return {2, 0, 1}; }
constexpr Recurrence::Step shifted(double) { return {4, -2, 1}; }

constexpr Named kPolynomials[] = {
    {"chebyshev_polynomial_t", {1, 0, chebyshev}},
    {"chebyshev_polynomial_u", {2, 0, chebyshev}},
    {"chebyshev_polynomial_v", {2, -1, chebyshev}},
    {"chebyshev_polynomial_w", {2, 1, chebyshev}},
    {"shifted_chebyshev_polynomial_t", {2, -1, shifted}},
    {"shifted_chebyshev_polynomial_u", {4, -2, shifted}},
    {"shifted_chebyshev_polynomial_v", {4, -3, shifted}},
    {"shifted_chebyshev_polynomial_w", {4, -1, shifted}},
    {"hermite_polynomial_h", {2, 0, [](double k) -> Recurrence::Step { return {2, 0, 2 * k}; }}},
    {"hermite_polynomial_he", {1, 0, [](double k) -> Recurrence::Step { return {1, 0, k}; }}},
    {"laguerre_polynomial_l",
     {-1, 1,
      [](double k) -> Recurrence::Step {
        return {-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)};
      }}},
    {"legendre_polynomial_p",
     {1, 0, [](double k) -> Recurrence::Step { return {(2 * k + 1) / (k + 1), 0, k / (k + 1)}; }}},
};

double value_of(const Recurrence& rule, double x, double degree) {
  // The degree is cut to a whole number; a negative one gives 0.
  if (!(degree >= 0)) return std::isnan(degree) ? kNan : std::trunc(degree) == 0 ? 1 : 0;
  const auto n = static_cast<int64_t>(std::min(degree, 1e6));
  double before = 1, now = rule.first_scale * x + rule.first_shift;
  if (n == 0) return 1;
  for (int64_t k = 1; k < n && std::isfinite(now); ++k) {
    const Recurrence::Step s = rule.step(static_cast<double>(k));
    const double next = (s.a * x + s.b) * now - s.c * before;
    before = now;
    now = next;
  }
  return now;
}

}  // namespace

Tensor _special_bessel(const Tensor& self, const std::string& kind) {
  const Function fn = bessel_by_name(kind);
  WEFT_CHECK_VALUE(fn != nullptr, "_special_bessel: expected a function's name, got ", kind);
  return mapped(kind.c_str(), self, fn);
}

Tensor _special_polynomial(const Tensor& x, const Tensor& n, const std::string& kind) {
  for (const Named& one : kPolynomials) {
    if (one.name != kind) continue;
    const DType dtype = special_dtype(kind.c_str(), common_dtype(x, n));
    return mapped_pairs<double>(kind.c_str(), x, n, dtype, [&](double value, double degree) {
      return value_of(one.rule, value, degree);
    });
  }
  WEFT_CHECK_VALUE(false, "_special_polynomial: expected a polynomial's name, got ", kind);
  return {};
}

}  // namespace weft::native
