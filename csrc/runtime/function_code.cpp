// Reading the code of one function, and checking it: registers exist and are of the class their
// instruction needs, jumps land on instructions, sites have operands their instruction can take. A
// program that passes cannot reach outside its frame, whatever it computes.
#include <algorithm>

#include "runtime/list.h"
#include "runtime/program_reader.h"

namespace weft {
namespace {

bool is_terminal(Opcode op) {
  switch (op) {
    case Opcode::jump:
    case Opcode::return_object:
    case Opcode::return_scalar:
    case Opcode::return_constant:
    case Opcode::raise:
      return true;
    default:
      return false;
  }
}

}  // namespace

void ProgramReader::read_site(Function& function, Site& site) {
  const uint32_t registers = function.objects + function.scalars;
  const uint32_t args = in_.count("a count of operands", 4);
  in_.check(args <= UINT16_MAX, "at most 65535 operands", args);
  site.args.reserve(args);
  for (uint32_t i = 0; i < args; ++i) {
    Word word = in_.u32();
    const uint32_t index = word & kIndexMask;
    const size_t limit = word & kConstantBit ? program_->constants.size() : registers;
    in_.check(index < limit, "an operand", index);
    if (word & kConstantBit || !function.is_object(index)) word &= ~kLastUseBit;
    site.args.push_back(word);
  }
  const uint32_t results = in_.count("a count of results", 4);
  in_.check(results <= UINT16_MAX, "at most 65535 results", results);
  for (uint32_t i = 0; i < results; ++i) site.results.push_back(in_.index("a register", registers));
  for (uint32_t i = 0; i < args; ++i) {
    const auto place = static_cast<uint16_t>(site.args[i] & kIndexMask);
    if (!(site.args[i] & kLastUseBit)) continue;
    if (std::ranges::find(site.results, place) != site.results.end()) continue;
    site.releases.push_back(place);
    if (i < 64) site.donated |= uint64_t{1} << i;
  }
  site.direct = results == 1 && function.is_object(site.results[0]);
  site.scalar = results == 1 && !site.direct;
  site.extra = in_.u32();
}

void ProgramReader::read_body(Function& function) {
  scratch_results_ = scratch_args_ = 0;
  function.site_count = in_.count("a count of sites", 12);
  function.sites = std::make_unique<Site[]>(function.site_count);
  for (uint32_t i = 0; i < function.site_count; ++i) read_site(function, function.sites[i]);
  const uint32_t count = in_.count("a count of instructions", 20);
  in_.check(count > 0, "at least one instruction", count);
  function.code.resize(count);
  for (Instruction& instruction : function.code) read_instruction(function, instruction, count);
  in_.check(is_terminal(function.code.back().op), "a return at the end", count);
  for (uint32_t i = 0; i < count; ++i) {
    function.places.push_back(in_.index("a place", program_->places.size()));
  }
  function.scratch = scratch_results_;
  function.frame_size = function.objects + function.scalars + scratch_results_ + scratch_args_;
}

void ProgramReader::read_register(const Function& function, RegisterKind kind, uint16_t place) {
  switch (kind) {
    case RegisterKind::None:
      return;
    case RegisterKind::Object:
      in_.check(place < function.objects, "an object register", place);
      return;
    case RegisterKind::Scalar:
      in_.check(place >= function.objects && place < function.objects + function.scalars,
                "a scalar register", place);
      return;
  }
}

void ProgramReader::read_instruction(Function& function, Instruction& out, size_t count) {
  const uint16_t local = in_.u16();
  in_.check(local < opcodes_.size(), "an instruction", local);
  out.op = opcodes_[local];
  const OpcodeInfo& info = opcode_info(out.op);
  out.a = in_.u16();
  out.b = in_.u16();
  out.c = in_.u16();
  out.imm = in_.i64();
  read_register(function, info.a, out.a);
  read_register(function, info.b, out.b);
  read_register(function, info.c, out.c);
  const auto wide = static_cast<uint64_t>(out.imm);
  switch (info.x) {
    case WideKind::None:
    case WideKind::Literal:
      break;
    case WideKind::LiteralJump: {
      const uint32_t target = out.a | uint32_t{out.c} << 16;
      in_.check(target < count, "the target of a jump", target);
      const auto here = static_cast<int32_t>(&out - function.code.data());
      const auto relative = static_cast<uint32_t>(static_cast<int32_t>(target) - here);
      out.a = static_cast<uint16_t>(relative);
      out.c = static_cast<uint16_t>(relative >> 16);
      break;
    }
    case WideKind::Jump:
      in_.check(wide < count, "the target of a jump", wide);
      out.target = &function.code[wide];
      break;
    case WideKind::Constant:
      in_.check(wide < program_->constants.size(), "a constant", wide);
      out.constant = &program_->constants[wide];
      in_.check(info.a != RegisterKind::Scalar || is_scalar(*out.constant), "a scalar", wide);
      break;
    case WideKind::Site:
      in_.check(wide < function.site_count, "a site", wide);
      out.site = &function.sites[wide];
      bind_site(function, out, info.extra);
      break;
    case WideKind::Class:
      in_.check(wide < program_->classes.size(), "a class", wide);
      out.def = program_->classes[wide].get();
      break;
    case WideKind::Type:
      in_.check(wide < program_->types.size(), "a type", wide);
      out.type = program_->types[wide].get();
      break;
    case WideKind::Name:
      in_.check(wide < program_->strings.size(), "a name", wide);
      out.name = &program_->strings[wide];
      break;
  }
}

void ProgramReader::bind_site(Function& function, const Instruction& instruction, ExtraKind kind) {
  Site& site = *instruction.site;
  const uint32_t extra = site.extra;
  switch (kind) {
    case ExtraKind::None:
      break;
    case ExtraKind::Operator:
    case ExtraKind::Name:
      in_.check(extra < program_->strings.size(), "a name", extra);
      site.name = &program_->strings[extra];
      break;
    case ExtraKind::Function:
      in_.check(extra < program_->functions.size(), "a function", extra);
      site.function = program_->functions[extra].get();
      check_call(function, site);
      break;
    case ExtraKind::External:
      in_.check(extra < program_->externals.size(), "a function given", extra);
      break;
    case ExtraKind::ListTag:
      in_.check(extra <= 255 && is_list(static_cast<ValueTag>(extra)), "the kind of a list", extra);
      break;
    case ExtraKind::Type:
      in_.check(extra <= program_->types.size(), "a type", extra);
      site.type = extra ? program_->types[extra - 1].get() : nullptr;
      break;
    case ExtraKind::Group:
      in_.check(extra < program_->groups.size(), "a group", extra);
      site.group = program_->groups[extra].get();
      break;
  }
  check_operands(function, instruction, site);
}

// The counts each instruction relies on.
void ProgramReader::check_operands(const Function& function, const Instruction& instruction,
                                   const Site& site) {
  const size_t args = site.args.size(), results = site.results.size();
  auto expect = [&](bool good) { in_.check(good, "operands that fit the instruction", args); };
  auto needs_object_result = [&] { expect(results == 1 && function.is_object(site.results[0])); };
  switch (instruction.op) {
    case Opcode::call_operator:
      break;
    case Opcode::call_external:
      expect(results == 1);
      break;
    case Opcode::run_group: {
      expect(args == site.group->spec().input_count);
      expect(results == site.group->spec().outputs.size());
      // What follows runs when the group does not: there must be something to skip.
      const size_t at = static_cast<size_t>(&instruction - function.code.data());
      expect(at + 2 < function.code.size());
      break;
    }
    case Opcode::call_method:
      expect(args >= 1 && results == 1);
      break;
    case Opcode::call_function:
      expect(results == 1);
      break;
    case Opcode::call_reusing:
    case Opcode::fork:
    case Opcode::make_list:
      needs_object_result();
      break;
    case Opcode::make_dict:
      expect(args % 2 == 0);
      needs_object_result();
      break;
    case Opcode::make_tuple:
      needs_object_result();
      if (site.type) {
        expect(site.type->kind == TypeKind::Tuple && site.type->children.size() == args);
      }
      break;
    case Opcode::unpack_tuple:
    case Opcode::unpack_list:
      expect(args == 1);
      break;
    case Opcode::print:
      expect(results == 0);
      break;
    case Opcode::enter_context:
      expect(args == 1 && results == 0);
      break;
    default:
      expect(false);
  }
  scratch_args_ = std::max(scratch_args_, static_cast<uint32_t>(args));
  scratch_results_ = std::max(scratch_results_, static_cast<uint32_t>(results));
}

// A call hands registers over as they are: their classes must be those of the parameters.
void ProgramReader::check_call(const Function& function, const Site& site) {
  const std::vector<Param>& params = site.function->params;
  in_.check(params.size() == site.args.size(), "an operand for each parameter", site.args.size());
  for (size_t i = 0; i < params.size(); ++i) {
    if (site.function->is_object(params[i].place)) continue;
    const Word word = site.args[i];
    const uint32_t index = word & kIndexMask;
    const bool good =
        word & kConstantBit ? is_scalar(program_->constants[index]) : !function.is_object(index);
    in_.check(good, "a scalar operand", i);
  }
}

}  // namespace weft
