// Groups with variances, norms and logsumexp of rows.
#include "core/thread_pool.h"
#include "ops_arithmetic.h"
#include "ops_compare.h"
#include "ops_factories.h"
#include "ops_statistics.h"
#include "ops_unary.h"
#include "ops_views.h"
#include "runtime/fused.h"
#include "testing.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;

const int64_t kLast[] = {-1};

Tensor waves(int64_t rows, int64_t length, DType dtype = DType::F32) {
  const int64_t sizes[] = {rows, length};
  const Tensor steps = ops::mul(ops::arange(Scalar(rows * length), dtype), Scalar(0.37));
  return ops::reshape(ops::sin(steps), sizes);
}

FusedStep row_step(const char* op, FusedOperand of, bool keepdim = true) {
  FusedStep step{op, {of}, {}};
  step.over = Over::LastDim;
  step.keepdim = keepdim;
  return step;
}

// exp(x) over its deviation, and the deviation without the row's dimension.
FusedSpec deviation() {
  FusedSpec spec;
  spec.input_count = 1;
  spec.constants = {Value(1.0)};
  spec.steps = {{"exp", {{Kind::Input, 0}}, {}},
                row_step("_std", {Kind::Step, 0}),
                {"div_Tensor", {{Kind::Step, 0}, {Kind::Step, 1}}, {}},
                row_step("_std", {Kind::Step, 0}, false)};
  spec.steps[1].numbers = spec.steps[3].numbers = {{Kind::Constant, 0}};
  spec.outputs = {2, 3};
  return spec;
}

// The gradient of a variance, from one of rows that lacks their dimension.
FusedSpec variance_backward() {
  FusedSpec spec;
  spec.input_count = 2;
  spec.constants = {Value(int64_t{1}), Value(0.5)};
  spec.steps = {
      row_step("mean_dim", {Kind::Input, 0}),
      {"sub_Tensor", {{Kind::Input, 0}, {Kind::Step, 0}}, {{Kind::Constant, 0}}},
      {"_var_scale", {{Kind::Input, 1}}, {{Kind::Length, 0}, {Kind::Constant, 1}}},
      {"mul_Tensor", {{Kind::Step, 2}, {Kind::Step, 1}}, {}},
  };
  spec.outputs = {3};
  spec.squeezed_inputs = 2;
  return spec;
}

// Calls body(rows, length, dtype) for small and large tensors, on one thread and on three.
template <class Body>
void for_each_shape(Body&& body) {
  const int before = num_threads();
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    for (auto [rows, length] : {std::pair{3, 2}, {7, 33}, {300, 64}, {90, 1031}, {2, 40000}}) {
      body(rows, length, DType::F32);
      body(rows, length, DType::F64);
    }
  }
  set_num_threads(before);
}

TEST(fused_rows_give_what_reductions_give) {
  const auto group = make_ref<FusedGroup>(deviation());
  for_each_shape([&](int64_t rows, int64_t length, DType dtype) {
    const Tensor x = waves(rows, length, dtype), e = ops::exp(x);
    const Value args[] = {Value(x)};
    Value results[2];
    CHECK_TRUE(group->run(args, results));
    const Tensor wanted = ops::_std(e, IntList(kLast), 1.0, true);
    CHECK_TRUE(ops::equal(results[0].to_tensor(), ops::div(e, wanted)));
    CHECK_TRUE(ops::equal(results[1].to_tensor(), ops::squeeze(wanted, -1)));
  });
}

TEST(fused_rows_give_the_gradients_of_reductions) {
  const auto group = make_ref<FusedGroup>(variance_backward());
  for_each_shape([&](int64_t rows, int64_t length, DType dtype) {
    const Tensor x = waves(rows, length, dtype);
    const Tensor grad = ops::select(waves(rows, 2, dtype), 1, 1);
    const Value args[] = {Value(x), Value(grad)};
    Value results[1];
    CHECK_TRUE(group->run(args, results));
    const Tensor wanted = ops::_var_backward(grad, x, IntList(kLast), 0.5);
    CHECK_TRUE(ops::equal(results[0].to_tensor(), wanted));
    const std::vector<Value> plain = group->run_operators(args, group->spec().outputs);
    CHECK_TRUE(ops::equal(plain[0].to_tensor(), wanted));
  });
}

TEST(fused_rows_chain_reductions) {
  FusedSpec spec;  // logsumexp of rows of length 1 by their norms
  spec.input_count = 1;
  spec.steps = {row_step("_norm2", {Kind::Input, 0}),
                {"div_Tensor", {{Kind::Input, 0}, {Kind::Step, 0}}, {}},
                row_step("logsumexp", {Kind::Step, 1}, false)};
  spec.outputs = {2};
  const auto group = make_ref<FusedGroup>(spec);
  for_each_shape([&](int64_t rows, int64_t length, DType dtype) {
    const Tensor x = waves(rows, length, dtype);
    const Value args[] = {Value(x)};
    Value results[1];
    CHECK_TRUE(group->run(args, results));
    const Tensor unit = ops::div(x, ops::_norm2(x, IntList(kLast), true));
    CHECK_TRUE(ops::equal(results[0].to_tensor(), ops::logsumexp(unit, kLast, false)));
  });
  const Value halves[] = {Value(waves(4, 8, DType::F16))};
  Value results[1];
  CHECK_FALSE(group->run(halves, results));  // operators round in between
}

}  // namespace
}  // namespace weft
