#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

TEST(saved_tensor_version) {
  const Tensor x = make({2}, true), b = make({3});
  const Tensor y = mul(x, b);
  b.bump_version();
  CHECK_THROWS_MSG(
      run_backward(y),
      "MulBackward0: expected saved tensor 'other' at version 0, got version 1; it was "
      "changed in place after being saved");
  const Tensor z = mul(x, b);
  x.bump_version();
  CHECK_EQ((run_backward(z), values(grad(x))), std::vector<double>{3});  // b does not want one
}

TEST(saved_tensor_does_not_notice_writes_through_data) {
  const Tensor x = make({2}, true), b = make({3});
  const Tensor before = data(b);
  const Tensor y = mul(x, b);
  data(b).check_writable("add_");
  const Tensor view = before.with_layout(before.layout());
  detach(view).check_writable("add_");
  CHECK_EQ(b.version(), 0);
  CHECK_EQ(before.version(), 1);  // of its view, not of the other .data
  CHECK_EQ(view.version(), 1);
  CHECK_EQ(data(before).version(), 0);
  CHECK_EQ((run_backward(y), values(grad(x))), std::vector<double>{3});
  const Tensor z = mul(x, b);
  detach(b).check_writable("add_");
  CHECK_THROWS_MSG(
      run_backward(z),
      "MulBackward0: expected saved tensor 'other' at version 0, got version 1; it was "
      "changed in place after being saved");
  const Tensor w = mul(x, before);
  view.check_writable("add_");
  CHECK_THROWS_MSG(
      run_backward(w),
      "MulBackward0: expected saved tensor 'other' at version 1, got version 2; it was "
      "changed in place after being saved");
}

TEST(set_data_keeps_the_count_of_writes) {
  const Tensor x = make({2}), y = make({3, 4});
  x.bump_version();
  y.bump_version();
  y.bump_version();
  set_data(x, y);
  CHECK_EQ(x.sizes(), y.sizes());
  CHECK_EQ(x.version(), 1);
  x.bump_version();
  CHECK_EQ(x.version(), 2);
  CHECK_EQ(detach(x).version(), 2);
  CHECK_EQ(y.version(), 2);
}

TEST(saved_result_does_not_own_its_node) {
  struct Square final : Node {
    Square() { ++live_nodes; }
    ~Square() override { --live_nodes; }
    const char* name() const override { return "Square"; }
    TensorList apply(TensorList grads) override {
      return {mul(grads[0], result.unpack(this, Ref<Node>(this)))};
    }
    SavedTensor result;
  };
  const int before = live_nodes;
  {
    const Tensor x = make({3}, true), y = make({9});
    auto node = make_ref<Square>();
    node->add_input(x);
    node->result.save(y, true);
    set_history(y, node);
    const TensorList first = backward({y}, {}, {x}, {.create_graph = true, .accumulate = false});
    CHECK_EQ(values(first[0]), std::vector<double>{9});
    // d(y * 1)/dx goes through y's own node again.
    const TensorList second = backward(first, {}, {x}, {.accumulate = false});
    CHECK_EQ(values(second[0]), std::vector<double>{9});
  }
  CHECK_EQ(live_nodes.load(), before);
}

TEST(saved_tensor_undefined) {
  const Ref<Node> node = not_differentiable("none");
  SavedTensor saved;
  CHECK_THROWS_MSG(
      saved.unpack(node.get()),
      "none: expected saved tensors, got freed ones (backward through the graph a second "
      "time); use retain_graph=True the first time");
  saved.save({});
  CHECK_FALSE(saved.unpack(node.get()).defined());
}

}  // namespace
}  // namespace weft::autograd::test
