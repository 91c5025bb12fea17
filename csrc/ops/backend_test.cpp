// Operators on a second backend, whose memory the host may not touch.
#include "core/backend.h"

#include "ops/copy.h"
#include "ops/samples_testing.h"
#include "ops/tile_testing.h"
#include "ops_activations.h"
#include "ops_arithmetic.h"
#include "ops_copying.h"
#include "ops_linalg.h"
#include "ops_reductions.h"
#include "ops_rows.h"
#include "ops_views.h"
#include "testing.h"
#include "testing_backend.h"

using namespace weft;
using weft::testing::ProtectedBackend;

namespace {

const Device kFirst{DeviceType::PrivateUse1, 0}, kSecond{DeviceType::PrivateUse1, 1};

Tensor moved(const Tensor& tensor, Device device = kFirst) {
  ProtectedBackend::there();
  return on_device(tensor, device);
}

// The same values at the same places, whatever the dtype.
void check_same(const Tensor& there, const Tensor& here) {
  CHECK_EQ(there.device(), kFirst);
  CHECK_EQ(there.dtype(), here.dtype());
  CHECK_EQ(there.sizes(), here.sizes());
  CHECK_EQ(tile::testing::values(on_device(there, {})), tile::testing::values(here));
}

Tensor numbers() { return samples::tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}); }

}  // namespace

TEST(backend_is_registered_once) {
  ProtectedBackend& backend = ProtectedBackend::there();
  CHECK_EQ(find_backend(kFirst), static_cast<Backend*>(&backend));
  CHECK_EQ(find_backend(Device{}), static_cast<Backend*>(nullptr));
  CHECK_THROWS_AS(Runtime, register_backend(DeviceType::PrivateUse1, backend),
                  "register_backend: expected one backend for privateuseone, got a second one");
  CHECK_THROWS_AS(Runtime, register_backend(DeviceType::CPU, backend),
                  "register_backend: expected another device than cpu, got it");
}

TEST(backend_devices_are_counted) {
  ProtectedBackend::there();
  CHECK_EQ(check_available("empty", Device::parse("privateuseone")), kFirst);
  CHECK_EQ(check_available("empty", Device::parse("cpu:0")), Device{});
  CHECK_THROWS_AS(Runtime, check_available("empty", Device::parse("privateuseone:2")),
                  "empty: expected a device index below 2, got privateuseone:2");
}

TEST(backend_allocates_and_frees) {
  ProtectedBackend& backend = ProtectedBackend::there();
  const size_t before = backend.memory.stats().bytes_in_use;
  {
    const Ref<Storage> storage = Storage::allocate(100, kSecond);
    CHECK_EQ(storage->device(), kSecond);
    CHECK_EQ(backend.memory.stats().bytes_in_use, before + 100);
  }
  CHECK_EQ(backend.memory.stats().bytes_in_use, before);
  CHECK_EQ(backend.memory.last_stream, (Stream{kSecond, 7}));
}

TEST(backend_memory_is_out_of_reach) {
  const Tensor there = moved(numbers());
  const std::string text =
      "data: expected memory of the CPU, got a tensor on privateuseone:0; use Tensor.cpu() to "
      "copy it to host memory first";
  CHECK_THROWS_AS(NotImplemented, there.data(), text);
  CHECK_THROWS_AS(NotImplemented, there.storage()->data(), text);
}

TEST(backend_resizes_storages) {
  const Tensor there = moved(numbers());
  there.storage()->resize(4096);
  check_same(there, numbers());
}

TEST(backend_adds) {
  const Tensor there = moved(numbers());
  check_same(ops::add(there, there, 2), ops::add(numbers(), numbers(), 2));
  const Tensor number = Tensor::scalar(3, DType::F32);  // on the CPU
  check_same(ops::add(there, number), ops::add(numbers(), number));
  check_same(ops::add(number, there), ops::add(number, numbers()));
  const Tensor sum = moved(numbers());
  ops::add_(sum, there, 1);
  check_same(sum, ops::add(numbers(), numbers()));
}

