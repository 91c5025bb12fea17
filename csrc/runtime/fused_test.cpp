#include "runtime/fused.h"

#include "ops.h"
#include "runtime/native_code.h"
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
    const std::vector<Value> plain = group->run_operators(args, group->spec().outputs);
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
  CHECK_THROWS_MSG(group->run_operators(args, group->spec().outputs),
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

TEST(native_code_refuses_what_is_no_image) {
  CHECK_THROWS_MSG(NativeCode::load(""), "native code: expected 8 more bytes, got 0");
  CHECK_THROWS_MSG(NativeCode::load("ELF.....1234"),
                   "native code: expected an image, got other data");
  CHECK_THROWS_MSG(NativeCode::load("WFTNATIV"), "native code: expected 4 more bytes, got 0");
}

}  // namespace
}  // namespace weft
