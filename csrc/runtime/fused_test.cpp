#include "runtime/fused.h"

#include "core/thread_pool.h"
#include "ops.h"
#include "runtime/fused_epilogue.h"
#include "testing.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;

Tensor ramp(int64_t count, double step, DType dtype = DType::F32) {
  return ops::mul(ops::arange(Scalar(count), dtype), Scalar(step));
}

// exp(x * y) + x
FusedSpec chain() {
  FusedSpec spec;
  spec.input_count = 2;
  spec.constants = {Value(int64_t{1})};
  spec.steps = {
      {"mul_Tensor", {{Kind::Input, 0}, {Kind::Input, 1}}, {}},
      {"exp", {{Kind::Step, 0}}, {}},
      {"add_Tensor", {{Kind::Step, 1}, {Kind::Input, 0}}, {{Kind::Constant, 0}}},
  };
  spec.outputs = {2};
  return spec;
}

Tensor eager(const Tensor& x, const Tensor& y) {
  return ops::add(ops::exp(ops::mul(x, y)), x, Scalar(1));
}

TEST(fused_gives_what_the_operators_give) {
  const auto group = make_ref<FusedGroup>(chain());
  for (int64_t count : {1, 700, 70000}) {
    const Tensor x = ramp(count, 1e-4), y = ramp(count, -2e-5);
    const Value args[] = {Value(x), Value(y)};
    Value results[1];
    CHECK_TRUE(group->run(args, results));
    CHECK_TRUE(ops::equal(results[0].to_tensor(), eager(x, y)));
    Value plain[1];
    group->run_operators(args, plain);
    CHECK_TRUE(ops::equal(plain[0].to_tensor(), eager(x, y)));
  }
}

TEST(fused_leaves_other_dtypes_to_the_operators) {
  const auto group = make_ref<FusedGroup>(chain());
  const Tensor x = ramp(5, 1.0), wide = ramp(5, 1.0, DType::F64);
  Value results[1];
  const Value mixed[] = {Value(x), Value(wide)};
  CHECK_TRUE(!group->run(mixed, results));
  const Value number[] = {Value(x), Value(2.0)};
  CHECK_TRUE(!group->run(number, results));
  const Value nothing[] = {Value(x), Value()};
  CHECK_TRUE(!group->run(nothing, results));
}

TEST(fused_leaves_shapes_that_do_not_fit_to_the_operators) {
  const auto group = make_ref<FusedGroup>(chain());
  const Value args[] = {Value(ramp(5, 1.0)), Value(ramp(4, 1.0))};
  Value results[1];
  CHECK_TRUE(!group->run(args, results));
  CHECK_THROWS_MSG(group->run_operators(args, results),
                   "mul: expected broadcastable shapes, got (5,) and (4,)");
}

TEST(fused_refuses_bad_specs) {
  FusedSpec spec = chain();
  spec.steps[1].op = "sum";
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected a pointwise operator, got 'sum'");
  spec = chain();
  spec.steps[0].tensors[0].index = 2;
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an operand below 2 in step 0, got 2");
  spec = chain();
  spec.outputs = {3};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected distinct steps as outputs, got 3");
  auto backward = std::make_shared<FusedBackward>();
  backward->group = make_ref<FusedGroup>(chain());
  spec = chain();
  spec.backward = backward;
  CHECK_THROWS_MSG(FusedGroup{spec},
                   "fused: expected a gradient that fits the group's inputs and outputs");
}

// relu(mm(x, y)), and the product itself.
FusedSpec headed() {
  FusedSpec spec;
  spec.input_count = 2;
  FusedStep head{"mm", {}, {{Kind::Input, 0}, {Kind::Input, 1}}};
  head.over = FusedStep::Over::Head;
  spec.steps = {head, {"relu", {{Kind::Step, 0}}, {}}};
  spec.outputs = {1, 0};
  return spec;
}

