// Types of elements: c10::ScalarType with PyTorch's numbers, and C++ types for them.
#pragma once

#include <complex>
#include <cstring>
#include <limits>

#include "array_ref.h"

namespace c10 {
inline namespace over_weft {

namespace detail {

// Bits of a number whose arithmetic is float's: 1 sign bit, `exponent` bits, the rest.
inline float float_of_bits(uint32_t bits) {
  float number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}
inline uint32_t bits_of_float(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

inline float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 31;
  const uint32_t fraction = half & 0x3FF;
  if (exponent == 31) return float_of_bits(sign | 0x7F800000 | fraction << 13);
  if (exponent == 0) {
    const float tiny = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -tiny : tiny;
  }
  return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}
// Rounds to nearest, ties to even.
inline uint16_t half_of_float(float number) {
  const uint32_t bits = bits_of_float(number), sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and up
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 rounds to multiples of 2^-24
    const float shifted = float_of_bits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of_float(shifted) - 0x3F000000));
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | rounded >> 13);
}
inline float float_of_bfloat16(uint16_t bits) {
  return float_of_bits(static_cast<uint32_t>(bits) << 16);
}
inline uint16_t bfloat16_of_float(float number) {
  const uint32_t bits = bits_of_float(number);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace detail

struct Half {
  uint16_t x = 0;
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  Half() = default;
  Half(float number) : x(detail::half_of_float(number)) {}
  constexpr Half(uint16_t bits, from_bits_t) : x(bits) {}
  operator float() const { return detail::float_of_half(x); }
};

struct BFloat16 {
  uint16_t x = 0;
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  BFloat16() = default;
  BFloat16(float number) : x(detail::bfloat16_of_float(number)) {}
  constexpr BFloat16(uint16_t bits, from_bits_t) : x(bits) {}
  operator float() const { return detail::float_of_bfloat16(x); }
};

template <class T>
using complex = std::complex<T>;

// X(C++ type, name, number, weft's dtype)
#define WEFT_TORCH_DTYPES(X)                                    \
  X(uint8_t, Byte, 0, WEFT_UINT8)                               \
  X(int8_t, Char, 1, WEFT_INT8)                                 \
  X(int16_t, Short, 2, WEFT_INT16)                              \
  X(int32_t, Int, 3, WEFT_INT32)                                \
  X(int64_t, Long, 4, WEFT_INT64)                               \
  X(::c10::Half, Half, 5, WEFT_FLOAT16)                         \
  X(float, Float, 6, WEFT_FLOAT32)                              \
  X(double, Double, 7, WEFT_FLOAT64)                            \
  X(::c10::complex<float>, ComplexFloat, 9, WEFT_COMPLEX64)     \
  X(::c10::complex<double>, ComplexDouble, 10, WEFT_COMPLEX128) \
  X(bool, Bool, 11, WEFT_BOOL)                                  \
  X(::c10::BFloat16, BFloat16, 15, WEFT_BFLOAT16)               \
  X(uint16_t, UInt16, 27, WEFT_UINT16)                          \
  X(uint32_t, UInt32, 28, WEFT_UINT32)                          \
  X(uint64_t, UInt64, 29, WEFT_UINT64)
// Those without a C++ type: X(name, number, weft's dtype)
#define WEFT_TORCH_STORED_DTYPES(X)            \
  X(ComplexHalf, 8, WEFT_COMPLEX32)            \
  X(Float8_e5m2, 23, WEFT_FLOAT8_E5M2)         \
  X(Float8_e4m3fn, 24, WEFT_FLOAT8_E4M3FN)     \
  X(Float8_e5m2fnuz, 25, WEFT_FLOAT8_E5M2FNUZ) \
  X(Float8_e4m3fnuz, 26, WEFT_FLOAT8_E4M3FNUZ)

enum class ScalarType : int8_t {
#define X(type, name, number, dtype) name = number,
  WEFT_TORCH_DTYPES(X)
#undef X
#define X(name, number, dtype) name = number,
      WEFT_TORCH_STORED_DTYPES(X)
#undef X
          QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  Undefined = 45,
};

#define X(type, name, number, dtype) inline constexpr ScalarType k##name = ScalarType::name;
WEFT_TORCH_DTYPES(X)
#undef X
#define X(name, number, dtype) inline constexpr ScalarType k##name = ScalarType::name;
WEFT_TORCH_STORED_DTYPES(X)
#undef X
inline constexpr ScalarType kQInt8 = ScalarType::QInt8, kQUInt8 = ScalarType::QUInt8,
                            kQInt32 = ScalarType::QInt32;

inline const char* toString(ScalarType type) {
  switch (type) {
#define X(ctype, name, number, dtype) \
  case ScalarType::name:              \
    return #name;
    WEFT_TORCH_DTYPES(X)
#undef X
#define X(name, number, dtype) \
  case ScalarType::name:       \
    return #name;
    WEFT_TORCH_STORED_DTYPES(X)
#undef X
    default:
      return "Undefined";
  }
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) {
  return out << toString(type);
}

namespace detail {

inline weft_dtype dtype_of(ScalarType type) {
  switch (type) {
#define X(ctype, name, number, dtype) \
  case ScalarType::name:              \
    return dtype;
    WEFT_TORCH_DTYPES(X)
#undef X
#define X(name, number, dtype) \
  case ScalarType::name:       \
    return dtype;
    WEFT_TORCH_STORED_DTYPES(X)
#undef X
    default:
      throw NotImplementedError(
          text_of("expected a dtype that weft has, got number ", static_cast<int>(type)));
  }
}

inline ScalarType scalar_type_of(weft_dtype type) {
  switch (type) {
#define X(ctype, name, number, dtype) \
  case dtype:                         \
    return ScalarType::name;
    WEFT_TORCH_DTYPES(X)
#undef X
#define X(name, number, dtype) \
  case dtype:                  \
    return ScalarType::name;
    WEFT_TORCH_STORED_DTYPES(X)
#undef X
  }
  return ScalarType::Undefined;
}

template <class T>
struct CppType;
#define X(ctype, name, number, dtype)                    \
  template <>                                            \
  struct CppType<ctype> {                                \
    static constexpr ScalarType type = ScalarType::name; \
  };
WEFT_TORCH_DTYPES(X)
#undef X
// `long long` beside int64_t, and its kin: other names of types of the same size.
template <class T>
constexpr ScalarType scalar_type() {
  if constexpr (std::is_same_v<T, long long>) {
    return ScalarType::Long;
  } else if constexpr (std::is_same_v<T, unsigned long long>) {
    return ScalarType::UInt64;
  } else if constexpr (std::is_same_v<T, char>) {
    return ScalarType::Char;
  } else {
    return CppType<T>::type;
  }
}

}  // namespace detail

template <class T>
struct CppTypeToScalarType : std::integral_constant<ScalarType, detail::scalar_type<T>()> {};

inline size_t elementSize(ScalarType type) {
  switch (type) {
#define X(ctype, name, number, dtype) \
  case ScalarType::name:              \
    return sizeof(ctype);
    WEFT_TORCH_DTYPES(X)
#undef X
    case ScalarType::ComplexHalf:
      return 4;
    default:
      return 1;
  }
}
constexpr bool isComplexType(ScalarType type) {
  return type == ScalarType::ComplexHalf || type == ScalarType::ComplexFloat ||
         type == ScalarType::ComplexDouble;
}
constexpr bool isReducedFloatingType(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::BFloat16 ||
         (type >= ScalarType::Float8_e5m2 && type <= ScalarType::Float8_e4m3fnuz);
}
constexpr bool isFloatingType(ScalarType type) {
  return type == ScalarType::Float || type == ScalarType::Double || isReducedFloatingType(type);
}
constexpr bool isIntegralType(ScalarType type, bool include_bool = false) {
  return (type >= ScalarType::Byte && type <= ScalarType::Long) ||
         (type >= ScalarType::UInt16 && type <= ScalarType::UInt64) ||
         (include_bool && type == ScalarType::Bool);
}

}  // namespace over_weft
}  // namespace c10

