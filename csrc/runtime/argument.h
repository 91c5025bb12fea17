// Values that a host gives, as the types of a program want them.
#pragma once

#include "runtime/program.h"

namespace weft {

// Makes `value` one of the type; false where it cannot be: an int for a float is good, and so are
// lists, dicts and tuples whose items are.
bool convert_argument(const Type& type, Value& value);

// The values of a call, one for each parameter from number `first` on: those given, then the
// defaults. TypeError names the argument that does not fit, as `name`(...).
std::vector<Value> bind_arguments(const Function& function, const std::string& name, size_t first,
                                  std::vector<Value> given);

}  // namespace weft
