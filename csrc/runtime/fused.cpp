#include "runtime/fused.h"

#include <algorithm>
#include <bitset>
#include <optional>

#include "autograd/node.h"
#include "core/error.h"
#include "core/fork.h"
#include "ops/donation.h"
#include "ops/programs.h"
#include "ops/tile_plan.h"
#include "ops_views.h"
#include "runtime/fused_assembly.h"
#include "runtime/fused_node.h"
#include "runtime/fused_shapes.h"
#include "runtime/fused_stages.h"
#include "runtime/operator.h"
#include "runtime/unique.h"

namespace weft {
namespace {

using tile::Slot;
using tile::SlotKind;
using tile::SlotType;
using tile::Step;

// Guards the plans of every group. Runs of a group take it only when its operands are other than
// in the last run.
GlobalMutex plans_mutex(ForkRank::Programs);
std::atomic<FusedGroup::Hook> g_hook{nullptr};
std::atomic<uint32_t> g_runs_before{2};

bool is_real_number(const Value& value) {
  return value.tag() == ValueTag::Bool || value.tag() == ValueTag::Int ||
         value.tag() == ValueTag::Double;
}

}  // namespace

struct FusedGroup::Plan {
  // Native code: a program of one step, with the operands of the program it replaces.
  struct Native {
    std::shared_ptr<const NativeCode> code;
    tile::KernelSet kernels{};
    Assembly assembly;
  };

  FusedKey key;
  bool valid = false;  // the operators can run as one program
  Assembly assembly;
  FusedBinding binding;
  bool full = true;  // every output depends on every operand
  std::atomic<uint32_t> runs{0};
  std::unique_ptr<Native> owned;  // set once, under plans_mutex
  std::atomic<const Native*> native{nullptr};
};

namespace {

// `made`: how many results earlier steps have.
void check_operand(const FusedSpec& spec, size_t step, size_t made, const FusedOperand& one,
                   bool tensor) {
  using Kind = FusedOperand::Kind;
  const size_t limit = one.kind == Kind::Input      ? spec.input_count
                       : one.kind == Kind::Step     ? made
                       : one.kind == Kind::Constant ? spec.constants.size()
                                                    : 2;
  const bool is_number = one.kind == Kind::Constant || one.kind == Kind::Length;
  const bool kind_fits = tensor ? !is_number : one.kind != Kind::Step;
  WEFT_CHECK(kind_fits && one.index < limit, "fused: expected an operand below ", limit,
             " in step ", step, ", got ", int{one.index});
}

void check_backward(const FusedSpec& spec) {
  const FusedBackward& backward = *spec.backward;
  const FusedSpec& inner = backward.group->spec();
  const size_t inputs = spec.input_count + 2 * spec.outputs.size() + backward.saved.size();
  bool fits = inner.input_count == inputs && backward.depends.size() == spec.outputs.size() &&
              !inner.backward;
  for (const FusedBackward::Edge& edge : backward.edges) {
    fits = fits && edge.input < spec.input_count &&
           edge.index < (edge.from_output ? inner.outputs.size() : spec.outputs.size());
  }
  WEFT_CHECK(fits, "fused: expected a gradient that fits the group's inputs and outputs");
}

bool is_pointwise(const tile::Program& row) {
  return !row.row && row.steps.size() == 1 && row.output_count == 1 && row.int_inputs == 0;
}

const tile::Program* check_step(const FusedSpec& spec, size_t index, size_t made) {
  const FusedStep& step = spec.steps[index];
  const tile::Program* row = tile_ops::find(step.op);
  const bool over_rows = step.over != FusedStep::Over::Elements;
  WEFT_CHECK(row && (over_rows ? row->row : is_pointwise(*row)), "fused: expected a ",
             over_rows ? "row" : "pointwise", " operator, got '", step.op, "'");
  WEFT_CHECK(step.tensors.size() == row->input_count && step.numbers.size() == row->attribute_count,
             "fused: expected ", int{row->input_count}, " tensors and ", int{row->attribute_count},
             " numbers for ", step.op, ", got ", step.tensors.size(), " and ", step.numbers.size());
  for (const FusedOperand& one : step.tensors) check_operand(spec, index, made, one, true);
  for (const FusedOperand& one : step.numbers) check_operand(spec, index, made, one, false);
  return row;
}

}  // namespace

FusedGroup::FusedGroup(FusedSpec spec) : spec_(std::move(spec)) {
  WEFT_CHECK(spec_.input_count <= 64, "fused: expected at most 64 inputs, got ",
             int{spec_.input_count});
  WEFT_CHECK(
      !spec_.steps.empty() && spec_.steps.size() <= tile::kMaxSteps && !spec_.outputs.empty(),
      "fused: expected 1 to ", tile::kMaxSteps, " steps and some output, got ", spec_.steps.size(),
      " and ", spec_.outputs.size());
  size_t made = 0;
  bool over_rows = false;
  for (size_t s = 0; s < spec_.steps.size(); ++s) {
    programs_.push_back(check_step(spec_, s, made));
    made += programs_.back()->output_count;
    over_rows |= spec_.steps[s].over != FusedStep::Over::Elements;
    WEFT_CHECK(made <= 255, "fused: expected at most 255 results, got ", made);
    for (const FusedOperand& one : spec_.steps[s].tensors) {
      if (one.kind == FusedOperand::Kind::Input) tensor_inputs_ |= bit(one.index);
    }
    for (const FusedOperand& one : spec_.steps[s].numbers) {
      if (one.kind == FusedOperand::Kind::Input) number_inputs_ |= bit(one.index);
    }
  }
  WEFT_CHECK(!(tensor_inputs_ & number_inputs_),
             "fused: expected every input as a tensor or as a number, got one as both");
  std::bitset<256> seen;
  for (uint8_t output : spec_.outputs) {
    WEFT_CHECK(output < made && !seen[output], "fused: expected distinct steps as outputs, got ",
               int{output});
    seen[output] = true;
  }
  if (spec_.backward) check_backward(spec_);
  WEFT_CHECK(over_rows || !spec_.backward || spec_.backward->saved.empty(),
             "fused: expected values of rows to keep, got a group without them");
  if (over_rows) stages_ = std::make_unique<FusedStages>(spec_, programs_);
  for (const Value& value : spec_.constants) {
    WEFT_CHECK(is_real_number(value), "fused: expected real numbers as constants");
  }
}

FusedGroup::~FusedGroup() = default;

// What the arguments are; false where no program can serve them.
bool FusedGroup::classify(const Value* args, Operands& found) const {
  bool any = false;
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    if (!(tensor_inputs_ & bit(i))) {
      if ((number_inputs_ & bit(i)) && !is_real_number(args[i])) return false;
      continue;
    }
    if (args[i].tag() != ValueTag::Tensor) return false;
    const Tensor& tensor = args[i].to_tensor();
    if (tensor.device().type != DeviceType::CPU) return false;
    const DType dtype = tensor.dtype();
    if (dtype == DType::Bool) {
      found.key.masks |= bit(i);
    } else if (dtype == DType::I64) {
      found.key.ints |= bit(i);
    } else if (any ? dtype != found.key.compute : !is_floating(dtype)) {
      return false;
    } else {
      found.key.compute = dtype;
      any = true;
    }
    if (autograd::needs_graph(tensor)) found.wanting |= bit(i);
  }
  return any;
}

