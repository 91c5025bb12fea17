#include "runtime/fused_head.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "autograd/mode.h"
#include "autograd/node.h"
#include "core/error.h"
#include "ops/heads.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;

struct Head {
  std::string_view id;  // of the row
  const char* kind;     // as programs call it
  FusedHead::Call call;
};

const Head kHeads[] = {
    {"linear", "aten::linear",
     [](const Value* a, Epilogue* epilogue) {
       return native::linear(a[0].to_tensor(), a[1].to_tensor(), a[2].to_tensor(), epilogue);
     }},
    {"mm", "aten::mm",
     [](const Value* a, Epilogue* epilogue) {
       return native::mm(a[0].to_tensor(), a[1].to_tensor(), epilogue);
     }},
    {"addmm", "aten::addmm",
     [](const Value* a, Epilogue* epilogue) {
       return native::addmm(a[0].to_tensor(), a[1].to_tensor(), a[2].to_tensor(), a[3].to_scalar(),
                            a[4].to_scalar(), epilogue);
     }},
    {"matmul", "aten::matmul",
     [](const Value* a, Epilogue* epilogue) {
       return native::matmul(a[0].to_tensor(), a[1].to_tensor(), epilogue);
     }},
    {"bmm", "aten::bmm",
     [](const Value* a, Epilogue* epilogue) {
       return native::bmm(a[0].to_tensor(), a[1].to_tensor(), epilogue);
     }},
    {"baddbmm", "aten::baddbmm",
     [](const Value* a, Epilogue* epilogue) {
       return native::baddbmm(a[0].to_tensor(), a[1].to_tensor(), a[2].to_tensor(),
                              a[3].to_scalar(), a[4].to_scalar(), epilogue);
     }},
    {"conv2d", "aten::conv2d",
     [](const Value* a, Epilogue* epilogue) {
       return native::conv2d(a[0].to_tensor(), a[1].to_tensor(), a[2].to_tensor(), a[3].to_ints(),
                             a[4].to_ints(), a[5].to_ints(), a[6].to_int(), epilogue);
     }},
};

const Head& find_head(const std::string& id) {
  for (const Head& head : kHeads) {
    if (head.id == id) return head;
  }
  fail(ErrorKind::Runtime, str("fused: expected a product or a convolution, got '", id, "'"));
}

bool is_number(const Value& value) {
  return value.tag() == ValueTag::Bool || value.tag() == ValueTag::Int ||
         value.tag() == ValueTag::Double;
}

// The steps behind the head as a group of their own.
FusedSpec rest_of(const FusedSpec& spec) {
  FusedSpec rest;
  rest.input_count = static_cast<uint8_t>(spec.input_count + 1);
  for (const Value& one : spec.constants)
    rest.constants.push_back(is_number(one) ? one : Value(0.0));
  const auto check = [&](const std::vector<FusedOperand>& operands, size_t step) {
    for (const FusedOperand& one : operands) {
      const bool fits =
          one.kind == Kind::Constant
              ? one.index < spec.constants.size() && is_number(spec.constants[one.index])
              : one.kind != Kind::Input || one.index < spec.input_count;
      WEFT_CHECK(fits, "fused: expected an operand that is there in step ", step, ", got ",
                 int{one.index});
    }
  };
  for (size_t s = 1; s < spec.steps.size(); ++s) {
    FusedStep step = spec.steps[s];
    WEFT_CHECK(step.over == Over::Elements, "fused: expected a pointwise operator behind a head, ",
               "got '", step.op, "'");
    check(step.tensors, s);
    check(step.numbers, s);
    for (FusedOperand& one : step.tensors) {
      if (one.kind != Kind::Step) continue;
      one = one.index == 0 ? FusedOperand{Kind::Input, spec.input_count}
                           : FusedOperand{Kind::Step, static_cast<uint8_t>(one.index - 1)};
    }
    rest.steps.push_back(std::move(step));
  }
  for (uint8_t output : spec.outputs) {
    if (output) rest.outputs.push_back(static_cast<uint8_t>(output - 1));
  }
  return rest;
}

}  // namespace

