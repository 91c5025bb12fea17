#include "autograd/anomaly.h"

#include <memory>
#include <utility>

#include "autograd/hooks.h"
#include "ops_compare.h"
#include "ops_reductions.h"

namespace weft::autograd {

Anomaly anomaly;

namespace {

constinit thread_local const Node* running WEFT_FAST_TLS = nullptr;

std::string origin_of(const Node& node) {
  const std::shared_ptr<const Hooks> hooks = hooks_of(node);
  return hooks ? hooks->origin : std::string();
}

// The innermost frame of a Python traceback: its text from the last "File".
std::string innermost(const std::string& origin) {
  const size_t start = origin.rfind("  File ");
  std::string frame = start == std::string::npos ? origin : origin.substr(start);
  while (!frame.empty() && frame.back() == '\n') frame.pop_back();
  return frame;
}

}  // namespace

void note_origin(Node& node) {
  if (!anomaly.program_lines || !origin_of(node).empty()) return;
  std::string origin = anomaly.program_lines();
  if (running) {
    origin += str("during the backward of ", running->name(), ", itself recorded at\n",
                  innermost(origin_of(*running)), "\n");
  }
  set_origin(node, std::move(origin));
}

AnomalyScope::AnomalyScope(const Node& node) : outer_(std::exchange(running, &node)) {}
AnomalyScope::~AnomalyScope() { running = outer_; }

void check_nan(const Node& node, const TensorList& grads) {
  if (!anomaly.check_nan.load(std::memory_order_relaxed)) return;
  NoGradGuard guard;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !is_differentiable(grads[i].dtype())) continue;
    WEFT_CHECK(!ops::any(ops::ne(grads[i], grads[i]), std::optional<IntList>()).item().to_bool(),
               "Function '", node.name(), "' returned nan values in its ", i, "th output.");
  }
}

void report_failure(const Node& node) {
  if (!anomaly.warn) return;
  const std::string origin = origin_of(node);
  if (origin.empty()) {
    anomaly.warn(str("Error detected in ", node.name(),
                     ". No forward pass information available. Enable detect anomaly during "
                     "forward pass for more information."));
  } else {
    anomaly.warn(str("Error detected in ", node.name(),
                     ". Traceback of forward call that caused the error:\n", origin));
  }
}

Error with_origin(const Node& node, const Error& error) {
  const std::string origin = origin_of(node);
  if (origin.empty()) return error;
  return Error(error.kind(),
               str(error.message(), "\n", node.name(), " was recorded at\n", innermost(origin)));
}

}  // namespace weft::autograd
