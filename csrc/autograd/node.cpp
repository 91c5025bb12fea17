#include "autograd/node.h"

#include <utility>

#include "autograd/hooks.h"

namespace weft::autograd {
namespace {

// Nodes whose last reference went away while another node was being destroyed.
constinit thread_local Node* pending WEFT_FAST_TLS = nullptr;
constinit thread_local bool destroying WEFT_FAST_TLS = false;

}  // namespace

constinit thread_local uint64_t Node::sequence_counter WEFT_FAST_TLS = 0;

Node::~Node() = default;

void Node::destroy(Node* node) {
  if (destroying) {
    node->next_pending_ = pending;
    pending = node;
    return;
  }
  destroying = true;
  delete node;
  while (Node* next = pending) {
    pending = next->next_pending_;
    delete next;
  }
  destroying = false;
}

bool Node::wants_any(size_t first, size_t count) const {
  for (size_t i = first; i < first + count; ++i) {
    if (wants(i)) return true;
  }
  return false;
}

void Node::add_input(const Tensor& tensor) {
  edges.push_back(tensor.defined() ? gradient_edge(tensor) : Edge{});
}

void Node::add_inputs(const TensorList& tensors) {
  edges.reserve(edges.size() + tensors.size());
  for (const Tensor& tensor : tensors) add_input(tensor);
}

void Node::add_result(const Tensor& tensor) {
  ResultInfo& info = results.emplace_back();
  if (!tensor.defined()) return;
  info.sizes = tensor.sizes();
  info.dtype = tensor.dtype();
  info.device = tensor.device();
}

namespace {

class NotDifferentiable final : public Node {
 public:
  explicit NotDifferentiable(const char* op) : op_(op) {}
  const char* name() const override { return op_; }
  TensorList apply(TensorList) override {
    WEFT_CHECK_AS(NotImplemented, false, op_,
                  ": expected an operator with a gradient in backward, got one without; "
                  "detach its inputs if no gradient should flow");
    return {};
  }

 private:
  const char* op_;
};

}  // namespace

Ref<Node> not_differentiable(const char* op) { return make_ref<NotDifferentiable>(op); }

}  // namespace weft::autograd
