// The call of an operator's hand-written body: the one of its tensors' device. Included by
// generated code alone.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/backend.h"
#include "core/tensor.h"

namespace weft::native {

// The device of an operator's arguments.
class Operands {
 public:
  template <class... Args>
  explicit Operands(const Args&... args) {
    (add(args), ...);
  }
  // The first that is not the CPU; the CPU where there is none.
  Device device() const noexcept { return device_; }
  // Raises RuntimeError unless all tensors are there.
  template <class... Args>
  void check_same(const Args&... args) const {
    (check(args), ...);
  }

 private:
  template <class Arg>
  void add(const Arg&) noexcept {}
  void add(const Tensor& tensor) noexcept {
    if (tensor.defined() && !tensor.on_cpu()) [[unlikely]]
      found(tensor.device());
  }
  void add(const std::optional<Device>& device) noexcept {  // of a factory
    if (device && device->type != DeviceType::CPU) [[unlikely]]
      found(*device);
  }
  void found(Device device) noexcept {
    if (device_.type != DeviceType::CPU) return;
    device_ = {device.type, std::max(device.index, int8_t{0})};
  }
  void add(const TensorList& tensors) noexcept {
    for (const Tensor& tensor : tensors) add(tensor);
  }
  template <class Arg>
  void check(const Arg&) const {}
  void check(const Tensor& tensor) const {
    if (tensor.defined() && tensor.device() != device_) {
      refuse_two_devices(device_, tensor.device());
    }
  }
  void check(const TensorList& tensors) const {
    for (const Tensor& tensor : tensors) check(tensor);
  }

  Device device_;
};

// The same on another device than the CPU.
template <class Signature, class... Args>
[[gnu::noinline]] auto call_on(Operands operands, const char* key, Signature* body,
                               const Args&... args) {
  const NativeScope scope(key);
  Backend* backend = find_backend(operands.device());
  const Backend::Function own = backend ? backend->native(key) : nullptr;
  if (own == nullptr) return body(args...);
  operands.check_same(args...);
  return reinterpret_cast<Signature*>(own)(args...);
}

// Calls the body that the device of the arguments has for the row `key`. Where it has none, calls
// the CPU's: a body made of operators alone works on every device, and one that reaches for the
// elements raises NotImplementedError "<key>: expected a body for the device ...".
template <class Signature, class... Args>
[[gnu::always_inline]] inline auto call(const char* key, std::type_identity_t<Signature>* body,
                                        const Args&... args) {
  const Operands operands(args...);
  if (operands.device().type != DeviceType::CPU) [[unlikely]]
    return call_on<Signature>(operands, key, body, args...);
  return body(args...);
}

}  // namespace weft::native
