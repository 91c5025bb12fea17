#include "autograd/views.h"

#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

using Doubles = std::vector<double>;

TEST(view_inplace_on_leaf_raises) {
  const Tensor x = make({1, 2}, true), two = make({2});
  CHECK_THROWS_MSG(mul_(x, two),
                   "mul_: expected a tensor that may be changed in place, got a leaf that requires "
                   "grad; use no_grad() or detach()");
  CHECK_THROWS_MSG(
      mul_(slice(x, 0, 1), two),
      "mul_: expected a tensor that may be changed in place, got a view of a leaf that "
      "requires grad; use no_grad() or detach()");
  NoGradGuard guard;
  mul_(x, two);
  CHECK_EQ(values(x), (Doubles{2, 4}));
}

TEST(view_inplace_changes_base) {
  const Tensor x = make({1, 2, 3}, true), w = make({5}, true);
  const Tensor y = pass(x);
  const Tensor other = slice(y, 1, 2), part = slice(y, 0, 2);
  mul_(part, w);
  CHECK_EQ(std::string(grad_fn(y)->name()), "CopySlices");
  CHECK_EQ(std::string(grad_fn(part)->name()), "AsStridedBackward0");
  CHECK_EQ(std::string(grad_fn(other)->name()), "AsStridedBackward0");
  backward({y, other}, {make({1, 10, 100}), make({1000, 2000})}, {}, {.retain_graph = true});
  CHECK_EQ(values(grad(x)), (Doubles{5, 5050, 2100}));
  CHECK_FALSE(grad(w).defined());  // the hand-made node sends none
}

TEST(view_of_plain_base_starts_to_require_grad) {
  const Tensor base = make({1, 2, 3}), w = make({5}, true);
  const Tensor part = slice(base, 0, 2), rest = slice(base, 2, 1);
  CHECK_FALSE(requires_grad(part));
  mul_(part, w);
  CHECK_TRUE(requires_grad(base));
  CHECK_TRUE(requires_grad(rest));
  CHECK_FALSE(is_leaf(rest));
  run_backward(rest);  // reaches the base's node, whose part of the gradient is zero
}

TEST(view_of_view_knows_the_base) {
  const Tensor x = make({1, 2, 3, 4}, true);
  const Tensor y = pass(x);
  const Tensor inner = slice(slice(y, 1, 3), 1, 2);
  CHECK_TRUE(view_base(inner).is_same(y));
  mul_(inner, make({3}));
  run_backward(y, make({1, 1, 1, 1}));
  CHECK_EQ(values(grad(x)), (Doubles{1, 1, 3, 3}));
}

TEST(view_made_without_grad) {
  const Tensor y = pass(make({1, 2}, true));
  Tensor part;
  {
    NoGradGuard guard;
    part = slice(y, 0, 1);
  }
  CHECK_THROWS_MSG(
      mul_(part, make({2})),
      "mul_: expected a tensor that may be changed in place, got a view made under "
      "no_grad of a tensor that requires grad; make the view with gradients enabled or "
      "use no_grad()");
}

TEST(view_broadcast_gradient_adds_up) {
  const Tensor x = make({1, 2}, true), two = make({2});
  const Tensor y = pass(x);
  const Tensor wide = y.with_layout(Layout{{3, 2}, {0, 1}, 0});
  const Tensor window = y.with_layout(Layout{{2, 1}, {1, 1}, 0});
  mark_view(wide, y);
  mark_view(window, y);
  mul_(y, two);
  run_backward(wide, make(Dims{3, 2}, {1, 2, 3, 4, 5, 6}), {.retain_graph = true});
  CHECK_EQ(values(grad(x)), (Doubles{18, 24}));
}

TEST(view_geometry) {
  const Tensor base = make({1, 2, 3, 4, 5, 6});
  const Tensor odd = base.with_layout(Layout{{2}, {-2}, 5});
  const ViewGeometry inside(base, odd);
  CHECK_EQ(inside.length, 6);
  CHECK_EQ(inside.view.offset, 5);
  const ViewGeometry outside(odd, base);
  CHECK_EQ(outside.length, 6);
  CHECK_EQ(outside.base.offset, 5);
  CHECK_EQ(outside.view.offset, 0);
}

TEST(view_retained_grad_moves_on) {
  const Tensor x = make({1, 2}, true);
  const Tensor y = pass(x);
  retain_grad(y);
  mul_(y, make({4}));
  run_backward(y, make({1, 1}));
  CHECK_EQ(values(grad(y)), (Doubles{1, 1}));
  CHECK_EQ(values(grad(x)), (Doubles{4, 4}));
}

TEST(view_inplace_twice_on_its_own_view_frees) {
  const int before = live_nodes;
  {
    const Tensor y = pass(make({1, 2}, true));
    mul_(slice(y, 0, 1), slice(y, 1, 1));  // saves a view of what it changes
    CHECK_TRUE(requires_grad(y));
    const Tensor z = pass(make({1, 2}, true));
    mul_(z, z);
  }
  CHECK_EQ(live_nodes.load(), before);
}

// self.unsqueeze_(0) of a vector: another layout, no element written.
struct UnsqueezeNode final : Node {
  const char* name() const override { return "UnsqueezeBackward0"; }
  TensorList apply(TensorList grads) override {
    return {arith::reshape(grads[0], Dims{grads[0].numel()})};
  }
};

void unsqueeze_(const Tensor& self) {
  check_inplace("unsqueeze_", self);
  auto node = make_ref<UnsqueezeNode>();
  node->add_input(self);
  self.impl()->layout = Layout{{1, self.size(0)}, {0, self.stride(0)}, self.offset()};
  self.bump_version();
  rebase_layout(self, node);
}

TEST(view_changes_its_layout) {
  const Tensor x = make({1, 2, 3}, true);
  const Tensor y = pass(x);
  const Tensor part = slice(y, 1, 2);
  unsqueeze_(part);
  CHECK_EQ(std::string(grad_fn(part)->name()), "AsStridedBackward0");
  CHECK_EQ(std::string(grad_fn(y)->name()), "PassBackward0");  // its elements are what they were
  backward({part, y}, {make(Dims{1, 2}, {10, 20}), make({1, 1, 1})}, {}, {});
  CHECK_EQ(values(grad(x)), (Doubles{1, 11, 21}));
}

TEST(view_base_changes_its_layout) {
  const Tensor x = make({1, 2, 3}, true);
  const Tensor y = pass(x);
  const Tensor part = slice(y, 1, 2);
  unsqueeze_(y);
  CHECK_EQ(std::string(grad_fn(y)->name()), "UnsqueezeBackward0");
  backward({part, y}, {make({10, 20}), make(Dims{1, 3}, {1, 1, 1})}, {}, {});
  CHECK_EQ(values(grad(x)), (Doubles{1, 11, 21}));
}

TEST(view_that_is_a_leaf_is_not_changed_in_place) {
  const Tensor part = slice(make({1, 2, 3}), 0, 2);
  set_requires_grad(part, true);
  CHECK_THROWS_MSG(mul_(part, make({2})),
                   "mul_: expected a tensor that may be changed in place, got a leaf that requires "
                   "grad; use no_grad() or detach()");
}

}  // namespace
}  // namespace weft::autograd::test
