// Fusion groups: several pointwise operators run as one tile program.
//
// A group is data: steps that name table operators. When it first sees operands of some dtypes it
// puts the operators' own kernels together into a program of several steps: no compiler, no
// warm-up. Native code for the whole group may be installed later, from any thread; it serves the
// same operands and gives the same bits.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/ref.h"
#include "ops/tile.h"
#include "runtime/native_code.h"
#include "runtime/value.h"

namespace weft {

// Where an argument of a step comes from.
struct FusedOperand {
  enum class Kind : uint8_t { Input, Step, Constant };
  Kind kind;
  uint8_t index;  // of the group's input, of an earlier step, of a constant
};

struct FusedStep {
  std::string op;                              // identifier of a pointwise row: "add_Tensor"
  std::vector<FusedOperand> tensors, numbers;  // as the row lists its operands and attributes
};

struct FusedBackward;

struct FusedSpec {
  uint8_t input_count = 0;
  std::vector<Value> constants;  // numbers
  std::vector<FusedStep> steps;
  std::vector<uint8_t> outputs;  // the steps whose results leave the group
  // Null: the group does not run on tensors that require a gradient.
  std::shared_ptr<const FusedBackward> backward;
};

// What native code for a group is made for: the dtype of its arithmetic, and which inputs are
// masks (bit i: input i is a tensor of bool).
struct FusedKey {
  DType compute = DType::F32;
  uint64_t masks = 0;
  bool operator==(const FusedKey&) const = default;
};

class FusedGroup final : public RefCounted {
 public:
  // Raises RuntimeError where the spec names an unknown operator or refers to what is not there.
  explicit FusedGroup(FusedSpec spec);
  ~FusedGroup();

  // Runs the group on `args` (spec().input_count of them). False, with nothing done, where the
  // group's operators would not all compute in one dtype of floats and give results of one shape,
  // or where a gradient has to be recorded and the group has none: the caller then runs them one by
  // one. With a gradient the results get one node, FusedBackward.
  bool run(const Value* args, Value* results);
  // The same results, operator by operator; what autograd has to record is recorded.
  void run_operators(const Value* args, Value* results) const;

  const FusedSpec& spec() const noexcept { return spec_; }
  bool reads_tensor(uint8_t input) const noexcept { return tensor_inputs_ >> input & 1; }
  // Replaces the kernels of the operators for these dtypes. The code must be the group's.
  void install(const FusedKey& key, std::shared_ptr<const NativeCode> code);
  bool has_native(const FusedKey& key) const;

  // Called once for each key that has run often enough to be worth compiling; from the thread that
  // runs. Null: nobody compiles.
  using Hook = void (*)(Ref<FusedGroup> group, const FusedKey& key);
  static void set_hook(Hook hook, uint32_t runs_before) noexcept;

 private:
  struct Plan;
  struct Operands {
    FusedKey key;
    uint64_t wanting = 0;  // bit i: input i requires a gradient that has to be recorded
  };
  bool classify(const Value* args, Operands& found) const;
  bool can_record(const Value* args, const Plan& plan, uint64_t wanting) const;
  void record(const Value* args, Value* results, uint64_t wanting);
  Plan* plan_for(const FusedKey& key);
  Plan* find(const FusedKey& key) const;

  FusedSpec spec_;
  std::vector<const tile::Program*> programs_;  // of the steps
  uint64_t tensor_inputs_ = 0;                  // bit i: some step reads input i as a tensor
  uint64_t number_inputs_ = 0;                  // ... as a number
  std::vector<std::unique_ptr<Plan>> plans_;
  std::atomic<Plan*> latest_{nullptr};
};

// The gradient of a group: another group, whose inputs are the group's and then one gradient for
// each of its outputs.
struct FusedBackward {
  struct Edge {
    uint8_t input;     // of the group: where this gradient goes
    bool from_output;  // an output of `group`; else the gradient of one of the outputs, as it is
    uint8_t index;
  };
  Ref<FusedGroup> group;
  std::vector<Edge> edges;        // in the order in which the engine would meet the operators
  std::vector<uint64_t> depends;  // of each output: bit i: it has a gradient to input i
};

}  // namespace weft
