// The operators as the runtime and the binder see them: made by tools/gen from their schemas.
#pragma once

#include "runtime/value.h"

namespace weft {

// The boxed call of an operator: args as the schema lists them, defaults filled in; results in
// order.
using BoxedFn = void (*)(const Value* args, Value* results);

// How arguments of a type are bound.
enum class ArgumentKind : uint8_t {
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
  Other,  // of builtins only
};

// An argument or a result of a schema.
struct SchemaArgument {
  const char* name;         // empty for results that have none
  const char* type;         // "int[2]?"; without the alias mark
  Value (*make_default)();  // null: a call has to give it
  uint32_t tags;            // bit t is set where a value of tag t is good
  ArgumentKind kind;
  uint8_t list_size;      // int[2]: 2; an int stands for that many copies
  bool optional;          // None is a value
  bool element_optional;  // Tensor?[]
  bool keyword_only;
  bool written;  // alias mark with "!"
};

// One row of the operator table.
struct OpRecord {
  const char* name;      // "add"
  const char* overload;  // "Tensor"
  const char* schema;    // "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
  BoxedFn call;
  uint8_t arg_count, result_count;
  uint8_t variants;  // bit 0: module function, bit 1: Tensor method, bit 2: nn.functional function
                     // (module-private name), bit 4: a number may stand for the first tensor, bit
                     // 6: the numbers after its tensors may stand between them
  uint16_t first_argument;
};
std::span<const OpRecord> op_records();

// Its arguments, then its results: i < arg_count + result_count.
const SchemaArgument& argument_of(const OpRecord& record, size_t i);

}  // namespace weft
