#include "runtime/object.h"

#include <algorithm>

namespace weft {

int ClassDef::find_slot(std::string_view attribute) const noexcept {
  const auto found = std::ranges::find(attributes, attribute);
  return found == attributes.end() ? -1 : static_cast<int>(found - attributes.begin());
}

std::string_view unqualified(std::string_view name) noexcept {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace weft
