#include "core/thread_pool.h"
#include "ops/tile_testing.h"
#include "testing.h"

namespace weft::tile::testing {
namespace {

const KernelSet k_add = kernels<uint8_t, int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot* s) {
      const T alpha = scalar_at<T>(s, kFirstAttribute);
      auto out = static_cast<T*>(p[0]);
      auto a = static_cast<const T*>(p[1]), b = static_cast<const T*>(p[2]);
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(a[i] + alpha * b[i]);
    });
const KernelSet k_mul = kernels<uint8_t, int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      auto out = static_cast<T*>(p[0]);
      auto a = static_cast<const T*>(p[1]), b = static_cast<const T*>(p[2]);
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(a[i] * b[i]);
    });
const KernelSet k_half =
    kernels<float, double>([]<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      for (int64_t i = 0; i < n; ++i) {
        static_cast<T*>(p[0])[i] = static_cast<const T*>(p[1])[i] / 2;
      }
    });
const KernelSet k_less = kernels<uint8_t, int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      auto a = static_cast<const T*>(p[1]), b = static_cast<const T*>(p[2]);
      for (int64_t i = 0; i < n; ++i) static_cast<bool*>(p[0])[i] = a[i] < b[i];
    });
const KernelSet k_where = kernels<uint8_t, int32_t, int64_t, float, double>(
    []<class T>(void* const* p, int64_t n, const ScalarSlot*) {
      auto c = static_cast<const bool*>(p[1]);
      auto a = static_cast<const T*>(p[2]), b = static_cast<const T*>(p[3]);
      for (int64_t i = 0; i < n; ++i) static_cast<T*>(p[0])[i] = c[i] ? a[i] : b[i];
    });

constexpr Slot in(uint8_t index, SlotType type = SlotType::Compute) {
  return {SlotKind::Input, type, index};
}
constexpr Slot out(uint8_t index, SlotType type = SlotType::Compute) {
  return {SlotKind::Output, type, index};
}
constexpr Pass k_one_pass[] = {{0, 1}};

const Slot k_binary_slots[] = {in(0), in(1), out(0)};
const Step k_add_steps[] = {{.horizontal = &k_add, .operand_count = 3, .operands = {2, 0, 1}}};
const Program k_add_program{.name = "add",
                            .input_count = 2,
                            .output_count = 1,
                            .attribute_count = 1,
                            .promotion = Promotion::Common,
                            .weak_attributes = 1,
                            .slots = k_binary_slots,
                            .steps = k_add_steps,
                            .passes = k_one_pass};

const Slot k_half_slots[] = {in(0), out(0)};
const Step k_half_steps[] = {{.horizontal = &k_half, .operand_count = 2, .operands = {1, 0}}};
const Program k_half_program{.name = "half",
                             .input_count = 1,
                             .output_count = 1,
                             .attribute_count = 0,
                             .promotion = Promotion::Floating,
                             .slots = k_half_slots,
                             .steps = k_half_steps,
                             .passes = k_one_pass};
const Program k_plain_half_program{.name = "half",
                                   .input_count = 1,
                                   .output_count = 1,
                                   .attribute_count = 0,
                                   .promotion = Promotion::Common,
                                   .slots = k_half_slots,
                                   .steps = k_half_steps,
                                   .passes = k_one_pass};

const Slot k_less_slots[] = {in(0), in(1), out(0, SlotType::Bool)};
const Step k_less_steps[] = {{.horizontal = &k_less, .operand_count = 3, .operands = {2, 0, 1}}};
const Program k_less_program{.name = "lt",
                             .input_count = 2,
                             .output_count = 1,
                             .attribute_count = 0,
                             .promotion = Promotion::Common,
                             .slots = k_less_slots,
                             .steps = k_less_steps,
                             .passes = k_one_pass};

const Slot k_where_slots[] = {in(0, SlotType::Bool), in(1), in(2), out(0)};
const Step k_where_steps[] = {
    {.horizontal = &k_where, .operand_count = 4, .operands = {3, 0, 1, 2}}};
const Program k_where_program{.name = "where",
                              .input_count = 3,
                              .output_count = 1,
                              .attribute_count = 0,
                              .promotion = Promotion::Common,
                              .bool_inputs = 1,
                              .slots = k_where_slots,
                              .steps = k_where_steps,
                              .passes = k_one_pass};

// product = a * b; fused = product * c; mask = product < fused
const Slot k_fused_slots[] = {
    in(0), in(1), in(2), out(0), out(1, SlotType::Bool), {SlotKind::Tile, SlotType::Compute}};
