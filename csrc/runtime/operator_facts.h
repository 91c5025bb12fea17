// What compilers of programs must know of every operator (made by tools/gen/facts.py).
#pragma once

#include <span>
#include <string_view>

namespace weft {

struct OperatorFacts {
  std::string_view kind;   // "aten::add.Tensor"
  std::string_view facts;  // a dict of Python, marshalled

  std::string_view name() const { return kind.substr(0, kind.find('.')); }
};

// Operators of the table, then the builtins; those of one name in the order of the table.
std::span<const OperatorFacts> operator_facts();

}  // namespace weft
