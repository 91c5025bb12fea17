// From C++ failures to Python exceptions, in one place.
#pragma once

#include <type_traits>

#include "bindings/python.h"

namespace weft::py {

// weft.OutOfMemoryError, a RuntimeError.
extern PyObject* out_of_memory_error;
// weft.linalg.LinAlgError, a RuntimeError.
extern PyObject* linear_algebra_error;
void init_errors(PyObject* module);

// Sets the Python exception for the C++ exception being handled. Call only inside a catch block.
void translate_exception() noexcept;

// Runs fn at the C border: a C++ exception becomes a Python one and the slot's error result
// (null for pointers, -1 for integers).
template <class Fn>
auto guarded(Fn&& fn) noexcept -> std::invoke_result_t<Fn> {
  try {
    return fn();
  } catch (...) {
    translate_exception();
    if constexpr (std::is_pointer_v<std::invoke_result_t<Fn>>) {
      return nullptr;
    } else {
      return -1;
    }
  }
}

}  // namespace weft::py
