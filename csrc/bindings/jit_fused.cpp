// Fusion groups as Python sees them: the compiler takes requests for native code and installs it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <deque>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/caster.h"
#include "core/error.h"
#include "core/fork.h"
#include "ops/donation.h"
#include "runtime/fused.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

// An operand in Python: ("input" | "step" | "constant", index).
using PyOperand = std::pair<std::string, uint8_t>;
// A row operator: its identifier, "last" | "all", the dimension, keepdim, the size of it (0: any).
using PyRow = std::tuple<std::string, std::string, int, bool, uint32_t>;
using PyOp = std::variant<std::string, PyRow>;
using PyStep = std::tuple<PyOp, std::vector<PyOperand>, std::vector<PyOperand>>;

struct PyGroup {
  Ref<FusedGroup> group;
};

constexpr const char* kKinds[] = {"input", "step", "constant", "length"};

FusedOperand to_operand(const PyOperand& operand) {
  for (uint8_t kind = 0; kind < 4; ++kind) {
    if (operand.first == kKinds[kind]) {
      return {static_cast<FusedOperand::Kind>(kind), operand.second};
    }
  }
  fail(ErrorKind::Value,
       str("fused: expected input, step, constant or length, got ", operand.first));
}

std::vector<FusedOperand> to_operands(const std::vector<PyOperand>& operands) {
  std::vector<FusedOperand> result;
  for (const PyOperand& one : operands) result.push_back(to_operand(one));
  return result;
}

std::vector<PyOperand> from_operands(const std::vector<FusedOperand>& operands) {
  std::vector<PyOperand> result;
  for (const FusedOperand& one : operands) {
    result.emplace_back(kKinds[static_cast<int>(one.kind)], one.index);
  }
  return result;
}

// (input, "gradient" | "output", index)
using PyEdge = std::tuple<uint8_t, std::string, uint8_t>;

std::shared_ptr<const FusedBackward> to_backward(const PyGroup& group,
                                                 const std::vector<PyEdge>& edges,
                                                 std::vector<uint64_t> depends,
                                                 std::vector<uint8_t> saved) {
  auto result = std::make_shared<FusedBackward>();
  result->group = group.group;
  for (const auto& [input, kind, index] : edges) {
    result->edges.push_back({input, kind == "output", index});
  }
  result->depends = std::move(depends);
  result->saved = std::move(saved);
  return result;
}

FusedStep to_step(const PyStep& step) {
  const auto& [op, tensors, numbers] = step;
  FusedStep result;
  result.tensors = to_operands(tensors);
  result.numbers = to_operands(numbers);
  if (const auto* name = std::get_if<std::string>(&op)) {
    result.op = *name;
    return result;
  }
  const auto& [name, over, dim, keepdim, length] = std::get<PyRow>(op);
  WEFT_CHECK_AS(Value, over == "last" || over == "all", "fused: expected last or all, got ", over);
  result.op = name;
  result.over = over == "all" ? FusedStep::Over::All : FusedStep::Over::LastDim;
  result.dim = static_cast<int8_t>(dim);
  result.keepdim = keepdim;
  result.length = length;
  return result;
}

PyOp op_of(const FusedStep& step) {
  if (step.over == FusedStep::Over::Elements) return step.op;
  const char* over = step.over == FusedStep::Over::All ? "all" : "last";
  return PyRow{step.op, over, step.dim, step.keepdim, step.length};
}

PyGroup make_group(uint8_t input_count, const std::vector<Scalar>& constants,
                   const std::vector<PyStep>& steps, std::vector<uint8_t> outputs,
                   const PyGroup* backward, const std::vector<PyEdge>& edges,
                   std::vector<uint64_t> depends, uint64_t squeezed, std::vector<uint8_t> saved) {
  FusedSpec spec;
  spec.squeezed_inputs = squeezed;
  if (backward) spec.backward = to_backward(*backward, edges, std::move(depends), std::move(saved));
  spec.input_count = input_count;
  for (const Scalar& one : constants) spec.constants.emplace_back(one);
  for (const PyStep& step : steps) spec.steps.push_back(to_step(step));
  spec.outputs = std::move(outputs);
  return {make_ref<FusedGroup>(std::move(spec))};
}

std::vector<PyStep> steps_of(const PyGroup& self) {
  std::vector<PyStep> result;
  for (const FusedStep& one : self.group->spec().steps) {
    result.emplace_back(op_of(one), from_operands(one.tensors), from_operands(one.numbers));
  }
  return result;
}

std::vector<Scalar> constants_of(const PyGroup& self) {
  std::vector<Scalar> result;
  for (const Value& one : self.group->spec().constants) result.push_back(one.to_scalar());
  return result;
}

Value probe_value(nb::handle object) {
  if (is_tensor(object.ptr())) return Value(unwrap(object.ptr()));
  Scalar number;
  if (to_scalar(object.ptr(), &number)) return Value(number);
  fail(ErrorKind::Type, "fused: expected tensors and numbers");
}

std::optional<std::vector<Tensor>> run(const PyGroup& self, const std::vector<nb::object>& args) {
  const FusedSpec& spec = self.group->spec();
  WEFT_CHECK_AS(Value, args.size() == spec.input_count, "fused: expected ", int{spec.input_count},
                " arguments, got ", args.size());
  std::vector<Value> values;
  for (const nb::object& one : args) values.push_back(probe_value(one));
  std::vector<Value> results(spec.outputs.size());
  bool ran = false;
  {
    const ReleaseGil unlocked;
    ran = self.group->run(values.data(), results.data());
  }
  if (!ran) return std::nullopt;
  std::vector<Tensor> tensors;
  for (Value& one : results) tensors.push_back(one.take_tensor());
  return tensors;
}