FusedGroup::Plan* FusedGroup::find(const FusedKey& key) const {
  for (const auto& plan : plans_) {
    if (plan->key == key) return plan.get();
  }
  return nullptr;
}

FusedGroup::Plan* FusedGroup::plan_for(const FusedKey& key) {
  Plan* latest = latest_.load(std::memory_order_acquire);
  if (latest && latest->key == key) return latest;
  std::lock_guard lock(plans_mutex);
  Plan* plan = find(key);
  if (!plan) {
    plan = plans_.emplace_back(std::make_unique<Plan>()).get();
    plan->key = key;
    plan->valid = !stages_ && assemble(spec_, programs_, key, plan->assembly, plan->binding);
    uint64_t all = 0;
    for (uint8_t input : plan->binding.tensors) all |= bit(input);
    for (uint64_t reads : plan->binding.reads) plan->full &= reads == all;
  }
  latest_.store(plan, std::memory_order_release);
  return plan;
}

// One node can stand for the operators when every result has the full shape (so that gradients are
// summed where they would be summed) and leads to some input that requires a gradient.
bool FusedGroup::leads_somewhere(uint64_t wanting) const {
  if (!spec_.backward) return false;
  for (uint64_t depends : spec_.backward->depends) {
    if (depends && !(depends & wanting)) return false;
  }
  return true;
}

bool FusedGroup::can_record(const Value* args, const Plan& plan, uint64_t wanting) const {
  return leads_somewhere(wanting) &&
         outputs_are_full(args, plan.binding.tensors, plan.binding.step_reads);
}

