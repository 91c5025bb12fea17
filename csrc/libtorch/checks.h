// at::TensorArg and its checks: what kernels expect of their arguments.
#pragma once

#include "tensor.h"

namespace at {
inline namespace over_weft {

using CheckedFrom = const char*;

// An argument by its name and place.
struct TensorArg {
  Tensor tensor;
  const char* name;
  int pos;

  TensorArg(Tensor given, const char* name_of, int place)
      : tensor(std::move(given)), name(name_of), pos(place) {}
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
  friend std::ostream& operator<<(std::ostream& out, const TensorArg& arg) {
    return out << "argument #" << arg.pos << " '" << arg.name << "'";
  }
};

inline void checkDefined(CheckedFrom c, const TensorArg& t) {
  TORCH_CHECK(t->defined(), c, ": expected a tensor for ", t, ", got an undefined one");
}
inline void checkDim(CheckedFrom c, const TensorArg& t, int64_t dim) {
  TORCH_CHECK(t->dim() == dim, c, ": expected ", dim, " dims of ", t, ", got ", t->dim());
}
inline void checkDimRange(CheckedFrom c, const TensorArg& t, int64_t first, int64_t end) {
  TORCH_CHECK(t->dim() >= first && t->dim() < end, c, ": expected ", first, " to ", end - 1,
              " dims of ", t, ", got ", t->dim());
}
inline void checkContiguous(CheckedFrom c, const TensorArg& t) {
  TORCH_CHECK(t->is_contiguous(), c, ": expected ", t, " to be contiguous, got strides ",
              t->strides());
}
inline void checkSize(CheckedFrom c, const TensorArg& t, IntArrayRef sizes) {
  TORCH_CHECK(t->sizes() == sizes, c, ": expected sizes ", sizes, " of ", t, ", got ", t->sizes());
}
inline void checkSize(CheckedFrom c, const TensorArg& t, int64_t dim, int64_t size) {
  TORCH_CHECK(t->size(dim) == size, c, ": expected size ", size, " of dim ", dim, " of ", t,
              ", got ", t->size(dim));
}
inline void checkNumel(CheckedFrom c, const TensorArg& t, int64_t numel) {
  TORCH_CHECK(t->numel() == numel, c, ": expected ", numel, " elements of ", t, ", got ",
              t->numel());
}
inline void checkScalarTypes(CheckedFrom c, const TensorArg& t, ArrayRef<ScalarType> types) {
  TORCH_CHECK(std::find(types.begin(), types.end(), t->scalar_type()) != types.end(), c,
              ": expected one of the dtypes ", types, " of ", t, ", got ", t->scalar_type());
}
inline void checkScalarType(CheckedFrom c, const TensorArg& t, ScalarType type) {
  checkScalarTypes(c, t, type);
}
inline void checkDeviceType(CheckedFrom c, TensorList tensors, DeviceType type) {
  for (const Tensor& each : tensors) {
    TORCH_CHECK(each.device().type() == type, c, ": expected a tensor on ", type, ", got one on ",
                each.device());
  }
}

// The same of two arguments, and of all of a list, those that are undefined passed over.
#define WEFT_TORCH_CHECK_SAME(name, all, what, member)                                         \
  inline void name(CheckedFrom c, const TensorArg& a, const TensorArg& b) {                    \
    TORCH_CHECK(a->member() == b->member(), c, ": expected equal " what " of ", a, " and ", b, \
                ", got ", a->member(), " and ", b->member());                                  \
  }                                                                                            \
  inline void all(CheckedFrom c, ArrayRef<TensorArg> tensors) {                                \
    const TensorArg* first = nullptr;                                                          \
    for (const TensorArg& each : tensors) {                                                    \
      if (!each->defined()) continue;                                                          \
      if (first) name(c, *first, each);                                                        \
      first = &each;                                                                           \
    }                                                                                          \
  }
WEFT_TORCH_CHECK_SAME(checkSameSize, checkAllSameSize, "sizes", sizes)
WEFT_TORCH_CHECK_SAME(checkSameType, checkAllSameType, "dtypes", scalar_type)
WEFT_TORCH_CHECK_SAME(checkSameNumel, checkAllSameNumel, "numbers of elements", numel)
WEFT_TORCH_CHECK_SAME(checkSameDim, checkAllSameDim, "numbers of dims", dim)
WEFT_TORCH_CHECK_SAME(checkSameGPU, checkAllSameGPU, "devices", device)
#undef WEFT_TORCH_CHECK_SAME
inline void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& each : tensors) {
    if (each->defined()) checkContiguous(c, each);
  }
}
inline void checkAllDefined(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& each : tensors) checkDefined(c, each);
}

}  // namespace over_weft
}  // namespace at
