// Many threads at once: the same results as alone. Run under ThreadSanitizer, this is where races
// between the layers show (.ci/run).
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/node.h"
#include "autograd/test_nodes.h"
#include "core/allocator.h"
#include "core/generator.h"
#include "core/thread_pool.h"
#include "ops.h"
#include "runtime/fused.h"
#include "runtime/future.h"
#include "testing.h"

namespace weft {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 25;

// body(thread) on several threads at once; false when one of them said so or threw.
bool at_once(const std::function<bool(int)>& body) {
  std::atomic<int> waiting{kThreads};
  std::atomic<bool> fine{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      try {
        if (!body(t)) fine = false;
      } catch (...) {
        fine = false;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return fine;
}

class PoolOfTwo {
 public:
  PoolOfTwo() : before_(num_threads()) { set_num_threads(2); }
  ~PoolOfTwo() { set_num_threads(before_); }

 private:
  const int before_;
};

Tensor ramp(IntList sizes, double step = 1e-3, DType dtype = DType::F32) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return ops::reshape(ops::mul(ops::arange(Scalar(count), dtype), Scalar(step)), sizes);
}

// What a network does, on tensors that all threads have in common.
struct Network {
  Tensor images = ramp(Dims{2, 3, 12, 12}), taps = ramp(Dims{4, 3, 3, 3}, 1e-2);
  Tensor weights = ramp(Dims{400, 30}, 1e-4);

  Tensor loss() const {
    const Tensor maps = ops::relu(ops::conv2d(images, taps));
    const Tensor rows = ops::reshape(maps, Dims{2, 400});
    const Tensor scores = ops::softmax(ops::mm(rows, weights), 1);
    const Tensor sorted = std::get<0>(ops::sort(scores));
    return ops::sum(ops::mul(ops::t(sorted), ramp(Dims{30, 1})));
  }
};

TEST(threads_share_operators) {
  const PoolOfTwo pool;
  const Network network;
  const Tensor expected = network.loss();
  CHECK_TRUE(at_once([&](int) {
    bool fine = true;
    for (int i = 0; i < kRounds; ++i) fine = fine && ops::equal(network.loss(), expected);
    return fine;
  }));
}

TEST(threads_share_parameters) {
  const PoolOfTwo pool;
  Network network;
  autograd::set_requires_grad(network.weights, true);
  autograd::test::run_backward(network.loss());
  const Tensor once = ops::alias(autograd::grad(network.weights));
  autograd::set_grad(network.weights, {});
  CHECK_TRUE(at_once([&](int) {
    for (int i = 0; i < kRounds; ++i) autograd::test::run_backward(network.loss());
    return autograd::grad(network.weights).defined();
  }));
  const Tensor all = ops::mul(once, Scalar(kThreads * kRounds));
  const Tensor gap = ops::max(ops::abs(ops::sub(autograd::grad(network.weights), all)));
  CHECK_TRUE(gap.item().to_double() <= 1e-3 * ops::max(ops::abs(all)).item().to_double());
}

TEST(threads_go_through_one_graph_with_hooks) {
  const Tensor x = ramp(Dims{8});
  autograd::set_requires_grad(x, true);
  const Tensor shared = ops::mul(x, Scalar(2.0));
  std::atomic<int> calls{0};
  CHECK_TRUE(at_once([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      const uint64_t id = autograd::register_hook(shared, [&](const Tensor&) {
        ++calls;
        return Tensor();
      });
      autograd::test::run_backward(ops::sum(ops::mul(shared, shared)), {}, {.retain_graph = true});
      autograd::remove_hook(*autograd::gradient_edge(shared).node, id);
    }
    return true;
  }));
  CHECK_TRUE(calls >= kThreads * kRounds);
}

TEST(threads_ask_for_the_history_of_one_view) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor x = ramp(Dims{4, 4});
    autograd::set_requires_grad(x, true);
    const Tensor base = ops::mul(x, Scalar(1.0));
    const Tensor view = ops::select(base, 0, 1);
    ops::mul_(ops::select(base, 0, 1), Scalar(3.0));  // the view's history is old now
    std::vector<const autograd::Node*> nodes(kThreads);
    CHECK_TRUE(at_once([&](int t) {
      nodes[static_cast<size_t>(t)] = autograd::gradient_edge(view).node.get();
      return true;
    }));
    for (const autograd::Node* node : nodes) CHECK_TRUE(node != nullptr && node == nodes[0]);
  }
}

