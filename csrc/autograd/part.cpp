#include "autograd/part.h"

#include "autograd/anomaly.h"
#include "autograd/arith.h"
#include "autograd/node.h"
#include "autograd/sparse.h"
#include "autograd/task.h"
#include "core/profiler.h"

namespace weft::autograd {

bool add_part(const Node& node, const TensorList& grads, Task& task) {
  if (node.edges.size() != 1 || !node.edges[0] || grad_enabled() || anomaly_enabled()) return false;
  const auto& [target, index] = node.edges[0];
  const TensorList& sums = task.states[task.place(target.get())].grads;
  if (sums.empty() || !sums[index].defined() || !grads[0].defined()) return false;
  const Tensor &sum = sums[index], &grad = grads[0];
  const bool fits = !sparse::is_sparse(sum) && !sparse::is_sparse(grad) &&
                    grad.dtype() == sum.dtype() && grad.device() == sum.device();
  const auto* const part = fits ? dynamic_cast<const Part*>(&node) : nullptr;
  if (!part || !arith::is_private(sum) || !sum.is_contiguous()) return false;
  const int64_t start = profiler::recording() ? profiler::now() : 0;
  arith::add_into(part->of(sum), grad);
  if (profiler::recording()) profiler::record(node.name(), {grad.sizes()}, start);
  return true;
}

}  // namespace weft::autograd
