// Half conversions, the promotion table, the default dtype.
#include "core/dtype.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/error.h"

namespace weft {
namespace {

uint16_t float_to_half(float value) {
  const uint32_t raw = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((raw >> 16) & 0x8000u);
  const uint32_t magnitude = raw & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal half: adding 0.5 lets the float unit do the rounding, to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

// What no table entry is: the mix raises.
constexpr int8_t kNone = -1;

constexpr bool is_wide_unsigned(DType dtype) {
  return dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64;
}

constexpr bool is_unsigned(DType dtype) { return dtype == DType::U8 || is_wide_unsigned(dtype); }

// The smallest dtype that holds all integers of both.
constexpr int8_t promote_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) {
    return static_cast<int8_t>(item_size(a) >= item_size(b) ? a : b);
  }
  const DType other = is_unsigned(a) ? b : a;  // the signed one
  const size_t size = item_size(is_unsigned(a) ? a : b);
  if (item_size(other) > size) return static_cast<int8_t>(other);
  constexpr DType twice_as_wide[] = {DType::I16, DType::I32, DType::I64};  // as 1, 2 and 4 bytes
  return size == 8 ? kNone : static_cast<int8_t>(twice_as_wide[size / 2]);
}

constexpr int8_t promote_entry(DType a, DType b) {
  if (a == b) return static_cast<int8_t>(a);
  if (is_float8(a) || is_float8(b)) return kNone;
  if (category(a) > category(b)) return promote_entry(b, a);
  // From here on category(a) <= category(b).
  if (is_integral(a) && is_integral(b)) return promote_integers(a, b);
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) {
    return is_floating(b) ? static_cast<int8_t>(b) : kNone;
  }
  if (is_floating(a) && is_complex(b)) return promote_entry(complex_of(a), b);
  if (category(a) != category(b)) return static_cast<int8_t>(b);
  if (item_size(a) == item_size(b)) return static_cast<int8_t>(DType::F32);  // float16, bfloat16
  return static_cast<int8_t>(item_size(a) > item_size(b) ? a : b);
}

constexpr auto make_promotion_table() {
  std::array<std::array<int8_t, kDTypeCount>, kDTypeCount> table{};
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      table[a][b] = promote_entry(static_cast<DType>(a), static_cast<DType>(b));
    }
  }
  return table;
}
constexpr auto kPromotion = make_promotion_table();

std::atomic<DType> current_default_dtype{DType::F32};

}  // namespace

Half::Half(float value) : bits(float_to_half(value)) {}
Half::operator float() const { return half_to_float(bits); }

DType promote(DType a, DType b) {
  const int8_t result = kPromotion[static_cast<int>(a)][static_cast<int>(b)];
  WEFT_CHECK(result != kNone, "promote_types: expected dtypes with a common type, got ", a, " and ",
             b, "; convert one of them with .to(dtype)");
  return static_cast<DType>(result);
}

DType dtype_of_number(int64_t number) {
  const auto found = std::ranges::find(kDTypes, number, &DTypeInfo::number);
  WEFT_CHECK(found != std::end(kDTypes), "dtype: expected the number of a dtype, got ", number);
  return static_cast<DType>(found - std::begin(kDTypes));
}

DType default_dtype() { return current_default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  WEFT_CHECK_TYPE(is_floating(dtype), "set_default_dtype: expected a floating dtype, got ", dtype);
  current_default_dtype.store(dtype, std::memory_order_relaxed);
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

}  // namespace weft