const Step k_fused_steps[] = {{.horizontal = &k_mul, .operand_count = 3, .operands = {5, 0, 1}},
                              {.horizontal = &k_mul, .operand_count = 3, .operands = {3, 5, 2}},
                              {.horizontal = &k_less, .operand_count = 3, .operands = {4, 5, 3}}};
constexpr Pass k_fused_passes[] = {{0, 3}};
const Program k_fused_program{.name = "fused",
                              .input_count = 3,
                              .output_count = 2,
                              .attribute_count = 0,
                              .promotion = Promotion::Common,
                              .slots = k_fused_slots,
                              .steps = k_fused_steps,
                              .passes = k_fused_passes};

Tensor call(const Program& program, std::initializer_list<const Tensor*> inputs,
            std::initializer_list<Scalar> attributes = {}, Tensor result = {}) {
  Call call{.inputs = {inputs.begin(), inputs.size()},
            .attributes = {attributes.begin(), attributes.size()}};
  run(program, call, {&result, 1});
  return result;
}
Tensor add(const Tensor& a, const Tensor& b, Scalar alpha = 1, Tensor result = {}) {
  return call(k_add_program, {&a, &b}, {alpha}, std::move(result));
}

std::vector<double> expected_add(const Tensor& a, const Tensor& b, IntList shape, double alpha) {
  const auto x = values(expand(a, shape)), y = values(expand(b, shape));
  std::vector<double> sum(x.size());
  for (size_t i = 0; i < x.size(); ++i) sum[i] = x[i] + alpha * y[i];
  return sum;
}

constexpr DType k_dtypes[] = {DType::U8,  DType::I32,  DType::I64, DType::F16,
                              DType::F32, DType::BF16, DType::F64};

TEST(tile_pointwise_random_operands) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const Dims shape = random.shape(5, round % 20 == 0 ? 200000 : 3000);
    const Tensor a = random.operand(shape, k_dtypes[random.below(7)]);
    const Tensor b = random.operand(shape, k_dtypes[random.below(7)]);
    const Dims common = broadcast_sizes("test", a.sizes(), b.sizes());
    const Tensor sum = add(a, b, 2);
    CHECK_EQ(sum.sizes(), common);
    CHECK_TRUE(values(sum) == expected_add(a, b, common, 2));
  }
}

TEST(tile_pointwise_plain_operands) {
  Random random(12);
  for (int round = 0; round < 400; ++round) {
    const Dims shape = random.shape(4, 6000);
    const DType dtype = k_dtypes[random.below(7)];
    // One operand of full size, the other one of it, of its last dimensions or of one element.
    IntList tail = IntList(shape).last(
        static_cast<size_t>(random.below(static_cast<int64_t>(shape.size()) + 1)));
    const Dims ones(tail.size(), 1);
    if (random.below(3) == 0) tail = ones;
    const Tensor a = random.tensor(shape, dtype, true), b = random.tensor(tail, dtype, true);
    const auto expected = expected_add(a, b, shape, 2), swapped = expected_add(b, a, shape, 2);
    CHECK_TRUE(values(add(a, b, 2)) == expected);
    CHECK_TRUE(values(add(b, a, 2)) == swapped);
    // A part of the result as the other operand: its old values count.
    const Tensor part = a.numel() ? a.with_layout(Layout{Dims(ones), Dims(ones), 0}) : b;
    const auto over = expected_add(a, part, shape, 1);
    add(a, part, 1, a);
    CHECK_TRUE(values(a) == over);
  }
}

TEST(tile_pointwise_random_results) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    const Dims shape = random.shape(4, round % 20 == 0 ? 200000 : 3000);
    const Tensor a = random.operand(shape, DType::F32), b = random.operand(shape, DType::U8);
    const Dims common = broadcast_sizes("test", a.sizes(), b.sizes());
    const Tensor result = random.tensor(common, random.below(2) ? DType::F64 : DType::F32);
    const auto expected = expected_add(a, b, common, 1);
    add(a, b, 1, result);
    CHECK_TRUE(values(result) == expected);
  }
}

