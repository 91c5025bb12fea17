#include "runtime/exact_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace weft::builtins {
namespace {

// A float and what its rounding lost: together they are exact.
struct Exact {
  double sum, lost;
};

Exact add(double a, double b) {
  if (std::fabs(a) < std::fabs(b)) std::swap(a, b);
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Exact square(double a) {
  const double product = a * a;
  return {product, std::fma(a, a, -product)};
}

// The sum of parts that share no digits, the smallest first.
double rounded(std::vector<double>& parts) {
  if (parts.empty()) return 0.0;
  Exact total{parts.back(), 0.0};
  parts.pop_back();
  while (!parts.empty() && total.lost == 0) {
    total = add(total.sum, parts.back());
    parts.pop_back();
  }
  // Halfway between two floats the even one was taken; a further part of the same sign says that
  // the other one is nearer.
  if (!parts.empty() && (total.lost < 0) == (parts.back() < 0) && total.lost != 0) {
    const double twice = 2.0 * total.lost, other = total.sum + twice;
    if (other - total.sum == twice) return other;
  }
  return total.sum;
}

}  // namespace

double exact_sum(std::span<const double> numbers) {
  std::vector<double> parts;  // which share no digits, the smallest first
  double infinite = 0.0, special = 0.0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) {
      if (std::isinf(number)) infinite += number;
      special += number;
      parts.clear();
      continue;
    }
    double rest = number;
    size_t kept = 0;
    for (const double part : parts) {
      const Exact both = add(rest, part);
      if (both.lost != 0) parts[kept++] = both.lost;
      rest = both.sum;
    }
    parts.resize(kept);
    if (rest == 0) continue;
    WEFT_CHECK_AS(Overflow, std::isfinite(rest),
                  "fsum: expected sums that fit a float, got one that is too large");
    parts.push_back(rest);
  }
  if (special == 0) return rounded(parts);
  WEFT_CHECK_VALUE(!std::isnan(infinite),
                   "fsum: expected infinities of one sign, got inf and -inf");
  return special;
}

double vector_length(std::span<double> parts) {
  double largest = 0.0;
  bool has_nan = false;
  for (double& part : parts) {
    part = std::fabs(part);
    has_nan |= std::isnan(part);
    largest = std::max(largest, part);
  }
  if (std::isinf(largest)) return largest;
  if (has_nan) return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0 || parts.size() == 1) return largest;
  // By a power of two, so that no square is too large or lost: the largest part is below 1.
  int exponent = 0;
  std::frexp(largest, &exponent);
  Exact total{0.0, 0.0};
  for (const double part : parts) {
    const Exact squared = square(std::ldexp(part, -exponent));
    const Exact next = add(total.sum, squared.sum);
    total = {next.sum, total.lost + (next.lost + squared.lost)};
  }
  const double root = std::sqrt(total.sum + total.lost);
  const Exact back = square(root);  // one step of Newton's method with all digits
  const double missing = (total.sum - back.sum) + (total.lost - back.lost);
  return std::ldexp(root + missing / (2.0 * root), exponent);
}

}  // namespace weft::builtins
