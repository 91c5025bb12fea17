// The call of an operator's hand-written body: the one of its tensors' device. Included by
// generated code alone.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/backend.h"
#include "core/error.h"
#include "core/meta.h"
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
    device_ = meta::with_index(device);
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

template <class T>
inline constexpr size_t kTensors = 0;  // of a result that is nothing but tensors
template <>
inline constexpr size_t kTensors<Tensor> = 1;
template <class... T>
inline constexpr size_t kTensors<std::tuple<T...>> =
    (std::is_same_v<T, Tensor> && ...) ? sizeof...(T) : 0;

// The call on the device "meta". A body that asks for elements has checked its arguments by then.
template <class Signature, class... Args>
auto call_on_meta(const char* key, Signature* body, const Args&... args) {
  using Result = decltype(body(args...));
  constexpr size_t count = kTensors<Result>;
  if constexpr (count == 0) {
    return body(args...);
  } else {
    meta::refused() = false;
    const meta::InThisThread here;
    try {
      return body(args...);
    } catch (const Error&) {
      if (!meta::refused()) throw;
      const meta::Argument arguments[] = {meta::argument(args)...};
      std::vector<Tensor> found = meta::results(key, arguments);
      if (found.size() != count) throw;
      meta::refused() = false;
      if constexpr (std::is_same_v<Result, Tensor>) {
        return std::move(found[0]);
      } else {
        return [&]<size_t... I>(std::index_sequence<I...>) {
          return Result(std::move(found[I])...);
        }(std::make_index_sequence<count>());
      }
    }
  }
}

// The same on another device than the CPU.
template <class Signature, class... Args>
[[gnu::noinline]] auto call_on(Operands operands, const char* key, Signature* body,
                               const Args&... args) {
  const NativeScope scope(key);
  if (operands.device().type == DeviceType::Meta) {
    return call_on_meta(key, body, args...);
  }
  Backend* backend = find_backend(operands.device());
  const Backend::Function own = backend ? backend->native(key) : nullptr;
  if (own == nullptr) return body(args...);
  operands.check_same(args...);
  return reinterpret_cast<Signature*>(own)(args...);
}

// Calls the body that the device of the arguments has for the row `key`. Where it has none, calls
// the CPU's: a body made of operators alone works on every device, and one that reaches for the
// elements raises NotImplementedError "<key>: expected a body for the device ...". On "meta" its
// results then follow from the row's formulas, where it has them.
template <class Signature, class Body, class... Args>
[[gnu::always_inline]] inline auto call_body(const char* key, const Body& body,
                                             const Args&... args) {
  const Operands operands(args...);
  if (operands.device().type != DeviceType::CPU) [[unlikely]]
    return call_on<Signature>(operands, key, body, args...);
  return body(args...);
}
template <class Signature, class... Args>
[[gnu::always_inline]] inline auto call(const char* key, std::type_identity_t<Signature>* body,
                                        const Args&... args) {
  return call_body<Signature>(key, body, args...);
}

// Gives the tensor itself a new layout over the same memory. Saved values of it are void after
// this.
inline Tensor set_layout(const Tensor& self, Layout layout) {
  self.impl()->layout = std::move(layout);
  self.bump_version();
  return self;
}

}  // namespace weft::native