TEST(tile_pointwise_masks_and_comparisons) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const Dims shape = random.shape(3, 3000);
    const Tensor a = random.tensor(shape, DType::F32), b = random.operand(shape, DType::I32);
    const Tensor less = call(k_less_program, {&a, &b});
    CHECK_EQ(less.dtype(), DType::Bool);
    const Tensor smaller = call(k_where_program, {&less, &a, &b});
    CHECK_EQ(smaller.dtype(), DType::F32);
    const auto x = values(a), y = values(expand(b, shape)), m = values(smaller);
    for (size_t i = 0; i < x.size(); ++i) CHECK_EQ(m[i], std::min(x[i], y[i]));
  }
}

TEST(tile_pointwise_several_steps) {
  Random random(4);
  for (int round = 0; round < 100; ++round) {
    const Dims shape = random.shape(3, round % 10 ? 3000 : 100000);
    const Tensor a = random.tensor(shape, DType::F32), b = random.operand(shape, DType::F32);
    const Tensor c = random.operand(shape, DType::F16);
    const auto x = values(a), y = values(expand(b, shape)), z = values(expand(c, shape));
    const Tensor* inputs[] = {&a, &b, &c};
    Tensor results[2];
    if (round % 3 == 0) results[0] = a;  // written before the last step: must not disturb
    if (round % 3 == 1) results[0] = random.tensor(shape, DType::F64);
    run(k_fused_program, {.inputs = inputs}, results);
    const auto fused = values(results[0]), mask = values(results[1]);
    for (size_t i = 0; i < x.size(); ++i) {
      CHECK_EQ(fused[i], x[i] * y[i] * z[i]);
      CHECK_EQ(mask[i] != 0, x[i] * y[i] < x[i] * y[i] * z[i]);
    }
  }
}

TEST(tile_pointwise_promotion) {
  Random random(5);
  auto dims = [&](DType dtype) { return random.tensor(Dims{3}, dtype); };
  auto zero = [&](DType dtype) { return random.tensor(Dims{}, dtype); };
  CHECK_EQ(add(dims(DType::I32), dims(DType::F32)).dtype(), DType::F32);
  CHECK_EQ(add(dims(DType::F32), zero(DType::F64)).dtype(), DType::F32);
  CHECK_EQ(add(dims(DType::I32), zero(DType::I64)).dtype(), DType::I32);
  CHECK_EQ(add(dims(DType::I32), zero(DType::F64)).dtype(), DType::F64);
  CHECK_EQ(add(zero(DType::F32), zero(DType::F64)).dtype(), DType::F64);
  CHECK_EQ(add(dims(DType::F16), dims(DType::I64)).dtype(), DType::F16);
  CHECK_EQ(add(dims(DType::F16), dims(DType::BF16)).dtype(), DType::F32);
  const Tensor ints = dims(DType::I64);
  CHECK_EQ(call(k_half_program, {&ints}).dtype(), DType::F32);
  const Tensor* inputs[] = {&ints};
  CHECK_EQ(result_dtype(k_half_program, {.inputs = inputs}), DType::F32);
  CHECK_EQ(result_dtype(k_half_program, {.inputs = inputs, .dtype = DType::F64}), DType::F64);
}

TEST(tile_pointwise_keeps_layout) {
  Random random(6);
  const Dims shape{2, 3, 4, 5}, channels_last{60, 1, 15, 3};
  Tensor a = random.tensor(shape, DType::F32, true);
  const Tensor b = a.with_layout(Layout{shape, channels_last, 0});
  CHECK_EQ(add(b, b).strides(), channels_last);
  const Tensor bias = random.tensor(Dims{3, 1, 1}, DType::F32, true);
  CHECK_EQ(add(b, bias).strides(), channels_last);
  CHECK_EQ(add(a, bias).strides(), (Dims{60, 20, 5, 1}));
  const Tensor t = random.tensor(Dims{4, 6}, DType::F32, true).with_layout({{6, 4}, {1, 6}, 0});
  CHECK_EQ(add(t, t).strides(), (Dims{1, 6}));
}

TEST(tile_pointwise_empty_and_zero_dims) {
  Random random(7);
  const Tensor empty = random.tensor(Dims{0, 3}, DType::F32, true);
  const Tensor row = random.tensor(Dims{3}, DType::F32, true);
  CHECK_EQ(add(empty, row).sizes(), (Dims{0, 3}));
  const Tensor one = Tensor::scalar(3.5, DType::F32), two = Tensor::scalar(2, DType::I64);
  const Tensor sum = add(one, two);
  CHECK_EQ(sum.sizes(), Dims{});
  CHECK_EQ(sum.item().to_double(), 5.5);
}

