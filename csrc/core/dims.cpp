// How lists of ints print in error messages.
#include "core/dims.h"

namespace weft {

std::ostream& operator<<(std::ostream& out, AsTuple list) {
  out << '(';
  for (size_t i = 0; i < list.values.size(); ++i) out << (i > 0 ? ", " : "") << list.values[i];
  if (list.values.size() == 1) out << ',';
  return out << ')';
}

}  // namespace weft
