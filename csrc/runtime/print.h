// Values as text: Python's str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "runtime/value.h"

namespace weft {

// What print(), str() and f-strings show: a string as it is, all else as repr() gives it.
std::string to_text(const Value& value);
std::string repr(const Value& value);

// A str in quotes, with escapes: 'it\'s'.
std::string quoted(std::string_view text);

// "int", "List[Tensor]", "Point": for messages.
std::string type_name(const Value& value);

// tensor([[1., 2.], [3., 4.]]): shortest digits, every element up to 1000 of them, the first and
// last three of each dimension beyond. Python sets a hook, so that programs show tensors as it
// does.
std::string tensor_text(const Tensor& tensor);
using TensorTextHook = std::string (*)(const Tensor& tensor);
void set_tensor_text_hook(TensorTextHook hook);

}  // namespace weft
