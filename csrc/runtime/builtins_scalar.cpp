// Builtins on numbers whose type is known only when they run, and conversions.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "builtin_bodies.h"
#include "runtime/arithmetic.h"
#include "runtime/builtins_support.h"

namespace weft::builtins {

std::complex<double> no_complex(const char* op) {
  fail(ErrorKind::Type, str(op, ": expected a real number, got a complex one"));
}

double real_part(const char* op, const Scalar& a) {
  if (a.is_complex()) no_complex(op);
  return a.to_double();
}

std::complex<double> make_complex(const Scalar& x, const Scalar& y) {
  const std::complex<double> a = x.to_complex(), b = y.to_complex();
  return {a.real() - b.imag(), a.imag() + b.real()};
}

// ---- arithmetic: ints with ints, else floats, else complex numbers ----

namespace {

template <class Int, class Real, class Imaginary>
Scalar combine(const Scalar& a, const Scalar& b, Int ints, Real reals, Imaginary complexes) {
  if (a.is_complex() || b.is_complex()) {
    return Scalar(complexes(a.to_complex(), b.to_complex()));
  }
  if (a.is_floating() || b.is_floating()) return Scalar(reals(a.to_double(), b.to_double()));
  return Scalar(ints(a.to_int(), b.to_int()));
}

std::partial_ordering order(const char* sign, const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) no_complex(sign);
  if (a.is_integral()) {
    return b.is_integral() ? a.to_int() <=> b.to_int() : compare(a.to_int(), b.to_double());
  }
  return b.is_integral() ? 0 <=> compare(b.to_int(), a.to_double())
                         : a.to_double() <=> b.to_double();
}

Scalar whole(const Scalar& a, const char* op, double (*function)(double)) {
  return a.is_integral() ? Scalar(a.to_int()) : Scalar(to_int(function(real_part(op, a))));
}

}  // namespace

Scalar scalar_add(const Scalar& a, const Scalar& b) {
  return combine(a, b, checked_add, [](double x, double y) { return x + y; }, add_complex);
}
Scalar scalar_sub(const Scalar& a, const Scalar& b) {
  return combine(a, b, checked_sub, [](double x, double y) { return x - y; }, sub_complex);
}
Scalar scalar_mul(const Scalar& a, const Scalar& b) {
  return combine(a, b, checked_mul, [](double x, double y) { return x * y; }, mul_complex);
}
double scalar_div(const Scalar& a, const Scalar& b) {
  if (a.is_integral() && b.is_integral()) return divide(a.to_int(), b.to_int());
  return divide(real_part("div", a), real_part("div", b));
}
Scalar scalar_floordiv(const Scalar& a, const Scalar& b) {
  if (a.is_integral() && b.is_integral()) return floor_div(a.to_int(), b.to_int());
  return floor_div(real_part("floordiv", a), real_part("floordiv", b));
}
Scalar scalar_remainder(const Scalar& a, const Scalar& b) {
  if (a.is_integral() && b.is_integral()) return floor_mod(a.to_int(), b.to_int());
  return floor_mod(real_part("remainder", a), real_part("remainder", b));
}
double scalar_pow(const Scalar& a, const Scalar& b) {
  return power(real_part("pow", a), real_part("pow", b));
}
Scalar scalar_neg(const Scalar& a) {
  return a.is_integral() ? Scalar(checked_neg(a.to_int())) : -a;
}
Scalar scalar_abs(const Scalar& a) {
  if (a.is_complex()) return Scalar(absolute(a.to_complex()));
  return a.is_integral() ? Scalar(checked_abs(a.to_int())) : Scalar(std::fabs(a.to_double()));
}
Scalar scalar_min(const Scalar& a, const Scalar& b) { return order("min", b, a) < 0 ? b : a; }
Scalar scalar_max(const Scalar& a, const Scalar& b) { return order("max", b, a) > 0 ? b : a; }

