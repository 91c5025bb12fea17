// The arguments of any function of the C interface, as one thing.
#pragma once

#include "bindings/python.h"

namespace weft::py {

// `first` (self; may be null), `count` more by position, then one for each of `names` (may be
// null).
struct Arguments {
  PyObject* first;
  PyObject* const* rest;
  size_t count;
  PyObject* names = nullptr;

  size_t all() const noexcept {
    return count + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
  }
  Object tuple() const;  // by position; raises PythonError, as dict()
  Object dict() const;   // by name
};

}  // namespace weft::py
