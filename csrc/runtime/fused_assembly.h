// The program of a fusion group for one dtype: the kernels of its operators, put together.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/fused.h"

namespace weft {

// A program with everything it points to. Stays where it is once closed.
struct Assembly {
  std::vector<tile::Slot> slots;
  std::vector<tile::Step> steps;
  tile::Pass pass{};
  std::deque<tile::KernelSet> conversions;
  tile::Program program{};

  void close(uint8_t inputs, uint8_t outputs) {
    pass = {0, static_cast<uint8_t>(steps.size())};
    program.name = "fused";
    program.input_count = inputs;
    program.output_count = outputs;
    program.slots = slots;
    program.steps = steps;
    program.passes = {&pass, 1};
  }
};

// What a call of the group binds to the program.
struct FusedBinding {
  std::vector<uint8_t> tensors;          // inputs of the group that are operands, in order
  std::vector<FusedOperand> attributes;  // numbers, in order
  uint32_t rounded = 0;                  // bit i: number i, to the 16 bits of `dtype`
  DType dtype = DType::F32;              // of the key
  std::vector<uint64_t> reads;           // bit i: input i, that each output depends on
  std::vector<uint64_t> step_reads;      // ... that each step depends on
};

// False where a step would not compute in the key's dtype, or the program would be too large.
// `programs`: those of the steps' rows.
bool assemble(const FusedSpec& spec, const std::vector<const tile::Program*>& programs,
              const FusedKey& key, Assembly& assembly, FusedBinding& binding);

}  // namespace weft
