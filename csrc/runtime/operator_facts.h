// What compilers of programs must know of every operator (made by tools/gen/facts.py).
#pragma once

#include <span>
#include <string_view>

namespace weft {

struct OperatorFacts {
  const char* name;        // "aten::add"
  const char* schema;      // "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  std::string_view facts;  // a dict of Python, marshalled
};

// Operators of the table, then the builtins; those of one name in the order of the table.
std::span<const OperatorFacts> operator_facts();

}  // namespace weft
