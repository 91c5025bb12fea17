#include "ops/view_dtype.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "native_clamp_where.h"
#include "native_views.h"
#include "ops/argument_validation.h"
#include "ops_copying.h"
#include "ops_views.h"

namespace weft::views {
namespace {

// The layout in elements of `to` bytes of what a layout in elements of `from` bytes shows.
Layout layout_as(const char* op, Layout layout, int64_t from, int64_t to) {
  if (from == to) return layout;
  const size_t rank = layout.sizes.size();
  WEFT_CHECK(rank > 0, op, ": expected dims or a dtype of the same size, got a 0-d tensor");
  int64_t& last = layout.sizes[rank - 1];
  WEFT_CHECK(layout.strides[rank - 1] == 1 || last == 1, op,
             ": expected stride 1 in the last dim, got ", layout.strides[rank - 1]);
  layout.strides[rank - 1] = 1;
  if (from > to) {
    const int64_t ratio = from / to;
    WEFT_CHECK(!__builtin_mul_overflow(last, ratio, &last), op, ": expected fewer elements");
    for (size_t i = 0; i + 1 < rank; ++i) layout.strides[i] *= ratio;
    layout.offset *= ratio;
    return layout;
  }
  const int64_t ratio = to / from;
  auto divide = [&](int64_t& value, const char* what) {
    WEFT_CHECK(value % ratio == 0, op, ": expected ", what, " divisible by ", ratio, ", got ",
               value);
    value /= ratio;
  };
  divide(last, "a size of the last dim");
  divide(layout.offset, "a storage offset");
  for (size_t i = 0; i + 1 < rank; ++i) {
    if (layout.sizes[i] != 1) divide(layout.strides[i], "strides");
  }
  return layout;
}

// `layout` over the memory of `self`, checked to lie inside of it.
Tensor over(const char* op, const Tensor& self, DType dtype, Layout layout) {
  const size_t alignment = std::min<size_t>(item_size(dtype), 8);
  const auto address = reinterpret_cast<uintptr_t>(self.storage()->address());
  WEFT_CHECK(address % alignment == 0, op, ": expected memory aligned to ", alignment,
             " bytes for ", dtype, ", got address ", self.storage()->address());
  const Tensor whole = self.alias(Layout::contiguous(Dims{0}), dtype);
  return whole.with_layout(std::move(layout), op);
}

}  // namespace

Layout parts_of_complex(const Layout& layout) {
  Layout parts = layout;
  for (int64_t& stride : parts.strides) stride *= 2;
  parts.offset *= 2;
  parts.sizes.push_back(2);
  parts.strides.push_back(1);
  return parts;
}

Tensor view_as_real(const Tensor& self) {
  constexpr const char* op = "view_as_real";
  WEFT_CHECK(is_complex(self.dtype()), op, ": expected a complex tensor, got ", self.dtype());
  return over(op, self, real_of(self.dtype()), parts_of_complex(self.layout()));
}

Tensor view_as_complex(const Tensor& self) {
  constexpr const char* op = "view_as_complex";
  const DType dtype = complex_of(self.dtype());
  WEFT_CHECK(self.dtype() == real_of(dtype), op, ": expected float16, float32 or float64, got ",
             self.dtype());
  Layout layout = self.layout();
  WEFT_CHECK(!layout.sizes.empty() && layout.sizes.back() == 2, op,
             ": expected a last dimension of size 2, got shape ", AsTuple{layout.sizes});
  WEFT_CHECK(layout.strides.back() == 1 || self.numel() == 0, op,
             ": expected stride 1 in the last dimension, got ", layout.strides.back());
  layout.sizes.erase(layout.sizes.size() - 1);
  layout.strides.erase(layout.strides.size() - 1);
  WEFT_CHECK(layout.offset % 2 == 0, op, ": expected an even storage offset, got ", layout.offset);
  layout.offset /= 2;
  for (size_t i = 0; i < layout.strides.size(); ++i) {
    WEFT_CHECK(layout.strides[i] % 2 == 0 || layout.sizes[i] <= 1, op,
               ": expected even strides, got ", layout.strides[i]);
    layout.strides[i] /= 2;
  }
  return over(op, self, dtype, std::move(layout));
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  constexpr const char* op = "view";
  return over(op, self, dtype,
              layout_as(op, self.layout(), static_cast<int64_t>(self.item_size()),
                        static_cast<int64_t>(item_size(dtype))));
}

}  // namespace weft::views

namespace weft::native {

Tensor imag(const Tensor& self) {
  WEFT_CHECK(is_complex(self.dtype()), "imag: expected a complex tensor, got ", self.dtype());
  return ops::select(ops::view_as_real(self), -1, 1);
}

Tensor value_as(const Tensor& value, DType dtype) {
  if (value.device().type != DeviceType::Meta) {
    validation::value_fits("masked_fill", Tensor::scalar(0, dtype), {}, value.item());
  }
  return ops::_to_copy(value, dtype);
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  if (dtype == self.dtype()) return ops::alias(self);
  const Tensor checked = views::view_dtype(self, dtype);  // its errors come first
  const bool to_parts = is_complex(self.dtype()) && dtype == real_of(self.dtype());
  const bool from_parts = is_complex(dtype) && self.dtype() == real_of(dtype);
  if (to_parts) return ops::view(ops::view_as_real(self), checked.sizes());
  if (!from_parts) return ops::_view_dtype(self, dtype);
  Dims sizes = checked.sizes();
  sizes.push_back(2);
  return ops::view_as_complex(ops::view(self, sizes));
}

}  // namespace weft::native
