#include "autograd/hooks.h"
#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

TEST(meta_requires_grad) {
  const Tensor x = make({1});
  CHECK_FALSE(requires_grad(x));
  set_requires_grad(x, false);
  CHECK_FALSE(static_cast<bool>(x.impl()->autograd));
  set_requires_grad(x, true);
  CHECK_TRUE(requires_grad(x));
  set_requires_grad(x, false);
  CHECK_FALSE(gradient_edge(x));
  set_requires_grad(x, true);
  const Tensor y = mul(x, x);
  CHECK_THROWS_MSG(set_requires_grad(y, false),
                   "requires_grad_: expected a leaf to turn gradients off, got a result of "
                   "MulBackward0; use detach()");
  CHECK_THROWS_MSG(set_requires_grad(Tensor::empty(Dims{1}, DType::I64), true),
                   "requires_grad_: expected a floating or complex dtype, got int64");
}

TEST(meta_no_grad) {
  const Tensor x = make({1}, true);
  {
    NoGradGuard guard;
    CHECK_FALSE(requires_grad(mul(x, x)));
    GradGuard inner(true);
    CHECK_TRUE(requires_grad(mul(x, x)));
  }
  CHECK_TRUE(grad_enabled());
}

TEST(meta_detach) {
  const Tensor x = make({1}, true);
  const Tensor y = mul(x, x);
  const Tensor plain = detach(y);
  CHECK_FALSE(requires_grad(plain));
  CHECK_EQ(plain.data(), y.data());
  detach_(y);
  CHECK_TRUE(is_leaf(y));
  CHECK_FALSE(requires_grad(y));
  CHECK_THROWS_MSG(detach_(slice(x, 0, 1)),
                   "detach_: expected a tensor that is no view, got a view; use detach()");
  const Tensor part = slice(mul(x, x), 0, 1);  // of a base that nobody else has
  detach_(part);
  CHECK_TRUE(is_leaf(part));
  CHECK_FALSE(is_view(part));
}

TEST(meta_set_grad) {
  const Tensor x = make({1, 2}, true);
  CHECK_THROWS_MSG(set_grad(x, make({1})), "grad: expected a gradient of shape (2,), got (1,)");
  CHECK_THROWS_MSG(set_grad(x, Tensor::empty(Dims{2}, DType::F32)),
                   "grad: expected a gradient of dtype float64, got float32");
  CHECK_THROWS_MSG(set_grad(x, x), "grad: expected another tensor, got the tensor itself");
  const Tensor g = make({5, 6});
  set_grad(x, g);
  CHECK_TRUE(grad(x).is_same(g));
  run_backward(pass(x), make({1, 1}));
  CHECK_EQ(values(g), (std::vector<double>{6, 7}));  // added in place
  set_grad(x, {});
  CHECK_FALSE(grad(x).defined());
}

TEST(meta_gradient_follows_the_leafs_strides) {
  const Tensor flat = make({1, 2, 3, 4});
  const Tensor x = detach(flat.with_layout(Layout{{2, 2}, {1, 2}, 0}));
  set_requires_grad(x, true);
  run_backward(pass(x), make(Dims{2, 2}, {1, 2, 3, 4}));
  CHECK_EQ(grad(x).strides(), (Dims{1, 2}));
  CHECK_EQ(values(grad(x)), (std::vector<double>{1, 2, 3, 4}));
}

TEST(meta_leaf_may_die_before_its_graph) {
  Tensor y;
  int seen = 0;
  {
    const Tensor x = make({3}, true);
    register_hook(x, [&](const Tensor&) {
      ++seen;
      return Tensor();
    });
    y = pass(x);
  }
  run_backward(y);
  CHECK_EQ(seen, 1);
}

}  // namespace
}  // namespace weft::autograd::test
