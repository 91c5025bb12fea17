// Scalars: storing them as elements, printing them as Python does.
#include "core/scalar.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

namespace weft {
namespace {

// A cast that is defined for every double: saturates, NaN gives 0.
int64_t to_int64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value <= -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(value);
}

template <class T>
T convert(const Scalar& scalar) {
  if constexpr (std::is_same_v<T, bool>) {
    return scalar.to_bool();
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    const double real = scalar.to_double();
    if (!scalar.is_integral() && real >= 0x1p63) {
      return real >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(real);
    }
    return static_cast<uint64_t>(scalar.to_int());
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(scalar.to_int());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(scalar.to_double());
  } else if constexpr (is_small_float<T>) {
    return T(static_cast<float>(scalar.to_double()));
  } else {
    return T(scalar.to_complex());
  }
}

// Python's repr of a float: shortest digits, exponent outside [1e-4, 1e16).
std::string repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  const std::string scientific(text, end);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (value != 0 && (exponent < -4 || exponent >= 16)) return scientific;
  char fixed[400];
  end = std::to_chars(fixed, fixed + sizeof(fixed), value, std::chars_format::fixed).ptr;
  std::string digits(fixed, end);
  if (digits.find('.') == std::string::npos) digits += ".0";
  return digits;
}

// A part of a complex number: Python leaves the ".0" out.
std::string repr_part(double value) {
  std::string text = repr(value);
  if (text.size() > 2 && text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string repr(std::complex<double> value) {
  const std::string imag = repr_part(value.imag()) + "j";
  if (value.real() == 0 && !std::signbit(value.real())) return imag;
  const char* sign = imag[0] == '-' ? "" : "+";
  return "(" + repr_part(value.real()) + sign + imag + ")";
}

}  // namespace

int64_t Scalar::to_int() const { return is_integral() ? value_.integer : to_int64(value_.real); }

DType Scalar::dtype() const {
  switch (category_) {
    case DTypeCategory::Bool:
      return DType::Bool;
    case DTypeCategory::Integral:
      return DType::I64;
    case DTypeCategory::Floating:
      return default_dtype();
    case DTypeCategory::Complex:
      return complex_of(default_dtype());
  }
  __builtin_unreachable();
}

void Scalar::store(DType dtype, void* out) const {
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    const T value = convert<T>(*this);
    std::memcpy(out, &value, sizeof(T));
  });
}

Scalar Scalar::rounded(DType dtype) const {
  return dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_small_float<T>) {
      return Scalar(double{static_cast<float>(convert<T>(*this))});
    } else if constexpr (!is_computed<T>) {
      const T value = convert<T>(*this);
      return Scalar(std::complex<double>(value.real(), value.imag()));
    }
    return *this;
  });
}

Scalar Scalar::operator-() const {
  if (is_integral()) return Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(value_.integer)));
  if (is_floating()) return Scalar(-value_.real);
  return Scalar(-to_complex());
}

std::ostream& operator<<(std::ostream& out, const Scalar& scalar) {
  switch (scalar.category()) {
    case DTypeCategory::Bool:
      return out << (scalar.to_bool() ? "True" : "False");
    case DTypeCategory::Integral:
      return out << scalar.to_int();
    case DTypeCategory::Floating:
      return out << repr(scalar.to_double());
    case DTypeCategory::Complex:
      return out << repr(scalar.to_complex());
  }
  __builtin_unreachable();
}

}  // namespace weft
