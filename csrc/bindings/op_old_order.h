// Calls in the order from before operators had keywords, put into today's.
#pragma once

#include <optional>
#include <vector>

#include "bindings/op_parse.h"
#include "bindings/op_signature.h"

namespace weft::py {

// Such a call: addcmul(x, value, a, b), add(x, alpha, y), addmm(beta, x, alpha, a, b),
// addmm(beta, x, a, b); as methods the tensor comes first.
struct OldOrder {
  std::vector<PyObject*> args;   // tensors by place, then everything that has a name
  std::vector<PyObject*> names;  // borrowed
  size_t count = 0;              // of tensors by place
};

// Nothing where a call of the signature is not one of these.
std::optional<OldOrder> old_order(const Signature& signature, const CallArgs& call, bool method);

}  // namespace weft::py