TEST(fused_head_gives_what_the_operators_give) {
  const auto group = make_ref<FusedGroup>(headed());
  for (int64_t n : {3, 200}) {
    const int64_t sizes[] = {n, n};
    const Tensor x = ops::reshape(ramp(n * n, 1e-3), sizes);
    const Value args[] = {Value(x), Value(ops::neg(x))};
    Value results[2];
    for (int run = 0; run < 3; ++run) {
      CHECK_TRUE(group->run(args, results));
      const Tensor product = ops::mm(x, ops::neg(x));
      CHECK_TRUE(ops::equal(results[1].to_tensor(), product));
      CHECK_TRUE(ops::equal(results[0].to_tensor(), ops::relu(product)));
    }
    const Value wrong[] = {Value(x), Value(ramp(3, 1))};
    CHECK_TRUE(!group->run(wrong, results));
    const Value number[] = {Value(x), Value(2.0)};
    CHECK_TRUE(!group->run(number, results));
  }
}

Tensor square(int64_t side, double step) {
  const int64_t sizes[] = {side, side};
  return ops::reshape(ramp(side * side, step), sizes);
}

TEST(fused_epilogue_runs_on_parts) {
  const auto group = make_ref<FusedGroup>(chain());
  const Tensor x = square(200, 1e-4), product = square(200, -2e-5);
  const Tensor expected = eager(x, product);
  for (bool keeps : {true, false}) {
    const Value given(x);
    FusedArgs args;
    args.set(0, given);
    FusedEpilogue epilogue(*group, args, keeps);
    CHECK_TRUE(epilogue.begin(product, 200));
    epilogue.part({0, 200, 0, 120});
    epilogue.part({50, 150, 120, 80});
    epilogue.part({0, 50, 120, 80});
    Value result;
    epilogue.finish(&result);
    CHECK_TRUE(ops::equal(result.to_tensor(), expected));
    CHECK_EQ(result.to_tensor().data() == product.data(), !keeps);
  }
}

// softmax(x * y) over the last dimension, of 0.5 * y.
TEST(fused_epilogue_runs_rows_when_they_are_complete) {
  FusedSpec spec;
  spec.input_count = 2;
  FusedStep softmax{"softmax_int", {{Kind::Step, 0}}, {}};
  softmax.over = FusedStep::Over::LastDim;
  spec.steps = {{"mul_Tensor", {{Kind::Input, 0}, {Kind::Input, 1}}, {}}, softmax};
  spec.outputs = {1};
  const auto group = make_ref<FusedGroup>(spec);
  const int before = num_threads();
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    const Tensor x = square(200, 1e-4), product = square(200, -2e-5);
    const Tensor expected = ops::softmax(ops::mul(x, product), -1, std::nullopt);
    const Value given(x);
    FusedArgs args;
    args.set(0, given);
    FusedEpilogue epilogue(*group, args, false);
    CHECK_TRUE(epilogue.begin(product, 200));
    epilogue.part({0, 170, 0, 120});  // no row is complete
    epilogue.part({0, 31, 120, 80});
    epilogue.part({170, 30, 0, 200});
    epilogue.part({31, 139, 120, 80});
    Value result;
    epilogue.finish(&result);
    CHECK_TRUE(ops::equal(result.to_tensor(), expected));
    CHECK_TRUE(result.to_tensor().data() == product.data());
    FusedEpilogue lines(*group, args, false);
    CHECK_FALSE(lines.begin(square(200, 1), 40000));  // parts may end within a row
  }
  set_num_threads(before);
}

TEST(fused_epilogue_leaves_what_lies_or_broadcasts_otherwise) {
  const auto group = make_ref<FusedGroup>(chain());
  const auto begins = [&](const Tensor& x, const Tensor& product) {
    const Value given(x);
    FusedArgs args;
    args.set(0, given);
    return FusedEpilogue(*group, args, false).begin(product, product.sizes().back());
  };
  const Tensor product = square(200, 1e-4);
  CHECK_TRUE(begins(ramp(200, 1e-4), product));
  CHECK_TRUE(begins(ramp(1, 1e-4), product));
  CHECK_FALSE(begins(square(100, 1e-4), square(100, 1e-4)));               // small
  CHECK_FALSE(begins(ops::transpose(square(200, 1e-4), 0, 1), product));   // in another order
  CHECK_FALSE(begins(ops::stack(TensorList{product, product}), product));  // larger
  CHECK_FALSE(begins(ramp(7, 1e-4), product));                             // does not broadcast
  CHECK_FALSE(begins(ramp(200, 1e-4, DType::F64), product));               // another dtype
}

