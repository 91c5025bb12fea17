// Element types, their C++ types, their categories and the promotion rule between them.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string_view>
#include <type_traits>

namespace weft {

// Storage-only floats: arithmetic happens in float32.
struct Half {
  static constexpr int kDigits = 11;
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};
struct BFloat16 {
  static constexpr int kDigits = 8;
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    // Round to nearest even on the integer image; NaN keeps a set mantissa bit.
    uint32_t raw = std::bit_cast<uint32_t>(value);
    if ((raw & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((raw >> 16) | 0x40u);
    } else {
      bits = static_cast<uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// What floats of one byte differ in: a sign, the exponent, `mantissa` bits of the mantissa.
struct Float8Format {
  int mantissa, bias;
  uint8_t largest;   // the largest finite magnitude
  uint8_t overflow;  // what a larger one becomes
  uint8_t nan;
  bool negative_zero;  // without it the bits of -0 are the only NaN
};

template <Float8Format kFormat>
struct Float8 {
  static constexpr int kDigits = kFormat.mantissa + 1;
  uint8_t bits = 0;
  Float8() = default;
  // Rounds to nearest even.
  explicit Float8(float value) {
    constexpr uint32_t kSmallestNormal = uint32_t{128 - kFormat.bias} << 23;
    constexpr uint32_t kRounder = uint32_t{151 - kFormat.bias - kFormat.mantissa} << 23;
    constexpr int kDropped = 23 - kFormat.mantissa;
    const uint32_t raw = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = raw & 0x7fffffffu;
    uint32_t rounded = kFormat.nan;
    if (magnitude < kSmallestNormal) {  // the sum with kRounder rounds at the last bit
      const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kRounder);
      rounded = std::bit_cast<uint32_t>(sum) - kRounder;
    } else if (magnitude <= 0x7f800000u) {
      constexpr uint32_t kHalf = (uint32_t{1} << (kDropped - 1)) - 1;
      const uint32_t scaled = magnitude - (uint32_t{127 - kFormat.bias} << 23);
      rounded = (scaled + kHalf + ((magnitude >> kDropped) & 1u)) >> kDropped;
      if (rounded > kFormat.largest) rounded = kFormat.overflow;
    }
    if (kFormat.negative_zero || (rounded & 0x7fu) != 0) rounded |= (raw >> 24) & 0x80u;
    bits = static_cast<uint8_t>(rounded);
  }
  explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x80u} << 24, magnitude = bits & 0x7fu;
    const bool only_nan = !kFormat.negative_zero && bits == 0x80u;
    if (only_nan || magnitude > kFormat.largest) {
      const bool infinite = magnitude == kFormat.overflow && kFormat.overflow != kFormat.nan;
      return std::bit_cast<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    const float scale = std::bit_cast<float>(uint32_t{254 - kFormat.bias} << 23);
    const float value = std::bit_cast<float>(magnitude << (23 - kFormat.mantissa)) * scale;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
};
using Float8E4M3FN = Float8<Float8Format{3, 7, 0x7e, 0x7e, 0x7f, true}>;
using Float8E5M2 = Float8<Float8Format{2, 15, 0x7b, 0x7c, 0x7f, true}>;
using Float8E4M3FNUZ = Float8<Float8Format{3, 8, 0x7f, 0x80, 0x80, false}>;
using Float8E5M2FNUZ = Float8<Float8Format{2, 16, 0x7f, 0x80, 0x80, false}>;

// Of floats that are held in fewer bits than arithmetic happens in.
template <class T>
inline constexpr bool is_small_float = requires(T value) { value.bits; };

// Storage only, too: arithmetic happens in std::complex<float>.
class alignas(4) ComplexHalf {
 public:
  using value_type = float;
  ComplexHalf() = default;
  explicit ComplexHalf(float real, float imag = 0) : real_(real), imag_(imag) {}
  template <class T>
  explicit ComplexHalf(std::complex<T> value)
      : ComplexHalf(static_cast<float>(value.real()), static_cast<float>(value.imag())) {}
  explicit operator std::complex<float>() const { return {real(), imag()}; }
  float real() const { return static_cast<float>(real_); }
  float imag() const { return static_cast<float>(imag_); }
  friend bool operator==(ComplexHalf a, ComplexHalf b) {
    return a.real() == b.real() && a.imag() == b.imag();
  }

 private:
  Half real_, imag_;
};

// The type in which arithmetic on a T happens: compute_type() of its dtype.
template <class T>
using ComputeType =
    std::conditional_t<is_small_float<T>, float,
                       std::conditional_t<std::is_same_v<T, ComplexHalf>, std::complex<float>, T>>;
template <class T>
inline constexpr bool is_computed = std::is_same_v<T, ComputeType<T>>;

// Order matters: promotion between categories goes to the higher one.
enum class DTypeCategory : uint8_t { Bool, Integral, Floating, Complex };

// X(enumerator, C++ type, name in Python, bytes, category, name of its tensors' class, name in
// safetensors, number in TorchScript, code in DLPack). New ones at the end: weft.h numbers them in
// this order.
#define WEFT_FOR_EACH_DTYPE(X)                                                                    \
  X(Bool, bool, "bool", 1, Bool, "Bool", "BOOL", 11, 6)                                           \
  X(U8, uint8_t, "uint8", 1, Integral, "Byte", "U8", 0, 1)                                        \
  X(I8, int8_t, "int8", 1, Integral, "Char", "I8", 1, 0)                                          \
  X(I16, int16_t, "int16", 2, Integral, "Short", "I16", 2, 0)                                     \
  X(I32, int32_t, "int32", 4, Integral, "Int", "I32", 3, 0)                                       \
  X(I64, int64_t, "int64", 8, Integral, "Long", "I64", 4, 0)                                      \
  X(U16, uint16_t, "uint16", 2, Integral, "UInt16", "U16", 27, 1)                                 \
  X(U32, uint32_t, "uint32", 4, Integral, "UInt32", "U32", 28, 1)                                 \
  X(U64, uint64_t, "uint64", 8, Integral, "UInt64", "U64", 29, 1)                                 \
  X(F16, ::weft::Half, "float16", 2, Floating, "Half", "F16", 5, 2)                               \
  X(BF16, ::weft::BFloat16, "bfloat16", 2, Floating, "BFloat16", "BF16", 15, 4)                   \
  X(F32, float, "float32", 4, Floating, "Float", "F32", 6, 2)                                     \
  X(F64, double, "float64", 8, Floating, "Double", "F64", 7, 2)                                   \
  X(C64, std::complex<float>, "complex64", 8, Complex, "ComplexFloat", "C64", 9, 5)               \
  X(C128, std::complex<double>, "complex128", 16, Complex, "ComplexDouble", "", 10, 5)            \
  X(F8E4M3FN, ::weft::Float8E4M3FN, "float8_e4m3fn", 1, Floating, "Float8_e4m3fn", "F8_E4M3", 24, \
    10)                                                                                           \
  X(F8E5M2, ::weft::Float8E5M2, "float8_e5m2", 1, Floating, "Float8_e5m2", "F8_E5M2", 23, 12)     \
  X(F8E4M3FNUZ, ::weft::Float8E4M3FNUZ, "float8_e4m3fnuz", 1, Floating, "Float8_e4m3fnuz",        \
    "F8_E4M3FNUZ", 26, 11)                                                                        \
  X(F8E5M2FNUZ, ::weft::Float8E5M2FNUZ, "float8_e5m2fnuz", 1, Floating, "Float8_e5m2fnuz",        \
    "F8_E5M2FNUZ", 25, 13)                                                                        \
  X(C32, ::weft::ComplexHalf, "complex32", 4, Complex, "ComplexHalf", "", 8, 5)

enum class DType : uint8_t {
#define X(id, ...) id,
  WEFT_FOR_EACH_DTYPE(X)
#undef X
};

struct DTypeInfo {
  std::string_view name;  // "float32"
  uint8_t size;
  DTypeCategory category;
  std::string_view tensor_class;  // "Float" of torch.FloatTensor
  std::string_view safetensors;   // "F32"; empty: files cannot hold it
  uint8_t number;                 // TorchScript's
  uint8_t dlpack;                 // kDLFloat and the like
};

inline constexpr DTypeInfo kDTypes[] = {
#define X(id, type, name, size, category, tensor_class, safetensors, number, dlpack) \
  {name, size, DTypeCategory::category, tensor_class, safetensors, number, dlpack},
    WEFT_FOR_EACH_DTYPE(X)
#undef X
};
inline constexpr int kDTypeCount = static_cast<int>(std::size(kDTypes));

constexpr const DTypeInfo& info_of(DType dtype) { return kDTypes[static_cast<int>(dtype)]; }
constexpr size_t item_size(DType dtype) { return info_of(dtype).size; }
constexpr std::string_view dtype_name(DType dtype) { return info_of(dtype).name; }
constexpr DTypeCategory category(DType dtype) { return info_of(dtype).category; }
// The dtype of TorchScript's number; RuntimeError for a number that has none.
DType dtype_of_number(int64_t number);
constexpr bool is_floating(DType dtype) { return category(dtype) == DTypeCategory::Floating; }
constexpr bool is_complex(DType dtype) { return category(dtype) == DTypeCategory::Complex; }
constexpr bool is_integral(DType dtype) { return category(dtype) == DTypeCategory::Integral; }
constexpr bool is_differentiable(DType dtype) { return category(dtype) >= DTypeCategory::Floating; }

constexpr bool is_float8(DType dtype) { return is_floating(dtype) && item_size(dtype) == 1; }

// float16 for complex32, float32 for complex64, float64 for complex128; every other dtype is its
// own.
constexpr DType real_of(DType dtype) {
  if (dtype == DType::C32) return DType::F16;
  if (dtype == DType::C64) return DType::F32;
  return dtype == DType::C128 ? DType::F64 : dtype;
}
constexpr bool has_complex(DType dtype) {
  return is_complex(dtype) || (is_floating(dtype) && item_size(dtype) > 1);
}
constexpr DType complex_of(DType dtype) {
  if (dtype == DType::F16 || dtype == DType::C32) return DType::C32;
  return dtype == DType::F64 || dtype == DType::C128 ? DType::C128 : DType::C64;
}

// The type arithmetic happens in: float32 for the smaller floats, complex64 for complex32,
// otherwise the type itself.
constexpr DType compute_type(DType dtype) {
  if (dtype == DType::C32) return DType::C64;
  return is_floating(dtype) && item_size(dtype) < 4 ? DType::F32 : dtype;
}

// PyTorch's table, and for u16, u32, u64 with integers, which PyTorch refuses, NumPy's: the
// smallest dtype that holds both. u64 with a signed dtype, wide unsigned dtypes with bool and
// complex dtypes, and 8-bit floats with any other raise RuntimeError.
DType promote(DType a, DType b);
// Whether a result of type `from` may be written in place into `to` (category must not shrink).
constexpr bool can_cast(DType from, DType to) { return category(from) <= category(to); }

// The dtype of new floating tensors: float32 unless set.
DType default_dtype();
void set_default_dtype(DType dtype);

std::ostream& operator<<(std::ostream& out, DType dtype);

template <class T>
struct dtype_of;
#define X(id, type, ...)                      \
  template <>                                 \
  struct dtype_of<type> {                     \
    static constexpr DType value = DType::id; \
  };
WEFT_FOR_EACH_DTYPE(X)
#undef X

// Calls fn(std::type_identity<T>{}) with the C++ type of dtype.
template <class Fn>
decltype(auto) dispatch(DType dtype, Fn&& fn) {
  switch (dtype) {
#define X(id, type, ...) \
  case DType::id:        \
    return fn(std::type_identity<type>{});
    WEFT_FOR_EACH_DTYPE(X)
#undef X
  }
  __builtin_unreachable();
}

}  // namespace weft
