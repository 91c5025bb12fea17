// What the gradient of a group becomes with its sums and the statistics that the group keeps.
#include "runtime/fused_totals.h"

#include <algorithm>

#include "testing.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;
using Source = FusedTotals::Source;

FusedStep mean_of(FusedOperand of) {
  FusedStep step{"mean_dim", {of}, {}};
  step.over = Over::LastDim;
  return step;
}

// y = (x - mean(x)) * mean(x), and its gradient: of x where it is centred, and where its mean is
// taken, which reads the mean again.
FusedSpec centred() {
  FusedSpec gradient;
  gradient.input_count = 3;
  gradient.constants = {Value(int64_t{1})};
  const FusedOperand x{Kind::Input, 0}, grad{Kind::Input, 1}, one{Kind::Constant, 0};
  gradient.steps = {mean_of(x),
                    {"mul_Tensor", {grad, {Kind::Step, 0}}, {}},
                    {"sub_Tensor", {x, {Kind::Step, 0}}, {one}},
                    {"mul_Tensor", {grad, {Kind::Step, 2}}, {}}};
  gradient.outputs = {1, 3};
  auto backward = std::make_shared<FusedBackward>();
  backward->group = make_ref<FusedGroup>(std::move(gradient));
  backward->edges = {{0, true, 0}, {0, true, 1}};
  backward->depends = {1};
  FusedSpec spec;
  spec.input_count = 1;
  spec.constants = {Value(int64_t{1})};
  spec.steps = {mean_of(x),
                {"sub_Tensor", {x, {Kind::Step, 0}}, {one}},
                {"mul_Tensor", {{Kind::Step, 1}, {Kind::Step, 0}}, {}}};
  spec.outputs = {2};
  spec.backward = std::move(backward);
  return spec;
}

bool has_rows(const FusedSpec& spec) {
  return std::ranges::any_of(spec.steps,
                             [](const FusedStep& step) { return step.over != Over::Elements; });
}

TEST(totals_read_the_statistics_that_are_kept) {
  const FusedSpec spec = centred();
  const auto of_rows = [](uint8_t value) { return value == 0; };
  const std::vector<uint8_t> kept = repeated_statistics(spec, of_rows);
  CHECK_EQ(kept.size(), 1u);
  CHECK_EQ(int{kept[0]}, 0);
  const auto totals = FusedTotals::make(spec, kept);
  CHECK_TRUE(totals != nullptr);
  const FusedSpec& made = totals->group->spec();
  CHECK_FALSE(has_rows(made));
  CHECK_EQ(int{made.input_count}, 5);  // x, its gradient, y, the mean, what has arrived
  CHECK_EQ(made.dropped_inputs, uint64_t{1} << 3);
}

TEST(totals_add_up_what_goes_to_one_input) {
  const FusedSpec spec = centred();
  const auto totals = FusedTotals::make(spec, {});
  CHECK_TRUE(totals != nullptr);
  CHECK_TRUE(has_rows(totals->group->spec()));
  CHECK_EQ(totals->sums.size(), 1u);
  CHECK_EQ(int{totals->sums[0].argument}, 3);
  CHECK_EQ(totals->group->spec().outputs.size(), 1u);
  CHECK_TRUE(totals->sources[0].kind == Source::Kind::Output);
  CHECK_TRUE(totals->sources[1].kind == Source::Kind::Earlier);
}

TEST(totals_are_not_made_where_nothing_is_gained) {
  FusedSpec spec = centred();
  auto backward = std::make_shared<FusedBackward>(*spec.backward);
  backward->edges.pop_back();
  spec.backward = std::move(backward);
  CHECK_TRUE(FusedTotals::make(spec, {}) == nullptr);
}

}  // namespace
}  // namespace weft
