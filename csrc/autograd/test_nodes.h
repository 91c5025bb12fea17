// Hand-made operators for the C++ tests of autograd: double tensors, plain loops.
#pragma once

#include <atomic>
#include <initializer_list>
#include <utility>
#include <vector>

#include "autograd/arith.h"
#include "autograd/node.h"

namespace weft::autograd::test {

inline Tensor make(IntList sizes, std::initializer_list<double> values, bool grad = false) {
  Tensor tensor = Tensor::empty(sizes, DType::F64);
  int64_t i = 0;
  for (double value : values) tensor.data_as<double>()[i++] = value;
  if (grad) set_requires_grad(tensor, true);
  return tensor;
}
inline Tensor make(std::initializer_list<double> values, bool grad = false) {
  const int64_t sizes[] = {static_cast<int64_t>(values.size())};
  return make(sizes, values, grad);
}

// Elements in row-major order, whatever the layout.
inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> result;
  if (!tensor.defined()) return result;
  Dims at(tensor.sizes().size());
  for (int64_t n = tensor.numel(); n > 0; --n) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place += at[i] * tensor.strides()[i];
    result.push_back(tensor.data_as<double>()[place]);
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < tensor.sizes()[i]) break;
      at[i] = 0;
    }
  }
  return result;
}

// Elementwise product of equal shapes, or with a one-element `b`; not differentiable itself.
inline Tensor product(const Tensor& a, const Tensor& b) {
  Tensor result = Tensor::empty(a.sizes(), DType::F64);
  const std::vector<double> left = values(a), right = values(b);
  for (size_t i = 0; i < left.size(); ++i) {
    result.data_as<double>()[i] = left[i] * right[right.size() == 1 ? 0 : i];
  }
  return result;
}

inline std::atomic<int> live_nodes{0};

struct MulNode final : Node {
  MulNode() { ++live_nodes; }
  ~MulNode() override { --live_nodes; }
  const char* name() const override { return "MulBackward0"; }
  TensorList apply(TensorList grads) override;
  void release_saved() override {
    self.reset();
    other.reset();
  }
  SavedTensor self, other;
};

inline Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor result = product(a, b);
  if (needs_graph(a, b)) {
    auto node = make_ref<MulNode>();
    node->add_input(a);
    node->add_input(b);
    node->self.save(a, false, "self");
    node->other.save(b, false, "other");
    set_history(result, node);
  }
  return result;
}

inline TensorList MulNode::apply(TensorList grads) {
  TensorList result(2);
  if (wants(0)) result[0] = mul(grads[0], other.unpack(this));
  if (wants(1)) result[1] = mul(grads[0], self.unpack(this));
  return result;
}

// self *= other in place (contiguous or not); saves only `other`.
struct MulInplaceNode final : Node {
  const char* name() const override { return "MulBackward0"; }
  TensorList apply(TensorList grads) override { return {mul(grads[0], other.unpack(this)), {}}; }
  void release_saved() override { other.reset(); }
  SavedTensor other;
};

inline void mul_(const Tensor& self, const Tensor& other) {
  check_inplace("mul_", self);
  Ref<MulInplaceNode> node;
  if (needs_graph(self, other)) {
    node = make_ref<MulInplaceNode>();
    node->add_input(self);
    node->add_input(other);
    node->other.save(other, false, "other");
  }
  const std::vector<double> factor = values(other);
  WEFT_INTERNAL_ASSERT(self.dim() == 1);
  for (int64_t i = 0; i < self.size(0); ++i) {
    self.data_as<double>()[i * self.stride(0)] *= factor[factor.size() == 1 ? 0 : i];
  }
  self.bump_version();
  if (node) rebase_history(self, node);
}

// result = the same elements; gradient passes unchanged.
struct PassNode final : Node {
  PassNode() { ++live_nodes; }
  ~PassNode() override { --live_nodes; }
  const char* name() const override { return "PassBackward0"; }
  TensorList apply(TensorList grads) override { return {std::move(grads[0])}; }
};

inline Tensor pass(const Tensor& a) {
  Tensor result = detach(a);
  if (needs_graph(a)) {
    auto node = make_ref<PassNode>();
    node->add_input(a);
    set_history(result, node);
  }
  return result;
}

// A 1-d view [start, start + length).
struct SliceNode final : Node {
  const char* name() const override { return "SliceBackward0"; }
  TensorList apply(TensorList grads) override {
    Tensor whole = arith::flat_zeros(size, DType::F64, {});
    const std::vector<double> part = values(grads[0]);
    for (size_t i = 0; i < part.size(); ++i) whole.data_as<double>()[start + i] = part[i];
    return {whole};
  }
  int64_t start = 0, size = 0;
};

inline Tensor slice(const Tensor& a, int64_t start, int64_t length) {
  Tensor view = a.with_layout(Layout{{length}, a.strides(), a.offset() + start * a.stride(0)});
  mark_view(view, a);
  if (needs_graph(a)) {
    auto node = make_ref<SliceNode>();
    node->start = start;
    node->size = a.size(0);
    node->add_input(a);
    set_history(view, node);
  }
  return view;
}

inline TensorList run_backward(const Tensor& root, const Tensor& grad = {},
                               BackwardOptions options = {}) {
  return backward({root}, {grad}, {}, options);
}

}  // namespace weft::autograd::test