FusedHead::FusedHead(const FusedSpec& spec) : spec_(spec) {
  const FusedStep& step = spec.steps[0];
  const Head& head = find_head(step.op);
  call_ = head.call;
  operator_ = find_operator(head.kind);
  WEFT_CHECK(!spec.backward && !spec.dropped_inputs && spec.input_count < 64,
             "fused: expected at most 63 inputs and no gradient of a group with a head");
  WEFT_CHECK(step.tensors.empty() && step.numbers.size() == operator_->tags.size(),
             "fused: expected ", operator_->tags.size(), " arguments of ", step.op, ", got ",
             step.numbers.size());
  for (size_t i = 0; i < step.numbers.size(); ++i) {
    const FusedOperand& one = step.numbers[i];
    const bool fits = one.kind == Kind::Input
                          ? one.index < spec.input_count
                          : one.kind == Kind::Constant && one.index < spec.constants.size() &&
                                operator_->accepts(i, spec.constants[one.index].tag());
    WEFT_CHECK(fits, "fused: expected an argument of ", step.op, ", got ", int{one.index});
  }
  rest_ = make_ref<FusedGroup>(rest_of(spec));
  rest_outputs_ = rest_->spec().outputs.size();
  keeps_ = spec.outputs.size() > rest_outputs_;
  WEFT_CHECK(spec.outputs.size() <= rest_outputs_ + 1,
             "fused: expected distinct steps as outputs, got 0");
}

// The head's arguments; false where they are not what it takes, or have to be recorded.
bool FusedHead::gather(const Value* args, Arguments& arguments) const {
  if (autograd::mode.autocast) return false;
  for (uint8_t i = 0; i < spec_.input_count; ++i) {
    if (args[i].tag() != ValueTag::Tensor) continue;
    const Tensor& tensor = args[i].to_tensor();
    if (tensor.device().type != DeviceType::CPU || autograd::needs_graph(tensor)) return false;
  }
  const std::vector<FusedOperand>& from = spec_.steps[0].numbers;
  for (size_t i = 0; i < from.size(); ++i) {
    arguments.set(
        i, from[i].kind == Kind::Input ? args[from[i].index] : spec_.constants[from[i].index]);
    if (!operator_->accepts(i, arguments[i].tag())) return false;
  }
  return true;
}

void FusedHead::compute(const Value* arguments, FusedArgs& inputs, Value* results) const {
  FusedEpilogue epilogue(*rest_, inputs, keeps_);
  const Value product(call_(arguments, &epilogue));
  std::vector<Value> apart(keeps_ ? rest_outputs_ : 0);
  Value* const made = keeps_ ? apart.data() : results;
  if (epilogue.has_begun()) {
    for (size_t i = 0; i < rest_outputs_; ++i) made[i] = Value(std::move(epilogue.results()[i]));
  } else {
    inputs.set(spec_.input_count, product);
    const uint64_t dying = keeps_ ? 0 : uint64_t{1} << spec_.input_count;
    if (!rest_->run(inputs.data(), made, nullptr, dying)) {
      rest_->run_operators(inputs.data(), made);
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < spec_.outputs.size() && keeps_; ++i) {
    results[i] = spec_.outputs[i] ? std::move(apart[next++]) : product;
  }
}

bool FusedHead::run(const Value* args, Value* results) const {
  Arguments arguments;
  FusedArgs inputs;
  if (!gather(args, arguments)) return false;
  for (size_t i = 0; i < spec_.input_count; ++i) inputs.set(i, args[i]);
  try {
    compute(arguments.data(), inputs, results);
  } catch (const Error&) {  // one of the operators raises it again, at its place in the program
    std::fill_n(results, spec_.outputs.size(), Value());
    return false;
  }
  return true;
}

}  // namespace weft
