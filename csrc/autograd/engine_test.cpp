#include <thread>

#include "autograd/hooks.h"
#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

using Doubles = std::vector<double>;

TEST(autograd_leaf_accumulates) {
  const Tensor x = make({1, 2}, true), b = make({3, 4});
  const Tensor one = make({1, 1});
  run_backward(mul(x, b), one);
  CHECK_EQ(values(grad(x)), (Doubles{3, 4}));
  run_backward(mul(x, b), one);
  CHECK_EQ(values(grad(x)), (Doubles{6, 8}));
  CHECK_FALSE(grad(b).defined());
  CHECK_TRUE(is_leaf(x));
}

TEST(autograd_fan_out_and_shared_gradient) {
  const Tensor x = make({2, 3}, true);
  const Tensor y = pass(x);
  // The same gradient tensor reaches x twice.
  backward({y, y}, {make({1, 1}), make({5, 7})}, {}, {});
  CHECK_EQ(values(grad(x)), (Doubles{6, 8}));
  const Tensor square = mul(x, x);
  set_grad(x, {});
  run_backward(square, make({1, 1}));
  CHECK_EQ(values(grad(x)), (Doubles{4, 6}));
}

TEST(autograd_given_gradient_is_not_taken_over) {
  const Tensor x = make({1, 2}, true);
  const Tensor given = make({1, 1});
  run_backward(pass(x), given);
  run_backward(pass(x), given);
  CHECK_EQ(values(given), (Doubles{1, 1}));
  CHECK_EQ(values(grad(x)), (Doubles{2, 2}));
}

TEST(autograd_root_errors) {
  const Tensor x = make(Dims{2, 3}, {1, 2, 3, 4, 5, 6}, true);
  CHECK_THROWS_MSG(
      run_backward(pass(x)),
      "backward: expected a gradient for a non-scalar root, got None for shape (2, 3)");
  CHECK_THROWS_MSG(run_backward(pass(x), make({1, 2, 3, 4})),
                   "backward: expected a gradient of shape (2, 3), got (4,)");
  CHECK_THROWS_MSG(run_backward(make({1})),
                   "backward: expected roots that require grad, got root 0 that does not require "
                   "grad and has no grad_fn");
  CHECK_THROWS_MSG(backward({pass(x)}, {}, {}, {.accumulate = false}),
                   "grad: expected at least one input, got none");
}

TEST(autograd_scalar_root_means_one) {
  const Tensor x = make(Dims{}, {3.0}, true);
  run_backward(mul(x, x));
  CHECK_EQ(values(grad(x)), Doubles{6});
  run_backward(x);  // a leaf is its own root
  CHECK_EQ(values(grad(x)), Doubles{7});
}

TEST(autograd_wrong_gradient_shape) {
  struct Bad final : Node {
    const char* name() const override { return "MulBackward0"; }
    TensorList apply(TensorList) override { return {make({1, 2, 3, 4})}; }
  };
  const Tensor x = make(Dims{2, 3}, {1, 2, 3, 4, 5, 6}, true);
  const Tensor y = make({1});
  auto node = make_ref<Bad>();
  node->add_input(x);
  set_history(y, node);
  CHECK_THROWS_MSG(run_backward(y), "MulBackward0: expected gradient of shape (2, 3), got (4,)");
  // The failure leaves nothing behind: the same graph runs again with the same result.
  CHECK_THROWS_MSG(run_backward(y), "MulBackward0: expected gradient of shape (2, 3), got (4,)");
}

TEST(autograd_sums_over_broadcast_dims) {
  const Tensor x = make(Dims{2, 2}, {1, 2, 3, 4}), b = make({5}, true),
               c = make(Dims{}, {2.0}, true);
  run_backward(mul(x, b), make(Dims{2, 2}, {1, 1, 1, 1}));
  CHECK_EQ(values(grad(b)), Doubles{10});
  CHECK_EQ(grad(b).sizes(), Dims{1});
  run_backward(mul(x, c), make(Dims{2, 2}, {1, 1, 1, 1}));
  CHECK_EQ(values(grad(c)), Doubles{10});
  CHECK_EQ(grad(c).dim(), 0);
}