TEST(tile_pointwise_in_place) {
  Random random(8);
  const Tensor a = random.tensor(Dims{100}, DType::F32, true);
  const Tensor b = random.tensor(Dims{100}, DType::F64, true);
  const auto expected = expected_add(a, b, a.sizes(), 1);
  const uint32_t before = a.storage()->version();
  CHECK_TRUE(add(a, b, 1, a).is_same(a));
  CHECK_TRUE(values(a) == expected);
  CHECK_EQ(a.storage()->version(), before + 1);
  add(a, a, 1, a);
  CHECK_EQ(values(a)[7], 2 * expected[7]);
}

TEST(tile_pointwise_results_over_inputs) {
  Random random(9);
  // Halves of one row: apart, although their extents cross.
  const Tensor both = random.tensor(Dims{40, 20}, DType::F32, true);
  const Tensor left = both.with_layout({{40, 10}, {20, 1}, 0});
  const Tensor right = both.with_layout({{40, 10}, {20, 1}, 10});
  const auto halves = expected_add(left, right, left.sizes(), 1);
  add(left, right, 1, left);
  CHECK_TRUE(values(left) == halves);
  // Shifted by one, reversed, broadcast from inside: the old values count.
  const Tensor line = random.tensor(Dims{3001}, DType::F32, true);
  const Tensor front = line.with_layout({{3000}, {1}, 0}),
               back = line.with_layout({{3000}, {1}, 1});
  const auto shifted = expected_add(front, back, front.sizes(), 1);
  add(front, back, 1, back);
  CHECK_TRUE(values(back) == shifted);
  const Tensor reversed = line.with_layout({{3000}, {-1}, 2999});
  const auto mirrored = expected_add(front, reversed, front.sizes(), 1);
  add(front, reversed, 1, front);
  CHECK_TRUE(values(front) == mirrored);
  const Tensor middle = line.with_layout({{}, {}, 1500});
  const auto centred = expected_add(front, middle, front.sizes(), 1);
  add(front, middle, 1, front);
  CHECK_TRUE(values(front) == centred);
}

TEST(tile_pointwise_errors) {
  Random random(10);
  const Tensor a = random.tensor(Dims{2, 3}, DType::F32, true);
  const Tensor b = random.tensor(Dims{4}, DType::F32, true);
  const Tensor ints = random.tensor(Dims{2, 3}, DType::I64, true);
  CHECK_THROWS_AS(Runtime, add(a, b), "add: expected broadcastable shapes, got (2, 3) and (4,)");
  CHECK_THROWS_AS(Runtime, add(a, a, 1, b), "add: expected an output of shape (2, 3), got (4,)");
  CHECK_THROWS_AS(Runtime, add(a, ints, 1, ints),
                  "add: expected an output dtype that float32 can be cast to, got int64");
  CHECK_THROWS_AS(Runtime, add(ints, ints, 0.5),
                  "add: expected a number that converts to int64, got 0.5");
  CHECK_THROWS_AS(
      NotImplemented, call(k_plain_half_program, {&ints}),
      "half: expected dtype float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2, "
      "float8_e4m3fnuz, float8_e5m2fnuz, got int64");
  CHECK_THROWS_AS(Runtime, call(k_where_program, {&a, &a, &a}),
                  "where: expected a mask of dtype bool, got float32");
  const Tensor missing;
  CHECK_THROWS_AS(Runtime, add(a, missing), "add: expected a tensor as operand 1, got None");
  const Tensor wide = a.with_layout({{5, 3}, {0, 1}, 0});
  CHECK_THROWS_AS(Runtime, add(wide, wide, 1, wide),
                  "add: expected an output with distinct elements, got strides (0, 1) for shape "
                  "(5, 3); clone() it before writing");
  a.storage()->set(kReadOnly);
  CHECK_THROWS_AS(Runtime, add(a, a, 1, a),
                  "add: expected a writable tensor, got a read-only one; write to a clone() of it");
}

TEST(tile_pointwise_threads) {
  Random random(11);
  const Dims shapes[] = {{250007}, {301, 999}, {7, 40001}, {100003, 3}};
  for (const Dims& shape : shapes) {
    const Tensor a = random.tensor(shape, DType::F32, true);
    const Tensor b = random.tensor(IntList(shape).last(1), DType::F32, true);
    CHECK_TRUE(values(add(a, a)) == expected_add(a, a, shape, 1));
    CHECK_TRUE(values(add(a, b)) == expected_add(a, b, shape, 1));
  }
}

}  // namespace
}  // namespace weft::tile::testing
