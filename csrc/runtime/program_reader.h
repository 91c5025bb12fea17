// From bytes to a Program. The layout is that of weft/jit/codegen/program.py.
#pragma once

#include "runtime/byte_reader.h"
#include "runtime/program.h"

namespace weft {

class ProgramReader {
 public:
  ProgramReader(std::span<const std::byte> bytes, ProgramInputs inputs)
      : in_(bytes), inputs_(std::move(inputs)), program_(new Program()) {}
  Ref<Program> run();

 private:
  void read_strings();
  void read_opcodes();
  void read_definitions();
  void read_class_names();
  void read_types();
  void read_classes();
  void read_sources();
  void read_constants();
  void read_externals();
  void read_groups();
  void read_headers();
  void read_bodies();

  Ref<Type> read_type(size_t index);
  void bind_class(size_t index);
  Value read_value(int depth);
  Value read_number();
  Value read_items(uint8_t kind, int depth);
  FusedOperand read_operand();
  void read_over(FusedStep& step);
  FusedSpec read_group(bool with_gradient);
  std::shared_ptr<const FusedBackward> read_backward();
  void read_header(Function& function);
  void read_body(Function& function);  // function_code.cpp
  void read_site(Function& function, Site& site);
  void read_instruction(Function& function, Instruction& instruction, size_t count);
  void read_register(const Function& function, RegisterKind kind, uint16_t place);
  void bind_site(Function& function, const Instruction& instruction, ExtraKind kind);
  void check_operands(const Function& function, const Instruction& instruction, const Site& site);
  void check_call(const Function& function, const Site& site);

  const std::string& string(const char* what) {
    return program_->strings[in_.index(what, program_->strings.size())];
  }
  const Type& type() { return *program_->types[in_.index("a type", program_->types.size())]; }
  const Value& constant(const char* what) {
    return program_->constants[in_.index(what, program_->constants.size())];
  }

  ByteReader in_;
  ProgramInputs inputs_;
  Ref<Program> program_;
  std::vector<Opcode> opcodes_;
  std::vector<Ref<NamedTupleDef>> tuples_;
  uint32_t scratch_results_ = 0, scratch_args_ = 0;  // of the function being read
};

}  // namespace weft
