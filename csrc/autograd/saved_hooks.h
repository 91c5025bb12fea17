// Hooks for what a graph saves: a tensor is packed when it is saved and unpacked when it is needed.
#pragma once

#include <memory>

#include "autograd/node.h"

namespace weft::autograd {

// What a pack hook made of a tensor.
struct PackedValue {
  virtual ~PackedValue() = default;
  virtual Tensor unpack() = 0;
};

// Set by whoever has hooks; called only while saved_hooks_active. Never returns null.
extern std::unique_ptr<PackedValue> (*pack_saved)(const Tensor& tensor);
extern constinit thread_local bool saved_hooks_active WEFT_FAST_TLS;

// Stands in SavedTensor's edge for a tensor that is not there: keeps the packed value, and as its
// only edge the history of the tensor. The engine never meets it.
class PackedNode final : public Node {
 public:
  PackedNode(std::unique_ptr<PackedValue> packed, Edge history) : value(std::move(packed)) {
    edges.push_back(std::move(history));
  }
  const char* name() const override { return "Packed"; }
  TensorList apply(TensorList) override { return {}; }

  std::unique_ptr<PackedValue> value;
};

}  // namespace weft::autograd
