// What generated declarations are made of: the types of arguments, and defaults of list type.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "core/backend.h"
#include "core/generator.h"
#include "core/tensor.h"

namespace weft::ops {

template <int64_t... values>
inline constexpr int64_t list_values[] = {values...};
template <int64_t... values>
inline constexpr IntList list_default{list_values<values...>};

}  // namespace weft::ops
