// The device "meta": its tensors have sizes, strides and a dtype, and no elements. Operators work
// out what their results look like, and compute nothing.
//
// A hand-written body checks its arguments, then asks for elements, which is refused. The call
// (ops/native_call.h) then takes its results from the formulas of the operator table, which
// `results` looks up. Where no formula tells them, and without Python, the error stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/generator.h"
#include "core/scalar.h"
#include "core/tensor.h"

namespace weft::meta {

// The address as programs see it: null where there is no memory. Within weft it tells apart tensors
// that overlap from others.
inline void* shown_address(const Storage& storage) noexcept {
  return storage.device().type == DeviceType::Meta ? nullptr : storage.address();
}

// The device as tensors have it: "privateuseone" is "privateuseone:0", "meta:0" is "meta".
inline Device with_index(Device device) noexcept {
  if (device.type == DeviceType::Meta) return {device.type, -1};
  return {device.type, device.index < 0 ? int8_t{0} : device.index};
}

// Whether a body of this thread was refused elements, by one of the next two.
bool& refused() noexcept;
[[noreturn]] void refuse_elements(const char* key);  // to the body of the row `key`
[[noreturn]] void refuse_item();                     // as a number

// Elements were asked for on another device.
[[noreturn]] void refuse_copy();

// While it lives, parallel loops run in this thread alone: `refused` is about what they do.
class InThisThread {
 public:
  InThisThread() noexcept;
  ~InThisThread();
  InThisThread(const InThisThread&) = delete;
  InThisThread& operator=(const InThisThread&) = delete;

 private:
  const bool outer_;
};

// An argument of a body; nothing for what no formula asks for.
using Argument = std::variant<std::monostate, const Tensor*, const TensorList*, Scalar, IntList,
                              std::string_view, DType>;

inline Argument argument(const Tensor& tensor) { return &tensor; }
inline Argument argument(const TensorList& tensors) { return &tensors; }
inline Argument argument(const Scalar& number) { return number; }
inline Argument argument(bool flag) { return Scalar(flag); }
inline Argument argument(int64_t number) { return Scalar(number); }
inline Argument argument(double number) { return Scalar(number); }
inline Argument argument(IntList numbers) { return numbers; }
inline Argument argument(std::string_view text) { return text; }
inline Argument argument(DType dtype) { return dtype; }
inline Argument argument(Device) { return {}; }
inline Argument argument(const Ref<Generator>&) { return {}; }
template <class T>
Argument argument(const std::optional<T>& given) {
  return given ? argument(*given) : Argument{};
}

// The results of the row `key`; empty where its formulas do not tell them.
using Rule = std::vector<Tensor> (*)(const char* key, std::span<const Argument> arguments);
void set_rule(Rule rule) noexcept;
std::vector<Tensor> results(const char* key, std::span<const Argument> arguments);

}  // namespace weft::meta
