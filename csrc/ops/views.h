// Views: pure layout algebra. Each function maps a layout to the layout of a view of it; none knows
// memory or dtype. Errors name the operator, in the grammar of core/error.h.
#pragma once

#include <optional>

#include "core/layout.h"

namespace weft::views {

// A size list with at most one -1 filled in, so that it has `numel` elements.
// Raises RuntimeError "<op>: expected a size of 6 elements, got shape (4,)".
Dims infer_size(const char* op, IntList sizes, int64_t numel);

// The strides that show `layout` as `sizes` (of equally many elements), where there are any.
std::optional<Dims> view_strides(const Layout& layout, IntList sizes);

Layout view(const Layout& self, IntList size);
Layout transpose(const Layout& self, int64_t dim0, int64_t dim1);
Layout t(const Layout& self);
Layout permute(const Layout& self, IntList dims);
Layout movedim(const Layout& self, IntList source, IntList destination);
Layout movedim(const Layout& self, int64_t source, int64_t destination);
Layout squeeze(const Layout& self);
Layout squeeze(const Layout& self, int64_t dim);
Layout squeeze(const Layout& self, IntList dims);
Layout unsqueeze(const Layout& self, int64_t dim);
Layout select(const Layout& self, int64_t dim, int64_t index);
// Python's slices, negative steps included (PyTorch refuses those).
Layout slice(const Layout& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step);
Layout narrow(const Layout& self, int64_t dim, int64_t start, int64_t length);
Layout expand(const Layout& self, IntList size, bool implicit = false);
Layout as_strided(const Layout& self, IntList size, IntList stride,
                  std::optional<int64_t> storage_offset);
Layout diagonal(const Layout& self, int64_t offset, int64_t dim1, int64_t dim2);
Layout unfold(const Layout& self, int64_t dimension, int64_t size, int64_t step);
Layout unflatten(const Layout& self, int64_t dim, IntList sizes);
Layout detach(const Layout& self);
Layout alias(const Layout& self);

}  // namespace weft::views
