// Operators as the Python binder sees them: one Signature per overload, made of an OpRecord the
// first time the operator is called.
#pragma once

#include <string>
#include <vector>

#include "bindings/python.h"
#include "runtime/op_record.h"

namespace weft::py {

// Of one operator; the binder keeps both on the stack.
inline constexpr size_t kMaxParams = 24;
inline constexpr size_t kMaxResults = 4;

struct Param : SchemaArgument {
  PyObject* key;            // interned; the Python name: "input" for the schema's self
  uint8_t slot;             // place among the operator's arguments
  bool of_factory = false;  // makes constants: its numbers may be tensors that require grad
  uint8_t outs = 0;         // `out` of several results: a tuple of so many tensors, from slot on
  Value default_value{};

  bool has_default() const noexcept { return make_default != nullptr; }
  std::string key_text() const { return std::string(utf8(key)); }
};

struct Signature {
  const OpRecord* record = nullptr;
  std::vector<Param> params;
  size_t positional = 0;    // params before the keyword-only ones
  int varargs = -1;         // the int[] that may be spread over the call: view(2, 3)
  bool writes_out = false;  // the form with out=
  bool factory = false;     // makes tensors from a device: takes requires_grad= as well
  std::vector<std::string> result_names;  // of "-> (Tensor values, Tensor indices)", else empty
  PyTypeObject* result_type = nullptr;    // the named tuple of those, made on first use

  // "add(Tensor input, Number other, *, Number alpha=1)" as error messages and docs show it.
  std::string text() const;
};

// As a method the parameter `self` comes first wherever the schema has it.
Signature signature_of(const OpRecord& record, bool method);

// How messages call a kind: "Tensor", "Number", "tuple of ints", ...
std::string describe(const Param& param);

}  // namespace weft::py
