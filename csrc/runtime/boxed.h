// How generated boxed calls take arguments out of values.
#pragma once

#include <optional>

#include "runtime/value.h"

namespace weft::boxed {

template <class T>
std::optional<T> maybe(const Value& value, T (Value::*get)() const) {
  if (value.is_none()) return std::nullopt;
  return (value.*get)();
}

// A default in a schema is TorchScript's number of the dtype.
inline DType dtype(const Value& value) {
  return value.tag() == ValueTag::Int ? dtype_of_number(value.to_int()) : value.to_dtype();
}
inline std::optional<DType> optional_dtype(const Value& value) {
  if (value.is_none()) return std::nullopt;
  return dtype(value);
}

}  // namespace weft::boxed
