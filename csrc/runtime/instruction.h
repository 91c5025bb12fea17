// Instructions as the interpreter runs them: 16 bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "builtin_scalars.h"   // generated from weft/_ops/builtins
#include "jit_instructions.h"  // generated from weft/jit/codegen/instructions.py

namespace weft {

// What an operator on scalars becomes: itself; with a literal on the right; and, where it gives a
// bool, jumps on its result.
#define WEFT_SCALAR_UNARY(X, id, R, A, expr) X(id)
#define WEFT_SCALAR_JUMPS_Bool(X, id) \
  X(jump_if_##id) X(jump_if_##id##_imm) X(jump_unless_##id) X(jump_unless_##id##_imm)
#define WEFT_SCALAR_JUMPS_Int(X, id)
#define WEFT_SCALAR_JUMPS_Float(X, id)

enum class Opcode : uint16_t {
#define X(name, a, b, c, x, extra) name,
  WEFT_CONTROL_INSTRUCTIONS(X)
#undef X
#define UNARY(id, R, A, expr) id,
#define BINARY(id, R, A, B, expr) id, id##_imm, WEFT_SCALAR_JUMPS_##R(WEFT_ENUMERATOR, id)
#define WEFT_ENUMERATOR(name) name,
      WEFT_SCALAR_BUILTINS(UNARY, BINARY)
#undef UNARY
#undef BINARY
#undef WEFT_ENUMERATOR
          kCount,
};
inline constexpr size_t kOpcodeCount = static_cast<size_t>(Opcode::kCount);

// Operand kinds, for the loader's checks.
enum class RegisterKind : uint8_t { None, Object, Scalar };
// LiteralJump: x is a literal, and the target lies in a and c.
enum class WideKind : uint8_t {
  None,
  Literal,
  LiteralJump,
  Jump,
  Constant,
  Site,
  Class,
  Type,
  Name
};
enum class ExtraKind : uint8_t { None, Operator, Function, Name, External, ListTag, Type, Group };

struct OpcodeInfo {
  std::string_view name;
  RegisterKind a, b, c;
  WideKind x;
  ExtraKind extra;
};
const OpcodeInfo& opcode_info(Opcode opcode);
// False: there is none of this name.
bool find_opcode(std::string_view name, Opcode* opcode);

struct Site;
struct Type;
class ProgramClass;
class Value;

struct Instruction {
  Opcode op;
  uint16_t a, b, c;
  union {
    int64_t imm;
    double real;
    const Instruction* target;
    const Value* constant;
    Site* site;
    const Type* type;
    const std::string* name;
    const ProgramClass* def;
  };
};
static_assert(sizeof(Instruction) == 16);

// Where a jump with a literal goes, counted from itself.
inline int32_t short_target(const Instruction& instruction) {
  return static_cast<int32_t>(instruction.a | uint32_t{instruction.c} << 16);
}

}  // namespace weft
