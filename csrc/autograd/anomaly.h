// Anomaly mode: every node remembers where in the program it was recorded, and backward looks for
// NaN in the gradients it computes.
#pragma once

#include <atomic>
#include <string>

#include "autograd/node.h"

namespace weft::autograd {

struct Anomaly {
  std::atomic<bool> enabled{false};
  std::atomic<bool> check_nan{true};
  // Set once by the bindings; libweft alone knows no program.
  std::string (*program_lines)() = nullptr;  // where the program stands, innermost line last
  void (*warn)(const std::string& message) = nullptr;
};
extern Anomaly anomaly;

inline bool anomaly_enabled() { return anomaly.enabled.load(std::memory_order_relaxed); }

// Called for each node as it becomes a history.
void note_origin(Node& node);

// While a node runs: what it records is recorded on its behalf. The first failure inside names it.
class AnomalyScope {
 public:
  explicit AnomalyScope(const Node& node);
  ~AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;
  AnomalyScope& operator=(const AnomalyScope&) = delete;

 private:
  const Node* outer_;
};
// RuntimeError when one of the gradients a node returned has a NaN.
void check_nan(const Node& node, const TensorList& grads);
// Warns with the origin of a node that failed.
void report_failure(const Node& node);
// The same error, with the line at which the node was recorded.
Error with_origin(const Node& node, const Error& error);

}  // namespace weft::autograd
