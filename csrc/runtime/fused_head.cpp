#include "runtime/fused_head.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "autograd/mode.h"
#include "autograd/node.h"
#include "core/error.h"
#include "ops/programs.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;

// Elements of a product that is kept: fewer are still in a cache when it is there as a whole.
constexpr int64_t kWorthRecording = int64_t{1} << 19;

const FusedProduct& find_product(const std::string& id) {
  for (const FusedProduct& product : fused_products()) {
    if (product.id == id) return product;
  }
  fail(ErrorKind::Runtime, str("fused: expected a product or a convolution, got '", id, "'"));
}

bool is_number(const Value& value) {
  return value.tag() == ValueTag::Bool || value.tag() == ValueTag::Int ||
         value.tag() == ValueTag::Double;
}

bool is_head(const FusedStep& step) { return step.over == Over::Head; }

size_t head_of(const FusedSpec& spec) {
  return static_cast<size_t>(std::ranges::find_if(spec.steps, is_head) - spec.steps.begin());
}

// How many results the first steps have.
size_t results_of(const FusedSpec& spec, size_t steps) {
  size_t count = 0;
  for (size_t s = 0; s < steps; ++s) {
    const tile::Program* row = tile_ops::find(spec.steps[s].op);
    count += row ? row->output_count : 1;
  }
  return count;
}

// Steps [first, last) as a group of their own. `place`: what an operand is there.
template <class Fn>
FusedSpec part_of(const FusedSpec& spec, size_t first, size_t last, Fn&& place) {
  FusedSpec part;
  for (const Value& one : spec.constants)
    part.constants.push_back(is_number(one) ? one : Value(0.0));
  for (size_t s = first; s < last; ++s) {
    FusedStep step = spec.steps[s];
    WEFT_CHECK(!is_head(step), "fused: expected one head, got '", step.op, "' too");
    for (std::vector<FusedOperand>* operands : {&step.tensors, &step.numbers}) {
      for (FusedOperand& one : *operands) {
        const bool fits =
            one.kind == Kind::Constant
                ? one.index < spec.constants.size() && is_number(spec.constants[one.index])
                : one.kind == Kind::Step || one.kind == Kind::Length ||
                      one.index < spec.input_count;
        WEFT_CHECK(fits, "fused: expected an operand that is there in step ", s, ", got ",
                   int{one.index});
        if (one.kind == Kind::Step) one = place(one.index);
      }
    }
    part.steps.push_back(std::move(step));
  }
  return part;
}

// Bit i: the steps [first, last) read input i.
uint64_t inputs_of(const FusedSpec& spec, size_t first, size_t last) {
  uint64_t found = 0;
  for (size_t s = first; s < last; ++s) {
    for (const std::vector<FusedOperand>* operands :
         {&spec.steps[s].tensors, &spec.steps[s].numbers}) {
      for (const FusedOperand& one : *operands) {
        if (one.kind == Kind::Input) found |= uint64_t{1} << one.index;
      }
    }
  }
  return found;
}

// What stands before the head: it gives the one operand.
FusedSpec before_head(const FusedSpec& spec, size_t head, uint8_t result) {
  FusedSpec part =
      part_of(spec, 0, head, [](uint8_t index) { return FusedOperand{Kind::Step, index}; });
  part.input_count = spec.input_count;
  part.outputs = {result};
  return part;
}

// What stands behind it. `product`: the number of its result, which is the last input there.
FusedSpec behind_head(const FusedSpec& spec, size_t head, size_t product) {
  FusedSpec part = part_of(spec, head + 1, spec.steps.size(), [&](uint8_t index) {
    WEFT_CHECK(index >= product, "fused: expected what stands behind the head, got ", int{index});
    return index == product ? FusedOperand{Kind::Input, spec.input_count}
                            : FusedOperand{Kind::Step, static_cast<uint8_t>(index - product - 1)};
  });
  part.input_count = static_cast<uint8_t>(spec.input_count + 1);
  for (uint8_t output : spec.outputs) {
    WEFT_CHECK(output >= product, "fused: expected results behind the head, got ", int{output});
    if (output > product) part.outputs.push_back(static_cast<uint8_t>(output - product - 1));
  }
  return part;
}

}  // namespace

