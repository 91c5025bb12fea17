// Tile programs on devices other than the CPU: the same plan, run by the device's backend.
#include "ops/copy.h"
#include "ops/tile_drivers.h"
#include "ops/tile_plan.h"

namespace weft::tile {

void run_on_device(Device device, const Program& program, const Call& call,
                   std::span<Tensor> results) {
  FixedVector<Tensor, kMaxCallOperands> moved;
  const Tensor* inputs[kMaxCallOperands];
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs[i] = call.inputs[i];
    if (!inputs[i]->defined() || inputs[i]->device() == device) continue;
    if (!inputs[i]->on_cpu() || inputs[i]->dim() > 0) {
      refuse_two_devices(device, inputs[i]->device());
    }
    inputs[i] = &moved.emplace_back(on_device(*inputs[i], device));
  }
  for (const Tensor& result : results) {
    if (result.defined() && result.device() != device) refuse_two_devices(device, result.device());
  }
  Call there = call;
  there.inputs = {inputs, call.inputs.size()};
  (program.row ? run_row : run_pointwise)(program, there, results);
}

}  // namespace weft::tile
