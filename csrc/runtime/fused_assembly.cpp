#include "runtime/fused_assembly.h"

#include <algorithm>

#include "core/error.h"
#include "ops/convert.h"
#include "ops/tile_plan.h"

namespace weft {
namespace {

using tile::Slot;
using tile::SlotKind;
using tile::SlotType;
using tile::Step;

// What a row takes and gives, in terms of its program of one step.
const Slot& input_slot(const tile::Program& program, size_t index) {
  for (const Slot& slot : program.slots) {
    if (slot.kind == SlotKind::Input && slot.index == index) return slot;
  }
  WEFT_INTERNAL_ASSERT(false, "in ", program.name);
  __builtin_unreachable();
}

// Groups compute in real numbers: the real part of one is the number itself.
constexpr SlotType plain(SlotType type) {
  return type == SlotType::Real ? SlotType::Compute : type;
}

// Rounds float32 to a smaller float, in place.
template <DType dtype>
void round_tile(void* const* operands, int64_t n, const tile::ScalarSlot*) {
  static const tile::KernelFn narrow = tile::convert_kernel(dtype, DType::F32);
  static const tile::KernelFn widen = tile::convert_kernel(DType::F32, dtype);
  constexpr int64_t kChunk = 512;
  alignas(64) uint16_t rounded[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    void* tile = static_cast<float*>(operands[0]) + i;
    void* const down[] = {rounded, tile};
    narrow(down, count, nullptr);
    void* const up[] = {tile, rounded};
    widen(up, count, nullptr);
  }
}

// Puts the kernels of a group's steps together for one key.
class Assembler {
 public:
  Assembler(const FusedSpec& spec, const std::vector<const tile::Program*>& programs,
            const FusedKey& key, Assembly& assembly, FusedBinding& binding)
      : spec_(spec), programs_(programs), key_(key), assembly_(assembly), binding_(binding) {}

  bool run() {
    find_last_uses();
    binding_.dtype = key_.compute;
    assembly_.program.exact_number = true;  // `binding_.rounded` says which numbers are rounded
    for (size_t s = 0; s < spec_.steps.size(); ++s) {
      if (!add(s)) return false;
    }
    for (uint8_t output : spec_.outputs) binding_.reads.push_back(results_[output].reads);
    for (const Result& result : results_) binding_.step_reads.push_back(result.reads);
    const size_t inputs = binding_.tensors.size(), outputs = spec_.outputs.size();
    const bool fits = assembly_.slots.size() <= tile::kMaxSlots &&
                      assembly_.steps.size() <= tile::kMaxSteps &&
                      inputs + outputs <= tile::kMaxCallOperands &&
                      binding_.attributes.size() <= tile::kMaxAttributes;
    if (!fits || inputs == 0) return false;
    assembly_.program.attribute_count = static_cast<uint8_t>(binding_.attributes.size());
    assembly_.close(static_cast<uint8_t>(inputs), static_cast<uint8_t>(outputs));
    return true;
  }

 private:
  struct Result {
    uint8_t slot = 0;
    SlotType type = SlotType::Compute;
    uint64_t reads = 0;
    size_t last_use = 0;
    bool leaves = false;
  };

  void find_last_uses() {
    results_.resize(spec_.steps.size());
    for (size_t s = 0; s < spec_.steps.size(); ++s) {
      for (const FusedOperand& one : spec_.steps[s].tensors) {
        if (one.kind == FusedOperand::Kind::Step) results_[one.index].last_use = s;
      }
    }
    for (uint8_t output : spec_.outputs) results_[output].leaves = true;
  }

