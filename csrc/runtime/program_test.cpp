#include "runtime/program.h"

#include "runtime/program_testing.h"
#include "testing.h"

namespace weft {
namespace {

using testing::AsmFunction;
using testing::Assembler;

// def f(p: int): return p + 1
Assembler increment() {
  Assembler program;
  AsmFunction f;
  f.params = {{testing::kInt, 0}};
  f.scalars = 2;
  f.code = {{"add_int_imm", 1, 0, 0, 1}, {"return_scalar", 1}};
  program.functions = {f};
  return program;
}

// The message of the program with its first function changed; empty if it loads.
template <class Change>
std::string refusal(Change&& change) {
  Assembler program = increment();
  change(program.functions[0]);
  try {
    program.load();
  } catch (const Error& error) {
    CHECK_EQ(error.kind(), ErrorKind::Value);
    return error.message();
  }
  return "";
}

void check_refused(const std::string& message, const std::string& expected) {
  if (message.find("JitProgram: expected " + expected) == std::string::npos) {
    testing::fail_check(__FILE__, __LINE__, "expected " + expected + ", got: " + message);
  }
}

TEST(program_runs) {
  const Ref<Program> program = increment().load();
  CHECK_EQ(testing::call(*program, {Value(int64_t{41})}).to_int(), 42);
  CHECK_TRUE(program->find("g") == nullptr);
  CHECK_TRUE(program->find_class("C"));
  CHECK_FALSE(program->find_class("D"));
}

TEST(program_prefixes_are_refused) {
  const std::vector<std::byte> bytes = increment().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    bool refused = false;
    try {
      Program::read(std::span(bytes).first(size), {});
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::Value;
    }
    CHECK_TRUE(refused);
  }
}

TEST(program_single_bytes_changed_do_not_crash) {
  const std::vector<std::byte> bytes = increment().bytes();
  size_t refused = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> changed = bytes;
      changed[at] ^= std::byte(1 << bit);
      try {
        Program::read(changed, {});
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK_TRUE(refused > bytes.size());
}

TEST(program_checks_registers) {
  check_refused(refusal([](AsmFunction& f) { f.code[0].a = 2; }), "a scalar register, got 2");
  check_refused(refusal([](AsmFunction& f) { f.objects = 1; }), "a scalar register, got 0");
  check_refused(refusal([](AsmFunction& f) { f.code[1] = {"return_object", 0}; }),
                "an object register, got 0");
  check_refused(refusal([](AsmFunction& f) { f.params[0].second = 2; }), "a register, got 2");
  check_refused(refusal([](AsmFunction& f) { f.scalars = 70000; }), "at most 65535 registers");
}

TEST(program_checks_jumps) {
  check_refused(refusal([](AsmFunction& f) { f.code[1] = {"jump", 0, 0, 0, 2}; }),
                "the target of a jump, got 2");
  check_refused(refusal([](AsmFunction& f) { f.code[1] = {"jump", 0, 0, 0, -1}; }),
                "the target of a jump");
  check_refused(refusal([](AsmFunction& f) { f.code[0] = {"jump_if_lt_int_imm", 9, 0, 0, 5}; }),
                "the target of a jump, got 9");
  check_refused(refusal([](AsmFunction& f) { f.code.pop_back(); }), "a return at the end");
  check_refused(refusal([](AsmFunction& f) { f.code.clear(); }), "at least one instruction");
}

TEST(program_checks_sites) {
  check_refused(refusal([](AsmFunction& f) { f.code[0] = {"print", 0, 0, 0, 0}; }),
                "a site, got 0");
  check_refused(refusal([](AsmFunction& f) {
                  f.sites = {{{7}, {}, 0}};
                  f.code[0] = {"print", 0, 0, 0, 0};
                }),
                "an operand, got 7");
  check_refused(refusal([](AsmFunction& f) {
                  f.sites = {{{}, {1}, static_cast<uint32_t>(ValueTag::List)}};
                  f.code[0] = {"make_dict", 0, 0, 0, 0};
                }),
                "operands that fit the instruction");
  check_refused(refusal([](AsmFunction& f) {
                  f.sites = {{{}, {1}, 0}};
                  f.code[0] = {"call_function", 0, 0, 0, 0};
                }),
                "an operand for each parameter");
  check_refused(refusal([](AsmFunction& f) {
                  f.sites = {{{}, {1}, 9}};
                  f.code[0] = {"call_function", 0, 0, 0, 0};
                }),
                "a function, got 9");
}

TEST(program_names_unknown_instructions) {
  CHECK_THROWS_AS(
      Value,
      [] {
        Assembler program = increment();
        program.functions[0].code[0].name = "add_colour";
        program.load();
      }(),
      "JitProgram: expected a known instruction, got 'add_colour'; the program was made by another "
      "version of weft");
}

TEST(program_shows_places) {
  const Ref<Program> program = increment().load();
  CHECK_EQ(program->highlight(1, "f"),
           "  File \"file.py\", line 8, in f\n    the second\n        ~~~~~~ <--- HERE");
  CHECK_EQ(program->highlight(0, "f"), "  File \"<unknown>\", in f");
}

TEST(arguments_of_operators_are_data) {
  const OpRecord& record = *find_operator("aten::max_pool2d")->record;
  const SchemaArgument& stride = argument_of(record, 2);
  CHECK_EQ(std::string(stride.name) + " " + stride.type, "stride int[2]");
  CHECK_TRUE(stride.kind == ArgumentKind::IntList && stride.list_size == 2 && !stride.optional);
  CHECK_TRUE(stride.make_default().to_ints().empty() && !argument_of(record, 1).make_default);
  CHECK_EQ(argument_of(record, 5).make_default().to_bool(), false);
  CHECK_TRUE(argument_of(*find_operator("aten::add_.Tensor")->record, 0).written);
}

TEST(operators_accept_values_of_their_types) {
  const auto fits = [](const char* op, size_t arg, ValueTag tag) {
    return find_operator(op)->accepts(arg, tag);
  };
  CHECK_TRUE(fits("aten::add_.Tensor", 0, ValueTag::Tensor));
  CHECK_FALSE(fits("aten::add_.Tensor", 0, ValueTag::None));
  CHECK_TRUE(fits("aten::clamp.Tensor", 1, ValueTag::None));
  CHECK_TRUE(fits("aten::sum.dim_IntList", 1, ValueTag::None));
  CHECK_TRUE(fits("aten::index.Tensor", 1, ValueTag::OptionalTensorList));
  CHECK_FALSE(fits("aten::cat", 0, ValueTag::OptionalTensorList));
  CHECK_TRUE(fits("aten::append.t", 0, ValueTag::List));
  CHECK_FALSE(fits("aten::append.t", 0, ValueTag::Tensor));
  CHECK_TRUE(fits("aten::append.t", 1, ValueTag::Object));
  CHECK_TRUE(fits("aten::keys.str", 0, ValueTag::Dict));
  CHECK_FALSE(fits("aten::keys.str", 0, ValueTag::List));
}

}  // namespace
}  // namespace weft
