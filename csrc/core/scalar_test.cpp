#include "core/scalar.h"

#include <cmath>
#include <limits>

#include "testing.h"

using namespace weft;

namespace {

template <class T>
T stored(const Scalar& scalar) {
  T value;
  scalar.store(dtype_of<T>::value, &value);
  return value;
}

}  // namespace

TEST(scalar_prints_like_python) {
  CHECK_EQ(str(Scalar(true), ' ', Scalar(false), ' ', Scalar(-3)), "True False -3");
  CHECK_EQ(str(Scalar(1.0)), "1.0");
  CHECK_EQ(str(Scalar(0.1)), "0.1");
  CHECK_EQ(str(Scalar(100000.0)), "100000.0");
  CHECK_EQ(str(Scalar(1e16)), "1e+16");
  CHECK_EQ(str(Scalar(1e15)), "1000000000000000.0");
  CHECK_EQ(str(Scalar(1e-4)), "0.0001");
  CHECK_EQ(str(Scalar(1.5e-5)), "1.5e-05");
  CHECK_EQ(str(Scalar(-0.0)), "-0.0");
  CHECK_EQ(str(Scalar(INFINITY), ' ', Scalar(-INFINITY), ' ', Scalar(NAN)), "inf -inf nan");
  CHECK_EQ(str(Scalar(std::complex<double>(1, -2))), "(1-2j)");
  CHECK_EQ(str(Scalar(std::complex<double>(0, 2.5))), "2.5j");
}

TEST(scalar_conversions_are_defined) {
  CHECK_EQ(Scalar(1e300).to_int(), INT64_MAX);
  CHECK_EQ(Scalar(-1e300).to_int(), INT64_MIN);
  CHECK_EQ(Scalar(std::nan("")).to_int(), 0);
  CHECK_EQ(Scalar(-2.9).to_int(), -2);
  CHECK_EQ(Scalar(std::complex<double>(3.5, 1)).to_int(), 3);
  CHECK_TRUE(Scalar(std::complex<double>(0, 1)).to_bool());
  CHECK_EQ(-Scalar(INT64_MIN), Scalar(INT64_MIN));
  CHECK_EQ(-Scalar(2), Scalar(-2));
  CHECK_EQ(-Scalar(2.5), Scalar(-2.5));
  CHECK_EQ((-Scalar(std::complex<double>(1, 2))).to_complex(), std::complex<double>(-1, -2));
}

TEST(scalar_store) {
  CHECK_EQ(stored<uint8_t>(Scalar(-1)), 255);
  CHECK_EQ(stored<int16_t>(Scalar(7.9)), 7);
  CHECK_EQ(stored<bool>(Scalar(0.5)), true);
  CHECK_EQ(stored<float>(Scalar(0.1)), 0.1f);
  CHECK_EQ(stored<uint64_t>(Scalar(1.8e19)), 18000000000000000000ull);
  CHECK_EQ(stored<uint64_t>(Scalar(-1)), UINT64_MAX);
  CHECK_EQ(static_cast<float>(stored<Half>(Scalar(1.5))), 1.5f);
  CHECK_EQ(static_cast<float>(stored<BFloat16>(Scalar(3))), 3.0f);
  CHECK_EQ(stored<std::complex<float>>(Scalar(std::complex<double>(1, 2))),
           std::complex<float>(1, 2));
}

TEST(scalar_dtype) {
  CHECK_EQ(Scalar(true).dtype(), DType::Bool);
  CHECK_EQ(Scalar(1).dtype(), DType::I64);
  CHECK_EQ(Scalar(1.0).dtype(), DType::F32);
  CHECK_EQ(Scalar(std::complex<double>(0, 1)).dtype(), DType::C64);
}
