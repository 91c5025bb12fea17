// The two drivers behind tile::run, and what they tell kernels.
#pragma once

#include "core/backend.h"
#include "ops/tile.h"

namespace weft::tile {

// Or-ed to a kernel's n, asks a pointwise kernel to store past the caches what will not be read
// soon: results then begin at multiples of 64 bytes. Kernels for x86 know it. Others see such
// stores in order only after a fence.
inline constexpr int64_t kNonTemporal = INT64_MIN;

// A row program's call on the CPU when it is plain, with contiguous operands and no conversions,
// and has at most kMostPlain elements. False if it is not.
inline constexpr int64_t kMostPlain = 4096;
bool run_plain_rows(const Program& program, const Call& call, std::span<Tensor> results);

// The device of the first operand that is not on the CPU; the CPU where there is none.
inline Device operands_device(const Call& call, std::span<const Tensor> results) {
  for (const Tensor* input : call.inputs) {
    if (input->defined() && !input->on_cpu()) [[unlikely]]
      return input->device();
  }
  for (const Tensor& result : results) {
    if (result.defined() && !result.on_cpu()) [[unlikely]]
      return result.device();
  }
  return {};
}

// The call on a device other than the CPU. Raises RuntimeError when an operand is elsewhere, unless
// it is a number on the CPU: a tensor without dimensions.
void run_on_device(Device device, const Program& program, const Call& call,
                   std::span<Tensor> results);

// Plan a call, whose operands are on one device, and run it there.
void run_pointwise(const Program& program, const Call& call, std::span<Tensor> results);
void run_row(const Program& program, const Call& call, std::span<Tensor> results);

// Runs a planned program on the device that its addresses are of.
template <class Planned>
void run_on(Device device, const Planned& walk) {
  if (Backend* backend = find_backend(device)) [[unlikely]] {
    backend->run_program(walk);
  } else {
    run_on_cpu(walk);
  }
}

}  // namespace weft::tile
