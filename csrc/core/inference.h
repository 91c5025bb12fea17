// Inference mode as the core sees it: what fresh tensors of this thread are marked with.
#pragma once

namespace weft {

// Set by autograd::set_inference_enabled. Tensors made while it is true carry TensorImpl::inference
// (views and aliases: what they are made of does), and may be written to only while it is true.
extern constinit thread_local bool inference_results
#if defined(__GNUC__) && defined(__linux__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

}  // namespace weft
