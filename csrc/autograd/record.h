// What generated operator functions need to record themselves. Included by generated code alone.
#pragma once

#include <vector>

#include "autograd/arith.h"
#include "autograd/autocast.h"
#include "autograd/node.h"
#include "autograd/out.h"
#include "autograd/part.h"
#include "core/error.h"

namespace weft::autograd {

// Runs an operator's body while its own node stands for it: what the body calls records nothing.
template <class Body>
auto without_graph(Body body) {
  NoGradGuard guard;
  return body();
}

// The history of values that an in-place operator overwrote with constants (`x.eq_(y)`).
class OverwrittenBackward final : public Node {
 public:
  TensorList apply(TensorList) override { return {arith::zeros(results[0])}; }
  const char* name() const override { return "OverwrittenBackward0"; }
};
inline Ref<Node> overwritten(const Tensor& self) {
  auto node = make_ref<OverwrittenBackward>();
  node->add_input(self);
  return node;
}

inline void save_list(std::vector<SavedTensor>& saved, const TensorList& tensors,
                      const char* name) {
  saved.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) saved[i].save(tensors[i], false, name);
}
inline TensorList unpack_list(const std::vector<SavedTensor>& saved, const Node* owner) {
  TensorList result;
  result.reserve(saved.size());
  for (const SavedTensor& one : saved) result.push_back(one.unpack(owner));
  return result;
}

}  // namespace weft::autograd
