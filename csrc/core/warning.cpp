#include "core/warning.h"

#include <cstdio>

namespace weft {

void (*warning_handler)(const std::string&) = [](const std::string& message) {
  std::fprintf(stderr, "Warning: %s\n", message.c_str());
};

}  // namespace weft
