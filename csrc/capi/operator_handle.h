// What the handles of operators of the library are: rows of the table, and functions of the file
// of what weft composes in Python.
#pragma once

#include <string_view>

#include "capi/handles.h"
#include "runtime/op_record.h"

// It lives as long as the process.
struct weft_operator {
  virtual ~weft_operator() = default;
  virtual const char* schema() const = 0;
  // Arguments by their places; null ones, and those behind the last, have their defaults.
  virtual weft::Value call(const weft_value* const* args, size_t count) const = 0;
};

namespace weft::capi {

// A list with the storage of `tag`, for an argument of `size` items: a number, or a list of one,
// stands for as many; 0: of any number. Other values stay as they are.
Value as_list(ValueTag tag, size_t size, Value given);

// The file lies beside the library and is read when it is first asked for. RuntimeError or
// ValueError where it is damaged.
bool has_composed_operators();
const weft_operator* find_composed_operator(std::string_view kind);  // null: there is none
const weft_operator* composed_operator_at(size_t index);             // null: beyond the last

}  // namespace weft::capi
