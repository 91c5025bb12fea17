#include "autograd/mode.h"

#include <utility>

#include "core/inference.h"

namespace weft::autograd {

constinit thread_local Mode mode WEFT_FAST_TLS;

bool set_grad_enabled(bool enabled) { return std::exchange(mode.grad, enabled); }
bool set_inference_enabled(bool enabled) {
  inference_results = enabled;
  return std::exchange(mode.inference, enabled);
}

}  // namespace weft::autograd