TEST(backend_refuses_two_devices) {
  const std::string text =
      "Expected all tensors to be on the same device, but found at least two devices, "
      "privateuseone:0 and cpu!";
  const Tensor there = moved(numbers());
  CHECK_THROWS_AS(Runtime, ops::add(there, numbers()), text);
  CHECK_THROWS_AS(Runtime, ops::add(numbers(), there), text);
  CHECK_THROWS_AS(Runtime, ops::add_(there, numbers(), 1), text);
  CHECK_THROWS_AS(Runtime, ops::add_(numbers(), there, 1), text);
  CHECK_THROWS_AS(Runtime, ops::mm(there, ops::t(numbers())), text);
  CHECK_THROWS_AS(Runtime, ops::add(there, moved(numbers(), kSecond)),
                  "Expected all tensors to be on the same device, but found at least two devices, "
                  "privateuseone:0 and privateuseone:1!");
}

TEST(backend_lacks_bodies) {
  CHECK_THROWS_AS(
      NotImplemented,
      ops::bmm(moved(ops::unsqueeze(numbers(), 0)), moved(ops::unsqueeze(ops::t(numbers()), 0))),
      "bmm: expected a body for the device privateuseone:0, got none; move the tensors "
      "to the CPU");
}

TEST(backend_computes_random_programs) {
  tile::testing::Random random(7);
  for (int i = 0; i < 60; ++i) {
    const Dims shape = random.shape(4, 600);
    const Tensor a = contiguous_copy(random.operand(shape, DType::F32));
    const Tensor b = contiguous_copy(random.operand(shape, DType::F64));
    const Tensor a_there = moved(a), b_there = moved(b);
    check_same(ops::mul(a_there, b_there), ops::mul(a, b));
    check_same(ops::sum(a_there), ops::sum(a));
    if (a.dim() == 0) continue;
    check_same(ops::softmax(a_there, -1), ops::softmax(a, -1));
    check_same(ops::sum(b_there, Dims{0}), ops::sum(b, Dims{0}));
  }
}

TEST(backend_copies_random_layouts) {
  tile::testing::Random random(11);
  const DType dtypes[] = {DType::F32, DType::F64, DType::F16, DType::I64, DType::U8, DType::C64};
  for (int i = 0; i < 120; ++i) {
    const Dims shape = random.shape(4, 2000);
    const Tensor to = random.tensor(shape, dtypes[random.below(6)]);
    const Tensor from = random.operand(shape, dtypes[random.below(6)]);
    if (is_complex(from.dtype()) && !is_complex(to.dtype())) continue;
    // The same layouts there, gaps included.
    const auto whole = [](const Tensor& tensor) {
      const auto bytes = static_cast<int64_t>(tensor.storage()->nbytes());
      const Tensor memory(tensor.storage(), Layout::contiguous(Dims{bytes}), DType::U8);
      return Tensor(moved(memory).storage(), tensor.layout(), tensor.dtype());
    };
    const Tensor to_there = whole(to), from_there = whole(from);
    const Tensor expected = ops::clone(to, {});
    copy_into(expected, from, "copy_");
    copy_into(to_there, from_there, "copy_");
    check_same(to_there, expected);
    ops::zero_(to_there);
    copy_into(to_there, from, "copy_");
    check_same(to_there, expected);
    copy_into(to, from_there, "copy_");
    CHECK_EQ(tile::testing::values(to), tile::testing::values(expected));
  }
}

TEST(backend_fills) {
  const Tensor there = Tensor::empty(Dims{3, 2}, DType::I32, kFirst);
  ops::fill_(ops::t(there), Scalar(5));
  check_same(there, samples::tensor_of<int32_t>({3, 2}, {5, 5, 5, 5, 5, 5}));
  CHECK_EQ(ops::sum(there).item().to_int(), 30);
}

TEST(backend_copies_between_its_devices) {
  const Tensor second = moved(moved(numbers()), kSecond);
  CHECK_EQ(second.device(), kSecond);
  check_same(on_device(second, kFirst), numbers());
}

TEST(streams_and_events) {
  ProtectedBackend::there();
  for (const Device device : {Device{}, kFirst}) {
    const Stream stream{device};
    Event event;
    CHECK_TRUE(event.query());
    event.record(stream);
    event.wait(stream);
    event.synchronize();
    stream.synchronize();
    CHECK_TRUE(event.query() && stream.query());
  }
}
