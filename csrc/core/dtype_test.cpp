#include "core/dtype.h"

#include <cmath>
#include <limits>

#include "testing.h"

using namespace weft;

namespace {

float half_round_trip(float value) { return static_cast<float>(Half(value)); }

}  // namespace

TEST(dtype_half_all_bit_patterns) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const auto value = static_cast<float>(half);
    if (std::isnan(value)) {
      CHECK_EQ(Half(value).bits & 0x7e00, 0x7e00);
    } else {
      CHECK_EQ(Half(value).bits, half.bits);
    }
  }
}

TEST(dtype_complex_half_holds_two_halves) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const uint16_t parts[] = {static_cast<uint16_t>(bits), static_cast<uint16_t>(~bits)};
    const auto number = std::bit_cast<ComplexHalf>(parts);
    const ComplexHalf back(static_cast<std::complex<float>>(number));
    for (const float part : {number.real() - back.real(), number.imag() - back.imag()}) {
      CHECK_TRUE(part == 0 || std::isnan(part));
    }
    if (!std::isnan(number.real()) && !std::isnan(number.imag())) {
      CHECK_EQ(std::bit_cast<uint32_t>(back), std::bit_cast<uint32_t>(number));
      CHECK_TRUE(back == number);
    }
  }
  CHECK_EQ(ComplexHalf(std::complex<double>(1e6, 2049)).imag(), 2048.0f);
  CHECK_TRUE(std::isinf(ComplexHalf(std::complex<double>(1e6, 2049)).real()));
}

TEST(dtype_half_rounds_to_nearest_even) {
  CHECK_EQ(half_round_trip(65504), 65504.0f);
  CHECK_EQ(half_round_trip(65519.996f), 65504.0f);
  CHECK_TRUE(std::isinf(half_round_trip(65520)));
  CHECK_EQ(half_round_trip(2049), 2048.0f);
  CHECK_EQ(half_round_trip(2051), 2052.0f);
  CHECK_EQ(half_round_trip(0x1p-25f), 0.0f);
  CHECK_EQ(half_round_trip(0x1.8p-25f), 0x1p-24f);
  CHECK_EQ(half_round_trip(0x1.8p-24f), 0x1p-23f);
  CHECK_TRUE(std::signbit(half_round_trip(-0.0f)));
  CHECK_TRUE(std::isnan(half_round_trip(std::numeric_limits<float>::quiet_NaN())));
}

TEST(dtype_bfloat16) {
  CHECK_EQ(static_cast<float>(BFloat16(1.00390625f)), 1.0f);
  CHECK_EQ(static_cast<float>(BFloat16(1.01171875f)), 1.015625f);
  CHECK_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK_TRUE(std::isinf(static_cast<float>(BFloat16(3.4e38f))));
}

template <class Small>
void check_bit_patterns() {
  for (int bits = 0; bits < 256; ++bits) {
    Small small;
    small.bits = static_cast<uint8_t>(bits);
    const auto value = static_cast<float>(small);
    const Small back(value);
    if (std::isnan(value)) {
      CHECK_TRUE(std::isnan(static_cast<float>(back)));
    } else {
      CHECK_EQ(back.bits, small.bits);
    }
  }
}

TEST(dtype_float8_all_bit_patterns) {
  check_bit_patterns<Float8E4M3FN>();
  check_bit_patterns<Float8E5M2>();
  check_bit_patterns<Float8E4M3FNUZ>();
  check_bit_patterns<Float8E5M2FNUZ>();
}

TEST(dtype_float8_overflows) {
  CHECK_EQ(Float8E5M2(61439.0f).bits, 0x7b);
  CHECK_EQ(Float8E5M2(61440.0f).bits, 0x7c);  // infinity
  CHECK_EQ(Float8E4M3FNUZ(247.9f).bits, 0x7f);
  CHECK_EQ(Float8E4M3FNUZ(-248.0f).bits, 0x80);  // NaN
  CHECK_EQ(Float8E5M2FNUZ(-1e-30f).bits, 0);     // no -0
}

TEST(dtype_float8_rounds_and_saturates) {
  const auto round_trip = [](float value) { return static_cast<float>(Float8E4M3FN(value)); };
  CHECK_EQ(round_trip(17), 16.0f);
  CHECK_EQ(round_trip(19), 20.0f);
  CHECK_EQ(round_trip(0x1p-10f), 0.0f);
  CHECK_EQ(round_trip(0x1.8p-10f), 0x1p-9f);
  CHECK_EQ(round_trip(1e9f), 448.0f);
  CHECK_EQ(round_trip(-std::numeric_limits<float>::infinity()), -448.0f);
  CHECK_TRUE(std::isnan(round_trip(std::numeric_limits<float>::quiet_NaN())));
}

