// Schemas as the Python binder reads them: one Signature per overload, parsed from the schema
// string of an OpRecord the first time the operator is called.
#pragma once

#include <string>
#include <vector>

#include "bindings/python.h"
#include "runtime/value.h"

namespace weft::py {

// Of one operator; the binder keeps both on the stack.
inline constexpr size_t kMaxParams = 24;
inline constexpr size_t kMaxResults = 4;

enum class ParamKind : uint8_t {
  Tensor,
  TensorList,
  Int,
  Float,
  Bool,
  Scalar,
  IntList,
  FloatList,
  BoolList,
  DType,
  Device,
  Str,
  Layout,
  MemoryFormat,
  Generator,
};

struct Param {
  PyObject* name = nullptr;  // interned; the Python name: "input" for the schema's self
  ParamKind kind = ParamKind::Tensor;
  bool optional = false;          // None is a value
  bool element_optional = false;  // Tensor?[]
  bool keyword_only = false;
  bool has_default = false;
  bool written = false;   // alias mark with "!"
  uint8_t slot = 0;       // place among the operator's arguments
  uint8_t outs = 0;       // `out` of several results: a tuple of so many tensors, from slot on
  int64_t list_size = 0;  // int[2]: 2; an int stands for that many copies
  Value default_value;

  std::string name_text() const { return std::string(utf8(name)); }
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

// Raises an internal error for a schema it cannot read: schemas are ours. As a method the parameter
// `self` comes first wherever the schema has it.
Signature parse_signature(const OpRecord& record, bool method);

// How messages call a kind: "Tensor", "Number", "tuple of ints", ...
std::string describe(const Param& param);

}  // namespace weft::py
