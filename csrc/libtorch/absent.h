// Functions of libtorch that weft does not have. What a program or a binding of another language
// makes of their results compiles, so that it builds as a whole; a call raises NotImplementedError.
#pragma once

#include "tensor.h"

namespace c10 {
inline namespace over_weft {
namespace detail {

// What such a call would give: a tensor, a number, or several tensors.
template <size_t>
using TensorAt = at::Tensor;
template <size_t... I>
std::tuple<TensorAt<I>...> tensors_of(std::index_sequence<I...>);
using TenTensors = decltype(tensors_of(std::make_index_sequence<10>()));
struct Absent : TenTensors {
  explicit Absent(const char* name) { refuse(name); }
  operator at::Tensor() const { return {}; }
  operator std::vector<at::Tensor>() const { return {}; }
  template <class Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  operator Number() const {
    return {};
  }
  at::Tensor operator[](size_t) const { return {}; }
  size_t size() const { return 0; }
};

}  // namespace detail
}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

#define WEFT_ABSENT(name)                           \
  template <class... Args>                          \
  inline c10::detail::Absent name(const Args&...) { \
    return c10::detail::Absent(#name);              \
  }
#include "absent_functions.h"
#undef WEFT_ABSENT

}  // namespace over_weft
}  // namespace at
