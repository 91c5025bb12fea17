// Values side by side that somebody else keeps alive: they are not counted, so that nobody seems to
// share what they refer to.
#pragma once

#include <cstring>

#include "runtime/value.h"

namespace weft {

template <size_t Capacity>
class Borrowed {
 public:
  void set(size_t index, const Value& value) {
    std::memcpy(bytes_ + index * sizeof(Value), static_cast<const void*>(&value), sizeof(Value));
  }
  const Value* data() const noexcept { return reinterpret_cast<const Value*>(bytes_); }
  const Value& operator[](size_t index) const noexcept { return data()[index]; }

 private:
  alignas(Value) unsigned char bytes_[Capacity * sizeof(Value)];
};

}  // namespace weft