bool FusedHead::is_in(const FusedSpec& spec) { return std::ranges::any_of(spec.steps, is_head); }

FusedHead::FusedHead(const FusedSpec& spec)
    : spec_(spec),
      step_(spec.steps[head_of(spec)]),
      kind_(find_product(step_.op)),
      product_(results_of(spec, head_of(spec))) {
  const size_t at = head_of(spec), next = kind_.operand + 1;
  right_ = at > 0 && !kind_.is_convolution && next < step_.numbers.size() &&
           step_.numbers[next].kind == Kind::Step;
  operand_ = right_ ? next : kind_.operand;
  operator_ = find_operator(kind_.kind);
  WEFT_CHECK(!spec.dropped_inputs && spec.input_count < 64,
             "fused: expected at most 63 inputs of a group with a head");
  check_arguments();
  if (at > 0) {
    WEFT_CHECK(step_.numbers[operand_].kind == Kind::Step,
               "fused: expected a head that reads what ", "stands before it");
    before_ = make_ref<FusedGroup>(before_head(spec, at, step_.numbers[operand_].index));
    before_only_ = inputs_of(spec, 0, at) & ~inputs_of(spec, at, spec.steps.size());
  }
  FusedSpec behind = behind_head(spec, at, product_);
  rest_outputs_ = behind.outputs.size();
  keeps_ = spec.outputs.size() > rest_outputs_;
  WEFT_CHECK(spec.outputs.size() <= rest_outputs_ + 1,
             "fused: expected distinct steps as outputs, ", "got ", product_);
  behind.backward = spec.backward;
  if (!before_ || !behind.steps.empty()) rest_ = make_ref<FusedGroup>(std::move(behind));
}

void FusedHead::check_arguments() const {
  WEFT_CHECK(step_.tensors.empty() && step_.numbers.size() == operator_->tags.size(),
             "fused: expected ", operator_->tags.size(), " arguments of ", step_.op, ", got ",
             step_.numbers.size());
  for (size_t i = 0; i < step_.numbers.size(); ++i) {
    const FusedOperand& one = step_.numbers[i];
    const bool fits = one.kind == Kind::Input ? one.index < spec_.input_count
                      : one.kind == Kind::Step
                          ? i == operand_ && one.index < product_
                          : one.kind == Kind::Constant && one.index < spec_.constants.size() &&
                                operator_->accepts(i, spec_.constants[one.index].tag());
    WEFT_CHECK(fits, "fused: expected an argument of ", step_.op, ", got ", int{one.index});
  }
}

// The head's arguments but the one that stands before it; false where they are not what it takes.
// `records`: whether a gradient has to be recorded.
bool FusedHead::gather(const Value* args, Arguments& arguments, bool& records) const {
  if (autograd::mode.autocast) return false;
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    if (args[i].tag() != ValueTag::Tensor) continue;
    const Tensor& tensor = args[i].to_tensor();
    if (tensor.device().type != DeviceType::CPU) return false;
    records |= autograd::needs_graph(tensor);
  }
  for (size_t i = 0; i < step_.numbers.size(); ++i) {
    const FusedOperand& one = step_.numbers[i];
    if (one.kind == Kind::Step) continue;
    arguments.set(i, one.kind == Kind::Input ? args[one.index] : spec_.constants[one.index]);
    if (!operator_->accepts(i, arguments[i].tag())) return false;
  }
  return true;
}

