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

// Which steps some values are made of.
std::vector<bool> FusedGroup::steps_of(const std::vector<uint8_t>& values) const {
  std::vector<bool> needed(spec_.steps.size());
  std::vector<size_t> step_of;  // by value
  for (size_t s = 0; s < programs_.size(); ++s) {
    step_of.insert(step_of.end(), programs_[s]->output_count, s);
  }
  for (const uint8_t value : values) needed[step_of[value]] = true;
  for (size_t s = needed.size(); s-- > 0;) {
    if (!needed[s]) continue;
    for (const FusedOperand& one : spec_.steps[s].tensors) {
      if (one.kind == FusedOperand::Kind::Step) needed[step_of[one.index]] = true;
    }
  }
  return needed;
}

uint64_t FusedGroup::inputs_of(const std::vector<uint8_t>& values) const {
  if (values.empty()) return 0;
  uint64_t found = 0;
  const std::vector<bool> needed = steps_of(values);
  for (size_t s = 0; s < needed.size(); ++s) {
    for (const FusedOperand& one : spec_.steps[s].tensors) {
      if (needed[s] && one.kind == FusedOperand::Kind::Input) found |= bit(one.index);
    }
  }
  return found;
}

std::vector<Value> FusedGroup::run_operators(const Value* args, const std::vector<uint8_t>& wanted,
                                             const Dims* full, uint64_t missing) const {
  const std::vector<bool> needed = steps_of(wanted);
  std::vector<Value> made;
  const std::vector<Value> inputs = unsqueezed(args);
  const auto value = [&](const FusedOperand& one) -> Value {
    switch (one.kind) {
      case FusedOperand::Kind::Input:
        return inputs[one.index];
      case FusedOperand::Kind::Step:
        return made[one.index];
      case FusedOperand::Kind::Length:
        return Value(length_of(full ? *full : broadcast_shape(inputs.data()), one.index));
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
    if (!needed[s]) {
      made.resize(made.size() + programs_[s]->output_count);
      continue;
    }
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
    for (size_t i = 0; i < record.arg_count; ++i) {
      const std::string_view type = argument_of(record, i).type;
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
  std::vector<Value> results;
  for (const uint8_t value : wanted) results.push_back(made[value]);
  return results;
}

}  // namespace weft
