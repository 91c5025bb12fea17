// Tensors for the C++ tests: made from lists, read back as lists.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "ops/support.h"

namespace weft::samples {

template <class T>
Tensor tensor_of(Dims sizes, const std::vector<T>& values) {
  Tensor tensor = Tensor::empty(sizes, dtype_of<T>::value);
  std::copy(values.begin(), values.end(), tensor.data_as<T>());
  return tensor;
}

// 0, 1, 2, ... in the given sizes.
template <class T>
Tensor counting(Dims sizes, T first = T(0)) {
  Tensor tensor = Tensor::empty(sizes, dtype_of<T>::value);
  std::iota(tensor.data_as<T>(), tensor.data_as<T>() + tensor.numel(), first);
  return tensor;
}

// Repeatable small numbers in [-2, 2), eighths, so that short sums are exact in float32.
template <class T>
Tensor noise(Dims sizes, uint32_t seed = 1) {
  Tensor tensor = Tensor::empty(sizes, dtype_of<T>::value);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    tensor.data_as<T>()[i] = static_cast<T>(static_cast<int>(state >> 27) - 16) / static_cast<T>(8);
  }
  return tensor;
}

inline Tensor viewed(const Tensor& tensor, Layout layout) {
  return tensor.with_layout(std::move(layout));
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const Tensor dense = native::in_order(tensor);
  return std::vector<T>(dense.data_as<const T>(), dense.data_as<const T>() + dense.numel());
}

// Largest difference of two float tensors of one shape; infinity when shapes differ.
template <class T>
double distance(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  const std::vector<T> left = values<T>(a), right = values<T>(b);
  double worst = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(left[i] - right[i])));
  }
  return worst;
}

}  // namespace weft::samples
