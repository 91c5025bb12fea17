// Whether operators record a graph: two flags per thread.
#pragma once

// Thread-local variables on the hot path are reached without a call.
#if defined(__GNUC__) && defined(__linux__)
#define WEFT_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define WEFT_FAST_TLS
#endif

namespace weft {
class TensorImpl;
}

namespace weft::autograd {

struct Mode {
  bool grad = true;
  bool inference = false;
  // What autocast lowers to: 0 for nothing, else 1 + the DType.
  unsigned char autocast = 0;
  bool filter_edges = false;  // the engine computes only what some inputs need: see Node::wants
  // What the in-place operator under way writes to; see SavedTensor. Only compared, never followed.
  const TensorImpl* inplace_target = nullptr;
};
extern constinit thread_local Mode mode WEFT_FAST_TLS;

inline bool grad_enabled() { return mode.grad; }
// Returns the old value.
bool set_grad_enabled(bool enabled);
inline bool inference_enabled() { return mode.inference; }
bool set_inference_enabled(bool enabled);

struct GradGuard {
  explicit GradGuard(bool enabled) : old_(set_grad_enabled(enabled)) {}
  ~GradGuard() { set_grad_enabled(old_); }
  GradGuard(const GradGuard&) = delete;
  GradGuard& operator=(const GradGuard&) = delete;

 private:
  bool old_;
};
struct NoGradGuard : GradGuard {
  NoGradGuard() : GradGuard(false) {}
};

}  // namespace weft::autograd
