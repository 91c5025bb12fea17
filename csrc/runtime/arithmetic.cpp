#include "runtime/arithmetic.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "runtime/exact_sums.h"

namespace weft::builtins {

void fail_overflow(int64_t a, const char* sign, int64_t b) {
  fail(ErrorKind::Overflow, str("int: expected a result of 64 bits, got ", a, " ", sign, " ", b));
}
void fail_zero_division() {
  fail(ErrorKind::ZeroDivision, "division by zero: expected a divisor other than 0, got 0");
}
void fail_domain() {
  fail(ErrorKind::Value, "math domain error: expected an argument inside the function's domain");
}
void fail_range() {
  fail(ErrorKind::Overflow, "math range error: expected a result that fits a float");
}

int64_t to_int(double value) {
  WEFT_CHECK_VALUE(!std::isnan(value), "int: expected a number, got nan");
  WEFT_CHECK_AS(Overflow, value >= -0x1p63 && value < 0x1p63,
                "int: expected a result of 64 bits, got ", value);
  return static_cast<int64_t>(value);
}

// ---- ints ----

int64_t power(int64_t base, int64_t exponent) {
  WEFT_CHECK_VALUE(exponent >= 0, "pow: expected an exponent of at least 0, got ", exponent);
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  int64_t result = 1, square = base;
  for (int64_t left = exponent;;) {
    bool overflow = false;
    if (left & 1) overflow = __builtin_mul_overflow(result, square, &result);
    left >>= 1;
    if (left == 0 && !overflow) return result;
    if (overflow || __builtin_mul_overflow(square, square, &square)) {
      fail_overflow(base, "**", exponent);
    }
  }
}

int64_t shift_left(int64_t a, int64_t b) {
  WEFT_CHECK_VALUE(b >= 0, "negative shift count: expected a count of at least 0, got ", b);
  if (a == 0) return 0;
  if (b > 63 || (a << b) >> b != a) fail_overflow(a, "<<", b);
  return a << b;
}

int64_t shift_right(int64_t a, int64_t b) {
  WEFT_CHECK_VALUE(b >= 0, "negative shift count: expected a count of at least 0, got ", b);
  return a >> std::min<int64_t>(b, 63);
}

namespace {
// std::gcd has no answer for the smallest int; unsigned numbers do.
uint64_t magnitude(int64_t a) {
  return a < 0 ? uint64_t{0} - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
}
int64_t fit(uint64_t value, int64_t a, const char* name, int64_t b) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    fail_overflow(a, name, b);
  }
  return static_cast<int64_t>(value);
}
}  // namespace

int64_t math_gcd(int64_t a, int64_t b) {
  return fit(std::gcd(magnitude(a), magnitude(b)), a, "gcd", b);
}

int64_t math_lcm(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  const uint64_t part = magnitude(a) / std::gcd(magnitude(a), magnitude(b));
  uint64_t result;
  if (__builtin_mul_overflow(part, magnitude(b), &result)) fail_overflow(a, "lcm", b);
  return fit(result, a, "lcm", b);
}

int64_t math_isqrt(int64_t a) {
  WEFT_CHECK_VALUE(a >= 0, "isqrt: expected a number of at least 0, got ", a);
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(a)));
  // The root of a rounded number may be off by one. Its square may not fit.
  constexpr int64_t largest = 3037000499;
  root = std::min(root, largest);
  while (root * root > a) --root;
  while (root < largest && (root + 1) * (root + 1) <= a) ++root;
  return root;
}

int64_t factorial(int64_t a) {
  WEFT_CHECK_VALUE(a >= 0, "factorial: expected a number of at least 0, got ", a);
  WEFT_CHECK_AS(Overflow, a <= 20, "factorial: expected a result of 64 bits, got factorial(", a,
                ")");
  int64_t result = 1;
  for (int64_t i = 2; i <= a; ++i) result *= i;
  return result;
}

namespace {
void check_choice(const char* name, int64_t n, int64_t k) {
  WEFT_CHECK_VALUE(n >= 0 && k >= 0, name, ": expected numbers of at least 0, got ", n, " and ", k);
}
}  // namespace

