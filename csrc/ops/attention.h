// softmax(query @ key^T * scale + mask) @ value, and its gradients, by blocks of query rows: the
// scores of a block stay in the second-level cache, and no others exist.
#pragma once

#include <tuple>

#include "core/tensor.h"

namespace weft::attention {

// query [*, t, e], key [*, s, e], value [*, s, v] with dimensions in front that broadcast; the
// mask, if there is one, broadcasts to [*, t, s]. A mask of bools allows where it is true, another
// is added.
struct Operands {
  Tensor query, key, value, mask;
  bool is_causal;  // row i sees no key behind the i-th
  double scale;
};

// Raises RuntimeError unless shapes and dtypes fit.
void check(const Operands& operands);
Tensor forward(const Operands& operands);
// Of query, key and value, in sizes that broadcast to those of the result.
std::tuple<Tensor, Tensor, Tensor> backward(const Operands& operands, const Tensor& grad_output);

}  // namespace weft::attention
