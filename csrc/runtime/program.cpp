#include "runtime/program.h"

#include <algorithm>
#include <set>

#include "runtime/program_reader.h"

namespace weft {
namespace {

using R = RegisterKind;
using W = WideKind;
using E = ExtraKind;

constexpr OpcodeInfo kInfos[] = {
#define X(name, a, b, c, x, extra) {#name, R::a, R::b, R::c, W::x, E::extra},
    WEFT_CONTROL_INSTRUCTIONS(X)
#undef X
// An instruction name ends in _imm where its right operand is a literal.
#define UNARY(id, R_, A_, expr) {#id, R::Scalar, R::Scalar, R::None, W::None, E::None},
#define BINARY(id, R_, A_, B_, expr)                                    \
  {#id, R::Scalar, R::Scalar, R::Scalar, W::None, E::None},             \
      {#id "_imm", R::Scalar, R::Scalar, R::None, W::Literal, E::None}, \
      WEFT_SCALAR_JUMPS_##R_(WEFT_JUMP_INFO, id)
#define WEFT_JUMP_INFO(name) jump_info(#name),
#define jump_info(name)                                                        \
  std::string_view(name).ends_with("_imm")                                     \
      ? OpcodeInfo{name, R::None, R::Scalar, R::None, W::LiteralJump, E::None} \
      : OpcodeInfo {                                                           \
    name, R::None, R::Scalar, R::Scalar, W::Jump, E::None                      \
  }
        WEFT_SCALAR_BUILTINS(UNARY, BINARY)
#undef jump_info
#undef WEFT_JUMP_INFO
#undef UNARY
#undef BINARY
};
static_assert(std::size(kInfos) == kOpcodeCount);

// The line that holds an offset: where it starts and ends, and its number.
struct Line {
  size_t start, end, number;
};
Line line_at(const std::string& text, size_t offset) {
  offset = std::min(offset, text.size());
  const size_t before = offset ? text.rfind('\n', offset - 1) : text.npos;
  Line line;
  line.start = before == text.npos ? 0 : before + 1;
  line.end = std::min(text.find('\n', line.start), text.size());
  line.number = static_cast<size_t>(
      std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(line.start), '\n'));
  return line;
}

// Characters, not bytes.
size_t letters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

// The name behind the last "def" before an offset.
std::string function_at(const std::string& text, size_t offset) {
  const size_t def = text.rfind("def ", offset);
  if (def == text.npos) return "<unknown>";
  const size_t end = std::min(text.find('(', def), text.size());
  return text.substr(def + 4, end - def - 4);
}

}  // namespace

const OpcodeInfo& opcode_info(Opcode opcode) { return kInfos[static_cast<size_t>(opcode)]; }

bool find_opcode(std::string_view name, Opcode* opcode) {
  const auto found = std::ranges::find(kInfos, name, &OpcodeInfo::name);
  if (found == std::end(kInfos)) return false;
  *opcode = static_cast<Opcode>(found - std::begin(kInfos));
  return true;
}

Ref<Program> Program::read(std::span<const std::byte> bytes, ProgramInputs inputs) {
  return ProgramReader(bytes, std::move(inputs)).run();
}

Program::~Program() {
  for (const auto& function : functions) {
    for (uint32_t i = 0; i < function->site_count; ++i) {
      delete function->sites[i].method.load(std::memory_order_relaxed);
    }
  }
}

const Function* Program::find(std::string_view name) const noexcept {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Function* Program::find_method(const ClassDef* def, std::string_view name) const noexcept {
  const auto found = methods_.find({def, name});
  return found == methods_.end() ? nullptr : found->second;
}

Ref<ProgramClass> Program::find_class(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find(classes, name, [](const auto& def) { return std::string_view(def->name); });
  return found == classes.end() ? nullptr : *found;
}

std::vector<std::string> Program::missing_operators() const {
  std::set<std::string> missing;
  for (const auto& function : functions) {
    for (const Instruction& instruction : function->code) {
      if (instruction.op != Opcode::call_operator) continue;
      const std::string& name = *instruction.site->name;
      if (!find_operator(name)) missing.insert(name);
    }
  }
  return {missing.begin(), missing.end()};
}

std::string Program::highlight(uint32_t place, std::string_view function) const {
  if (place == 0) return str("  File \"<unknown>\", in ", function);
  const SourcePlace& range = places[place];
  const SourceText& source = sources[range.source];
  std::string text;
  std::string inlined;
  if (range.caller != 0) {
    text = highlight(range.caller, function) + "\n";
    function = inlined = function_at(source.text, range.start);
  }
  if (!source.has_text) {
    return text +
           str("  File \"", source.filename, "\", line ", source.first_line, ", in ", function);
  }
  const Line line = line_at(source.text, range.start);
  text += str("  File \"", source.filename, "\", line ", source.first_line + line.number, ", in ",
              function, "\n");
  const std::string_view shown =
      std::string_view(source.text).substr(line.start, line.end - line.start);
  const size_t column = std::min<size_t>(range.start, line.end) - line.start;
  const size_t stop = std::clamp<size_t>(range.end, line.start + column, line.end) - line.start;
  text += str("    ", shown, "\n    ", std::string(letters(shown.substr(0, column)), ' '));
  text += std::string(std::max<size_t>(letters(shown.substr(column, stop - column)), 1), '~');
  return text + " <--- HERE";
}

}  // namespace weft
