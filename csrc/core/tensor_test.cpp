#include "core/tensor.h"

#include "core/error.h"
#include "testing.h"

using namespace weft;

namespace {

Tensor counting(IntList sizes) {
  Tensor tensor = Tensor::empty(sizes, DType::F32);
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<float>()[i] = static_cast<float>(i);
  return tensor;
}

}  // namespace

TEST(tensor_empty) {
  const Tensor tensor = Tensor::empty(Dims{2, 3}, DType::F64);
  CHECK_EQ(tensor.sizes(), (Dims{2, 3}));
  CHECK_EQ(tensor.strides(), (Dims{3, 1}));
  CHECK_EQ(tensor.storage()->nbytes(), 48);
  CHECK_EQ(tensor.size(-1), 3);
  CHECK_EQ(tensor.stride(0), 3);
  CHECK_EQ(tensor.impl()->use_count(), 1);
  CHECK_FALSE(Tensor().defined());
  CHECK_EQ(Tensor::empty(Dims{3, 0}, DType::I8).numel(), 0);
}

TEST(tensor_empty_errors) {
  CHECK_THROWS_AS(Runtime, Tensor::empty(Dims{-1}, DType::F32, {}, "zeros"),
                  "zeros: expected sizes >= 0, got (-1,)");
  CHECK_THROWS_AS(Runtime, Tensor::empty(Dims{int64_t{1} << 61}, DType::F32),
                  "empty: expected fewer than 2**63 bytes, got sizes (2305843009213693952,) of "
                  "float32");
  CHECK_THROWS_AS(Assertion, Tensor::empty(Dims{1}, DType::F32, Device::parse("cuda")),
                  "empty: expected device cpu, got cuda; Torch not compiled with CUDA enabled");
  bool out_of_memory = false;
  try {
    Tensor::empty(Dims{int64_t{1} << 60}, DType::F32);
  } catch (const Error& error) {
    out_of_memory = error.kind() == ErrorKind::OutOfMemory;
  }
  CHECK_TRUE(out_of_memory);
}

TEST(tensor_views_share) {
  const Tensor base = counting(Dims{2, 3});
  const Tensor reversed = base.with_layout({Dims{3, 2}, Dims{-1, 3}, 2});
  CHECK_EQ(reversed.data_as<float>()[0], 2.0f);
  CHECK_TRUE(reversed.storage() == base.storage());
  CHECK_EQ(base.storage()->use_count(), 2);
  CHECK_FALSE(reversed.is_same(base));
  const Tensor none = base.with_layout({Dims{0}, Dims{1}, 999});
  CHECK_EQ(none.numel(), 0);
}

TEST(tensor_view_errors) {
  const Tensor base = counting(Dims{2, 3});
  CHECK_THROWS_AS(Runtime, base.with_layout({Dims{7}, Dims{1}, 0}),
                  "as_strided: expected a view inside the storage of 6 elements, got sizes (7,), "
                  "strides (1,), offset 0");
  CHECK_THROWS_AS(Runtime, base.with_layout({Dims{3}, Dims{-1}, 1}, "flip"),
                  "flip: expected a view inside the storage of 6 elements, got sizes (3,), strides "
                  "(-1,), offset 1");
  CHECK_THROWS_AS(Runtime, base.with_layout({Dims{3}, Dims{INT64_MAX}, 1}),
                  "as_strided: expected a view inside the storage of 6 elements, got sizes (3,), "
                  "strides (9223372036854775807,), offset 1");
}

TEST(tensor_size_errors) {
  const Tensor tensor = counting(Dims{2, 3});
  CHECK_THROWS_AS(Index, tensor.size(2), "size: expected dim in [-2, 1], got 2");
  CHECK_THROWS_AS(Index, tensor.stride(-3), "stride: expected dim in [-2, 1], got -3");
  CHECK_THROWS_AS(Index, Tensor::scalar(1, DType::F32).size(0),
                  "size: expected a tensor with dims, got a 0-d one");
}

TEST(tensor_scalar_and_item) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const Tensor tensor = Tensor::scalar(Scalar(1), static_cast<DType>(i));
    CHECK_EQ(tensor.dim(), 0);
    CHECK_EQ(tensor.item(), Scalar(1));
  }
  CHECK_EQ(Tensor::scalar(2.5, DType::BF16).item(), Scalar(2.5));
  CHECK_TRUE(Tensor::scalar(true, DType::Bool).item().category() == DTypeCategory::Bool);
  CHECK_THROWS_AS(Runtime, counting(Dims{2}).item(),
                  "item: expected a tensor with one element, got 2");
  CHECK_EQ(counting(Dims{2}).with_layout({{}, {}, 1}).item(), Scalar(1.0));
}

TEST(tensor_check_writable) {
  const Tensor tensor = counting(Dims{2});
  tensor.check_writable("add_");
  CHECK_EQ(tensor.storage()->version(), 1);
  tensor.storage()->set(kReadOnly);
  CHECK_THROWS_AS(
      Runtime, tensor.check_writable("add_"),
      "add_: expected a writable tensor, got a read-only one; write to a clone() of it");
  CHECK_EQ(tensor.storage()->version(), 1);
}

TEST(tensor_frees_at_last_reference) {
  static int freed;
  freed = 0;
  char bytes[4];
  Tensor view;
  {
    const Tensor tensor(Storage::wrap(
                            bytes, 4, [](void*) { ++freed; }, nullptr),
                        Layout::contiguous(Dims{4}), DType::I8);
    view = tensor.with_layout({Dims{2}, Dims{2}, 0});
  }
  CHECK_EQ(freed, 0);
  view = Tensor();
  CHECK_EQ(freed, 1);
}

TEST(tensor_releases_owned_wrapper) {
  static void* released;
  released = nullptr;
  auto* const before = std::exchange(release_wrapper, [](void* object) { released = object; });
  int wrapper = 0;
  {
    const Tensor tensor = counting(Dims{1});
    tensor.impl()->wrapper = {&wrapper, true};
  }
  release_wrapper = before;
  CHECK_EQ(released, static_cast<void*>(&wrapper));
}
