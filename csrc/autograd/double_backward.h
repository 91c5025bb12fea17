// Gradients of native operators that are themselves to be differentiated.
#pragma once

#include "autograd/node.h"
#include "core/thread_pool.h"

namespace weft::autograd {

// The gradients of `given` by running the operator again as `run`, which takes them under other
// names and is made of operators that have second gradients. grads[i] belongs to result i;
// undefined ones are zeros. Gradients of tensors that need none, or are undefined, are undefined.
TensorList differentiable_gradients(const TensorList& given, const TensorList& grads,
                                    FunctionRef<TensorList(const TensorList&)> run);

}  // namespace weft::autograd