TEST(fused_head_refuses_bad_specs) {
  FusedSpec spec = headed();
  spec.steps[0].op = "relu";
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected a product or a convolution, got 'relu'");
  spec = headed();
  spec.steps[0].numbers.pop_back();
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected 2 arguments of mm, got 1");
  spec = headed();
  spec.steps[0].numbers[1].index = 2;
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an argument of mm, got 2");
  spec = headed();
  spec.constants = {Value(1.0)};
  spec.steps[0].numbers[1] = {Kind::Constant, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an argument of mm, got 0");
  spec = headed();
  spec.steps[1].tensors[0] = {Kind::Input, 2};  // where the runtime keeps the product
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an operand that is there in step 1, got 2");
  spec = headed();
  spec.steps[1] = spec.steps[0];
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected one head, got 'mm' too");
  spec = headed();
  spec.outputs = {0, 1, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected distinct steps as outputs, got 0");
  spec = headed();
  spec.outputs = {0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected 1 to 64 steps and some output, got 1 and 0");
  spec = chain();
  spec.steps[1].over = FusedStep::Over::Head;
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected a product or a convolution, got 'exp'");
}

// relu(mm(exp(x), y)).
FusedSpec led() {
  FusedSpec spec = headed();
  spec.steps[0].numbers[0] = {Kind::Step, 0};
  spec.steps[1].tensors[0] = {Kind::Step, 1};
  spec.steps.insert(spec.steps.begin(), {"exp", {{Kind::Input, 0}}, {}});
  spec.outputs = {2};
  return spec;
}

TEST(fused_prologue_gives_what_the_operators_give) {
  const auto group = make_ref<FusedGroup>(led());
  FusedSpec alone = led();
  alone.steps.pop_back();
  alone.outputs = {1};
  const auto product = make_ref<FusedGroup>(alone);
  for (int64_t m : {3, 1700}) {
    const int64_t left[] = {m, 40}, right[] = {40, 30};
    const Tensor x = ops::reshape(ramp(m * 40, 1e-5), left);
    const Tensor y = ops::reshape(ramp(40 * 30, -1e-3), right);
    const Value args[] = {Value(x), Value(y)};
    const Tensor expected = ops::mm(ops::exp(x), y);
    Value result;
    for (int run = 0; run < 3; ++run) {
      CHECK_TRUE(group->run(args, &result));
      CHECK_TRUE(ops::equal(result.to_tensor(), ops::relu(expected)));
      CHECK_TRUE(product->run(args, &result));
      CHECK_TRUE(ops::equal(result.to_tensor(), expected));
    }
    const Value wrong[] = {Value(x), Value(ramp(3, 1))};
    CHECK_TRUE(!group->run(wrong, &result));
  }
}

TEST(fused_prologue_refuses_bad_specs) {
  FusedSpec spec = led();
  spec.steps[1].numbers[0] = {Kind::Input, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected a head that reads what stands before it");
  spec = led();
  spec.steps[1].numbers[1] = {Kind::Step, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an argument of mm, got 0");
  spec = led();
  spec.steps[1].numbers[0].index = 1;
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an argument of mm, got 1");
  spec = led();
  spec.steps[2].tensors[0] = {Kind::Step, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected what stands behind the head, got 0");
  spec = led();
  spec.outputs = {2, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected results behind the head, got 0");
  spec = led();
  spec.steps[0].tensors[0] = {Kind::Step, 0};
  CHECK_THROWS_MSG(FusedGroup{spec}, "fused: expected an operand below 0 in step 0, got 0");
}

TEST(native_code_refuses_what_is_no_image) {
  CHECK_THROWS_MSG(NativeCode::load(""), "native code: expected 8 more bytes, got 0");
  CHECK_THROWS_MSG(NativeCode::load("ELF.....1234"),
                   "native code: expected an image, got other data");
  CHECK_THROWS_MSG(NativeCode::load("WFTNATIV"), "native code: expected 4 more bytes, got 0");
}

}  // namespace
}  // namespace weft
