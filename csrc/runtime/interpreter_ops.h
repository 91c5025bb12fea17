// Instructions that are too large for the interpreter's loop, and what it needs when things go
// wrong.
#pragma once

#include "runtime/register_stack.h"

namespace weft::interpreter {

// The value an operand names.
inline const Value& operand(Word word, const Value* registers, const Value* constants) {
  return (word & kConstantBit ? constants : registers)[word & kIndexMask];
}

// What an instruction may touch: the registers of its frame, and the program.
struct Context {
  Value* registers;
  const Function* function;
  const Value& at(Word word) const {
    return operand(word, registers, function->program->constants.data());
  }
  // Writes a result; TypeError where a scalar register would get something else.
  void store(uint32_t place, Value&& value) const;
  void release(const Site& site) const {
    for (uint16_t place : site.releases) registers[place] = Value();
  }
};

const Operator& resolve(Site& site);
[[noreturn]] void fail_operand(const Operator& op, size_t arg, const Value& value);
[[noreturn]] void fail_scalar(const Value& value);
[[noreturn]] void fail_attribute(const Value& object, int64_t slot);

// The operand, among `args` of an operator's site, whose memory its result may take: one that dies
// here, that nobody else holds, and large. Null: none, or a gradient is recorded.
const Tensor* find_donor(const Site& site, const Value* args);

// What an operator, what a group does, recorded by a profile.
void run_recorded(const Operator& op, const Site& site, Value* args, Value* results);
bool run_recorded(const Site& site, Value* args, Value* results);

// Moves results to their registers.
void store_results(const Context& context, const Site& site, Value* results);

// The body of a method for the object's class.
const Function& find_method(const Context& context, Site& site);

void make_list(const Context& context, const Site& site);
void make_dict(const Context& context, const Site& site);
void make_tuple(const Context& context, const Site& site);
void unpack_tuple(const Context& context, const Site& site);
void unpack_list(const Context& context, const Site& site);
Value get_item(const Value& tuple, int64_t index);
void print(const Context& context, const Site& site);
void print_text(const std::string& text);  // as it is
void call_external(const Context& context, const Site& site);
void fork(const Context& context, const Site& site);
Value wait(const Value& future);
Value enum_name(const Value& member);
Value enum_value(const Value& member);

inline Value& slot_of(const Value& object, int64_t slot) {
  if (object.tag() != ValueTag::Object) [[unlikely]]
    fail_attribute(object, slot);
  std::vector<Value>& slots = object.object<ClassObject>()->slots;
  if (static_cast<uint64_t>(slot) >= slots.size()) [[unlikely]]
    fail_attribute(object, slot);
  return slots[static_cast<size_t>(slot)];
}

void remember_mode(RegisterStack& stack);
// Until exit_context an exception calls the site's function with the site's operand.
void enter_context(RegisterStack& stack, const Context& context, const Site& site);
// Operators run in the dtype, or (None) as they are.
void enter_autocast(RegisterStack& stack, const Value& dtype);
// Takes back the modes that were entered since there were `count` modes and contexts.
void restore_modes(RegisterStack& stack, size_t count);

// Removes the frames from `base` on, leaves the contexts that they entered, and throws the
// exception in flight anew, with their lines.
[[noreturn]] void unwind(RegisterStack& stack, size_t base);

}  // namespace weft::interpreter

namespace weft {
// Where print() of programs goes; standard output until somebody sets it.
using PrintHook = void (*)(const std::string& text);
void set_print_hook(PrintHook hook);
}  // namespace weft
