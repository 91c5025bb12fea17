#include "runtime/value.h"

#include <string>

#include "testing.h"

namespace weft {
namespace {

TEST(value_numbers) {
  CHECK_TRUE(Value().is_none());
  CHECK_EQ(Value(true).to_bool(), true);
  CHECK_EQ(Value(true).to_int(), 1);
  CHECK_EQ(Value(int64_t{-7}).to_int(), -7);
  CHECK_EQ(Value(int64_t{3}).to_double(), 3.0);
  CHECK_EQ(Value(2.5).to_double(), 2.5);
  CHECK_EQ(Value(DType::BF16).to_dtype(), DType::BF16);
  CHECK_TRUE(Value(Device{DeviceType::CUDA, 3}).to_device() == (Device{DeviceType::CUDA, 3}));
  CHECK_TRUE(Value(Device{}).to_device() == Device{});
}

TEST(value_scalar) {
  CHECK_EQ(Value(Scalar(true)).tag(), ValueTag::Bool);
  CHECK_EQ(Value(Scalar(4)).tag(), ValueTag::Int);
  CHECK_EQ(Value(Scalar(4.5)).tag(), ValueTag::Double);
  const Value complex(Scalar(std::complex<double>(1, 2)));
  const Value copy = complex;
  CHECK_EQ(copy.tag(), ValueTag::Complex);
  CHECK_TRUE(copy.to_scalar() == Scalar(std::complex<double>(1, 2)));
  CHECK_EQ(Value(Tensor::scalar(Scalar(7), DType::I32)).to_scalar().to_int(), 7);
}

TEST(value_owns_tensors) {
  const Tensor tensor = Tensor::empty(Dims{2}, DType::F32);
  {
    Value value(tensor);
    CHECK_EQ(tensor.impl()->use_count(), 2);
    Value copy = value;
    CHECK_EQ(tensor.impl()->use_count(), 3);
    Value moved = std::move(copy);
    CHECK_TRUE(copy.is_none());
    CHECK_EQ(tensor.impl()->use_count(), 3);
    value = Value(int64_t{1});
    CHECK_EQ(tensor.impl()->use_count(), 2);
    CHECK_TRUE(moved.to_tensor().is_same(tensor));
  }
  CHECK_EQ(tensor.impl()->use_count(), 1);
  CHECK_TRUE(Value(Tensor()).is_none());
  CHECK_FALSE(Value().to_tensor().defined());
}

TEST(value_lists) {
  const Dims dims{1, 2, 3};
  const Value span = Value::borrow(IntList(dims));
  CHECK_EQ(Dims(span.to_ints()), dims);
  CHECK_TRUE(span.to_ints().data() == dims.data());
  const Value list(std::vector<int64_t>{4, 5});
  const Value copy = list;
  CHECK_EQ(Dims(copy.to_ints()), (Dims{4, 5}));
  CHECK_EQ(Value(std::vector<double>{1.5}).to_doubles()[0], 1.5);
  const double numbers[] = {1, 2};
  CHECK_EQ(Value::borrow(std::span<const double>(numbers)).to_doubles().size(), 2);
  const TensorList tensors{Tensor::empty(Dims{1}, DType::F32), Tensor()};
  CHECK_FALSE(Value(tensors).to_tensors()[1].defined());
  CHECK_TRUE(Value::borrow(std::span<const Tensor>(tensors)).to_tensors()[0].is_same(tensors[0]));
  CHECK_EQ(Value(std::string("abc")).to_string(), "abc");
}

TEST(value_empty_span) {
  const Value value = Value::borrow(IntList{});
  CHECK_EQ(value.to_ints().size(), 0);
  CHECK_EQ(value.tag(), ValueTag::IntSpan);
}

}  // namespace
}  // namespace weft
