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
  // Length: how many elements a row has (index 0), or how many there are in all (index 1).
  enum class Kind : uint8_t { Input, Step, Constant, Length };
  Kind kind;
  uint8_t index;  // of the group's input, of an earlier result, of a constant
};

// The mask of one input, of one value.
constexpr uint64_t bit(uint8_t index) { return uint64_t{1} << index; }

struct FusedStep {
  std::string op;                              // identifier of a table row: "add_Tensor"
  std::vector<FusedOperand> tensors, numbers;  // as the row lists its operands and attributes
  // What a row operator works over; Elements: a pointwise one.
  enum class Over : uint8_t { Elements, LastDim, All };
  Over over = Over::Elements;
  int8_t dim = -1;      // LastDim: as the program wrote it; it must be the last one
  bool keepdim = true;  // LastDim: results of rows keep it with size 1
  uint32_t length = 0;  // LastDim: what its size must be; 0: anything
};

struct FusedBackward;
class FusedStages;

struct FusedSpec {
  uint8_t input_count = 0;
  std::vector<Value> constants;  // numbers
  std::vector<FusedStep> steps;
  // The results that leave the group, by number: steps in order, each with all of its results.
  std::vector<uint8_t> outputs;
  uint64_t squeezed_inputs =
      0;  // bit i: input i has one value a row, and lacks the row's dimension
  // Null: the group does not run on tensors that require a gradient.
  std::shared_ptr<const FusedBackward> backward;
};

// What native code for a group is made for: the dtype of its tensors (those of 16 bits compute in
// float32, rounded after each step), and which inputs are of bool or int64 (bit i: input i).
struct FusedKey {
  DType compute = DType::F32;
  uint64_t masks = 0, ints = 0;
  bool operator==(const FusedKey&) const = default;
};

struct FusedBinding;

class FusedGroup final : public RefCounted {
 public:
  // Raises RuntimeError where the spec names an unknown operator or refers to what is not there.
  explicit FusedGroup(FusedSpec spec);
  ~FusedGroup();

  // Runs the group on `args` (spec().input_count of them). False, with nothing done, where the
  // group's operators would not all compute in one dtype of floats and give results of one shape,
  // or where a gradient has to be recorded and the group has none: the caller then runs them one by
  // one. With a gradient the results get one node, FusedBackward.
  // `full`: the shape of all elements where the arguments may lack some of it (the gradient of a
  // sum); null: what they broadcast to. `donated`: bit i: the caller drops args[i] next; results
  // may take over its memory.
  bool run(const Value* args, Value* results, const Dims* full = nullptr, uint64_t donated = 0);
  // The values of some numbers, operator by operator; what autograd has to record is recorded.
  // Arguments that they are not made of need not be there. `missing`: bit i: input i is a gradient
  // that is not there; so are the values that are made of such alone, and sums lack a part.
  std::vector<Value> run_operators(const Value* args, const std::vector<uint8_t>& wanted,
                                   const Dims* full = nullptr, uint64_t missing = 0) const;
  // What the tensors among the arguments, those that lacked the row's dimension with it, broadcast
  // to.
  Dims broadcast_shape(const Value* args) const;

  const FusedSpec& spec() const noexcept { return spec_; }
  bool reads_tensor(uint8_t input) const noexcept { return tensor_inputs_ >> input & 1; }
  // Bit i: input i is a tensor that these values are made of.
  uint64_t inputs_of(const std::vector<uint8_t>& values) const;
  // Replaces the kernels of the operators for these dtypes. The code must be the group's.
  void install(const FusedKey& key, std::shared_ptr<const NativeCode> code);
  bool has_native(const FusedKey& key) const;
  // Equal for groups that the same native code serves.
  std::string text() const;

  // The program for a key, and what to bind to it. Null where there is none. `runs`: counts as a
  // run.
  struct Ready {
    const tile::Program* program = nullptr;
    const FusedBinding* binding = nullptr;
  };
  Ready ready(const FusedKey& key, bool runs = true);

  // Called once for each key that has run often enough to be worth compiling; from the thread that
  // runs. Null: nobody compiles.
  using Hook = void (*)(Ref<FusedGroup> group, const FusedKey& key);
  static void set_hook(Hook hook, uint32_t runs_before) noexcept;
  // The same where nobody compiles.
  static void set_hook_if_none(Hook hook, uint32_t runs_before) noexcept;

 private:
  struct Plan;
  struct Operands {
    FusedKey key;
    uint64_t wanting = 0;  // bit i: input i requires a gradient that has to be recorded
  };
  bool classify(const Value* args, Operands& found) const;
  bool leads_somewhere(uint64_t wanting) const;
  bool can_record(const Value* args, const Plan& plan, uint64_t wanting) const;
  bool run_stages(const Operands& operands, const Value* args, Value* results, const Dims* full,
                  uint64_t donated);
  void record(const Value* args, Value* results, uint64_t wanting, std::vector<Tensor> saved = {});
  // The program's attributes; false where one is a float that it wants as an integer.
  bool numbers(const Value* args, const FusedBinding& binding, const tile::Program& program,
               const Dims* full, Scalar* out) const;
  Plan* plan_for(const FusedKey& key);
  std::vector<Value> unsqueezed(const Value* args) const;
  std::vector<bool> steps_of(const std::vector<uint8_t>& values) const;
  void donate(const Value* args, const Plan& plan, uint64_t donated, Tensor* outputs) const;
  void count_run(Plan& plan, bool native);
  Plan* find(const FusedKey& key) const;

  FusedSpec spec_;
  std::vector<const tile::Program*> programs_;  // of the steps
  uint64_t tensor_inputs_ = 0;                  // bit i: some step reads input i as a tensor
  uint64_t number_inputs_ = 0;                  // ... as a number
  std::unique_ptr<FusedStages> stages_;  // of groups with row operators, whose parts have the plans
  std::vector<std::unique_ptr<Plan>> plans_;
  std::atomic<Plan*> latest_{nullptr};
};

// The gradient of a group: another group, whose inputs are the group's, then one gradient for each
// of its outputs, then these outputs, then values of rows that the group keeps.
struct FusedBackward {
  struct Edge {
    uint8_t input;     // of the group: where this gradient goes
    bool from_output;  // an output of `group`; else the gradient of one of the outputs, as it is
    uint8_t index;
  };
  Ref<FusedGroup> group;
  std::vector<Edge> edges;        // one for each input that has a gradient
  std::vector<uint64_t> depends;  // of each output: bit i: it has a gradient to input i
  std::vector<uint8_t> saved;     // values of the forward group, one element a row
};

}  // namespace weft