  bool add(size_t s) {
    const FusedStep& step = spec_.steps[s];
    const tile::Program& row = *programs_[s];
    std::vector<uint8_t> inputs;
    std::vector<SlotType> types;
    bool computes = false, counts = false;
    for (const FusedOperand& one : step.tensors) {
      types.push_back(SlotType::Compute);
      inputs.push_back(operand(one, types.back(), results_[s].reads));
      computes |= types.back() == SlotType::Compute;
      counts |= types.back() == SlotType::Int64;
    }
    if (row.no_masks && std::ranges::find(types, SlotType::Bool) != types.end()) return false;
    if (!computes) {
      return counts ? add_of_integers(s, row, inputs, types) : add_of_masks(s, row, inputs);
    }
    if (!row.steps[0].horizontal->get(compute_)) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const SlotType wanted = plain(input_slot(row, i).type);
      if (types[i] == wanted) continue;
      if (wanted != SlotType::Compute) return false;
      inputs[i] = convert(inputs[i], types[i] == SlotType::Bool ? DType::Bool : DType::I64);
    }
    place(s, row, inputs, plain(tile::output_slot(row, 0).type), row.steps[0].horizontal);
    return true;
  }

  // Arithmetic on masks alone stays with masks (`a & b`); all else would change the dtype.
  bool add_of_masks(size_t s, const tile::Program& row, const std::vector<uint8_t>& inputs) {
    const tile::KernelFn kernel = row.steps[0].horizontal->get(DType::Bool);
    if (!kernel || row.promotion != tile::Promotion::Common || row.attribute_count > 0)
      return false;
    place(s, row, inputs, SlotType::Bool, own_set(kernel));
    return true;
  }

  // Arithmetic on int64, and comparisons. Masks among the operands only choose.
  bool add_of_integers(size_t s, const tile::Program& row, const std::vector<uint8_t>& inputs,
                       const std::vector<SlotType>& types) {
    const tile::KernelFn kernel = row.steps[0].horizontal->get(DType::I64);
    if (!kernel || row.promotion != tile::Promotion::Common) return false;
    for (size_t i = 0; i < types.size(); ++i) {
      const bool mask = plain(input_slot(row, i).type) == SlotType::Bool;
      if (types[i] != (mask ? SlotType::Bool : SlotType::Int64)) return false;
    }
    const SlotType type = plain(tile::output_slot(row, 0).type);
    if (type != SlotType::Bool && !row.any_integers) return false;
    place(s, row, inputs, type == SlotType::Bool ? type : SlotType::Int64, own_set(kernel), true);
    return true;
  }

  // A kernel that runs whatever the compute dtype is.
  const tile::KernelSet* own_set(tile::KernelFn kernel) {
    tile::KernelSet& set = assembly_.conversions.emplace_back();
    for (auto& row : set.table) row[static_cast<int>(compute_)] = kernel;
    return &set;
  }

  // The slot of an operand; group inputs get theirs when first read.
  uint8_t operand(const FusedOperand& one, SlotType& type, uint64_t& reads) {
    if (one.kind == FusedOperand::Kind::Step) {
      const Result& result = results_[one.index];
      type = result.type;
      reads |= result.reads;
      return result.slot;
    }
    type = (key_.masks & bit(one.index))  ? SlotType::Bool
           : (key_.ints & bit(one.index)) ? SlotType::Int64
                                          : SlotType::Compute;
    reads |= bit(one.index);
    for (size_t i = 0; i < binding_.tensors.size(); ++i) {
      if (binding_.tensors[i] == one.index) return input_slots_[i];
    }
    const auto ordinal = static_cast<uint8_t>(binding_.tensors.size());
    binding_.tensors.push_back(one.index);
    if (type == SlotType::Bool) assembly_.program.bool_inputs |= uint32_t{1} << ordinal;
    if (type == SlotType::Int64) assembly_.program.int_inputs |= uint32_t{1} << ordinal;
    input_slots_.push_back(new_slot({SlotKind::Input, type, ordinal}));
    return input_slots_.back();
  }

  uint8_t convert(uint8_t from, DType dtype) {
    const tile::KernelSet* set = own_set(tile::convert_kernel(compute_, dtype));
    Step& step = assembly_.steps.emplace_back();
    step.horizontal = set;
    step.operand_count = 2;
    step.operands[0] = new_slot({SlotKind::Tile, SlotType::Compute});
    step.operands[1] = from;
    return step.operands[0];
  }