namespace caffe2 {
inline namespace over_weft {

// What Tensor::dtype gives: a type of elements by which C++ types are compared, too.
class TypeMeta final {
 public:
  TypeMeta(c10::ScalarType type = c10::ScalarType::Undefined) : type_(type) {}
  template <class T>
  static TypeMeta Make() {
    return c10::detail::scalar_type<T>();
  }
  static TypeMeta fromScalarType(c10::ScalarType type) { return type; }

  c10::ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return c10::elementSize(type_); }
  // That of the C++ type.
  c10::string_view name() const {
    static const std::pair<c10::ScalarType, const char*> names[] = {
        {c10::kByte, "unsigned char"},
        {c10::kChar, "signed char"},
        {c10::kShort, "short int"},
        {c10::kInt, "int"},
        {c10::kLong, "long int"},
        {c10::kHalf, "c10::Half"},
        {c10::kFloat, "float"},
        {c10::kDouble, "double"},
        {c10::kComplexFloat, "c10::complex<float>"},
        {c10::kComplexDouble, "c10::complex<double>"},
        {c10::kBool, "bool"},
        {c10::kBFloat16, "c10::BFloat16"},
    };
    for (const auto& [type, text] : names) {
      if (type == type_) return text;
    }
    return c10::toString(type_);
  }
  template <class T>
  bool Match() const {
    return type_ == c10::detail::scalar_type<T>();
  }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }
  friend std::ostream& operator<<(std::ostream& out, TypeMeta type) { return out << type.name(); }

 private:
  c10::ScalarType type_;
};

}  // namespace over_weft
}  // namespace caffe2

namespace c10 {
inline namespace over_weft {
inline ScalarType typeMetaToScalarType(caffe2::TypeMeta type) { return type.toScalarType(); }
inline caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType type) { return type; }
}  // namespace over_weft
}  // namespace c10

namespace torch {
using Dtype = at::ScalarType;
// Names with numbers of bits.
inline constexpr Dtype kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort,
                       kInt32 = at::kInt, kInt64 = at::kLong, kFloat16 = at::kHalf,
                       kFloat32 = at::kFloat, kFloat64 = at::kDouble, kU8 = kUInt8, kI8 = kInt8,
                       kI16 = kInt16, kI32 = kInt32, kI64 = kInt64, kF16 = kFloat16,
                       kF32 = kFloat32, kF64 = kFloat64, kComplex64 = at::kComplexFloat,
                       kComplex128 = at::kComplexDouble;
}  // namespace torch
