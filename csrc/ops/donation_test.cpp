#include "ops/donation.h"

#include "ops/programs.h"
#include "ops/tile_testing.h"
#include "testing.h"

namespace weft::tile::testing {
namespace {

// Results of any size take over memory, for as long as it lives.
class AtOnce {
 public:
  AtOnce() : before_(least_donated()) { set_least_donated(0); }
  ~AtOnce() { set_least_donated(before_); }

 private:
  int64_t before_;
};

Tensor neg(const Tensor& x) {
  const Tensor* const inputs[] = {&x};
  Tensor result;
  run(*tile_ops::find("neg"), {.inputs = inputs}, {&result, 1});
  return result;
}
Tensor softmax(const Tensor& x, int64_t dim) {
  const Tensor* const inputs[] = {&x};
  const int64_t dims[] = {dim};
  Tensor result;
  run(*tile_ops::find("softmax_int"), {.inputs = inputs, .dims = dims}, {&result, 1});
  return result;
}

TEST(donation_takes_the_place_of_the_operand) {
  const AtOnce at_once;
  Random random(5);
  for (const Dims& sizes : {Dims{3}, Dims{40, 50}, Dims{3, 1, 7000}}) {
    const Tensor x = random.tensor(sizes, DType::F32, true);
    const auto expected = values(neg(x));
    void* const place = x.data();
    const Donation donation(x);
    const Tensor y = neg(x);
    CHECK_TRUE(y.data() == place && values(y) == expected);
    CHECK_TRUE(neg(y).data() != place);  // for one result
  }
}

TEST(donation_to_rows) {
  const AtOnce at_once;
  Random random(6);
  for (int64_t dim : {0, 1}) {
    for (const Dims& sizes : {Dims{100, 300}, Dims{5000, 9}, Dims{2, 70000}}) {
      const Tensor x = random.tensor(sizes, DType::F32, true);
      const auto expected = values(softmax(x, dim));
      void* const place = x.data();
      const Donation donation(x);
      const Tensor y = softmax(x, dim);
      CHECK_TRUE(y.data() == place && values(y) == expected);
    }
  }
}

TEST(donation_that_does_not_fit_stays) {
  const AtOnce at_once;
  Random random(7);
  const Tensor x = random.tensor(Dims{4, 6}, DType::F32, true);
  const Tensor other = random.tensor(Dims{4, 6}, DType::F32, true);
  const Tensor wide = random.tensor(Dims{3, 4, 6}, DType::F32, true);
  const Donation donation(x);
  CHECK_TRUE(neg(other).data() != x.data());  // not read
  Tensor sum, less;
  const Tensor* const inputs[] = {&x, &wide};
  const Scalar one[] = {Scalar(1)};
  run(*tile_ops::find("add_Tensor"), {.inputs = inputs, .attributes = one}, {&sum, 1});
  CHECK_TRUE(sum.data() != x.data() && sum.numel() == 72);  // another shape
  const Tensor* const same[] = {&x, &other};
  run(*tile_ops::find("lt_Tensor"), {.inputs = same}, {&less, 1});
  CHECK_TRUE(less.data() != x.data());  // another dtype
  {
    const Donation none(nullptr);
    CHECK_TRUE(neg(x).data() != x.data());
  }
  CHECK_TRUE(neg(x).data() == x.data());
}

TEST(donation_programs_that_read_again) {
  CHECK_TRUE(reads_before_it_writes(*tile_ops::find("add_Tensor")));
  CHECK_TRUE(reads_before_it_writes(*tile_ops::find("softmax_int")));
  CHECK_TRUE(reads_before_it_writes(*tile_ops::find("_layer_norm")));
  const Slot slots[] = {{SlotKind::Input, SlotType::Compute, 0},
                        {SlotKind::Output, SlotType::Compute, 0},
                        {SlotKind::Output, SlotType::Compute, 1}};
  const Step steps[] = {{.operand_count = 2, .operands = {1, 0}},
                        {.operand_count = 2, .operands = {2, 0}}};
  const Program twice{.name = "twice",
                      .input_count = 1,
                      .output_count = 2,
                      .attribute_count = 0,
                      .promotion = Promotion::Common,
                      .slots = slots,
                      .steps = steps,
                      .passes = {}};
  CHECK_TRUE(!reads_before_it_writes(twice));
}

}  // namespace
}  // namespace weft::tile::testing
