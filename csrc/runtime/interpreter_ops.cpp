#include "runtime/interpreter_ops.h"

#include <atomic>
#include <cstdio>
#include <new>

#include "autograd/mode.h"
#include "autograd/node.h"
#include "core/profiler.h"
#include "ops/donation.h"
#include "runtime/dict.h"
#include "runtime/fork.h"
#include "runtime/future.h"
#include "runtime/interpreter.h"
#include "runtime/list.h"
#include "runtime/nesting.h"
#include "runtime/print.h"
#include "runtime/program_reader.h"
#include "runtime/unique.h"

namespace weft {
namespace {

std::atomic<PrintHook> print_hook{
    [](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }};

}  // namespace

void set_print_hook(PrintHook hook) { print_hook.store(hook); }

namespace interpreter {
namespace {

std::vector<Value> take_operands(const Context& context, const Site& site) {
  std::vector<Value> values;
  values.reserve(site.args.size());
  for (Word word : site.args) values.push_back(context.at(word));
  context.release(site);
  return values;
}

void check_count(const char* what, size_t wanted, size_t got) {
  if (wanted == got) return;
  fail(ErrorKind::Value, got > wanted ? str("too many values to unpack from a ", what,
                                            " (expected ", wanted, ", got ", got, ")")
                                      : str("not enough values to unpack from a ", what,
                                            " (expected ", wanted, ", got ", got, ")"));
}

}  // namespace

void Context::store(uint32_t place, Value&& value) const {
  if (!function->is_object(place) && !is_scalar(value)) [[unlikely]]
    fail_scalar(value);
  registers[place] = std::move(value);
}

void store_results(const Context& context, const Site& site, Value* results) {
  for (uint32_t place : site.results) context.store(place, std::move(*results++));
}

const Operator& resolve(Site& site) {
  const Operator* op = find_operator(*site.name);
  WEFT_CHECK(op, "expected an operator that this version of weft has, got '", *site.name, "'");
  WEFT_CHECK(
      op->record->arg_count == site.args.size() && op->record->result_count == site.results.size(),
      *site.name, ": expected ", int{op->record->arg_count}, " operands and ",
      int{op->record->result_count}, " results, got ", site.args.size(), " and ",
      site.results.size(), "; the schema is ", op->record->schema);
  site.op.store(op, std::memory_order_release);
  return *op;
}

namespace {

std::vector<Dims> sizes_of(const Value* args, size_t count) {
  std::vector<Dims> sizes;
  for (size_t i = 0; i < count; ++i) {
    const Tensor* tensor = args[i].tag() == ValueTag::Tensor ? &args[i].to_tensor() : nullptr;
    sizes.push_back(tensor && tensor->defined() ? tensor->sizes() : Dims());
  }
  return sizes;
}

}  // namespace

void run_recorded(const Operator& op, const Site& site, Value* args, Value* results) {
  std::vector<Dims> sizes = sizes_of(args, site.args.size());
  const int64_t start = profiler::now();
  op.call(args, results);
  profiler::record(site.name->substr(0, site.name->find('.')), std::move(sizes), start);
}

bool run_recorded(const Site& site, Value* args, Value* results) {
  std::vector<Dims> sizes = sizes_of(args, site.args.size());
  std::string name = "fused::";
  for (const FusedStep& step : site.group->spec().steps) {
    name += str(name.back() == ':' ? "" : " ", step.op);
  }
  const int64_t start = profiler::now();
  const bool ran = site.group->run(args, results, nullptr, site.donated);
  if (ran) profiler::record(std::move(name), std::move(sizes), start);
  return ran;
}

const Tensor* find_donor(const Site& site, const Value* args) {
  const Tensor* found = nullptr;
  int64_t most = tile::least_donated() - 1;
  for (size_t i = 0; i < site.args.size(); ++i) {
    if (args[i].tag() != ValueTag::Tensor) continue;
    const Tensor& tensor = args[i].to_tensor();
    if (autograd::needs_graph(tensor)) return nullptr;
    if (!(site.args[i] & kLastUseBit) || tensor.numel() <= most || !is_unique(tensor)) continue;
    found = &tensor;
    most = tensor.numel();
  }
  return found;
}

void fail_operand(const Operator& op, size_t arg, const Value& value) {
  fail(ErrorKind::Type, str(op.record->name, ": expected argument ", arg, " of type ",
                            argument_of(*op.record, arg).type, ", got ", type_name(value)));
}
void fail_scalar(const Value& value) {
  fail(ErrorKind::Type, str("expected an int, float or bool, got ", type_name(value)));
}
void fail_attribute(const Value& object, int64_t slot) {
  fail(ErrorKind::Type, str("expected an object with at least ", static_cast<uint64_t>(slot) + 1,
                            " attributes, got ", type_name(object)));
}

const Function& find_method(const Context& context, Site& site) {
  const Value& object = context.at(site.args[0]);
  WEFT_CHECK_TYPE(object.tag() == ValueTag::Object, "expected an object with a method ", *site.name,
                  ", got ", type_name(object));
  const ClassDef* def = object.object<ClassObject>()->def.get();
  const auto* seen = site.method.load(std::memory_order_acquire);
  if (seen && seen->first == def) return *seen->second;
  const Function* found = context.function->program->find_method(def, *site.name);
  WEFT_CHECK(found, "expected a class with a method ", *site.name, ", got ", def->name);
  bool fits = found->params.size() == site.args.size();
  for (size_t i = 0; fits && i < site.args.size(); ++i) {
    if (found->is_object(found->params[i].place)) continue;
    const Word word = site.args[i];
    fits = word & kConstantBit ? is_scalar(context.at(word))
                               : !context.function->is_object(word & kIndexMask);
  }
  WEFT_CHECK_TYPE(fits, *site.name, ": expected the parameters of the interface, got those of ",
                  def->name);
  // One class is remembered; a site that meets many looks the others up each time.
  if (!seen) {
    auto* entry = new std::pair<const ClassDef*, const Function*>(def, found);
    if (!site.method.compare_exchange_strong(seen, entry)) delete entry;
  }
  return *found;
}

void make_list(const Context& context, const Site& site) {
  std::vector<Value> items = take_operands(context, site);
  context.registers[site.results[0]] =
      weft::make_list(static_cast<ValueTag>(site.extra), items.data(), items.size());
}

void make_dict(const Context& context, const Site& site) {
  std::vector<Value> items = take_operands(context, site);
  auto dict = make_ref<DictObject>();
  dict->value_list = static_cast<ValueTag>(site.extra);
  for (size_t i = 0; i < items.size(); i += 2) dict->set(items[i], std::move(items[i + 1]));
  context.registers[site.results[0]] = weft::make_dict(std::move(dict));
}

void make_tuple(const Context& context, const Site& site) {
  context.registers[site.results[0]] = make_tuple_value(
      take_operands(context, site), site.type ? site.type->tuple : Ref<NamedTupleDef>());
}

void unpack_tuple(const Context& context, const Site& site) {
  const Value tuple = context.at(site.args[0]);
  WEFT_CHECK_TYPE(tuple.tag() == ValueTag::Tuple, "expected a tuple, got ", type_name(tuple));
  context.release(site);
  const std::span<Value> items = tuple_items(tuple);
  check_count("tuple", site.results.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) context.store(site.results[i], Value(items[i]));
}

void unpack_list(const Context& context, const Site& site) {
  const Value list = context.at(site.args[0]);
  WEFT_CHECK_TYPE(is_list(list.tag()), "expected a list, got ", type_name(list));
  context.release(site);
  const auto count = static_cast<size_t>(list_len(list));
  check_count("list", site.results.size(), count);
  for (size_t i = 0; i < count; ++i) {
    context.store(site.results[i], list_get(list, static_cast<int64_t>(i)));
  }
}

Value get_item(const Value& tuple, int64_t index) {
  WEFT_CHECK_TYPE(tuple.tag() == ValueTag::Tuple, "expected a tuple, got ", type_name(tuple));
  const std::span<Value> items = tuple_items(tuple);
  return items[static_cast<size_t>(wrap_index("tuple", index, static_cast<int64_t>(items.size())))];
}

void print(const Context& context, const Site& site) {
  std::string text;
  for (size_t i = 0; i < site.args.size(); ++i) {
    text += (i ? " " : "") + to_text(context.at(site.args[i]));
  }
  context.release(site);
  print_text(text + "\n");
}
void print_text(const std::string& text) { print_hook.load()(text); }

void call_external(const Context& context, const Site& site) {
  const std::shared_ptr<External>& external = context.function->program->externals[site.extra];
  WEFT_CHECK(external, "expected a function that was given with the program, got none");
  const std::vector<Value> args = take_operands(context, site);
  context.store(site.results[0], external->call(args));
}

void fork(const Context& context, const Site& site) {
  context.registers[site.results[0]] = fork_function(*site.function, take_operands(context, site));
}

Value wait(const Value& future) {
  WEFT_CHECK_TYPE(future.tag() == ValueTag::Future, "wait: expected a Future, got ",
                  type_name(future));
  return future.object<FutureObject>()->wait();
}

Value enum_name(const Value& member) {
  WEFT_CHECK_TYPE(member.tag() == ValueTag::Enum, "expected a member of an enumeration, got ",
                  type_name(member));
  const auto* object = member.object<EnumObject>();
  return Value(object->def->members[object->index]);
}
Value enum_value(const Value& member) {
  WEFT_CHECK_TYPE(member.tag() == ValueTag::Enum, "expected a member of an enumeration, got ",
                  type_name(member));
  const auto* object = member.object<EnumObject>();
  return object->def->values[object->index];
}

void remember_mode(RegisterStack& stack) {
  stack.entered.push_back({autograd::grad_enabled(), autograd::mode.autocast, nullptr, Value()});
}

void enter_context(RegisterStack& stack, const Context& context, const Site& site) {
  stack.entered.push_back({false, 0, site.function, context.at(site.args[0])});
  context.release(site);
}

void enter_autocast(RegisterStack& stack, const Value& dtype) {
  int wanted = 0;
  if (!dtype.is_none()) {
    WEFT_CHECK_TYPE(dtype.tag() == ValueTag::DType, "autocast: expected a dtype, got ",
                    type_name(dtype));
    const DType lower = dtype.to_dtype();
    WEFT_CHECK(lower == DType::BF16 || lower == DType::F16,
               "autocast: expected dtype bfloat16 or float16, got ", dtype_name(lower));
    wanted = 1 + static_cast<int>(lower);
  }
  remember_mode(stack);
  autograd::mode.autocast = static_cast<unsigned char>(wanted);
}

namespace {

void restore(const Entered& mode) {
  autograd::set_grad_enabled(mode.grad);
  autograd::mode.autocast = mode.autocast;
}

}  // namespace

void restore_modes(RegisterStack& stack, size_t count) {
  for (; stack.entered.size() > count; stack.entered.pop_back()) {
    if (!stack.entered.back().exit) restore(stack.entered.back());
  }
}

// ---- failures ----

namespace {

constexpr size_t kShownFrames = 20;  // of each end of a long chain of calls

std::string show_frames(const RegisterStack& stack, size_t base) {
  std::string text;
  const size_t count = stack.frames.size() - base;
  for (size_t i = 0; i < count; ++i) {
    if (count > 2 * kShownFrames && i == kShownFrames) {
      const size_t hidden = count - 2 * kShownFrames;
      text += str("  ... ", hidden, " calls more ...\n");
      i += hidden;
    }
    const Frame& frame = stack.frames[base + i];
    const Function& function = *frame.function;
    const auto at = static_cast<size_t>(frame.at - function.code.data());
    text += function.program->highlight(function.places[at], function.name) + "\n";
  }
  return text;
}

[[noreturn]] void throw_with(const std::string& frames) {
  auto raise = [&](ProgramError error) {
    error.add_outer(frames);
    throw error;
  };
  try {
    throw;
  } catch (const ForeignError& error) {
    error.throw_with(frames);
  } catch (const ProgramError& error) {
    raise(error);
  } catch (const Error& error) {
    raise(ProgramError(exception_name(error.kind()), error.message()));
  } catch (const std::bad_alloc&) {
    raise(ProgramError("MemoryError", "expected memory for a small object, got none"));
  } catch (const std::exception& error) {
    raise(ProgramError("RuntimeError", error.what()));
  }
  // Anything else passes.
  __builtin_unreachable();
}

// Leaves what was entered since there were `count` modes and contexts, the innermost first. The
// exception in flight goes on, so one that a context raises meanwhile is dropped.
void leave(RegisterStack& stack, size_t count) {
  while (stack.entered.size() > count) {
    Entered last = std::move(stack.entered.back());
    stack.entered.pop_back();
    if (!last.exit) {
      restore(last);
      continue;
    }
    try {
      const Nesting nesting;  // one may leave another, and that itself again
      run_function(*last.exit, &last.manager, 1);
    } catch (...) {
    }
  }
}

}  // namespace

void unwind(RegisterStack& stack, size_t base) {
  const std::string frames = show_frames(stack, base);
  const size_t entered = stack.frames[base].entered;
  while (stack.frames.size() > base) {
    const Frame& frame = stack.frames.back();
    stack.pop(*frame.function, frame.registers);
    stack.frames.pop_back();
  }
  leave(stack, entered);
  throw_with(frames);
}

}  // namespace interpreter

// ---- ProgramError ----

void ProgramError::add_outer(const std::string& frame) { traceback_ = frame + traceback_; }

const char* ProgramError::what() const noexcept {
  if (traceback_.empty()) return message_.c_str();
  what_ = message_ + "\n\nTraceback of TorchScript (most recent call last):\n" + traceback_;
  if (what_.back() == '\n') what_.pop_back();
  return what_.c_str();
}

std::string exception_name(ErrorKind kind) {
  static constexpr const char* kNames[] = {
      "RuntimeError",        "AssertionError",   "ValueError",        "TypeError",
      "IndexError",          "KeyError",         "ZeroDivisionError", "OverflowError",
      "NotImplementedError", "OutOfMemoryError", "LinAlgError",       "RuntimeError"};
  static_assert(std::size(kNames) == static_cast<size_t>(ErrorKind::Internal) + 1);
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace weft
