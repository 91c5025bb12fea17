// Schemas of operators that hosts register: "my::scale(Tensor x, float by=2.0) -> Tensor".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/type.h"

namespace weft {

struct OperatorSchema {
  struct Argument {
    std::string name;
    Ref<Type> type;
    bool is_written = false;  // Tensor(a!)
  };

  std::string name;  // "my::scale", "my::scale.overload"
  std::string text;
  std::vector<Argument> arguments;
  std::vector<Ref<Type>> results;

  // ValueError that says what was expected where. "aten" and "prim" are the library's.
  static OperatorSchema parse(std::string_view text);

  bool writes() const;  // to any argument

  // Whether both take values of the same types and give such.
  bool has_types_of(const OperatorSchema& other) const;
};

}  // namespace weft