void FusedGroup::record(const Value* args, Value* results, uint64_t wanting,
                        std::vector<Tensor> saved) {
  const FusedBackward& backward = *spec_.backward;
  const auto node =
      make_ref<FusedNode>(Ref<FusedGroup>(this), args, broadcast_shape(args), std::move(saved));
  for (const FusedBackward::Edge& edge : backward.edges) {
    const bool wanted = wanting & bit(edge.input);
    node->add_input(wanted ? args[edge.input].to_tensor() : Tensor());
  }
  for (size_t i = 0; i < spec_.outputs.size(); ++i) {
    autograd::set_history(backward.depends[i] ? results[i].to_tensor() : Tensor(), node);
  }
  node->save_results(results);
}

// The arguments, those that lack the row's dimension with it.
std::vector<Value> FusedGroup::unsqueezed(const Value* args) const {
  std::vector<Value> inputs(args, args + spec_.input_count);
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    const bool is_there = args[i].tag() == ValueTag::Tensor && args[i].to_tensor().defined();
    if (!is_there || !(spec_.squeezed_inputs & bit(i))) continue;
    inputs[i] = Value(ops::unsqueeze(args[i].to_tensor(), -1));
  }
  return inputs;
}

// Results take the memory of operands that nobody reads any more, as the one of a matrix product
// whose activation this is: no memory is fetched that the cache does not hold already.
void FusedGroup::donate(const Value* args, const Plan& plan, uint64_t donated,
                        Tensor* outputs) const {
  const std::optional<Dims> common = shape_of(args, plan.binding.tensors, ~uint64_t{0});
  if (!common || checked_numel("fused", *common) < tile::least_donated()) return;
  const Dims& shape = *common;
  // Results lie as the operators would lay them out.
  for (uint8_t input : plan.binding.tensors) {
    if (!args[input].to_tensor().is_contiguous()) return;
  }
  size_t next = 0;
  const auto is_compute = [&](size_t output) {
    return tile::output_slot(plan.assembly.program, static_cast<int>(output)).type ==
           SlotType::Compute;
  };
  for (uint8_t input : plan.binding.tensors) {
    const Tensor& tensor = args[input].to_tensor();
    if (!(donated & bit(input)) || tensor.dtype() != plan.key.compute) continue;
    if (!(tensor.sizes() == shape) || !is_unique(tensor)) continue;
    while (next < spec_.outputs.size() && !is_compute(next)) ++next;
    if (next == spec_.outputs.size()) return;
    outputs[next++] = Tensor(tensor.storage(), Layout::contiguous(shape), tensor.dtype());
  }
}

bool FusedGroup::numbers(const Value* args, const FusedBinding& binding,
                         const tile::Program& program, const Dims* full, Scalar* out) const {
  for (size_t i = 0; i < binding.attributes.size(); ++i) {
    const FusedOperand& one = binding.attributes[i];
    const bool asks_shape = one.kind == FusedOperand::Kind::Length;
    const Dims shape = !asks_shape ? Dims() : full ? *full : broadcast_shape(args);
    out[i] = number_of(spec_, one, args, shape);
    if ((binding.rounded >> i) & 1u) out[i] = out[i].rounded(binding.dtype);
    if (program.attribute_types[i] != SlotType::Compute && out[i].is_floating()) return false;
  }
  return true;
}

bool FusedGroup::run(const Value* args, Value* results, const Dims* full, uint64_t donated) {
  Operands operands;
  if (!classify(args, operands)) return false;
  std::vector<Value> inputs_with_rows;
  if (spec_.squeezed_inputs) {
    inputs_with_rows = unsqueezed(args);
    args = inputs_with_rows.data();
  }
  if (stages_) return run_stages(operands, args, results, full, donated);
  Plan* plan = plan_for(operands.key);
  if (!plan->valid) return false;
  if (operands.wanting && !can_record(args, *plan, operands.wanting)) return false;
  if (!plan->full && !outputs_are_full(args, plan->binding.tensors, plan->binding.reads))
    return false;

  const Tensor* inputs[tile::kMaxCallOperands];
  for (size_t i = 0; i < plan->binding.tensors.size(); ++i)
    inputs[i] = &args[plan->binding.tensors[i]].to_tensor();
  Tensor outputs[tile::kMaxCallOperands];
  if (donated && !operands.wanting) donate(args, *plan, donated, outputs);
  const Plan::Native* native = plan->native.load(std::memory_order_acquire);
  const tile::Program& program = native ? native->assembly.program : plan->assembly.program;
  try {
    Scalar attributes[tile::kMaxAttributes];
    if (!numbers(args, plan->binding, plan->assembly.program, full, attributes)) return false;
    const tile::Call call{.inputs = {inputs, plan->binding.tensors.size()},
                          .attributes = {attributes, plan->binding.attributes.size()}};
    tile::run(program, call, {outputs, spec_.outputs.size()});
  } catch (const Error&) {
    if (shape_of(args, plan->binding.tensors, ~uint64_t{0})) throw;
    return false;  // the operator whose shapes do not fit says so, at its place in the program
  }
  for (size_t i = 0; i < spec_.outputs.size(); ++i) results[i] = Value(std::move(outputs[i]));
  if (operands.wanting) record(args, results, operands.wanting);

  count_run(*plan, native);
  return true;
}

