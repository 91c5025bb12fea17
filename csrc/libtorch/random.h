// Random tensors from a generator that is said: of those that weft.h has, the default one.
#pragma once

#include "factories.h"

namespace at {
inline namespace over_weft {
namespace detail {

inline void expect_default(const std::optional<Generator>& generator) {
  if (generator) c10::detail::box(*generator);
}

}  // namespace detail

// X(name, parameters, arguments)
#define X(name, parameters, ...)                                                             \
  inline Tensor name(WEFT_TORCH_GIVEN parameters, const std::optional<Generator>& generator, \
                     const TensorOptions& options = {}) {                                    \
    detail::expect_default(generator);                                                       \
    return name(__VA_ARGS__, options);                                                       \
  }
#define WEFT_TORCH_GIVEN(...) __VA_ARGS__
X(rand, (IntArrayRef size), size)
X(randn, (IntArrayRef size), size)
X(randint, (int64_t high, IntArrayRef size), high, size)
X(randint, (int64_t low, int64_t high, IntArrayRef size), low, high, size)
X(randperm, (int64_t n), n)
#undef WEFT_TORCH_GIVEN
#undef X

}  // namespace over_weft
}  // namespace at
