// For the tests of the tile driver: plain C++ kernels and programs, tensors of random layout, and
// their elements in logical order.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ops/tile.h"

namespace weft::tile::testing {

template <class Fn, class T>
void call_kernel(void* const* operands, int64_t n, const ScalarSlot* scalars) {
  Fn{}.template operator()<T>(operands, n, scalars);
}

// The set of a lambda `[]<class T>(void* const* p, int64_t n, const ScalarSlot* s)` for dtypes T...
template <class... T, class Fn>
KernelSet kernels(Fn) {
  KernelSet set{};
  for (auto& row : set.table) {
    ((row[static_cast<int>(dtype_of<T>::value)] = call_kernel<Fn, T>), ...);
  }
  return set;
}

template <class T>
T scalar_at(const ScalarSlot* scalars, int slot) {
  return *reinterpret_cast<const T*>(scalars[slot].bytes);
}

// All elements in row-major order of the indices.
inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> out;
  const Layout& layout = tensor.layout();
  std::vector<int64_t> index(layout.sizes.size(), 0);
  const auto item = static_cast<int64_t>(tensor.item_size());
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    int64_t at = layout.offset;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * layout.strides[d];
    const char* element = static_cast<const char*>(tensor.storage()->data()) + at * item;
    out.push_back(dispatch(tensor.dtype(), [&]<class T>(std::type_identity<T>) -> double {
      const T value = *reinterpret_cast<const T*>(element);
      if constexpr (requires { value.real(); }) {
        return static_cast<double>(value.real());
      } else if constexpr (is_small_float<T>) {
        return static_cast<float>(value);
      } else {
        return static_cast<double>(value);
      }
    }));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < layout.sizes[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

// The tensor broadcast to the shape, as a view.
inline Tensor expand(const Tensor& tensor, IntList shape) {
  Layout layout = tensor.layout();
  Dims strides(shape.size());
  const size_t lead = shape.size() - layout.sizes.size();
  for (size_t d = lead; d < shape.size(); ++d) {
    if (layout.sizes[d - lead] != 1) strides[d] = layout.strides[d - lead];
  }
  layout.sizes.assign(shape);
  layout.strides = strides;
  return tensor.with_layout(layout);
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }

  Dims shape(size_t most_dims, int64_t most_elements) {
    Dims sizes(static_cast<size_t>(below(static_cast<int64_t>(most_dims) + 1)));
    int64_t numel = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t room = std::max<int64_t>(1, most_elements / numel);
      const int64_t kinds[] = {1, 2, 3, 7, 20, 33, 130, 700, 3000};
      sizes[d] = std::min(kinds[below(9)], room);
      numel *= sizes[d];
    }
    return sizes;
  }

  // Small integers, so that every sum is exact; any order of dimensions, gaps, negative strides.
  Tensor tensor(IntList shape, DType dtype, bool plain = false) {
    Dims strides(shape.size());
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
    if (!plain && below(2)) std::shuffle(order.begin(), order.end(), engine_);
    int64_t span = !plain && below(3) == 0 ? 2 : 1, offset = plain ? 0 : below(3);
    for (size_t d : order) {
      strides[d] = span;
      span *= shape[d] + (!plain && below(4) == 0 ? 1 : 0);
      if (!plain && below(4) == 0 && shape[d] > 0) {
        offset += (shape[d] - 1) * strides[d];
        strides[d] = -strides[d];
      }
    }
    auto storage = Storage::allocate(static_cast<size_t>(span + offset + 4) * item_size(dtype));
    fill_random(storage->data(), static_cast<int64_t>(storage->nbytes() / item_size(dtype)), dtype);
    return Tensor(storage, Layout{Dims(shape), strides, offset}, dtype);
  }

  // A tensor that broadcasts to the shape.
  Tensor operand(IntList shape, DType dtype) {
    Dims sizes(shape);
    for (int64_t& size : sizes) {
      if (below(5) == 0) size = 1;
    }
    size_t lead = 0;
    while (lead < sizes.size() && below(6) == 0) ++lead;
    return tensor(IntList(sizes).subspan(lead), dtype, below(3) == 0);
  }

 private:
  void fill_random(void* data, int64_t count, DType dtype) {
    dispatch(dtype, [&]<class T>(std::type_identity<T>) {
      for (int64_t i = 0; i < count; ++i) {
        const auto value = static_cast<float>(below(9));
        if constexpr (requires { typename T::value_type; }) {
          static_cast<T*>(data)[i] = T(static_cast<typename T::value_type>(value));
        } else {
          static_cast<T*>(data)[i] = T(value);
        }
      }
    });
  }

  std::mt19937 engine_;
};

}  // namespace weft::tile::testing
