// A group as text: the same for groups that the same machine code serves.
#include "core/error.h"
#include "runtime/fused.h"
#include "runtime/print.h"

namespace weft {
namespace {

void write_operands(std::string& out, const std::vector<FusedOperand>& operands) {
  static constexpr char kinds[] = {'i', 's', 'c', 'l'};
  for (const FusedOperand& one : operands) {
    out += str(" ", kinds[static_cast<int>(one.kind)], int{one.index});
  }
}

}  // namespace

std::string FusedGroup::text() const {
  std::string out = str(int{spec_.input_count}, " ", spec_.squeezed_inputs);
  for (const FusedStep& step : spec_.steps) {
    out += str("; ", step.op, " ", static_cast<int>(step.over), " ", int{step.dim}, " ",
               step.keepdim, " ", step.length, ":");
    write_operands(out, step.tensors);
    out += " |";
    write_operands(out, step.numbers);
  }
  out += ";";
  for (const Value& constant : spec_.constants) out += " " + repr(constant);
  out += ";";
  for (const uint8_t output : spec_.outputs) out += str(" ", int{output});
  return out;
}

}  // namespace weft