TEST(threads_drop_the_last_reference) {
  for (int round = 0; round < kRounds; ++round) {
    const Tensor x = ramp(Dims{100});
    autograd::set_requires_grad(x, true);
    std::vector<std::vector<Tensor>> piles(kThreads);
    Tensor y = ops::mul(x, Scalar(1.0));
    for (int i = 0; i < 40; ++i) {
      y = ops::add(ops::select(ops::reshape(y, Dims{1, 100}), 0, 0), ramp(Dims{100}));
      for (auto& pile : piles) pile.push_back(y);  // all have a part in every graph
    }
    y = {};
    CHECK_TRUE(at_once([&](int t) {
      piles[static_cast<size_t>(t)].clear();
      return true;
    }));
  }
}

TEST(threads_draw_from_one_generator) {
  auto generator = make_ref<Generator>(5);
  std::vector<double> sums(kThreads);
  CHECK_TRUE(at_once([&](int t) {
    Tensor x = Tensor::empty(Dims{1000}, DType::F32);
    for (int i = 0; i < kRounds; ++i) {
      ops::uniform_(x, 0, 1, generator);
      sums[static_cast<size_t>(t)] += ops::sum(x).item().to_double();
    }
    return true;
  }));
  // The same numbers, however they were dealt out.
  double expected = 0, found = 0;
  auto alone = make_ref<Generator>(5);
  Tensor x = Tensor::empty(Dims{1000 * kRounds * kThreads}, DType::F32);
  ops::uniform_(x, 0, 1, alone);
  expected = ops::sum(x, DType::F64).item().to_double();
  for (const double sum : sums) found += sum;
  CHECK_TRUE(std::abs(found - expected) < 1);
}

TEST(threads_run_and_compile_one_group) {
  using Kind = FusedOperand::Kind;
  FusedSpec spec;
  spec.input_count = 2;
  spec.steps = {{"mul_Tensor", {{Kind::Input, 0}, {Kind::Input, 1}}, {}},
                {"exp", {{Kind::Step, 0}}, {}}};
  spec.outputs = {1};
  for (int round = 0; round < 5; ++round) {
    const auto group = make_ref<FusedGroup>(spec);
    CHECK_TRUE(at_once([&](int t) {
      bool fine = true;
      for (int i = 0; i < kRounds; ++i) {
        const DType dtype = (i + t) % 2 == 0 ? DType::F32 : DType::F64;
        const Tensor x = ramp(Dims{50}, 1e-2, dtype);
        const Value args[] = {Value(x), Value(x)};
        Value results[1];
        fine = fine && group->run(args, results) &&
               ops::equal(results[0].to_tensor(), ops::exp(ops::mul(x, x)));
        group->has_native({dtype, 0});
      }
      return fine;
    }));
  }
}

TEST(threads_wait_for_one_future) {
  for (int round = 0; round < kRounds; ++round) {
    const Value future = make_future();
    CHECK_TRUE(at_once([&](int t) {
      if (t == 0) future.object<FutureObject>()->set_value(Value(ramp(Dims{3})));
      return future.object<FutureObject>()->wait().to_tensor().numel() == 3;
    }));
  }
}

TEST(threads_turn_the_knobs) {
  const PoolOfTwo pool;
  CHECK_TRUE(at_once([&](int t) {
    for (int i = 0; i < kRounds; ++i) {
      if (t == 0) {
        set_num_threads(2 + i % 2);
      } else if (t == 1) {
        caching_allocator().stats();
        caching_allocator().snapshot();
        caching_allocator().empty_cache();
      } else {
        ops::sum(ramp(Dims{50000}));
      }
    }
    return true;
  }));
}

}  // namespace
}  // namespace weft
