// at:: functions that the table has no operator for: said in terms of those it has.
#pragma once

#include "factories.h"

namespace at {
inline namespace over_weft {

inline Tensor complex(const Tensor& real, const Tensor& imag) {
  return view_as_complex(stack({real, imag}, -1));
}
inline Tensor polar(const Tensor& abs, const Tensor& angle) {
  return complex(abs * angle.cos(), abs * angle.sin());
}

inline Tensor concat(TensorList tensors, int64_t dim = 0) { return cat(tensors, dim); }
inline Tensor concatenate(TensorList tensors, int64_t dim = 0) { return cat(tensors, dim); }

inline Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
inline Tensor atleast_2d(const Tensor& self) {
  return self.dim() < 2 ? atleast_1d(self).unsqueeze(0) : self;
}
inline Tensor atleast_3d(const Tensor& self) {
  return self.dim() < 3 ? atleast_2d(self).unsqueeze(-1) : self;
}
inline Tensor vstack(TensorList tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& each : tensors) rows.push_back(atleast_2d(each));
  return cat(rows, 0);
}
inline Tensor hstack(TensorList tensors) {
  std::vector<Tensor> columns;
  for (const Tensor& each : tensors) columns.push_back(atleast_1d(each));
  return cat(columns, !columns.empty() && columns[0].dim() == 1 ? 0 : 1);
}
inline Tensor dstack(TensorList tensors) {
  std::vector<Tensor> layers;
  for (const Tensor& each : tensors) layers.push_back(atleast_3d(each));
  return cat(layers, 2);
}

// The tensors as views of one shape.
inline std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  std::vector<int64_t> shape;
  for (const Tensor& each : tensors) {
    const IntArrayRef sizes = each.sizes();
    if (sizes.size() > shape.size()) shape.insert(shape.begin(), sizes.size() - shape.size(), 1);
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t& size = shape[shape.size() - sizes.size() + i];
      TORCH_CHECK(sizes[i] == 1 || size == 1 || sizes[i] == size,
                  "broadcast_tensors: expected sizes that broadcast, got ", sizes[i], " and ",
                  size);
      if (size == 1) size = sizes[i];
    }
  }
  std::vector<Tensor> views;
  for (const Tensor& each : tensors) views.push_back(each.expand(shape));
  return views;
}

// Grids of the vectors' coordinates, in the order "ij" or "xy" of the first two.
inline std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij") {
  TORCH_CHECK(indexing == "ij" || indexing == "xy", "meshgrid: expected 'ij' or 'xy', got '",
              indexing, "'");
  std::vector<Tensor> parts = tensors.vec();
  const bool swaps = indexing == "xy" && parts.size() > 1;
  if (swaps) std::swap(parts[0], parts[1]);
  std::vector<int64_t> shape;
  for (const Tensor& each : parts) shape.push_back(each.numel());
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<int64_t> sizes(parts.size(), 1);
    sizes[i] = shape[i];
    parts[i] = parts[i].reshape(sizes).expand(shape);
  }
  if (swaps) std::swap(parts[0], parts[1]);
  return parts;
}

inline bool is_nonzero(const Tensor& self) { return self.ne(0).item<bool>(); }
inline ScalarType promote_types(ScalarType a, ScalarType b) {
  return (empty({1}, TensorOptions(a)).zero_() + empty({1}, TensorOptions(b)).zero_())
      .scalar_type();
}
inline ScalarType result_type(const Tensor& a, const Tensor& b) { return (a + b).scalar_type(); }

}  // namespace over_weft
}  // namespace at
