// Scalar: a Python number (bool, int, float or complex) on its way into an operator.
#pragma once

#include <complex>
#include <cstdint>
#include <ostream>

#include "core/dtype.h"

namespace weft {

class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool value) : category_(DTypeCategory::Bool) { value_.integer = value; }
  Scalar(int value) : Scalar(static_cast<int64_t>(value)) {}
  Scalar(int64_t value) : category_(DTypeCategory::Integral) { value_.integer = value; }
  Scalar(double value) : category_(DTypeCategory::Floating) { value_.real = value; }
  Scalar(std::complex<double> value) : category_(DTypeCategory::Complex), imag_(value.imag()) {
    value_.real = value.real();
  }

  DTypeCategory category() const noexcept { return category_; }
  bool is_integral() const noexcept { return category_ <= DTypeCategory::Integral; }
  bool is_floating() const noexcept { return category_ == DTypeCategory::Floating; }
  bool is_complex() const noexcept { return category_ == DTypeCategory::Complex; }

  // Conversions follow C++ casts; to_int truncates (and saturates; NaN gives 0), a complex value
  // drops to its real part.
  bool to_bool() const {
    return is_integral() ? value_.integer != 0 : value_.real != 0 || imag_ != 0;
  }
  int64_t to_int() const;
  double to_double() const {
    return is_integral() ? static_cast<double>(value_.integer) : value_.real;
  }
  std::complex<double> to_complex() const { return {to_double(), imag_}; }

  // The dtype a tensor made of this scalar has: bool, int64, the default float or its complex.
  DType dtype() const;
  // Writes the value as one element of `dtype` at `out` (value checks are the caller's duty).
  void store(DType dtype, void* out) const;

  // The value that an element of a floating dtype has.
  Scalar rounded(DType dtype) const;

  Scalar operator-() const;
  friend bool operator==(const Scalar& a, const Scalar& b) {
    return a.to_complex() == b.to_complex();
  }

 private:
  DTypeCategory category_;
  double imag_ = 0;
  union {
    int64_t integer;
    double real;
  } value_;
};

std::ostream& operator<<(std::ostream& out, const Scalar& scalar);

}  // namespace weft