TEST(dtype_promotion) {
  CHECK_EQ(promote(DType::U8, DType::I8), DType::I16);
  CHECK_EQ(promote(DType::I16, DType::U8), DType::I16);
  CHECK_EQ(promote(DType::Bool, DType::Bool), DType::Bool);
  CHECK_EQ(promote(DType::Bool, DType::U8), DType::U8);
  CHECK_EQ(promote(DType::I64, DType::F16), DType::F16);
  CHECK_EQ(promote(DType::F16, DType::BF16), DType::F32);
  CHECK_EQ(promote(DType::BF16, DType::F32), DType::F32);
  CHECK_EQ(promote(DType::C64, DType::F64), DType::C128);
  CHECK_EQ(promote(DType::F32, DType::C64), DType::C64);
  CHECK_EQ(promote(DType::I64, DType::C64), DType::C64);
  CHECK_EQ(promote(DType::C64, DType::C128), DType::C128);
  CHECK_EQ(promote(DType::C32, DType::I64), DType::C32);
  CHECK_EQ(promote(DType::C32, DType::F16), DType::C32);
  CHECK_EQ(promote(DType::C32, DType::BF16), DType::C64);
  CHECK_EQ(promote(DType::F32, DType::C32), DType::C64);
  CHECK_EQ(promote(DType::C32, DType::F64), DType::C128);
  CHECK_EQ(promote(DType::C64, DType::C32), DType::C64);
  CHECK_EQ(promote(DType::U64, DType::F16), DType::F16);
  CHECK_EQ(promote(DType::U16, DType::U16), DType::U16);
  CHECK_EQ(promote(DType::U8, DType::U32), DType::U32);
  CHECK_EQ(promote(DType::U64, DType::U16), DType::U64);
  CHECK_EQ(promote(DType::I8, DType::U16), DType::I32);
  CHECK_EQ(promote(DType::U16, DType::I16), DType::I32);
  CHECK_EQ(promote(DType::I32, DType::U16), DType::I32);
  CHECK_EQ(promote(DType::U32, DType::I32), DType::I64);
  CHECK_EQ(promote(DType::I64, DType::U32), DType::I64);
}

TEST(dtype_promotion_errors) {
  CHECK_THROWS_AS(
      Runtime, promote(DType::U64, DType::I32),
      "promote_types: expected dtypes with a common type, got uint64 and int32; convert "
      "one of them with .to(dtype)");
  for (const DType other : {DType::Bool, DType::I8, DType::I64, DType::C64}) {
    bool raised = false;
    try {
      promote(other, DType::U64);
    } catch (const Error&) {
      raised = true;
    }
    CHECK_TRUE(raised);
  }
}

TEST(dtype_promotion_is_symmetric) {
  const auto attempt = [](int a, int b) {
    try {
      return static_cast<int>(promote(static_cast<DType>(a), static_cast<DType>(b)));
    } catch (const Error&) {
      return -1;
    }
  };
  for (int a = 0; a < kDTypeCount; ++a) {
    CHECK_EQ(attempt(a, a), a);
    for (int b = 0; b < kDTypeCount; ++b) CHECK_EQ(attempt(a, b), attempt(b, a));
  }
}

TEST(dtype_default) {
  CHECK_EQ(default_dtype(), DType::F32);
  set_default_dtype(DType::F64);
  CHECK_EQ(default_dtype(), DType::F64);
  set_default_dtype(DType::F32);
  CHECK_THROWS_AS(Type, set_default_dtype(DType::I32),
                  "set_default_dtype: expected a floating dtype, got int32");
}

TEST(dtype_names_and_sizes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    dispatch(dtype, [&]<class T>(std::type_identity<T>) {
      CHECK_EQ(dtype_of<ComputeType<T>>::value, compute_type(dtype));
    });
  }
  CHECK_EQ(str(DType::BF16, ' ', DType::C128), "bfloat16 complex128");
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    dispatch(dtype, [&]<class T>(std::type_identity<T>) {
      CHECK_EQ(item_size(dtype), sizeof(T));
      CHECK_EQ(dtype_of<T>::value, dtype);
    });
  }
}
