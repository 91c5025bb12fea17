#include "autograd/saved_hooks.h"

#include <memory>

#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

using Doubles = std::vector<double>;

int packed = 0, unpacked = 0;

// Keeps ten times the tensor, so that a gradient shows where its factors came from.
struct Tenfold final : PackedValue {
  explicit Tenfold(const Tensor& tensor) : kept(product(tensor, make({10}))) { ++packed; }
  Tensor unpack() override {
    ++unpacked;
    return kept;
  }
  Tensor kept;
};

// Hooks for the time of a test.
struct Installed {
  using Pack = std::unique_ptr<PackedValue> (*)(const Tensor&);
  explicit Installed(Pack pack) : old(pack_saved) {
    pack_saved = pack;
    saved_hooks_active = true;
    packed = unpacked = 0;
  }
  ~Installed() {
    saved_hooks_active = false;
    pack_saved = old;
  }
  Pack old;
};

std::unique_ptr<PackedValue> tenfold(const Tensor& tensor) {
  return std::make_unique<Tenfold>(tensor);
}

TEST(saved_hooks_pack_when_saving_and_unpack_in_backward) {
  const Tensor x = make({2, 3}, true), w = make({5, 7}, true);
  Tensor y;
  {
    const Installed guard(tenfold);
    y = mul(x, w);
    CHECK_EQ(packed, 2);
    CHECK_EQ(unpacked, 0);
  }
  run_backward(y, make({1, 1}));  // after the hooks are gone: what is packed knows how to unpack
  CHECK_EQ(unpacked, 2);
  CHECK_EQ(values(grad(x)), (Doubles{50, 70}));
  CHECK_EQ(values(grad(w)), (Doubles{20, 30}));
}

TEST(saved_hooks_see_no_write_after_packing) {
  const Tensor x = make({2}, true), w = make({5});
  Tensor y;
  {
    const Installed guard(tenfold);
    y = mul(x, w);
  }
  w.bump_version();
  run_backward(y);
  CHECK_EQ(values(grad(x)), (Doubles{50}));
}

TEST(saved_hooks_keep_the_history) {
  const Tensor x = make({2}, true), w = make({3}, true);
  Tensor y;
  {
    const Installed guard(tenfold);
    y = mul(x, w);
  }
  const TensorList first = backward({y}, {}, {x}, {.create_graph = true, .accumulate = false});
  CHECK_EQ(values(first[0]), (Doubles{30}));
  CHECK_TRUE(requires_grad(first[0]));
  const TensorList second = backward(first, {}, {w}, {.accumulate = false});
  CHECK_EQ(values(second[0]), (Doubles{1}));  // of w itself, whatever the hook made of it
}

TEST(saved_hooks_values_are_released_with_the_graph) {
  const Tensor x = make({2}, true), w = make({3});
  Tensor y;
  {
    const Installed guard(tenfold);
    y = mul(x, w);
  }
  run_backward(y);
  CHECK_THROWS_MSG(run_backward(y),
                   "MulBackward0: expected saved tensors, got freed ones (backward through the "
                   "graph a second time); use retain_graph=True the first time");
}

TEST(saved_hooks_may_not_write) {
  const Installed guard([](const Tensor& tensor) -> std::unique_ptr<PackedValue> {
    tensor.bump_version();
    return std::make_unique<Tenfold>(tensor);
  });
  const Tensor x = make({2}, true), w = make({3});
  CHECK_THROWS_MSG(mul(x, w),
                   "saved_tensors_hooks: expected a pack hook that leaves its input as it is, got "
                   "one that changes it in place");
}

}  // namespace
}  // namespace weft::autograd::test
