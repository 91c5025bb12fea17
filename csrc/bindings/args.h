// Arguments of the hand-written functions: positions and names into one array of borrowed objects.
#pragma once

#include <algorithm>
#include <array>

#include "bindings/bindings.h"
#include "core/error.h"

namespace weft::py {

// out[i] is null where argument i was not given. TypeError for too many, unknown or repeated ones,
// or when one of the first `required` is absent.
template <size_t N>
std::array<PyObject*, N> parse_args(const char* op, const char* const (&names)[N], size_t required,
                                    PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  std::array<PyObject*, N> out{};
  auto given = static_cast<size_t>(count);
  WEFT_CHECK_TYPE(given <= N, op, ": expected at most ", N, " arguments, got ", given);
  std::copy_n(args, given, out.begin());
  size_t named = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  for (size_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i));
    size_t at = 0;
    while (at < N && PyUnicode_CompareWithASCIIString(name, names[at]) != 0) ++at;
    WEFT_CHECK_TYPE(at < N, op, ": expected known argument names, got '", utf8(name), "'");
    WEFT_CHECK_TYPE(!out[at], op, ": expected argument '", utf8(name), "' once, got it twice");
    out[at] = args[given + i];
  }
  for (size_t i = 0; i < required; ++i) {
    WEFT_CHECK_TYPE(out[i], op, ": expected argument '", names[i], "', got nothing");
  }
  return out;
}

inline bool absent(PyObject* object) { return !object || object == Py_None; }

// Converters for optional arguments: absent gives the default; a wrong type raises TypeError.
inline bool bool_arg(const char* op, const char* name, PyObject* object, bool otherwise) {
  bool value = otherwise;
  if (absent(object)) return value;
  WEFT_CHECK_TYPE(to_bool(object, &value), op, ": expected argument '", name,
                  "' of type bool, got ", short_type_name(object));
  return value;
}
inline int64_t int_arg(const char* op, const char* name, PyObject* object, int64_t otherwise = 0) {
  int64_t value = otherwise;
  if (absent(object)) return value;
  WEFT_CHECK_TYPE(to_int(object, &value), op, ": expected argument '", name, "' of type int, got ",
                  short_type_name(object));
  return value;
}
inline std::optional<DType> dtype_arg(const char* op, PyObject* object) {
  if (absent(object)) return {};
  DType dtype;
  WEFT_CHECK_TYPE(to_dtype(object, &dtype), op, ": expected argument 'dtype' of type dtype, got ",
                  short_type_name(object));
  return dtype;
}
// The device as tensors have it; raises RuntimeError unless it can be used.
inline std::optional<Device> device_arg(const char* op, PyObject* object) {
  if (absent(object)) return {};
  Device device;
  WEFT_CHECK_TYPE(to_device(object, &device), op,
                  ": expected argument 'device' of type device, got ", short_type_name(object));
  return check_available(op, device);
}

}  // namespace weft::py
