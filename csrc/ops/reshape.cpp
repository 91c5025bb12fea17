// Other sizes for the same elements: reshape and flatten.
#include "native_views.h"
#include "ops/support.h"
#include "ops/views.h"
#include "ops_copying.h"
#include "ops_views.h"

namespace weft::native {

// Composite: a view where the strides allow one, else a view of a copy.
Tensor reshape(const Tensor& self, IntList shape) {
  const Dims sizes = views::infer_size("reshape", shape, self.numel());
  if (views::view_strides(self.layout(), sizes)) return ops::view(self, sizes);
  return ops::view(ops::clone(self, 0), sizes);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  start_dim = wrap_dim("flatten", start_dim, self.dim());
  end_dim = wrap_dim("flatten", end_dim, self.dim());
  WEFT_CHECK(start_dim <= end_dim, "flatten: expected start_dim <= end_dim, got ", start_dim,
             " and ", end_dim);
  if (self.dim() == 0) return ops::reshape(self, Dims{1});
  if (start_dim == end_dim) return self;
  Dims sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= start_dim && d <= end_dim) {
      joined *= self.sizes()[d];
      if (d == end_dim) sizes.push_back(joined);
    } else {
      sizes.push_back(self.sizes()[d]);
    }
  }
  return ops::reshape(self, sizes);
}

}  // namespace weft::native