bool FusedHead::compute(const Value* arguments, FusedPrologue* prologue, FusedArgs& inputs,
                        Value* results) const {
  if (!rest_) {
    results[0] = Value(kind_.call(arguments, {nullptr, prologue, right_}));
    return true;
  }
  FusedEpilogue epilogue(*rest_, inputs, keeps_);
  const Value product(kind_.call(arguments, {&epilogue, prologue, right_}));
  std::vector<Value> apart(keeps_ ? rest_outputs_ : 0);
  Value* const made = keeps_ ? apart.data() : results;
  if (epilogue.has_begun()) {
    epilogue.finish(made);
  } else {
    inputs.set(spec_.input_count, product);
    const uint64_t dying = keeps_ ? 0 : uint64_t{1} << spec_.input_count;
    if (!rest_->run(inputs.data(), made, nullptr, dying)) {
      if (rest_->has_rows()) return false;
      rest_->run_operators(inputs.data(), made);
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < spec_.outputs.size() && keeps_; ++i) {
    results[i] = spec_.outputs[i] > product_ ? std::move(apart[next++]) : product;
  }
  return true;
}

bool FusedHead::compute_all(const Value* args, Arguments& arguments, Value* results, bool records,
                            FusedPrologue* prologue) const {
  FusedArgs inputs;
  for (size_t i = 0; i < spec_.input_count; ++i) inputs.set(i, args[i]);
  Value operand;
  const bool in_parts = prologue && prologue->stand_in().defined();
  if (prologue) {
    if (!in_parts && rest_ && rest_->has_rows()) return false;  // what follows is not known
    operand = Value(in_parts ? prologue->stand_in() : prologue->whole());
    arguments.set(operand_, operand);
  }
  if (rest_ && rest_->has_rows() && !rows_fit(arguments.data(), inputs)) return false;
  if (records) return run_recorded(arguments.data(), inputs, results);
  return compute(arguments.data(), in_parts ? prologue : nullptr, inputs, results);
}

// The product is recorded as it is without a group, and kept: what is computed from it, part by
// part into memory of its own, is recorded as one node, which reads the product.
bool FusedHead::run_recorded(const Value* arguments, FusedArgs& inputs, Value* results) const {
  FusedEpilogue epilogue(*rest_, inputs, true);
  const Dims sizes = kind_.sizes(arguments);
  // What is composed is recorded, of more dimensions, as a product of other sizes and a view.
  const bool in_parts = checked_numel("fused", sizes) >= kWorthRecording &&
                        (!kind_.is_composite || sizes.size() == 2);
  Value product;
  {
    const EpilogueScope scope(in_parts ? &epilogue : nullptr);
    operator_->call(arguments, &product);
  }
  inputs.set(spec_.input_count, product);
  std::vector<Value> made(rest_outputs_);
  bool done = false;
  if (epilogue.is_of(product.to_tensor())) {
    epilogue.finish(made.data());
    done = rest_->record_made(inputs.data(), made.data());
  }
  if (!done && !rest_->run(inputs.data(), made.data())) {
    if (rest_->has_rows()) return false;
    rest_->run_operators(inputs.data(), made.data());
  }
  size_t next = 0;
  for (size_t i = 0; i < spec_.outputs.size(); ++i) {
    results[i] = spec_.outputs[i] > product_ ? std::move(made[next++]) : product;
  }
  return true;
}

// Whether the rest runs on such a product, with nothing done.
bool FusedHead::rows_fit(const Value* arguments, FusedArgs& inputs) const {
  const Tensor& operand = arguments[operand_].to_tensor();
  const Dims sizes = kind_.sizes(arguments);
  const auto nbytes = static_cast<size_t>(checked_numel("fused", sizes)) * operand.item_size();
  const Value product(Tensor(Storage::wrap(nullptr, nbytes, nullptr, nullptr),
                             Layout::contiguous(sizes), operand.dtype()));
  inputs.set(spec_.input_count, product);
  return rest_->fits_rows(inputs.data());
}

bool FusedHead::run(const Value* args, Value* results, uint64_t dying) const {
  Arguments arguments;
  bool records = false;
  if (!gather(args, arguments, records)) return false;
  if (records && (before_ || !rest_->spec().backward)) return false;
  std::optional<FusedPrologue> prologue;
  try {
    if (before_) prologue.emplace(*before_, args, dying & before_only_);
    if (compute_all(args, arguments, results, records, prologue ? &*prologue : nullptr))
      return true;
  } catch (const Error&) {  // one of the operators raises it again, at its place in the program
    if (prologue && prologue->took_over()) throw;  // what they would read is gone
  }
  std::fill_n(results, spec_.outputs.size(), Value());
  return false;
}

}  // namespace weft