struct Request {
  Ref<FusedGroup> group;
  FusedKey key;
};

// Requests wait here until the compiling thread takes them.
class Requests {
 public:
  void push(Ref<FusedGroup> group, const FusedKey& key) {
    {
      std::lock_guard lock(mutex_);
      if (waiting_.size() >= kMost) return;  // a program that makes groups without end
      waiting_.push_back({std::move(group), key});
    }
    arrived_.notify_one();
  }
  void wake() {
    {
      std::lock_guard lock(mutex_);
      woken_ = true;
    }
    arrived_.notify_one();
  }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  // For a child process: the same requests, without the threads that wait for them.
  Requests* copy() const {
    auto* fresh = new Requests;
    fresh->waiting_ = waiting_;
    return fresh;
  }
  std::optional<Request> take(double seconds) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::duration<double>(seconds),
                      [&] { return woken_ || !waiting_.empty(); });
    if (std::exchange(woken_, false) || waiting_.empty()) return std::nullopt;
    Request request = std::move(waiting_.front());
    waiting_.pop_front();
    return request;
  }

 private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Request> waiting_;
  bool woken_ = false;
};

Requests* all_requests = new Requests;  // outlives every thread
Requests& requests() { return *all_requests; }

[[maybe_unused]] const bool jit_fused_knows_forks =
    at_fork(ForkRank::Compiler, {[] { requests().lock(); }, [] { requests().unlock(); },
                                 [] { all_requests = requests().copy(); }});

void push_request(Ref<FusedGroup> group, const FusedKey& key) {
  requests().push(std::move(group), key);
}

nb::object take_request(double seconds) {
  std::optional<Request> request;
  {
    nb::gil_scoped_release unlocked;
    request = requests().take(seconds);
  }
  if (!request) return nb::none();
  return nb::make_tuple(PyGroup{request->group}, request->key.compute, request->key.masks,
                        request->key.ints);
}

void install_native(const PyGroup& self, DType compute, uint64_t masks, const nb::bytes& image,
                    uint64_t ints) {
  self.group->install({compute, masks, ints}, NativeCode::load({image.c_str(), image.size()}));
}

}  // namespace

void bind_fused(nb::module_& module) {
  nb::class_<PyGroup>(module, "_FusedGroup",
                      "Operators that run as one, tile by tile; see weft.jit.native.")
      .def(
          "__init__",
          [](PyGroup* self, uint8_t input_count, const std::vector<Scalar>& constants,
             const std::vector<PyStep>& steps, std::vector<uint8_t> outputs,
             const PyGroup* backward, const std::vector<PyEdge>& edges,
             std::vector<uint64_t> depends, uint64_t squeezed, std::vector<uint8_t> saved) {
            new (self)
                PyGroup(make_group(input_count, constants, steps, std::move(outputs), backward,
                                   edges, std::move(depends), squeezed, std::move(saved)));
          },
          nb::arg("input_count"), nb::arg("constants"), nb::arg("steps"), nb::arg("outputs"),
          nb::arg("backward").none() = nb::none(), nb::arg("edges") = std::vector<PyEdge>(),
          nb::arg("depends") = std::vector<uint64_t>(), nb::arg("squeezed") = uint64_t{0},
          nb::arg("saved") = std::vector<uint8_t>())
      .def("run", &run, nb::arg("args"), "The results; None where the group does not apply.")
      .def("install", &install_native, nb::arg("compute"), nb::arg("masks"), nb::arg("image"),
           nb::arg("ints") = uint64_t{0})
      .def(
          "has_native",
          [](const PyGroup& self, DType compute, uint64_t masks, uint64_t ints) {
            return self.group->has_native({compute, masks, ints});
          },
          nb::arg("compute"), nb::arg("masks"), nb::arg("ints") = uint64_t{0})
      .def_prop_ro("text", [](const PyGroup& self) { return self.group->text(); })
      .def_prop_ro("input_count",
                   [](const PyGroup& self) { return self.group->spec().input_count; })
      .def_prop_ro("constants", &constants_of)
      .def_prop_ro("steps", &steps_of)
      .def_prop_ro("outputs", [](const PyGroup& self) { return self.group->spec().outputs; });
  module.def(
      "_fused_requests", &take_request, nb::arg("seconds"),
      "(group, compute dtype, masks, ints) of the next group worth compiling; None after a wait.");
  module.def("_fused_wake", [] { requests().wake(); }, "Ends one wait for requests.");
  module.def(
      "_fused_compile_after",
      [](std::optional<uint32_t> runs) {
        FusedGroup::set_hook(runs ? &push_request : nullptr, runs.value_or(0));
      },
      nb::arg("runs").none(), "Groups ask for native code after so many runs; None: never.");
  module.def(
      "_reuse_from",
      [](int64_t numel) {
        const int64_t before = tile::least_donated();
        tile::set_least_donated(numel);
        return before;
      },
      nb::arg("numel"),
      "Results of so many elements or more take over memory of operands; gives what it was.");
  module.def(
      "_isa", [] { return static_cast<int>(tile::active_isa()); },
      "The instruction-set level in use: 0, 1, 2 for v2, v3, v4.");
}

}  // namespace weft::py