TEST(autograd_second_backward) {
  const Tensor x = make({3}, true);
  const Tensor y = mul(x, x);
  run_backward(y, {}, {.retain_graph = true});
  run_backward(y);
  CHECK_EQ(values(grad(x)), Doubles{12});
  CHECK_THROWS_MSG(
      run_backward(y),
      "MulBackward0: expected saved tensors, got freed ones (backward through the graph "
      "a second time); use retain_graph=True the first time");
}

TEST(autograd_grad_of_inputs) {
  const Tensor x = make({3}, true), w = make({5}, true), unused = make({1}, true);
  const Tensor h = mul(x, w);
  const Tensor y = mul(h, h);
  BackwardOptions options{.retain_graph = true, .accumulate = false};
  TensorList grads = backward({y}, {}, {h, x, y}, options);
  CHECK_EQ(values(grads[0]), Doubles{30});
  CHECK_EQ(values(grads[1]), Doubles{150});
  CHECK_EQ(values(grads[2]), Doubles{1});
  CHECK_FALSE(grad(x).defined());
  CHECK_THROWS_MSG(
      backward({y}, {}, {x, unused}, options),
      "grad: expected inputs that the roots depend on, got input 1 that is not part of "
      "their graph; use allow_unused=True");
  options.allow_unused = true;
  grads = backward({y}, {}, {unused, x}, options);
  CHECK_FALSE(grads[0].defined());
  CHECK_EQ(values(grads[1]), Doubles{150});
  CHECK_THROWS_MSG(backward({y}, {}, {make({1})}, options),
                   "grad: expected inputs that require grad, got input 0 that does not");
}

TEST(autograd_edges_stand_for_tensors) {
  const Tensor x = make({3}, true), w = make({5}, true);
  const Tensor h = mul(x, w);
  const Tensor y = mul(h, h);
  BackwardOptions options{.retain_graph = true, .accumulate = false};
  const Edge start = gradient_edge(y), middle = gradient_edge(h), end = gradient_edge(x);
  const TensorList grads = backward_of({start}, {}, {middle, end, x}, options);
  CHECK_EQ(values(grads[0]), Doubles{30});
  CHECK_EQ(values(grads[1]), Doubles{150});
  CHECK_EQ(values(grads[2]), Doubles{150});
  CHECK_THROWS_MSG(backward_of({start}, {make({1, 2})}, {end}, options),
                   "grad: expected a gradient of shape (1,), got (2,)");
  options.accumulate = true;
  backward_of({y}, {}, {middle}, options);
  CHECK_FALSE(grad(x).defined() || retains_grad(h));
  backward_of({middle}, {}, {end}, options);
  CHECK_EQ(values(grad(x)), Doubles{5});
}

TEST(autograd_backward_adds_a_retained_gradient_once) {
  const Tensor x = make({3}, true);
  const Tensor h = mul(x, x);
  retain_grad(h);
  backward({mul(h, h)}, {}, {h}, {});
  CHECK_EQ(values(grad(h)), Doubles{18});
  CHECK_FALSE(grad(x).defined());
}

TEST(autograd_backward_into_inputs) {
  const Tensor x = make({3}, true), w = make({5}, true);
  const Tensor h = mul(x, w);
  backward({mul(h, h)}, {}, {x, h}, {});
  CHECK_EQ(values(grad(x)), Doubles{150});
  CHECK_EQ(values(grad(h)), Doubles{30});
  CHECK_FALSE(grad(w).defined());
}

TEST(autograd_create_graph) {
  const Tensor x = make({2}, true);
  const Tensor cube = mul(mul(x, x), x);
  const BackwardOptions options{.retain_graph = true, .create_graph = true, .accumulate = false};
  const Tensor first = backward({cube}, {}, {x}, options)[0];
  CHECK_EQ(values(first), Doubles{12});
  CHECK_TRUE(requires_grad(first));
  const Tensor second = backward({first}, {}, {x}, options)[0];
  CHECK_EQ(values(second), Doubles{12});
  CHECK_EQ(values(backward({second}, {}, {x}, options)[0]), Doubles{6});
}

