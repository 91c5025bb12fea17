// Warnings: what a program should know of a call that goes on.
#pragma once

#include <string>

namespace weft {

// Where warnings go, standard error at first; the bindings give them to Python's `warnings`. May
// throw, where the program wants an error instead.
extern void (*warning_handler)(const std::string& message);

inline void warn(const std::string& message) { warning_handler(message); }

}  // namespace weft
