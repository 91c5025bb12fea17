#include "runtime/interpreter.h"

#include "autograd/mode.h"
#include "runtime/arithmetic.h"  // what the scalar instructions are written with
#include "runtime/interpreter_calls.h"
#include "runtime/interpreter_ops.h"
#include "runtime/interrupt.h"
#include "runtime/list.h"
#include "runtime/program_reader.h"

namespace weft {
namespace {

using namespace builtins;
using interpreter::Context;
using interpreter::copy_bits;
using interpreter::put;

#if defined(__GNUC__)
#define WEFT_COMPUTED_GOTO 1
#define CASE(name) L_##name:
#define DISPATCH() goto* labels[static_cast<size_t>(ip->op)]
#else
#define CASE(name) case Opcode::name:
#define DISPATCH() continue
#endif
#define NEXT()  \
  do {          \
    ++ip;       \
    DISPATCH(); \
  } while (0)
#define JUMP(to)                   \
  do {                             \
    ip = (to);                     \
    if (--credit < 0) [[unlikely]] \
      goto poll;                   \
    DISPATCH();                    \
  } while (0)
#define SHORT_TARGET() (ip + short_target(*ip))

#define TYPE_Int int64_t
#define TYPE_Float double
#define TYPE_Bool bool
#define READ_Int(place) registers[place].int_unchecked()
#define READ_Float(place) registers[place].double_unchecked()
#define READ_Bool(place) registers[place].bool_unchecked()
#define LITERAL_Int ip->imm
#define LITERAL_Float ip->real
#define LITERAL_Bool (ip->imm != 0)

// Runs the top frame of the stack until it returns.
Value run(RegisterStack& stack) {
#ifdef WEFT_COMPUTED_GOTO
  static const void* const labels[] = {
#define X(name, a, b, c, x, extra) &&L_##name,
      WEFT_CONTROL_INSTRUCTIONS(X)
#undef X
#define LABEL(name) &&L_##name,
#define UNARY(id, R, A, expr) LABEL(id)
#define BINARY(id, R, A, B, expr) LABEL(id) LABEL(id##_imm) WEFT_SCALAR_JUMPS_##R(LABEL, id)
          WEFT_SCALAR_BUILTINS(UNARY, BINARY)
#undef UNARY
#undef BINARY
#undef LABEL
  };
#endif
  const size_t base = stack.frames.size() - 1;
  const Function* function = stack.frames.back().function;
  Value* registers = stack.frames.back().registers;
  const Value* constants = function->program->constants.data();
  const Instruction* ip = function->code.data();
  const Function* callee = nullptr;
  int credit = interrupt::kCredit;
  Value result;
  try {
#ifdef WEFT_COMPUTED_GOTO
    DISPATCH();
    {
#else
    for (;;) {
      switch (ip->op) {
#endif

      // ---- scalars ----
#define UNARY(id, R, A, expr)                            \
  CASE(id) {                                             \
    const TYPE_##A a = READ_##A(ip->b);                  \
    put(registers + ip->a, static_cast<TYPE_##R>(expr)); \
    NEXT();                                              \
  }
#define OPERANDS(A, B)                \
  const TYPE_##A a = READ_##A(ip->b); \
  const TYPE_##B b = READ_##B(ip->c);
#define OPERANDS_IMM(A, B)            \
  const TYPE_##A a = READ_##A(ip->b); \
  const TYPE_##B b = LITERAL_##B;
#define JUMPS_Int(id, A, B, expr)
#define JUMPS_Float(id, A, B, expr)
#define JUMPS_Bool(id, A, B, expr)     \
  CASE(jump_if_##id) {                 \
    OPERANDS(A, B)                     \
    if (expr) JUMP(ip->target);        \
    NEXT();                            \
  }                                    \
  CASE(jump_if_##id##_imm) {           \
    OPERANDS_IMM(A, B)                 \
    if (expr) JUMP(SHORT_TARGET());    \
    NEXT();                            \
  }                                    \
  CASE(jump_unless_##id) {             \
    OPERANDS(A, B)                     \
    if (!(expr)) JUMP(ip->target);     \
    NEXT();                            \
  }                                    \
  CASE(jump_unless_##id##_imm) {       \
    OPERANDS_IMM(A, B)                 \
    if (!(expr)) JUMP(SHORT_TARGET()); \
    NEXT();                            \
  }
#define BINARY(id, R, A, B, expr)                        \
  CASE(id) {                                             \
    OPERANDS(A, B)                                       \
    put(registers + ip->a, static_cast<TYPE_##R>(expr)); \
    NEXT();                                              \
  }                                                      \
  CASE(id##_imm) {                                       \
    OPERANDS_IMM(A, B)                                   \
    put(registers + ip->a, static_cast<TYPE_##R>(expr)); \
    NEXT();                                              \
  }                                                      \
  JUMPS_##R(id, A, B, expr)
      WEFT_SCALAR_BUILTINS(UNARY, BINARY)
#undef UNARY
#undef BINARY

      // Instructions that are one function of what they name.
#define BY_SITE(id)                                    \
  CASE(id) {                                           \
    interpreter::id({registers, function}, *ip->site); \
    NEXT();                                            \
  }
#define OF_VALUE(id)                                      \
  CASE(id) {                                              \
    registers[ip->a] = interpreter::id(registers[ip->b]); \
    NEXT();                                               \
  }

      // ---- registers ----
      CASE(move_scalar) {
        copy_bits(registers + ip->a, registers + ip->b);
        NEXT();
      }
      CASE(move_object) {
        registers[ip->a] = std::move(registers[ip->b]);
        NEXT();
      }
      CASE(copy_object)
      CASE(box) {
        registers[ip->a] = registers[ip->b];
        NEXT();
      }
      CASE(unbox) {
        const Value& value = registers[ip->b];
        if (!is_scalar(value)) [[unlikely]]
          interpreter::fail_scalar(value);
        copy_bits(registers + ip->a, &value);
        NEXT();
      }
      CASE(unbox_cast) {
        // Behind a branch that left the loop or the function the value may be of another type;
        // flags keep everybody from looking at it.
        {  // A jump to the next instruction destroys nothing.
          const Value none;
          const Value& value = registers[ip->b];
          copy_bits(registers + ip->a, is_scalar(value) ? &value : &none);
        }
        NEXT();
      }
      CASE(load_constant) {
        registers[ip->a] = *ip->constant;
        NEXT();
      }
      CASE(load_scalar) {
        copy_bits(registers + ip->a, ip->constant);
        NEXT();
      }
      CASE(release) {
        registers[ip->a] = Value();
        NEXT();
      }

      // ---- control ----
      CASE(jump) { JUMP(ip->target); }
      CASE(jump_if) {
        if (registers[ip->b].bool_unchecked()) JUMP(ip->target);
        NEXT();
      }
      CASE(jump_unless) {
        if (!registers[ip->b].bool_unchecked()) JUMP(ip->target);
        NEXT();
      }
      CASE(jump_if_none) {
        if (registers[ip->b].is_none()) JUMP(ip->target);
        NEXT();
      }
      CASE(jump_unless_none) {
        if (!registers[ip->b].is_none()) JUMP(ip->target);
        NEXT();
      }
      CASE(loop_start) {
        put(registers + ip->a, int64_t{0});
        if (registers[ip->b].int_unchecked() <= 0) JUMP(ip->target);
        NEXT();
      }
      CASE(loop_next) {
        // Below the limit, so it does not overflow.
        const auto i =
            static_cast<int64_t>(static_cast<uint64_t>(registers[ip->a].int_unchecked()) + 1);
        put(registers + ip->a, i);
        if (i < registers[ip->b].int_unchecked()) JUMP(ip->target);
        NEXT();
      }
      CASE(raise) {
        const Value& message = registers[ip->b];
        throw ProgramError(*ip->name,
                           message.tag() == ValueTag::String ? message.text() : std::string());
      }

      // ---- calls ----
      CASE(call_operator) {
        credit -= interrupt::kOperatorCost;
        interpreter::call_operator<false>(*function, *ip->site, registers, constants);
        NEXT();
      }
      CASE(call_reusing) {
        credit -= interrupt::kOperatorCost;
        interpreter::call_operator<true>(*function, *ip->site, registers, constants);
        NEXT();
      }
      CASE(call_function) {
        callee = ip->site->function;
        goto call;
      }
      CASE(call_method) {
        callee = &interpreter::find_method({registers, function}, *ip->site);
        goto call;
      }
      BY_SITE(call_external)
      BY_SITE(fork)
      OF_VALUE(wait)
      CASE(run_group) {
        credit -= interrupt::kOperatorCost;
        const Site& site = *ip->site;
        Value* results = registers + function->objects + function->scalars;
        Value* args = results + function->scratch;
        for (size_t i = 0; i < site.args.size(); ++i) {
          copy_bits(args + i, &interpreter::operand(site.args[i], registers, constants));
        }
        if (!interpreter::run_group(site, args, results)) NEXT();
        const Context context{registers, function};
        interpreter::store_results(context, site, results);
        context.release(site);
        JUMP(ip + 2);
      }
      BY_SITE(print)

      // ---- containers and objects ----
      BY_SITE(make_list)
      BY_SITE(make_dict)
      BY_SITE(make_tuple)
      BY_SITE(unpack_tuple)
      BY_SITE(unpack_list)
      CASE(get_item) {
        registers[ip->a] = interpreter::get_item(registers[ip->b], ip->imm);
        NEXT();
      }
      CASE(list_length) {
        put(registers + ip->a, list_len(registers[ip->b]));
        NEXT();
      }
      CASE(get_list_scalar) {
        const Value& list = registers[ip->b];
        const int64_t index = registers[ip->c].int_unchecked();
        if (list.tag() == ValueTag::IntList) {
          const std::vector<int64_t>& items = list.object<ListObject<int64_t>>()->items;
          const int64_t place = wrap_index("list", index, static_cast<int64_t>(items.size()));
          put(registers + ip->a, items[static_cast<size_t>(place)]);
        } else {
          Context{registers, function}.store(ip->a, list_get(list, index));
        }
        NEXT();
      }
      CASE(get_list_object) {
        registers[ip->a] = list_get(registers[ip->b], registers[ip->c].int_unchecked());
        NEXT();
      }
      CASE(create_object) {
        registers[ip->a] = make_object(Ref<ClassDef>(const_cast<ProgramClass*>(ip->def)));
        NEXT();
      }
      CASE(get_attribute) {
        registers[ip->a] = Value(interpreter::slot_of(registers[ip->b], ip->imm));
        NEXT();
      }
      CASE(get_scalar) {
        const Value& value = interpreter::slot_of(registers[ip->b], ip->imm);
        if (!is_scalar(value)) [[unlikely]]
          interpreter::fail_scalar(value);
        copy_bits(registers + ip->a, &value);
        NEXT();
      }
      CASE(set_attribute)
      CASE(set_scalar) {
        interpreter::slot_of(registers[ip->a], ip->imm) = registers[ip->b];
        NEXT();
      }
      OF_VALUE(enum_name)
      OF_VALUE(enum_value)
      CASE(is_instance) {
        put(registers + ip->a, matches(*ip->type, registers[ip->b]));
        NEXT();
      }
      CASE(is_none) {
        put(registers + ip->a, registers[ip->b].is_none());
        NEXT();
      }
      CASE(is_not_none) {
        put(registers + ip->a, !registers[ip->b].is_none());
        NEXT();
      }
      CASE(enter_grad_mode) {
        interpreter::remember_mode(stack);
        autograd::set_grad_enabled(ip->imm != 0);
        NEXT();
      }
      CASE(enter_autocast) {
        interpreter::enter_autocast(stack, registers[ip->b]);
        NEXT();
      }
      CASE(exit_mode) {
        if (stack.entered.size() > stack.frames.back().entered) {
          interpreter::restore_modes(stack, stack.entered.size() - 1);
        }
        NEXT();
      }
      CASE(enter_context) {
        interpreter::enter_context(stack, {registers, function}, *ip->site);
        NEXT();
      }
      CASE(exit_context) {
        if (stack.entered.size() > stack.frames.back().entered) stack.entered.pop_back();
        NEXT();
      }

      // ---- frames ----
      CASE(return_object) {
        result = std::move(registers[ip->a]);
        goto leave;
      }
      CASE(return_scalar) {
        result = registers[ip->a];
        goto leave;
      }
      CASE(return_constant) {
        result = *ip->constant;
        goto leave;
      }
#ifndef WEFT_COMPUTED_GOTO
      case Opcode::kCount:
        __builtin_unreachable();
    }
#endif

  poll:
    credit = interrupt::kCredit;
    interrupt::poll();
    DISPATCH();
  call:
    if (stack.frames.size() >= kDeepestCall) [[unlikely]] {
      throw ProgramError("RecursionError",
                         str("maximum recursion depth exceeded: ", kDeepestCall, " calls"));
    }
    {
      Value* inner = stack.push(*callee);
      interpreter::pass(*ip->site, registers, constants, *callee, inner);
      interpreter::preload(*callee, inner);
      stack.frames.back().at = ip;
      stack.frames.push_back({callee, callee->code.data(), inner, stack.entered.size()});
      registers = inner;
      function = callee;
      constants = callee->program->constants.data();
      JUMP(callee->code.data());
    }
  leave:
    interpreter::restore_modes(stack, stack.frames.back().entered);
    stack.pop(*function, registers);
    stack.frames.pop_back();
    if (stack.frames.size() == base) return result;
    {
      const Frame& frame = stack.frames.back();
      function = frame.function;
      registers = frame.registers;
      constants = function->program->constants.data();
      ip = frame.at;
      Context{registers, function}.store(ip->site->results[0], std::move(result));
      NEXT();
    }
  }
}
catch (...) {
  stack.frames.back().at = ip;
  interpreter::unwind(stack, base);
}
}

}  // namespace

Value run_function(const Function& function, Value* args, size_t count) {
  WEFT_INTERNAL_ASSERT(count == function.params.size());
  RegisterStack& stack = RegisterStack::current();
  Value* registers = stack.push(function);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t place = function.params[i].place;
    if (!function.is_object(place) && !is_scalar(args[i])) [[unlikely]] {
      stack.pop(function, registers);
      interpreter::fail_scalar(args[i]);
    }
    registers[place] = std::move(args[i]);
  }
  interpreter::preload(function, registers);
  stack.frames.push_back({&function, function.code.data(), registers, stack.entered.size()});
  if (!profiler::recording()) return run(stack);
  const int64_t start = profiler::now();
  Value result = run(stack);
  profiler::record(function.name.substr(function.name.rfind('.') + 1), {}, start);
  return result;
}

}  // namespace weft
