// A fusion group operator by operator.
#include <optional>
#include <string_view>
#include <unordered_map>

#include "ops/tile_plan.h"
#include "runtime/fused.h"
#include "runtime/fused_shapes.h"
#include "runtime/operator.h"

namespace weft {
namespace {

// Operators by the identifier of their row.
const OpRecord& record_of(const std::string& id) {
  static const auto* const all = [] {
    auto* const found = new std::unordered_map<std::string, const OpRecord*>;
    for (const OpRecord& record : op_records()) {
      const std::string overload = record.overload;
      found->emplace(record.name + (overload.empty() ? "" : "_" + overload), &record);
    }
    return found;
  }();
  return *all->at(id);
}

// A row operator's argument that is no tensor and no number of the step.
Value row_argument(const FusedStep& step, std::string_view type, const Tensor& first) {
  if (type == "int") return Value(int64_t{-1});
  if (type == "bool") return Value(step.over != FusedStep::Over::All);  // keepdim
  if (type == "ScalarType") return Value(first.dtype());
  if (!type.starts_with("int[")) return Value();
  if (step.over == FusedStep::Over::All) return Value(std::vector<int64_t>{});
  return Value(std::vector<int64_t>{step.length ? int64_t{step.length} : -1});
}

}  // namespace

void FusedGroup::run_operators(const Value* args, Value* results, const Dims* full,
                               uint64_t missing) const {
  std::vector<Value> made;
  const std::vector<Value> inputs = with_dropped(args);
  const auto value = [&](const FusedOperand& one) -> Value {
    switch (one.kind) {
      case FusedOperand::Kind::Input:
        return inputs[one.index];
      case FusedOperand::Kind::Step:
        return made[one.index];
      case FusedOperand::Kind::Length:
        return Value(length_of(full ? *full : broadcast_shape(args), one.index));
      default:
        return spec_.constants[one.index];
    }
  };
  // Where gradients are missing, what is left of a sum of two.
  const auto rest = [&](const FusedStep& step) -> std::optional<Value> {
    Value left = Value(Tensor());
    size_t there = 0;
    for (const FusedOperand& one : step.tensors) {
      const bool is_missing = one.kind == FusedOperand::Kind::Input
                                  ? (missing >> one.index & 1) != 0
                                  : !made[one.index].to_tensor().defined();
      if (is_missing) continue;
      left = value(one);
      ++there;
    }
    if (there == step.tensors.size()) return {};
    return step.op == "add_Tensor" ? left : Value(Tensor());
  };
  for (size_t s = 0; s < spec_.steps.size(); ++s) {
    const FusedStep& step = spec_.steps[s];
    if (std::optional<Value> left; missing && (left = rest(step))) {
      made.resize(made.size() + programs_[s]->output_count, Value(Tensor()));
      made[made.size() - programs_[s]->output_count] = std::move(*left);
      continue;
    }
    const OpRecord& record = record_of(step.op);
    const bool over_rows = step.over != FusedStep::Over::Elements;
    std::vector<Value> operands;
    auto tensor = step.tensors.begin();
    auto number = step.numbers.begin();
    for (std::string_view type : argument_types(record.schema)) {
      if (type.starts_with("Tensor")) {
        operands.push_back(value(*tensor++));
      } else if (over_rows && type != "float") {
        operands.push_back(row_argument(step, type, operands[0].to_tensor()));
      } else {
        operands.push_back(value(*number++));
      }
    }
    const size_t first = made.size();
    made.resize(first + programs_[s]->output_count);
    record.call(operands.data(), &made[first]);
  }
  for (size_t i = 0; i < spec_.outputs.size(); ++i) results[i] = made[spec_.outputs[i]];
}

}  // namespace weft
