// Element types, their C++ types, their categories and the promotion rule between them.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <ostream>
#include <string_view>

namespace weft {

// Storage-only 16-bit floats: arithmetic happens in float32.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};
struct BFloat16 {
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

// X(enumerator, C++ type, name in Python, byte size)
#define WEFT_FOR_EACH_DTYPE(X)                \
  X(Bool, bool, "bool", 1)                    \
  X(U8, uint8_t, "uint8", 1)                  \
  X(I8, int8_t, "int8", 1)                    \
  X(I16, int16_t, "int16", 2)                 \
  X(I32, int32_t, "int32", 4)                 \
  X(I64, int64_t, "int64", 8)                 \
  X(U16, uint16_t, "uint16", 2)               \
  X(U32, uint32_t, "uint32", 4)               \
  X(U64, uint64_t, "uint64", 8)               \
  X(F16, ::weft::Half, "float16", 2)          \
  X(BF16, ::weft::BFloat16, "bfloat16", 2)    \
  X(F32, float, "float32", 4)                 \
  X(F64, double, "float64", 8)                \
  X(C64, std::complex<float>, "complex64", 8) \
  X(C128, std::complex<double>, "complex128", 16)

enum class DType : uint8_t {
#define X(id, type, name, size) id,
  WEFT_FOR_EACH_DTYPE(X)
#undef X
};
inline constexpr int kDTypeCount = 15;

// Order matters: promotion between categories goes to the higher one.
enum class DTypeCategory : uint8_t { Bool, Integral, Floating, Complex };

constexpr size_t item_size(DType dtype) {
  constexpr uint8_t sizes[] = {
#define X(id, type, name, size) size,
      WEFT_FOR_EACH_DTYPE(X)
#undef X
  };
  return sizes[static_cast<int>(dtype)];
}

constexpr std::string_view dtype_name(DType dtype) {
  constexpr std::string_view names[] = {
#define X(id, type, name, size) name,
      WEFT_FOR_EACH_DTYPE(X)
#undef X
  };
  return names[static_cast<int>(dtype)];
}

constexpr DTypeCategory category(DType dtype) {
  if (dtype == DType::Bool) return DTypeCategory::Bool;
  if (dtype <= DType::U64) return DTypeCategory::Integral;
  return dtype <= DType::F64 ? DTypeCategory::Floating : DTypeCategory::Complex;
}
constexpr bool is_floating(DType dtype) { return category(dtype) == DTypeCategory::Floating; }
constexpr bool is_complex(DType dtype) { return category(dtype) == DTypeCategory::Complex; }
constexpr bool is_integral(DType dtype) { return category(dtype) == DTypeCategory::Integral; }
constexpr bool is_differentiable(DType dtype) { return dtype >= DType::F16; }

// float32 for complex64, float64 for complex128; every other dtype is its own.
constexpr DType real_of(DType dtype) {
  if (dtype == DType::C64) return DType::F32;
  return dtype == DType::C128 ? DType::F64 : dtype;
}
constexpr DType complex_of(DType dtype) {
  return dtype == DType::F64 || dtype == DType::C128 ? DType::C128 : DType::C64;
}

// The type arithmetic happens in: float32 for the 16-bit floats, otherwise the type itself.
constexpr DType compute_type(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 ? DType::F32 : dtype;
}

// PyTorch's table: u8 with i8 gives i16; u16, u32, u64 promote only with themselves and with
// floating types. Any other mix of them raises RuntimeError.
DType promote(DType a, DType b);
// Whether a result of type `from` may be written in place into `to` (category must not shrink).
constexpr bool can_cast(DType from, DType to) { return category(from) <= category(to); }

// The dtype of new floating tensors: float32 unless set.
DType default_dtype();
void set_default_dtype(DType dtype);

std::ostream& operator<<(std::ostream& out, DType dtype);

template <class T>
struct dtype_of;
#define X(id, type, name, size)               \
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
#define X(id, type, name, size) \
  case DType::id:               \
    return fn(std::type_identity<type>{});
    WEFT_FOR_EACH_DTYPE(X)
#undef X
  }
  __builtin_unreachable();
}

}  // namespace weft
