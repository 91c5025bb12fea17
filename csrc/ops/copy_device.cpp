// Copies on devices other than the CPU, and between devices.
#include <cstring>

#include "ops/copy.h"
#include "ops/tile_drivers.h"
#include "ops/tile_walk.h"

namespace weft {
namespace {

using tile::KernelSet;
using tile::ScalarSlot;
using tile::Slot;
using tile::SlotKind;
using tile::SlotType;
using tile::Step;

template <class T>
void copy_elements(void* const* operands, int64_t n, const ScalarSlot*) {
  std::memcpy(operands[0], operands[1], static_cast<size_t>(n) * sizeof(T));
}

const KernelSet& copy_kernels() {
  static const KernelSet set = [] {
    KernelSet made{};
    for (int i = 0; i < kDTypeCount; ++i) {
      const tile::KernelFn kernel = dispatch(
          static_cast<DType>(i),
          []<class T>(std::type_identity<T>) -> tile::KernelFn { return copy_elements<T>; });
      for (auto& row : made.table) row[i] = kernel;
    }
    return made;
  }();
  return set;
}

// result = input, in the result's dtype: conversions and layouts are the walk's business.
const tile::Program& copy_program() {
  static constexpr Slot slots[] = {{SlotKind::Output, SlotType::Compute},
                                   {SlotKind::Input, SlotType::Compute}};
  static const Step step{.horizontal = &copy_kernels(), .operand_count = 2, .operands = {0, 1}};
  static constexpr tile::Pass pass{0, 1};
  static const tile::Program program{.name = "copy_",
                                     .input_count = 1,
                                     .output_count = 1,
                                     .attribute_count = 0,
                                     .promotion = tile::Promotion::Common,
                                     .slots = slots,
                                     .steps = {&step, 1},
                                     .passes = {&pass, 1}};
  return program;
}

tile::Placed placed(const Tensor& tensor, const Dims& shape) {
  return {static_cast<char*>(tensor.address()), tile::broadcast_strides(tensor, shape),
          tensor.dtype()};
}

void copy_within(const Tensor& dst, const Tensor& src) {
  tile::Walk walk(copy_program());
  walk.compute = dst.dtype();
  const tile::Placed to = placed(dst, dst.sizes()), from = placed(src, dst.sizes());
  tile::lay_out_in_order(walk, dst.sizes(), {&to, 1}, {&from, 1});
  tile::run_on(dst.device(), walk);
}

// Both are dense, of one shape and dtype.
void copy_bytes_across(const Tensor& dst, const Tensor& src) {
  Backend* backend = find_backend(dst.on_cpu() ? src.device() : dst.device());
  backend->copy(dst.address(), dst.device(), src.address(), src.device(),
                static_cast<size_t>(src.numel()) * src.item_size());
}

}  // namespace

void copy_on_devices(const Tensor& dst, const Tensor& src) {
  if (dst.device() == src.device()) return copy_within(dst, src);
  // Bytes cross as they are. Each device does for itself what else there is to do.
  if (!src.is_contiguous() || src.dtype() != dst.dtype()) {
    const Tensor dense = Tensor::empty(src.sizes(), dst.dtype(), src.device(), "copy_");
    copy_new(dense, src);
    return copy_on_devices(dst, dense);
  }
  if (!dst.is_contiguous() || !(dst.sizes() == src.sizes())) {
    return copy_new(dst, on_device(src, dst.device()));
  }
  const bool foreign = !dst.on_cpu() && !src.on_cpu() && dst.device().type != src.device().type;
  copy_bytes_across(dst, foreign ? on_device(src, {}) : src);
}

Tensor on_device(const Tensor& src, Device device) {
  if (src.device() == device) return src;
  Tensor result = Tensor::empty(src.sizes(), src.dtype(), device, "to");
  copy_new(result, src);
  return result;
}

}  // namespace weft
