// Whether two tensors are the same, element by element.
#include <algorithm>

#include "native_compare.h"
#include "ops/support.h"

namespace weft::native {

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  DType compute = compute_type(promote(self.dtype(), other.dtype()));
  if (compute == DType::Bool) compute = DType::U8;  // which makes their bytes 0 or 1
  const Tensor a = in_order(as_dtype(self, compute)), b = in_order(as_dtype(other, compute));
  bool same_values = true;
  dispatch(compute, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_computed<T>) {
      same_values =
          std::equal(a.data_as<const T>(), a.data_as<const T>() + a.numel(), b.data_as<const T>());
    }
  });
  return same_values;
}

}  // namespace weft::native