bool scalar_lt(const Scalar& a, const Scalar& b) { return order("<", a, b) < 0; }
bool scalar_gt(const Scalar& a, const Scalar& b) { return order(">", a, b) > 0; }
bool scalar_le(const Scalar& a, const Scalar& b) { return order("<=", a, b) <= 0; }
bool scalar_ge(const Scalar& a, const Scalar& b) { return order(">=", a, b) >= 0; }
bool scalar_eq(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return a == b;
  return order("==", a, b) == 0;
}
bool scalar_ne(const Scalar& a, const Scalar& b) { return !scalar_eq(a, b); }

// ---- rounding and parts ----

Scalar scalar_floor(const Scalar& a) { return whole(a, "floor", std::floor); }
Scalar scalar_ceil(const Scalar& a) { return whole(a, "ceil", std::ceil); }
Scalar scalar_trunc(const Scalar& a) { return whole(a, "trunc", std::trunc); }
Scalar scalar_round(const Scalar& a) { return Scalar(std::nearbyint(real_part("round", a))); }

double round_digits(double a, int64_t ndigits) {
  if (!std::isfinite(a) || ndigits > 330) return a;
  if (ndigits < -330) return std::copysign(0.0, a);
  if (ndigits < 0) {
    // The decimal exponent form rounds exactly: so many digits before the point.
    std::array<char, 400> whole_digits;
    const int digits =
        std::snprintf(whole_digits.data(), whole_digits.size(), "%.0f", std::fabs(a));
    const int64_t significant = digits + ndigits;
    if (significant < 0) return std::copysign(0.0, a);
    if (significant == 0) {
      const double step = std::pow(10.0, static_cast<double>(-ndigits));
      return std::fabs(a) > step / 2 ? std::copysign(step, a) : std::copysign(0.0, a);
    }
    std::array<char, 400> text;
    std::snprintf(text.data(), text.size(), "%.*e", static_cast<int>(significant - 1), a);
    return std::strtod(text.data(), nullptr);
  }
  std::array<char, 800> text;
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(ndigits), a);
  return std::strtod(text.data(), nullptr);
}

double math_ldexp(double a, int64_t exponent) {
  constexpr int64_t enough = 5000;  // beyond it every float is 0 or too large
  const double result = std::ldexp(a, static_cast<int>(std::clamp(exponent, -enough, enough)));
  if (std::isinf(result) && std::isfinite(a)) fail_range();
  return result;
}
std::tuple<double, int64_t> math_frexp(double a) {
  int exponent = 0;
  const double mantissa = std::frexp(a, &exponent);
  return {mantissa, std::isfinite(a) ? exponent : 0};
}
std::tuple<double, double> math_modf(double a) {
  double whole_part = 0;
  const double fraction = std::modf(a, &whole_part);
  return {fraction, whole_part};
}
bool math_isclose(double a, double b, double rel_tol, double abs_tol) {
  WEFT_CHECK_VALUE(!(rel_tol < 0) && !(abs_tol < 0),
                   "isclose: expected tolerances of at least 0, got ", rel_tol, " and ", abs_tol);
  if (a == b) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  const double distance = std::fabs(b - a);
  return distance <= std::fabs(rel_tol * b) || distance <= std::fabs(rel_tol * a) ||
         distance <= abs_tol;
}

int64_t range_length(int64_t low, int64_t high, int64_t step) {
  WEFT_CHECK_VALUE(step != 0,
                   "range() arg 3 must not be zero: expected a step other than 0, got 0");
  if (step > 0 ? low >= high : low <= high) return 0;
  // The distance fits an unsigned number even where it does not fit an int.
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(high) - static_cast<uint64_t>(low)
                                     : static_cast<uint64_t>(low) - static_cast<uint64_t>(high);
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t length = (distance - 1) / stride + 1;
  WEFT_CHECK_AS(Overflow, length <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
                "range: expected a length of 64 bits, got range(", low, ", ", high, ", ", step,
                ")");
  return static_cast<int64_t>(length);
}

// ---- from and to text ----

namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The digits of a number as Python reads it: without blanks around, a plus sign, or underscores
// between digits. Empty where an underscore stands elsewhere.
std::string plain_number(const std::string& text) {
  size_t first = 0, last = text.size();
  while (first < last && is_blank(text[first])) ++first;
  while (last > first && is_blank(text[last - 1])) --last;
  std::string result;
  const auto digit = [&](size_t at) {
    return at >= first && at < last && text[at] >= '0' && text[at] <= '9';
  };
  for (size_t i = first; i < last; ++i) {
    if (text[i] != '_') {
      result += text[i];
    } else if (i == first || !digit(i - 1) || !digit(i + 1)) {
      return "";
    }
  }
  if (result.starts_with('+') && !result.starts_with("+-")) result.erase(0, 1);
  return result;
}

std::string in_base(int64_t value, const char* prefix, int base) {
  std::array<char, 72> digits;
  const uint64_t size =
      value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char* end = std::to_chars(digits.data(), digits.data() + digits.size(), size, base).ptr;
  return (value < 0 ? "-" : "") + std::string(prefix) + std::string(digits.data(), end);
}

}  // namespace

int64_t scalar_to_int(const Scalar& a) {
  return a.is_integral() ? a.to_int() : to_int(real_part("int", a));
}

int64_t parse_int(const std::string& text) {
  const std::string number = plain_number(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool whole_text = end == number.data() + number.size() && !number.empty();
  WEFT_CHECK_AS(Overflow, error != std::errc::result_out_of_range || !whole_text,
                "int: expected a number of 64 bits, got '", text, "'");
  WEFT_CHECK_VALUE(error == std::errc() && whole_text,
                   "invalid literal for int() with base 10: expected decimal digits, got '", text,
                   "'");
  return value;
}

double parse_float(const std::string& text) {
  const std::string number = plain_number(text);
  const char *first = number.data(), *last = first + number.size();
  double value = 0;
  auto [end, error] = std::from_chars(first, last, value);
  if (error == std::errc::result_out_of_range) value = std::strtod(number.c_str(), nullptr);
  // from_chars also reads nan(...), Python does not.
  const bool good = !number.empty() && end == last && error != std::errc::invalid_argument &&
                    number.find('(') == std::string::npos;
  WEFT_CHECK_VALUE(good, "could not convert string to float: expected a number, got '", text, "'");
  return value;
}

std::string int_hex(int64_t a) { return in_base(a, "0x", 16); }
std::string int_oct(int64_t a) { return in_base(a, "0o", 8); }
std::string int_bin(int64_t a) { return in_base(a, "0b", 2); }

// ---- tensors of one element ----

int64_t tensor_to_int(const Tensor& tensor) { return scalar_to_int(tensor.item()); }
double tensor_to_float(const Tensor& tensor) { return real_part("float", tensor.item()); }
bool tensor_to_bool(const Tensor& tensor) {
  WEFT_CHECK(tensor.numel() == 1, "bool: expected a tensor of one element, got shape ",
             AsTuple{tensor.sizes()});
  return tensor.item().to_bool();
}

namespace {
// Where a program uses a tensor as a number without saying so.
Scalar implicit(const char* type, const Tensor& tensor) {
  WEFT_CHECK(tensor.dim() == 0, type,
             ": expected a 0-d tensor where a number is wanted, got shape ",
             AsTuple{tensor.sizes()});
  return tensor.item();
}
}  // namespace

int64_t implicit_int(const Tensor& tensor) {
  WEFT_CHECK(is_integral(tensor.dtype()),
             "int: expected a tensor of an integral dtype where an "
             "int is wanted, got ",
             tensor.dtype());
  return implicit("int", tensor).to_int();
}
double implicit_float(const Tensor& tensor) {
  WEFT_CHECK(!is_complex(tensor.dtype()),
             "float: expected a tensor of a real dtype where a float is wanted, got ",
             tensor.dtype());
  return implicit("float", tensor).to_double();
}
std::complex<double> implicit_complex(const Tensor& tensor) {
  return implicit("complex", tensor).to_complex();
}
Scalar implicit_scalar(const Tensor& tensor) { return implicit("Scalar", tensor); }

}  // namespace weft::builtins
