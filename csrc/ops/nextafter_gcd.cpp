// Numbers as they are stored, and divisors of whole ones: nextafter, frexp, gcd, lcm.
#include <bit>
#include <cmath>
#include <numeric>

#include "native_special.h"
#include "ops/special_map.h"

namespace weft::native {
namespace {

DType floating_pair(const char* op, const Tensor& a, const Tensor& b) {
  const DType kind = common_dtype(a, b);
  WEFT_CHECK_AS(NotImplemented, is_floating(kind), op, ": expected a floating dtype, got ", kind);
  return kind;
}

// One step in the bits of a 16-bit float: neighbours have neighbouring bits.
template <class T>
T small_nextafter(T from, T to) {
  const auto a = static_cast<float>(from), b = static_cast<float>(to);
  if (std::isnan(a) || std::isnan(b)) return T(a + b);
  if (a == b) return to;
  const auto bits = std::bit_cast<uint16_t>(from);
  if (a == 0) return std::bit_cast<T>(static_cast<uint16_t>(b > 0 ? 1 : 0x8001));
  const bool away = (a > 0) == (b > a);
  return std::bit_cast<T>(static_cast<uint16_t>(away ? bits + 1 : bits - 1));
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

int64_t gcd_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::gcd(magnitude(a), magnitude(b)));
}

int64_t lcm_of(int64_t a, int64_t b) {
  const uint64_t divisor = std::gcd(magnitude(a), magnitude(b));
  if (divisor == 0) return 0;
  const uint64_t product = magnitude(a) / divisor * magnitude(b);  // wraps as PyTorch's does
  return static_cast<int64_t>(product);
}

template <class Fn>
Tensor whole_pairs(const char* op, const Tensor& a, const Tensor& b, Fn&& fn) {
  const DType kind = common_dtype(a, b);
  WEFT_CHECK_AS(NotImplemented, is_integral(kind), op, ": expected an integer dtype, got ", kind);
  // In the common dtype first: -5 beside a tensor of uint8 is 251.
  return mapped_pairs<int64_t>(op, as_dtype(a, kind), as_dtype(b, kind), kind, fn);
}

}  // namespace

Tensor nextafter(const Tensor& self, const Tensor& other) {
  const char* op = "nextafter";
  const DType kind = floating_pair(op, self, other);
  switch (kind) {
    case DType::F32:
      return mapped_pairs<float>(op, self, other, kind,
                                 [](float a, float b) { return std::nextafter(a, b); });
    case DType::F64:
      return mapped_pairs<double>(op, self, other, kind,
                                  [](double a, double b) { return std::nextafter(a, b); });
    case DType::F16:
      return mapped_pairs<Half>(op, self, other, kind, small_nextafter<Half>);
    case DType::BF16:
      return mapped_pairs<BFloat16>(op, self, other, kind, small_nextafter<BFloat16>);
    default:
      fail(ErrorKind::Type, str(op, ": expected floats of at least 16 bits, got ", kind));
  }
}

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  const char* op = "frexp";
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()), op, ": expected a floating dtype, got ",
                self.dtype());
  const Tensor x = in_order(as_dtype(self, DType::F64));
  const Tensor mantissa = Tensor::empty(self.sizes(), DType::F64, self.device(), op);
  const Tensor exponent = Tensor::empty(self.sizes(), DType::I32, self.device(), op);
  parallel_for(x.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
    const auto* from = x.data_as<const double>();
    for (int64_t i = begin; i < end; ++i) {
      int power = 0;
      mantissa.data_as<double>()[i] = std::frexp(from[i], &power);
      exponent.data_as<int32_t>()[i] = power;
    }
  });
  return {as_dtype(mantissa, self.dtype()), exponent};
}

Tensor gcd(const Tensor& self, const Tensor& other) {
  return whole_pairs("gcd", self, other, gcd_of);
}
Tensor lcm(const Tensor& self, const Tensor& other) {
  return whole_pairs("lcm", self, other, lcm_of);
}

}  // namespace weft::native
