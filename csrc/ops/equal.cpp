// Whether two tensors are the same, element by element.
#include <algorithm>
#include <atomic>

#include "core/thread_pool.h"
#include "native_compare.h"
#include "ops/support.h"

namespace weft::native {

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  DType compute = compute_type(promote(self.dtype(), other.dtype()));
  if (compute == DType::Bool) compute = DType::U8;  // which makes their bytes 0 or 1
  const Tensor a = in_order(as_dtype(self, compute)), b = in_order(as_dtype(other, compute));
  std::atomic<bool> same_values{true};
  constexpr int64_t kBlock = 1024;
  dispatch(compute, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_computed<T>) {
      const auto *x = a.data_as<const T>(), *y = b.data_as<const T>();
      parallel_for(a.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
        while (begin < end && same_values.load(std::memory_order_relaxed)) {
          const int64_t stop = std::min(end, begin + kBlock);
          bool same = true;  // no early end, which vectors have not
          for (; begin < stop; ++begin) same &= x[begin] == y[begin];
          if (!same) same_values.store(false, std::memory_order_relaxed);
        }
      });
    }
  });
  return same_values;
}

}  // namespace weft::native
