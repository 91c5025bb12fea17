// Arithmetic of numbers as Python has it: ints that do not fit 64 bits, divisions by zero and
// arguments outside of a domain raise.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <complex>
#include <cstdint>
#include <limits>
#include <numbers>
#include <tuple>

#include "core/error.h"

namespace weft::builtins {

[[noreturn]] void fail_overflow(int64_t a, const char* sign, int64_t b);
[[noreturn]] void fail_zero_division();
[[noreturn]] void fail_domain();
[[noreturn]] void fail_range();

// ---- conversions ----

template <class T>
constexpr double to_double(T value) {
  return static_cast<double>(value);
}
template <class T>
std::complex<double> to_complex(T value) {
  return {to_double(value), 0.0};
}
int64_t to_int(double value);  // towards zero; NaN and infinities raise

// ---- ints ----

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) [[unlikely]]
    fail_overflow(a, "+", b);
  return result;
}
inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) [[unlikely]]
    fail_overflow(a, "-", b);
  return result;
}
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) [[unlikely]]
    fail_overflow(a, "*", b);
  return result;
}
inline int64_t checked_neg(int64_t a) { return checked_sub(0, a); }
inline int64_t checked_abs(int64_t a) { return a < 0 ? checked_neg(a) : a; }

// The quotient of C++; -1 apart, because the smallest int has no opposite.
inline int64_t truncating_div(int64_t a, int64_t b) {
  if (b == 0) [[unlikely]]
    fail_zero_division();
  return b == -1 ? checked_neg(a) : a / b;
}
inline int64_t floor_div(int64_t a, int64_t b) {
  const int64_t quotient = truncating_div(a, b);
  return (a < 0) != (b < 0) && quotient * b != a ? quotient - 1 : quotient;
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) [[unlikely]]
    fail_zero_division();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
int64_t power(int64_t base, int64_t exponent);
int64_t shift_left(int64_t a, int64_t b);
int64_t shift_right(int64_t a, int64_t b);
int64_t math_gcd(int64_t a, int64_t b);
int64_t math_lcm(int64_t a, int64_t b);
int64_t math_isqrt(int64_t a);
int64_t factorial(int64_t a);
int64_t math_comb(int64_t n, int64_t k);
int64_t math_perm(int64_t n, int64_t k);

// ---- floats ----

inline double divide(double a, double b) {
  if (b == 0) [[unlikely]]
    fail_zero_division();
  return a / b;
}
double divide(int64_t a, int64_t b);
double floor_div(double a, double b);
double floor_mod(double a, double b);
double power(double base, double exponent);

// The first of equal ones, and of a NaN and a number the first: what Python's min and max do.
inline double py_min(double a, double b) { return b < a ? b : a; }
inline double py_max(double a, double b) { return b > a ? b : a; }

// The exact order of an int and a float.
std::partial_ordering compare(int64_t a, double b);

inline std::tuple<int64_t, int64_t> div_and_mod(int64_t a, int64_t b) {
  return {floor_div(a, b), floor_mod(a, b)};
}
inline std::tuple<double, double> div_and_mod(double a, double b) {
  return {floor_div(a, b), floor_mod(a, b)};
}

// Results of functions: a NaN that no argument brought means an argument outside of the domain. An
// infinity from a finite argument means that the result grew too large, or that the argument was
// a pole.
inline double grows(double x, double result) {
  if (!std::isfinite(result) && std::isfinite(x)) [[unlikely]]
    std::isnan(result) ? fail_domain() : fail_range();
  if (std::isnan(result) && !std::isnan(x)) [[unlikely]]
    fail_domain();
  return result;
}
inline double pole(double x, double result) {
  if (!std::isfinite(result) && std::isfinite(x)) [[unlikely]]
    fail_domain();
  if (std::isnan(result) && !std::isnan(x)) [[unlikely]]
    fail_domain();
  return result;
}
inline double as_is(double, double result) { return result; }
// The gamma function has poles at 0 and the negative whole numbers.
inline double gamma(double x, double result) {
  if (x == std::floor(x) && x <= 0) [[unlikely]]
    fail_domain();
  return grows(x, result);
}
// Its logarithm has the same poles, and a value at minus infinity.
inline double log_gamma(double x, double result) {
  return std::isinf(x) ? result : gamma(x, result);
}
inline double to_degrees(double x) { return x * (180.0 / std::numbers::pi); }
inline double to_radians(double x) { return x * (std::numbers::pi / 180.0); }

double math_fmod(double a, double b);
double math_remainder(double a, double b);
double math_hypot(double a, double b);
double math_ulp(double a);
double log_base(double a, double base);
double angle(double a);
std::complex<double> polar(double length, double angle);

// ---- complex numbers ----

using Complex = std::complex<double>;
inline Complex add_complex(Complex a, Complex b) { return a + b; }
inline Complex sub_complex(Complex a, Complex b) { return a - b; }
Complex mul_complex(Complex a, Complex b);
Complex divide_complex(Complex a, Complex b);
Complex power_complex(Complex a, Complex b);
double absolute(Complex a);
// The functions of cmath: domain errors as for reals.
#define WEFT_COMPLEX_FUNCTIONS(X) \
  X(sqrt)                         \
  X(exp)                          \
  X(log)                          \
  X(log10)                        \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh)
#define X(name) Complex complex_##name(Complex a);
WEFT_COMPLEX_FUNCTIONS(X)
#undef X

}  // namespace weft::builtins