  void place(size_t s, const tile::Program& row, const std::vector<uint8_t>& inputs, SlotType type,
             const tile::KernelSet* kernels, bool integers = false) {
    for (const FusedOperand& one : spec_.steps[s].tensors) give_back(one, s);
    Result& result = results_[s];
    result.type = type;
    result.slot = result.leaves ? new_slot({SlotKind::Output, result.type, output_index(s)})
                                : temporary(result.type);
    const Step& kernel = row.steps[0];
    Step& step = assembly_.steps.emplace_back();
    step.horizontal = kernels;
    step.operand_count = kernel.operand_count;
    step.first_attribute = static_cast<uint8_t>(binding_.attributes.size());
    for (int i = 0; i < kernel.operand_count; ++i) {
      const Slot& slot = row.slots[kernel.operands[i]];
      step.operands[i] = slot.kind == SlotKind::Input ? inputs[slot.index] : result.slot;
    }
    add_attributes(spec_.steps[s], row, integers);
    if (compute_ != key_.compute && type == SlotType::Compute) round(result.slot);
  }

  // Between two operators of 16-bit floats lies a tensor of them.
  void round(uint8_t slot) {
    Step& step = assembly_.steps.emplace_back();
    step.horizontal =
        own_set(dispatch(key_.compute, []<class T>(std::type_identity<T>) -> tile::KernelFn {
          if constexpr (is_small_float<T>) return round_tile<dtype_of<T>::value>;
          return nullptr;
        }));
    step.operand_count = 1;
    step.operands[0] = slot;
  }

  void add_attributes(const FusedStep& step, const tile::Program& row, bool integers) {
    for (size_t i = 0; i < step.numbers.size(); ++i) {
      if (binding_.attributes.size() < tile::kMaxAttributes) {
        SlotType type = row.attribute_types[i];
        if (integers && type == SlotType::Compute) type = SlotType::Int64;
        assembly_.program.attribute_types[binding_.attributes.size()] = type;
        const bool rounds = compute_ != key_.compute && !integers && tile::rounds_number(row, i);
        binding_.rounded |= uint32_t{rounds} << binding_.attributes.size();
      }
      binding_.attributes.push_back(step.numbers[i]);
    }
  }

  // Temporaries live in a few tiles that stay in the cache.
  uint8_t temporary(SlotType type) {
    for (size_t i = 0; i < free_.size(); ++i) {
      if (assembly_.slots[free_[i]].type != type) continue;
      const uint8_t slot = free_[i];
      free_.erase(free_.begin() + static_cast<ptrdiff_t>(i));
      return slot;
    }
    return new_slot({SlotKind::Tile, type});
  }
  void give_back(const FusedOperand& one, size_t s) {
    if (one.kind != FusedOperand::Kind::Step) return;
    const Result& result = results_[one.index];
    if (result.leaves || result.last_use != s) return;
    if (std::find(free_.begin(), free_.end(), result.slot) == free_.end()) {
      free_.push_back(result.slot);
    }
  }

  uint8_t new_slot(const Slot& slot) {
    assembly_.slots.push_back(slot);
    return static_cast<uint8_t>(assembly_.slots.size() - 1);
  }
  uint8_t output_index(size_t s) const {
    const auto at = std::find(spec_.outputs.begin(), spec_.outputs.end(), s);
    return static_cast<uint8_t>(at - spec_.outputs.begin());
  }

  const FusedSpec& spec_;
  const std::vector<const tile::Program*>& programs_;
  const FusedKey& key_;
  const DType compute_ = compute_type(key_.compute);
  Assembly& assembly_;
  FusedBinding& binding_;
  std::vector<Result> results_;
  std::vector<uint8_t> input_slots_, free_;
};

}  // namespace

bool assemble(const FusedSpec& spec, const std::vector<const tile::Program*>& programs,
              const FusedKey& key, Assembly& assembly, FusedBinding& binding) {
  return Assembler(spec, programs, key, assembly, binding).run();
}

}  // namespace weft