bool FusedGroup::run_stages(const Operands& operands, const Value* args, Value* results,
                            const Dims* full, uint64_t donated) {
  if (!operands.wanting) return stages_->run(operands.key, args, results, full, donated);
  if (!leads_somewhere(operands.wanting) || !stages_->is_full(args)) return false;
  std::vector<Tensor> saved;
  if (!stages_->run(operands.key, args, results, full, 0, &saved)) return false;
  record(args, results, operands.wanting, std::move(saved));
  return true;
}

void FusedGroup::count_run(Plan& plan, bool native) {
  if (native || plan.runs.fetch_add(1, std::memory_order_relaxed) + 1 != g_runs_before.load())
    return;
  if (const Hook hook = g_hook.load()) hook(Ref<FusedGroup>(this), plan.key);
}

FusedGroup::Ready FusedGroup::ready(const FusedKey& key, bool runs) {
  Plan* plan = plan_for(key);
  if (!plan->valid) return {};
  const Plan::Native* native = plan->native.load(std::memory_order_acquire);
  if (runs) count_run(*plan, native);
  return {native ? &native->assembly.program : &plan->assembly.program, &plan->binding};
}

Dims FusedGroup::broadcast_shape(const Value* args) const {
  Dims shape;
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    if (reads_tensor(i)) shape = broadcast_sizes("fused", shape, args[i].to_tensor().sizes());
  }
  return shape;
}

void FusedGroup::install(const FusedKey& key, std::shared_ptr<const NativeCode> code) {
  Plan* plan = plan_for(key);
  std::lock_guard lock(plans_mutex);
  WEFT_CHECK(plan->valid, "fused: expected dtypes the group can be fused for, got ", key.compute);
  const size_t operands = plan->binding.tensors.size() + spec_.outputs.size();
  WEFT_CHECK(operands <= tile::kMaxOperands, "fused: expected at most ", tile::kMaxOperands,
             " operands of native code, got ", operands);
  if (plan->owned) return;  // somebody was faster: both do the same
  auto native = std::make_unique<Plan::Native>();
  native->code = std::move(code);
  for (auto& row : native->kernels.table) {
    row[static_cast<int>(compute_type(key.compute))] = native->code->entry();
  }
  Assembly& assembly = native->assembly;
  assembly.program = plan->assembly.program;
  Step& step = assembly.steps.emplace_back();
  step.horizontal = &native->kernels;
  for (SlotKind kind : {SlotKind::Output, SlotKind::Input}) {
    const size_t count =
        kind == SlotKind::Output ? spec_.outputs.size() : plan->binding.tensors.size();
    for (size_t i = 0; i < count; ++i) {
      for (const Slot& slot : plan->assembly.slots) {
        if (slot.kind != kind || slot.index != i) continue;
        step.operands[step.operand_count++] = static_cast<uint8_t>(assembly.slots.size());
        assembly.slots.push_back(slot);
      }
    }
  }
  assembly.close(plan->assembly.program.input_count, plan->assembly.program.output_count);
  plan->owned = std::move(native);
  plan->native.store(plan->owned.get(), std::memory_order_release);
}

bool FusedGroup::has_native(const FusedKey& key) const {
  std::lock_guard lock(plans_mutex);
  const Plan* plan = find(key);
  return plan && plan->native.load();
}

void FusedGroup::set_hook(Hook hook, uint32_t runs_before) noexcept {
  g_runs_before = runs_before;
  g_hook = hook;
}

void FusedGroup::set_hook_if_none(Hook hook, uint32_t runs_before) noexcept {
  if (Hook none = nullptr; g_hook.compare_exchange_strong(none, hook)) g_runs_before = runs_before;
}

}  // namespace weft
