// Operators by the name that programs use: "aten::add.Tensor".
#pragma once

#include <string_view>
#include <vector>

#include "runtime/value.h"

namespace weft {

struct Operator {
  const OpRecord* record;
  BoxedFn call;
  std::vector<uint32_t> tags;  // of each argument: bit t is set where a value of tag t is good

  bool accepts(size_t arg, ValueTag tag) const noexcept {
    return tags[arg] >> static_cast<uint32_t>(tag) & 1;
  }
};

// Null: there is none. The result lives as long as the process.
const Operator* find_operator(std::string_view kind);

// The tags of values that fit a type of a schema; what lies inside containers is not asked.
uint32_t tags_of_type(std::string_view type);

// The type texts of a schema's arguments: "f(Tensor(a!) self, int[2] k=1) -> ()" gives "Tensor(a!)"
// and "int[2]".
std::vector<std::string_view> argument_types(std::string_view schema);

}  // namespace weft
