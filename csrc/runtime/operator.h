// Operators by the name that programs use: "aten::add.Tensor".
#pragma once

#include <string_view>
#include <vector>

#include "runtime/op_record.h"

namespace weft {

struct Operator {
  const OpRecord* record;
  BoxedFn call;
  std::vector<uint32_t> tags;  // SchemaArgument::tags of each argument

  bool accepts(size_t arg, ValueTag tag) const noexcept {
    return tags[arg] >> static_cast<uint32_t>(tag) & 1;
  }
};

// Null: there is none. The result lives as long as the process.
const Operator* find_operator(std::string_view kind);

}  // namespace weft