TEST(autograd_hooks) {
  const Tensor x = make({3}, true);
  const Tensor h = mul(x, x);
  retain_grad(h);
  register_hook(h, [](const Tensor& g) { return mul(g, make({10})); });
  register_hook(h, [](const Tensor&) { return Tensor(); });
  int seen = 0;
  const uint64_t id = register_hook(x, [&](const Tensor& g) {
    seen += static_cast<int>(values(g)[0]);
    return Tensor();
  });
  int updates = 0;
  register_accumulated_hook(x, [&] { updates += static_cast<int>(values(grad(x))[0]); });
  run_backward(pass(h), {}, {.retain_graph = true});
  CHECK_EQ(values(grad(h)), Doubles{10});
  CHECK_EQ(values(grad(x)), Doubles{60});
  CHECK_EQ(seen, 60);
  CHECK_EQ(updates, 60);
  remove_hook(*gradient_edge(x).node, id);
  run_backward(h);
  CHECK_EQ(seen, 60);
  CHECK_EQ(values(grad(h)), Doubles{20});
  CHECK_THROWS_MSG(register_hook(make({1}), {}),
                   "register_hook: expected a tensor that requires grad, got one that does not");
}

TEST(autograd_node_hooks) {
  const Tensor x = make({3}, true);
  const Tensor y = mul(x, x);
  register_pre_hook(*grad_fn(y),
                    [](const TensorList& g) { return TensorList{mul(g[0], make({2}))}; });
  register_post_hook(*grad_fn(y), [](const TensorList& in, const TensorList& out) {
    return TensorList{mul(in[0], out[0]), Tensor()};
  });
  run_backward(y);
  CHECK_EQ(values(grad(x)), Doubles{12});  // 3 * 2 * 1 * 2, and nothing for the second edge
}

TEST(autograd_missing_gradients_arrive_as_zeros) {
  struct Two final : Node {
    const char* name() const override { return "Two"; }
    TensorList apply(TensorList grads) override {
      CHECK_EQ(values(grads[0]), (Doubles{0, 0}));
      CHECK_FALSE(grads[2].defined());
      return {std::move(grads[1])};
    }
  };
  const Tensor x = make({1, 2}, true), a = make({1, 2}), b = make({1, 2});
  auto node = make_ref<Two>();
  node->add_input(x);
  set_history(a, node);
  set_history(b, node);
  set_history(Tensor::empty(Dims{2}, DType::I64), node);
  run_backward(b, make({1, 1}));
  CHECK_EQ(values(grad(x)), (Doubles{1, 1}));
  CHECK_EQ(result_index(b), 1);
}

TEST(autograd_not_differentiable) {
  const Tensor x = make({1}, true), y = make({1});
  const Ref<Node> node = not_differentiable("argsort");
  node->add_input(x);
  set_history(y, node);
  CHECK_THROWS_AS(NotImplemented, run_backward(y),
                  "argsort: expected an operator with a gradient in backward, got one without; "
                  "detach its inputs if no gradient should flow");
}

TEST(autograd_nested_backward) {
  struct Nested final : Node {
    const char* name() const override { return "Nested"; }
    TensorList apply(TensorList) override {
      GradGuard guard(true);
      run_backward(mul(*leaf, *leaf), {}, {.retain_graph = true});
      return {make({1})};
    }
    const Tensor* leaf = nullptr;
  };
  const Tensor x = make({3}, true);
  const Tensor y = make({1});
  auto node = make_ref<Nested>();
  node->leaf = &x;
  node->exclusive = false;
  node->add_input(x);
  set_history(y, node);
  run_backward(y);
  CHECK_EQ(values(grad(x)), Doubles{7});
}

TEST(autograd_threads_share_leaves) {
  const Tensor x = make({1}, true), b = make({2});
  const Tensor shared = mul(x, b);  // part of every thread's graph
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) run_backward(mul(shared, b), {}, {.retain_graph = true});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(values(grad(x)), Doubles{4000});
}

TEST(autograd_long_chain) {
  const int before = live_nodes;
  const Tensor x = make({1}, true);
  {
    Tensor y = x;
    for (int i = 0; i < 300'000; ++i) y = pass(y);
    run_backward(y);
    CHECK_EQ(live_nodes - before, 300'000);
  }
  CHECK_EQ(live_nodes - before, 0);
  CHECK_EQ(values(grad(x)), Doubles{1});
}

}  // namespace
}  // namespace weft::autograd::test
