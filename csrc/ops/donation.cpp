#include "ops/donation.h"

#include <atomic>

namespace weft::tile {
namespace {

thread_local const TensorImpl* g_given = nullptr;
// Below it a block comes from the thread's own cache.
std::atomic<int64_t> g_least{16384};

bool is_element_result(const Slot& slot) { return slot.kind == SlotKind::Output && !slot.per_row; }

}  // namespace

int64_t least_donated() noexcept { return g_least.load(std::memory_order_relaxed); }
void set_least_donated(int64_t numel) noexcept { g_least = numel; }

Donation::Donation(const Tensor& tensor) noexcept : outer_(g_given) { g_given = tensor.impl(); }
Donation::Donation(std::nullptr_t) noexcept : outer_(g_given) { g_given = nullptr; }
Donation::~Donation() { g_given = outer_; }

bool is_given() noexcept { return g_given != nullptr; }

Tensor take_donation(const Program& program, const Call& call, const Layout& layout, DType dtype) {
  const TensorImpl* given = g_given;
  if (!given || given->dtype != dtype || !(given->layout.sizes == layout.sizes) ||
      !(given->layout.strides == layout.strides)) {
    return {};
  }
  bool is_read = false;
  for (const Tensor* input : call.inputs) is_read = is_read || input->impl() == given;
  if (!is_read || !reads_before_it_writes(program)) return {};
  g_given = nullptr;  // for one result
  return {given->storage, given->layout, dtype};
}

bool reads_before_it_writes(const Program& program) {
  bool written = false;
  for (const Step& step : program.steps) {
    bool reads = false, writes = false;
    for (int i = 0; i < step.operand_count; ++i) {
      const Slot& slot = program.slots[step.operands[i]];
      reads = reads || slot.kind == SlotKind::Input;
      writes = writes || is_element_result(slot);
    }
    if (written && reads) return false;
    written = written || writes;
  }
  return true;
}

}  // namespace weft::tile
