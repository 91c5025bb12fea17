#include "autograd/anomaly.h"

#include <limits>

#include "autograd/test_nodes.h"
#include "testing.h"

namespace weft::autograd::test {
namespace {

std::string warned;
const char* lines = "";

// Anomaly mode for the time of a test, in a program that stands at `lines`.
struct Enabled {
  explicit Enabled(bool nan = true) : warn(anomaly.warn), program_lines(anomaly.program_lines) {
    warned.clear();
    anomaly.warn = [](const std::string& message) { warned = message; };
    anomaly.program_lines = [] { return std::string(lines); };
    anomaly.check_nan = nan;
    anomaly.enabled = true;
  }
  ~Enabled() {
    anomaly.enabled = false;
    anomaly.check_nan = true;
    anomaly.warn = warn;
    anomaly.program_lines = program_lines;
  }
  decltype(anomaly.warn) warn;
  decltype(anomaly.program_lines) program_lines;
};

struct NanNode final : Node {
  const char* name() const override { return "NanBackward0"; }
  TensorList apply(TensorList) override {
    return {make({std::numeric_limits<double>::quiet_NaN()})};
  }
};

Tensor nan_op(const Tensor& x) {
  const Tensor result = detach(x);
  auto node = make_ref<NanNode>();
  node->add_input(x);
  set_history(result, node);
  return result;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(anomaly_names_the_node_that_made_a_nan_and_its_line) {
  const Enabled guard;
  const Tensor x = make({1}, true);
  lines = "  File \"model.py\", line 7\n    y = f(x)\n";
  const Tensor y = nan_op(x);
  lines = "  File \"train.py\", line 9\n";
  CHECK_THROWS_MSG(run_backward(y),
                   "Function 'NanBackward0' returned nan values in its 0th output.\n"
                   "NanBackward0 was recorded at\n"
                   "  File \"model.py\", line 7\n    y = f(x)");
  CHECK_TRUE(contains(warned, "Error detected in NanBackward0."));
  CHECK_TRUE(contains(warned, "model.py\", line 7"));
  CHECK_FALSE(contains(warned, "train.py"));
}

TEST(anomaly_without_a_forward_line_says_so) {
  const Tensor x = make({1}, true);
  const Tensor y = nan_op(x);  // recorded before the mode
  const Enabled guard;
  CHECK_THROWS_MSG(run_backward(y),
                   "Function 'NanBackward0' returned nan values in its 0th output.");
  CHECK_TRUE(contains(warned, "No forward pass information available"));
}

TEST(anomaly_can_let_nan_pass) {
  const Enabled guard(false);
  const Tensor x = make({1}, true);
  run_backward(nan_op(x));
  CHECK_TRUE(std::isnan(values(grad(x))[0]));
  CHECK_TRUE(warned.empty());
}

TEST(anomaly_adds_the_line_to_other_errors) {
  const Enabled guard;
  const Tensor x = make({1}, true), w = make({2});
  lines = "  File \"model.py\", line 3\n";
  const Tensor y = mul(x, w);
  w.bump_version();
  CHECK_THROWS_MSG(run_backward(y),
                   "MulBackward0: expected saved tensor 'other' at version 0, got version 1; it "
                   "was changed in place after being saved\nMulBackward0 was recorded at\n"
                   "  File \"model.py\", line 3");
}

TEST(anomaly_of_a_second_derivative_tells_both_lines) {
  const Enabled guard;
  const Tensor x = make({1}, true), w = make({2}, true);
  lines = "  File \"model.py\", line 3\n";
  const Tensor y = mul(x, w);
  lines = "  File \"train.py\", line 9\n";
  const TensorList first = backward({y}, {}, {x}, {.create_graph = true, .accumulate = false});
  report_failure(*grad_fn(first[0]));
  CHECK_TRUE(contains(warned, "train.py\", line 9"));
  CHECK_TRUE(contains(warned, "during the backward of MulBackward0"));
  CHECK_TRUE(contains(warned, "model.py\", line 3"));
}

}  // namespace
}  // namespace weft::autograd::test
