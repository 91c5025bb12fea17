// Tile programs: the unit of computing.
//
// A program is data: slots (inputs, outputs, temporaries), and passes of steps; a step runs one
// contiguous kernel over one tile. An eager `a + b` has one step; softmax has three passes; a fused
// graph is a longer program. The driver alone handles strides, broadcasting, dtypes and threads.
//
// Two shapes of program:
//   pointwise  every slot has the common broadcast shape; one pass.
//   row        some dimensions form the row (the reduced ones). Row slots hold one value a row.
//              Steps of a pass see the row tile by tile; a later pass may read the row values of an
//              earlier one. A program whose outputs are all row slots is a plain reduction.
//
// Two ways to walk a row program, chosen by the driver from the strides:
//   horizontal  the row is the fast axis: one row at a time, row values are scalars of the kernel.
//   vertical    another axis is the fast one: a tile of rows at a time, row values are whole tiles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor.h"

namespace weft::tile {

// Instruction-set levels that kernels exist for, best last. The level in use is chosen at load
// (WEFT_ISA=v2|v3|v4 lowers it; v4 leaves AMX out).
enum class Isa : uint8_t { V2, V3, V4 };
inline constexpr int kIsaCount = 3;
Isa active_isa();

// One number for a kernel, at the start of the slot, in the type the kernel expects.
struct alignas(16) ScalarSlot {
  unsigned char bytes[16];
};
// The driver fills the first two slots of every call; a program's own attributes follow, and in a
// horizontal step the row values it reads follow those.
inline constexpr int kRowLengthSlot = 0;  // int64: elements in the row
inline constexpr int kPositionSlot = 1;   // int64: index within the row of the tile's first element
inline constexpr int kFirstAttribute = 2;

// operands: outputs first, then inputs; all contiguous, of the kernel's types, n elements each
// (row states of a horizontal reduce: one element). Input and output may be the same memory.
using KernelFn = void (*)(void* const* operands, int64_t n, const ScalarSlot* scalars);

// The kernels of one body: by instruction set and compute dtype; null where not defined.
struct KernelSet {
  KernelFn table[kIsaCount][kDTypeCount];
  KernelFn get(DType compute) const {
    return table[static_cast<int>(active_isa())][static_cast<int>(compute)];
  }
};

// What a slot's elements are, relative to the program's compute dtype.
enum class SlotType : uint8_t {
  Compute,  // the dtype arithmetic happens in
  Bool,
  Int64,
  Real,   // real_of(compute)
  Truth,  // Bool, but U8 where that is the compute dtype
};

enum class SlotKind : uint8_t {
  Input,   // operand `index` of the call
  Output,  // result `index` of the call
  Tile,    // temporary, one value an element; when kept, a whole row that later passes read
  Row,     // one value a row
};

struct Slot {
  SlotKind kind;
  SlotType type;
  uint8_t index = 0;
  bool kept = false;     // Tile only
  bool per_row = false;  // Output: one value a row. Row: those of input `index`
};

inline constexpr int kMaxOperands = 16;
inline constexpr int kMaxAttributes = 32;

struct Step {
  // Over a tile of one row. Row slots among `row_reads` come as scalars.
  const KernelSet* horizontal = nullptr;
  // Over a tile of rows. Row slots among `row_reads` come as operands after the others.
  // In pointwise programs only `horizontal` is set. Steps that touch row slots and row outputs
  // alone run once a row after their pass, through `vertical`, and have no `horizontal`.
  const KernelSet* vertical = nullptr;
  // A reduce step folds the tile into its first `states` operands (Row slots).
  uint8_t states = 0;
  const KernelSet* identity = nullptr;  // operands: states; writes the neutral element
  const KernelSet* merge = nullptr;     // operands: states a, states b; a = merge(a, b)
  uint8_t operand_count = 0;
  uint8_t operands[kMaxOperands] = {};  // slot numbers, written ones first
  uint8_t row_read_count = 0;
  uint8_t row_reads[kMaxOperands] = {};
  // Fused pointwise programs: where this step's attributes begin among the program's.
  uint8_t first_attribute = 0;
};

struct Pass {
  uint8_t first_step, step_count;
};

// How the inputs' dtypes give the compute dtype.
enum class Promotion : uint8_t {
  Common,    // promote(all)
  Floating,  // as Common, bool and integers become the default float
  Sum,       // as Common, bool and integers become int64
};

struct Program {
  const char* name;  // as error messages say it
  uint8_t input_count, output_count, attribute_count;
  Promotion promotion;
  uint32_t bool_inputs = 0;      // bit i: input i is a mask, outside promotion
  uint32_t int_inputs = 0;       // bit i: input i is int64 indices, outside promotion
  uint32_t weak_attributes = 0;  // bit i: attribute i takes no part in promotion (alpha, eps)
  SlotType attribute_types[kMaxAttributes] = {};
  bool row = false;
  bool needs_elements = false;  // an empty row has no result (max): raises
  // Kernels read kPositionSlot: the elements of a row come in the order of its dimensions.
  bool uses_position = false;
  // Tags of the row (src/weft/_ops/table.py).
  bool no_masks = false, exact_number = false, converts_number = false;
  bool any_integers = false, row_major = false;
  std::span<const Slot> slots;
  std::span<const Step> steps;
  std::span<const Pass> passes;
};

// One call. Inputs are broadcast against each other; inputs of a row program that lack the row
// dimensions (weight of a layer_norm) broadcast as usual.
struct Call {
  std::span<const Tensor* const> inputs;
  std::span<const Scalar> attributes = {};
  IntList dims = {};                // row programs: the row; empty means all dimensions
  bool keepdim = false;             // per-row outputs keep the row as dimensions of size 1 (they
                                    // always do beside element outputs)
  std::optional<DType> dtype = {};  // inputs are converted to it first (sum(dtype=...))
  bool in_place = false;            // a result given in `results` is an operand: its dtype rules
  // out=: gives a result of other sizes those that the call needs; without it they raise.
  void (*resize)(const char* op, const Tensor& result, IntList sizes) = nullptr;
};

// results[i]: an undefined handle is allocated; a defined one is written to (in place or out=): it
// must have the result's shape, or be resized to it, and a dtype the result can be cast to.
// Raises RuntimeError / IndexError in the design's message grammar, naming program.name.
void run(const Program& program, const Call& call, std::span<Tensor> results);

// Sizes and dtype that `run` would give output 0; the one shape-and-dtype rule of table rows.
DType result_dtype(const Program& program, const Call& call, int output = 0);

}  // namespace weft::tile
