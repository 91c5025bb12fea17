#include "runtime/interpreter.h"

#include <thread>

#include "autograd/mode.h"
#include "runtime/future.h"
#include "runtime/interrupt.h"
#include "runtime/program_testing.h"
#include "runtime/register_stack.h"
#include "testing.h"

namespace weft {
namespace {

using testing::AsmFunction;
using testing::Assembler;
using testing::call;

// def f(p: int): the sum of range(p)
Assembler summing() {
  Assembler program;
  program.constants = {0};
  AsmFunction f;
  f.params = {{testing::kInt, 0}};
  f.scalars = 3;
  f.code = {{"load_scalar", 1, 0, 0, 0},
            {"loop_start", 2, 0, 0, 4},
            {"add_int", 1, 1, 2},
            {"loop_next", 2, 0, 0, 2},
            {"return_scalar", 1}};
  program.functions = {f};
  return program;
}

// def f(p): calls itself with p - 1 while p > 0
Assembler descending() {
  Assembler program;
  AsmFunction f;
  f.params = {{testing::kInt, 0}};
  f.scalars = 2;
  f.sites = {{{1}, {1}, 0}};
  f.code = {{"jump_if_gt_int_imm", 2, 0, 0, 0},
            {"return_scalar", 0},
            {"sub_int_imm", 1, 0, 0, 1},
            {"call_function", 0, 0, 0, 0},
            {"return_scalar", 1}};
  program.functions = {f};
  return program;
}

template <class Fn>
ProgramError raised(Fn&& fn) {
  try {
    fn();
  } catch (const ProgramError& error) {
    return error;
  }
  testing::fail_check(__FILE__, __LINE__, "expected a ProgramError");
}

struct Ended final : ForeignError {
  [[noreturn]] void throw_with(const std::string&) const override { throw Ended(); }
};

TEST(interpreter_asks_the_host) {
  const Ref<Program> program = summing().load();
  interrupt::set_check([] { throw Ended(); });
  bool ended = false;
  try {
    call(*program, {Value(int64_t{1} << 62)});
  } catch (const Ended&) {
    ended = true;
  }
  interrupt::set_check(nullptr);
  CHECK_TRUE(ended);
  CHECK_EQ(call(*program, {Value(int64_t{2000})}).to_int(), 1999000);
}

TEST(interpreter_loops) {
  const Ref<Program> program = summing().load();
  CHECK_EQ(call(*program, {Value(int64_t{10})}).to_int(), 45);
  CHECK_EQ(call(*program, {Value(int64_t{0})}).to_int(), 0);
  CHECK_EQ(call(*program, {Value(int64_t{-1})}).to_int(), 0);
}

TEST(interpreter_calls) {
  const Ref<Program> program = descending().load();
  CHECK_EQ(call(*program, {Value(int64_t{3000})}).to_int(), 0);
  const ProgramError error = raised([&] { call(*program, {Value(int64_t{1} << 40)}); });
  CHECK_EQ(error.name(), "RecursionError");
  CHECK_TRUE(error.traceback().find("calls more") != std::string::npos);
  CHECK_EQ(RegisterStack::current().frames.size(), 0);
  CHECK_EQ(call(*program, {Value(int64_t{5})}).to_int(), 0);
}

TEST(interpreter_many_threads) {
  const Ref<Program> program = summing().load();
  std::vector<std::thread> threads;
  std::vector<int64_t> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 100; ++k) {
        results[i] = call(*program, {Value(static_cast<int64_t>(1000 + i))}).to_int();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < results.size(); ++i) {
    const auto n = static_cast<int64_t>(1000 + i);
    CHECK_EQ(results[i], n * (n - 1) / 2);
  }
}

// def f(x, y): x + y, freeing what is marked
Assembler adding(Word x, Word y) {
  Assembler program;
  program.constants = {1};
  AsmFunction f;
  f.params = {{testing::kAny, 0}, {testing::kAny, 1}};
  f.objects = 3;
  f.sites = {{{x, y, kConstantBit}, {2}, program.string("aten::add.Tensor")}};
  f.code = {{"call_operator", 0, 0, 0, 0}, {"return_object", 2}};
  program.functions = {f};
  return program;
}

TEST(interpreter_calls_operators) {
  const Ref<Program> program = adding(kLastUseBit, 1).load();
  const Tensor x = Tensor::scalar(Scalar(2), DType::F32), y = Tensor::scalar(Scalar(3), DType::F32);
  CHECK_EQ(call(*program, {Value(x), Value(y)}).to_tensor().item().to_double(), 5.0);
  CHECK_EQ(x.impl()->use_count(), 1);
  CHECK_EQ(y.impl()->use_count(), 1);
  CHECK_EQ(program->missing_operators().size(), 0);
}

TEST(interpreter_checks_operands_of_operators) {
  const Ref<Program> program = adding(0, 1).load();
  const Tensor x = Tensor::scalar(Scalar(2), DType::F32);
  for (const Value& wrong : {Value(), Value(int64_t{1}), Value(std::string("text"))}) {
    const ProgramError error = raised([&] { call(*program, {Value(x), wrong}); });
    CHECK_EQ(error.name(), "TypeError");
    CHECK_TRUE(error.message().find("add: expected argument 1 of type Tensor") == 0);
    CHECK_TRUE(error.traceback().find("line 8, in f\n    the second") != std::string::npos);
  }
  CHECK_EQ(x.impl()->use_count(), 1);
}

TEST(interpreter_raises) {
  Assembler program;
  AsmFunction f;
  f.params = {{testing::kAny, 0}};
  f.objects = 1;
  f.code = {{"enter_grad_mode", 0, 0, 0, 0}, {"raise", 0, 0, 0, program.string("LookupError")}};
  program.functions = {f};
  const Ref<Program> loaded = program.load();
  const ProgramError error = raised([&] { call(*loaded, {Value(std::string("gone"))}); });
  CHECK_EQ(error.name(), "LookupError");
  CHECK_EQ(error.message(), "gone");
  CHECK_EQ(std::string(error.what()).find("gone\n\nTraceback of TorchScript"), 0);
  CHECK_TRUE(autograd::grad_enabled());
}

TEST(interpreter_objects) {
  // def f(p): o = C(); o.a = p; o.b = o.a; return o
  Assembler program;
  AsmFunction f;
  f.params = {{testing::kInt, 1}};
  f.objects = 1;
  f.scalars = 2;
  f.code = {{"create_object", 0, 0, 0, 0},
            {"set_scalar", 0, 1, 0, 0},
            {"get_scalar", 2, 0, 0, 0},
            {"set_scalar", 0, 2, 0, 1},
            {"return_object", 0}};
  program.functions = {f};
  const Ref<Program> loaded = program.load();
  const Value object = call(*loaded, {Value(int64_t{8})});
  CHECK_EQ(object.object<ClassObject>()->slots[1].to_int(), 8);
  CHECK_TRUE(object.object<ClassObject>()->def == loaded->find_class("C"));

  // A slot that is not there, and a value that is no object.
  program.functions[0].code[1].x = 2;
  CHECK_EQ(raised([&] { call(*program.load(), {Value(int64_t{8})}); }).name(), "TypeError");
  program.functions[0].code[0] = {"release", 0};
  program.functions[0].code[1].x = 0;
  CHECK_EQ(raised([&] { call(*program.load(), {Value(int64_t{8})}); }).name(), "TypeError");
}

TEST(interpreter_scalar_registers_refuse_objects) {
  Assembler program;
  AsmFunction f;
  f.params = {{testing::kAny, 0}};
  f.objects = 1;
  f.scalars = 1;
  f.code = {{"unbox", 1, 0}, {"return_scalar", 1}};
  program.functions = {f};
  const Ref<Program> loaded = program.load();
  CHECK_EQ(call(*loaded, {Value(2.5)}).to_double(), 2.5);
  const Value text(std::string("text"));
  CHECK_EQ(raised([&] { call(*loaded, {text}); }).name(), "TypeError");
}

TEST(interpreter_forks) {
  Assembler program = summing();
  AsmFunction g;
  g.name = "g";
  g.params = {{testing::kInt, 2}};
  g.objects = 2;
  g.scalars = 1;
  g.sites = {{{2}, {0}, 0}};
  g.code = {{"fork", 0, 0, 0, 0}, {"wait", 1, 0}, {"return_object", 1}};
  program.functions.push_back(g);
  const Ref<Program> loaded = program.load();
  for (int64_t n = 0; n < 50; ++n) {
    CHECK_EQ(call(*loaded, {Value(n)}, "g").to_int(), n * (n - 1) / 2);
  }
}

TEST(register_stack_grows_and_shrinks) {
  Function large;
  large.objects = 3000;
  large.frame_size = 3000;
  RegisterStack stack;
  std::vector<Value*> frames;
  for (int i = 0; i < 10; ++i) {
    frames.push_back(stack.push(large));
    frames.back()[2999] = Value(std::string("kept"));
    frames.front()[0] = Value(int64_t{i});
  }
  CHECK_EQ(frames.front()[0].to_int(), 9);
  for (int i = 9; i >= 0; --i) {
    CHECK_EQ(frames[static_cast<size_t>(i)][2999].text(), "kept");
    stack.pop(large, frames[static_cast<size_t>(i)]);
  }
  CHECK_TRUE(stack.push(large) == frames[0]);
  stack.pop(large, frames[0]);
}

}  // namespace
}  // namespace weft
