// What the opaque handles of weft.h are, and how C++ exceptions become its status codes.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/weft.h"
#include "core/error.h"
#include "core/tensor.h"
#include "runtime/compiled_module.h"
#include "runtime/value.h"

struct weft_tensor {
  weft::Tensor tensor;
};

struct weft_value {
  weft::Value value;
};

struct weft_module {
  weft::Ref<weft::CompiledModule> module;
  std::vector<std::string> methods;
  weft::CompiledModule::NamedTensors parameters, buffers;
};

namespace weft::capi {

// Remembers the exception under way for weft_last_error.
weft_status status_of_exception() noexcept;

// Failures of this thread so far: whether weft_last_error has a new text.
uint64_t failures() noexcept;
// Throws what becomes the status again.
[[noreturn]] void throw_status(weft_status status, const std::string& text);

// Runs a body that may throw.
template <class Body>
weft_status guarded(Body&& body) noexcept {
  try {
    body();
    return WEFT_OK;
  } catch (...) {
    return status_of_exception();
  }
}

// Calls a function of the host. A status other than WEFT_OK is thrown as what it stands for, with
// the text that the host has left. A host in C++ may throw, though it should not: nothing goes
// through the frames of C.
template <class Call>
void call_host(const std::string& name, Call&& call) {
  const uint64_t before = failures();
  const weft_status status = [&]() noexcept {
    try {
      return call();
    } catch (...) {
      return status_of_exception();
    }
  }();
  if (status == WEFT_OK) return;
  const bool has_text = failures() != before && *weft_last_error() != '\0';
  const std::string text =
      has_text ? weft_last_error()
               : str("expected WEFT_OK from the host, got the status ", int{status});
  const std::string prefix = str(name, ": ");
  throw_status(status, text.starts_with(prefix) ? text : prefix + text);
}

// The object behind a handle.
template <class T>
T& handle(const char* op, T* given) {
  WEFT_CHECK_VALUE(given != nullptr, op, ": expected a handle, got NULL");
  return *given;
}

// ValueError for a number that is none of weft.h's.
DType dtype_of(const char* op, weft_dtype dtype);
// KeyError where the object has no attribute of the name, TypeError where it is none.
const Value& attribute(const char* op, const Value& object, std::string_view name);

inline void put(weft_tensor** out, Tensor tensor) { *out = new weft_tensor{std::move(tensor)}; }
inline void put(weft_value** out, Value value) { *out = new weft_value{std::move(value)}; }

}  // namespace weft::capi