int64_t math_comb(int64_t n, int64_t k) {
  check_choice("comb", n, k);
  if (k > n) return 0;
  const int64_t steps = std::min(k, n - k);
  int64_t result = 1;
  for (int64_t i = 1; i <= steps; ++i) {
    // Divided before it is multiplied: result * (n - steps + i) / i fits where the product may not.
    const int64_t common = std::gcd(result, i);
    result = checked_mul(result / common, (n - steps + i) / (i / common));
  }
  return result;
}

int64_t math_perm(int64_t n, int64_t k) {
  check_choice("perm", n, k);
  if (k > n) return 0;
  int64_t result = 1;
  for (int64_t i = 0; i < k; ++i) result = checked_mul(result, n - i);
  return result;
}

// ---- floats ----

double divide(int64_t a, int64_t b) {
  if (b == 0) fail_zero_division();
  const auto exact = [](int64_t value) {
    constexpr int64_t most = int64_t{1} << 53;
    return value >= -most && value <= most;
  };
  if (exact(a) && exact(b)) {
    return static_cast<double>(a) / static_cast<double>(b);
  }
  // Both fit a long double: the quotient is rounded twice at most, not three times.
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

// Python's: the quotient follows from the remainder, so that a == floor_div * b + floor_mod holds
// as nearly as floats can.
double floor_mod(double a, double b) {
  if (b == 0) fail_zero_division();
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

double floor_div(double a, double b) {
  if (b == 0) fail_zero_division();
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1.0;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

double power(double base, double exponent) {
  // Zero to the power of minus infinity is a limit, infinity, in Python too.
  if (base == 0 && exponent < 0 && std::isfinite(exponent)) {
    fail(ErrorKind::ZeroDivision,
         str("pow: expected a base other than 0 for a negative exponent, got ", base, " ** ",
             exponent));
  }
  const double result = std::pow(base, exponent);
  if (std::isfinite(base) && std::isfinite(exponent)) {
    WEFT_CHECK_VALUE(!std::isnan(result), "pow: expected a real result, got ", base, " ** ",
                     exponent);
    if (std::isinf(result)) fail_range();
  }
  return result;
}

std::partial_ordering compare(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 0x1p63) return std::partial_ordering::less;
  if (b < -0x1p63) return std::partial_ordering::greater;
  const auto whole = static_cast<int64_t>(b);
  if (a != whole) return a <=> whole;
  return 0.0 <=> b - static_cast<double>(whole);
}

double math_fmod(double a, double b) {
  if (std::isinf(a) && !std::isnan(b)) fail_domain();
  return grows(a + b, std::fmod(a, b));
}

double math_remainder(double a, double b) {
  const double result = std::remainder(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) fail_domain();
  return result;
}

double math_hypot(double a, double b) {
  std::array<double, 2> parts = {a, b};
  return vector_length(parts);
}

double math_ulp(double a) {
  if (!std::isfinite(a)) return std::fabs(a);
  const double size = std::fabs(a), next = std::nextafter(size, HUGE_VAL);
  return std::isinf(next) ? size - std::nextafter(size, 0.0) : next - size;
}

double log_base(double a, double base) {
  return divide(pole(a, std::log(a)), pole(base, std::log(base)));
}

double angle(double a) {
  if (std::isnan(a)) return a;
  return a < 0 ? std::numbers::pi : 0.0;
}

Complex polar(double length, double angle) {
  if (length == 0 && !std::isfinite(angle)) return 0.0;
  if (std::isinf(angle) && !std::isnan(length)) fail_domain();
  // Products with the sine and cosine would be NaN here; C99's annex G has these limits.
  if (std::isinf(length) && std::isnan(angle)) return {std::fabs(length), angle};
  if (angle == 0) return {length, std::copysign(1.0, length) * angle};
  return {length * std::cos(angle), length * std::sin(angle)};
}

// ---- complex numbers ----

// By the definition: the library's product looks for infinities, Python's does not.
Complex mul_complex(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Complex divide_complex(Complex a, Complex b) {
  if (b == Complex(0)) fail_zero_division();
  // Scaled by the larger part of the divisor (Smith's method), as Python does.
  if (std::fabs(b.real()) >= std::fabs(b.imag())) {
    const double ratio = b.imag() / b.real(), scale = b.real() + b.imag() * ratio;
    return {(a.real() + a.imag() * ratio) / scale, (a.imag() - a.real() * ratio) / scale};
  }
  const double ratio = b.real() / b.imag(), scale = b.real() * ratio + b.imag();
  return {(a.real() * ratio + a.imag()) / scale, (a.imag() * ratio - a.real()) / scale};
}

namespace {

// By squares, as Python does for exponents that are small integers.
Complex integer_power(Complex a, int n) {
  Complex result = 1.0;
  for (unsigned left = static_cast<unsigned>(std::abs(n)); left != 0; left >>= 1) {
    if (left & 1) result = mul_complex(result, a);
    a = mul_complex(a, a);
  }
  return n < 0 ? divide_complex(Complex(1.0), result) : result;
}

}  // namespace

Complex power_complex(Complex a, Complex b) {
  if (b == Complex(0)) return 1.0;
  if (a == Complex(0)) {
    if (b.imag() != 0 || b.real() < 0) {
      fail(ErrorKind::ZeroDivision,
           "pow: expected a base other than 0 for a negative or complex exponent, got 0");
    }
    return 0.0;
  }
  constexpr double kMostSquared = 100;
  if (b.imag() == 0 && std::trunc(b.real()) == b.real() && std::fabs(b.real()) <= kMostSquared) {
    return integer_power(a, static_cast<int>(b.real()));
  }
  const double length = std::abs(a), phase = std::arg(a);
  double scale = std::pow(length, b.real()), turn = phase * b.real();
  if (b.imag() != 0) {
    scale *= std::exp(-phase * b.imag());
    turn += b.imag() * std::log(length);
  }
  const Complex result(scale * std::cos(turn), scale * std::sin(turn));
  if (!std::isfinite(result.real()) || !std::isfinite(result.imag())) fail_range();
  return result;
}

double absolute(Complex a) {
  const double result = std::hypot(a.real(), a.imag());
  if (std::isinf(result) && std::isfinite(a.real()) && std::isfinite(a.imag())) fail_range();
  return result;
}

namespace {
bool is_finite(Complex a) { return std::isfinite(a.real()) && std::isfinite(a.imag()); }

// An infinity from finite parts: a pole of these, otherwise a result too large.
bool has_poles(std::string_view name) {
  return name == "log" || name == "log10" || name == "atan" || name == "atanh";
}

Complex checked_complex(std::string_view name, Complex a, Complex result) {
  if (is_finite(a) && !is_finite(result)) has_poles(name) ? fail_domain() : fail_range();
  return result;
}
}  // namespace

namespace {
// Near 0 these functions are their first terms. The C library's own formulas may lose subnormal
// parts there.
bool is_tiny(Complex a) { return std::fabs(a.real()) < 1e-110 && std::fabs(a.imag()) < 1e-110; }

bool is_own_first_term(std::string_view name) {
  constexpr std::string_view names[] = {"sin",  "tan",  "asin",  "atan",
                                        "sinh", "tanh", "asinh", "atanh"};
  return std::ranges::find(names, name) != std::end(names);
}

template <class Fn>
Complex complex_function(std::string_view name, Complex a, Fn&& library) {
  if (is_tiny(a)) {
    if (is_own_first_term(name)) return a;
    if (name == "acos") return {std::acos(a.real()), -a.imag()};
    if (name == "acosh") {
      return {std::fabs(a.imag()), std::copysign(std::acos(a.real()), a.imag())};
    }
  }
  return checked_complex(name, a, library(a));
}
}  // namespace

#define X(name)                                                                \
  Complex complex_##name(Complex a) {                                          \
    return complex_function(#name, a, [](Complex z) { return std::name(z); }); \
  }
WEFT_COMPLEX_FUNCTIONS(X)
#undef X

}  // namespace weft::builtins
