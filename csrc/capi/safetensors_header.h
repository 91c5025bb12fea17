// The header of a safetensors file: a JSON object of tensors' names, dtypes, shapes and places.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/layout.h"

namespace weft::capi {

struct StateEntry {
  std::string name;
  DType dtype = DType::F32;
  Dims sizes;
  uint64_t begin = 0, end = 0;  // bytes behind the header
};

// The tensors of a header in its order. ValueError for what is no such header; what it says of
// sizes and places is not checked against each other.
std::vector<StateEntry> read_state_header(std::string_view text);

}  // namespace weft::capi
