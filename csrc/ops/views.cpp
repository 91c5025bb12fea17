#include "ops/views.h"

#include "core/error.h"

namespace weft::views {
namespace {

// wrap_dim without the courtesy to 0-d tensors: for operators that need a dimension to cut.
int64_t wrap_real_dim(const char* op, int64_t dim, int64_t ndim) {
  WEFT_CHECK_INDEX(ndim > 0, op, ": expected at least 1 dim, got a 0-d tensor");
  return wrap_dim(op, dim, ndim);
}

void drop_dim(Layout& layout, size_t dim) {
  layout.sizes.erase(dim);
  layout.strides.erase(dim);
}

// Without those dimensions of size 1 that are named.
template <class Named>
Layout without_ones(const Layout& self, const Named& named) {
  Layout result{{}, {}, self.offset};
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (self.sizes[i] == 1 && named(i)) continue;
    result.sizes.push_back(self.sizes[i]);
    result.strides.push_back(self.strides[i]);
  }
  return result;
}

}  // namespace

Dims infer_size(const char* op, IntList sizes, int64_t numel) {
  Dims result(sizes);
  int64_t known = 1;
  std::optional<size_t> hole;
  bool fits = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      WEFT_CHECK(!hole, op, ": expected at most one -1 in the shape, got ", AsTuple{sizes});
      hole = i;
      continue;
    }
    WEFT_CHECK(sizes[i] >= 0, op, ": expected sizes >= 0 or one -1, got shape ", AsTuple{sizes});
    fits = !__builtin_mul_overflow(known, sizes[i], &known) && fits;
  }
  if (hole) {
    WEFT_CHECK(numel != 0 || known != 0, op,
               ": expected a shape that leaves no choice for -1, got shape ", AsTuple{sizes},
               " for 0 elements");
    fits = fits && known != 0 && numel % known == 0;
    if (fits) result[*hole] = numel / known;
  } else {
    fits = fits && known == numel;
  }
  WEFT_CHECK(fits, op, ": expected a size of ", numel, " elements, got shape ", AsTuple{sizes});
  return result;
}

std::optional<Dims> view_strides(const Layout& layout, IntList sizes) {
  Dims strides(sizes.size());
  if (layout.numel() == 0) {
    // Nothing is reached: keep the strides where the shape is the same, else any will do.
    return same(layout.sizes, sizes) ? layout.strides : contiguous_strides(sizes);
  }
  // From the last dimension on, gather the longest run of old dimensions that lies like one
  // dimension, and cut new dimensions out of it; a new dimension may not cross two runs.
  int64_t next = static_cast<int64_t>(sizes.size()) - 1;
  int64_t run_stride = layout.dim() == 0 ? 1 : layout.strides.back();
  int64_t run = 1;
  for (int64_t d = layout.dim() - 1; d >= 0; --d) {
    run *= layout.sizes[d];
    const bool run_ends =
        d == 0 || (layout.sizes[d - 1] != 1 && layout.strides[d - 1] != run * run_stride);
    if (!run_ends) continue;
    int64_t covered = 1;
    while (next >= 0 && (covered < run || sizes[next] == 1)) {
      strides[next] = covered * run_stride;
      covered *= sizes[next];
      --next;
    }
    if (covered != run) return std::nullopt;
    if (d > 0) {
      run = 1;
      run_stride = layout.strides[d - 1];
    }
  }
  for (; next >= 0; --next) strides[next] = 1;  // a 0-d tensor seen as (1, 1)
  return strides;
}

Layout view(const Layout& self, IntList size) {
  Dims sizes = infer_size("view", size, self.numel());
  auto strides = view_strides(self, sizes);
  WEFT_CHECK(strides, "view: expected strides that allow shape ", AsTuple{sizes}, ", got shape ",
             AsTuple{self.sizes}, " with strides ", AsTuple{self.strides},
             "; reshape copies where needed");
  return {std::move(sizes), std::move(*strides), self.offset};
}

Layout transpose(const Layout& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim("transpose", dim0, self.dim());
  dim1 = wrap_dim("transpose", dim1, self.dim());
  Layout result = self;
  if (dim0 == dim1) return result;
  std::swap(result.sizes[dim0], result.sizes[dim1]);
  std::swap(result.strides[dim0], result.strides[dim1]);
  return result;
}

Layout t(const Layout& self) {
  WEFT_CHECK(self.dim() <= 2, "t: expected at most 2 dims, got ", self.dim());
  return self.dim() < 2 ? self : transpose(self, 0, 1);
}

Layout permute(const Layout& self, IntList dims) {
  WEFT_CHECK(static_cast<int64_t>(dims.size()) == self.dim(), "permute: expected ", self.dim(),
             " dims, got ", AsTuple{dims});
  const Dims order = wrap_dims("permute", dims, self.dim());
  Layout result{Dims(order.size()), Dims(order.size()), self.offset};
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = self.sizes[order[i]];
    result.strides[i] = self.strides[order[i]];
  }
  return result;
}

Layout movedim(const Layout& self, IntList source, IntList destination) {
  WEFT_CHECK(source.size() == destination.size(),
             "movedim: expected as many destinations as sources, got ", AsTuple{source}, " and ",
             AsTuple{destination});
  const Dims from = wrap_dims("movedim", source, self.dim());
  const Dims to = wrap_dims("movedim", destination, self.dim());
  if (self.dim() == 0) return self;
  const auto ndim = static_cast<size_t>(self.dim());
  Dims order(ndim, -1);
  Dims moved(ndim, 0);
  for (size_t i = 0; i < from.size(); ++i) {
    order[to[i]] = from[i];
    moved[from[i]] = 1;
  }
  int64_t next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (moved[next]) ++next;
    place = next++;
  }
  return permute(self, order);
}

Layout movedim(const Layout& self, int64_t source, int64_t destination) {
  return movedim(self, IntList(&source, 1), IntList(&destination, 1));
}

Layout squeeze(const Layout& self) {
  return without_ones(self, [](int64_t) { return true; });
}

Layout squeeze(const Layout& self, int64_t dim) {
  dim = wrap_dim("squeeze", dim, self.dim());
  return without_ones(self, [dim](int64_t i) { return i == dim; });
}

Layout squeeze(const Layout& self, IntList dims) {
  const Dims wrapped = wrap_dims("squeeze", dims, self.dim());
  return without_ones(self, [&](int64_t i) {
    return std::find(wrapped.begin(), wrapped.end(), i) != wrapped.end();
  });
}

Layout unsqueeze(const Layout& self, int64_t dim) {
  dim = wrap_dim("unsqueeze", dim, self.dim() + 1);
  Layout result = self;
  const int64_t stride = dim < self.dim() ? self.sizes[dim] * self.strides[dim] : 1;
  result.sizes.insert(dim, 1);
  result.strides.insert(dim, stride);
  return result;
}

Layout select(const Layout& self, int64_t dim, int64_t index) {
  dim = wrap_real_dim("select", dim, self.dim());
  const int64_t size = self.sizes[dim];
  WEFT_CHECK_INDEX(index >= -size && index < size, "select: expected index in [", -size, ", ",
                   size - 1, "] for dim ", dim, ", got ", index);
  Layout result = self;
  result.offset += (index < 0 ? index + size : index) * self.strides[dim];
  drop_dim(result, dim);
  return result;
}

Layout slice(const Layout& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  dim = wrap_real_dim("slice", dim, self.dim());
  WEFT_CHECK_VALUE(step != 0, "slice: expected a step other than 0, got 0");
  const int64_t size = self.sizes[dim];
  // Python's rule: a bound counts from the end when negative, then is clamped to where a walk in
  // the direction of the step may start or stop.
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? size : size - 1;
  auto bound = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, low, high);
  };
  const int64_t first = bound(start, step > 0 ? low : high);
  const int64_t last = bound(end, step > 0 ? high : low);
  // The distance fits; the rounding up is written so that a huge step cannot overflow.
  const int64_t distance = step > 0 ? last - first : first - last;
  const uint64_t stride = step > 0 ? uint64_t(step) : uint64_t{0} - uint64_t(step);
  const int64_t length =
      distance <= 0 ? 0 : 1 + static_cast<int64_t>(uint64_t(distance - 1) / stride);
  Layout result = self;
  result.sizes[dim] = length;
  if (length > 0 || step > 0) result.offset += first * self.strides[dim];
  if (length > 1) result.strides[dim] *= step;
  return result;
}

Layout narrow(const Layout& self, int64_t dim, int64_t start, int64_t length) {
  dim = wrap_real_dim("narrow", dim, self.dim());
  const int64_t size = self.sizes[dim];
  WEFT_CHECK(length >= 0, "narrow: expected length >= 0, got ", length);
  WEFT_CHECK_INDEX(start >= -size && start <= size, "narrow: expected start in [", -size, ", ",
                   size, "] for dim ", dim, ", got ", start);
  if (start < 0) start += size;
  WEFT_CHECK(length <= size - start, "narrow: expected start + length <= ", size, ", got start ",
             start, " and length ", length);
  Layout result = self;
  result.sizes[dim] = length;
  result.offset += start * self.strides[dim];
  return result;
}

Layout expand(const Layout& self, IntList size, bool) {
  const auto ndim = static_cast<int64_t>(size.size());
  const int64_t added = ndim - self.dim();
  WEFT_CHECK(added >= 0, "expand: expected at least ", self.dim(), " sizes, got ", AsTuple{size});
  Layout result{Dims(size), Dims(size.size()), self.offset};
  for (int64_t i = ndim - 1; i >= 0; --i) {
    const bool is_new = i < added;
    const int64_t own = is_new ? 1 : self.sizes[i - added];
    if (size[i] == -1 && !is_new) result.sizes[i] = own;
    WEFT_CHECK(result.sizes[i] >= 0 && (own == result.sizes[i] || own == 1),
               "expand: expected sizes that shape ", AsTuple{self.sizes}, " expands to, got ",
               AsTuple{size});
    const int64_t span = i + 1 < ndim ? result.sizes[i + 1] * result.strides[i + 1] : 0;
    result.strides[i] = own != result.sizes[i] ? 0 : is_new ? span : self.strides[i - added];
  }
  checked_numel("expand", result.sizes);
  return result;
}

Layout as_strided(const Layout& self, IntList size, IntList stride,
                  std::optional<int64_t> storage_offset) {
  WEFT_CHECK(size.size() == stride.size(), "as_strided: expected as many strides as sizes, got ",
             AsTuple{size}, " and ", AsTuple{stride});
  checked_numel("as_strided", size);
  const int64_t offset = storage_offset.value_or(self.offset);
  WEFT_CHECK(offset >= 0, "as_strided: expected storage_offset >= 0, got ", offset);
  return {Dims(size), Dims(stride), offset};
}

Layout diagonal(const Layout& self, int64_t offset, int64_t dim1, int64_t dim2) {
  WEFT_CHECK_INDEX(self.dim() >= 2, "diagonal: expected at least 2 dims, got ", self.dim());
  dim1 = wrap_dim("diagonal", dim1, self.dim());
  dim2 = wrap_dim("diagonal", dim2, self.dim());
  WEFT_CHECK(dim1 != dim2, "diagonal: expected two different dims, got ", dim1, " twice");
  // An offset moves the start along dim2 when positive, along dim1 when negative.
  const int64_t rows = self.sizes[dim1], columns = self.sizes[dim2];
  const int64_t length = offset >= 0 ? (offset < columns ? std::min(rows, columns - offset) : 0)
                                     : (offset > -rows ? std::min(rows + offset, columns) : 0);
  const int64_t stride = self.strides[dim1] + self.strides[dim2];
  Layout result = self;
  if (length > 0) {
    result.offset += offset >= 0 ? offset * self.strides[dim2] : -offset * self.strides[dim1];
  }
  drop_dim(result, std::max(dim1, dim2));
  drop_dim(result, std::min(dim1, dim2));
  result.sizes.push_back(length);
  result.strides.push_back(stride);
  return result;
}

Layout unfold(const Layout& self, int64_t dimension, int64_t size, int64_t step) {
  dimension = wrap_dim("unfold", dimension, self.dim());
  const int64_t own = self.dim() == 0 ? 1 : self.sizes[dimension];
  const int64_t stride = self.dim() == 0 ? 1 : self.strides[dimension];
  WEFT_CHECK(size >= 0 && size <= own, "unfold: expected size in [0, ", own, "] for dim ",
             dimension, ", got ", size);
  WEFT_CHECK(step > 0, "unfold: expected step > 0, got ", step);
  Layout result = self;
  const int64_t windows = (own - size) / step + 1;
  if (self.dim() > 0) {
    result.sizes[dimension] = windows;
    if (windows > 1) result.strides[dimension] = stride * step;
  }
  result.sizes.push_back(size);
  result.strides.push_back(stride);
  return result;
}

Layout unflatten(const Layout& self, int64_t dim, IntList sizes) {
  dim = wrap_real_dim("unflatten", dim, self.dim());
  WEFT_CHECK(!sizes.empty(), "unflatten: expected at least 1 size, got ()");
  const Dims split = infer_size("unflatten", sizes, self.sizes[dim]);
  Layout result = self;
  drop_dim(result, static_cast<size_t>(dim));
  int64_t stride = self.strides[dim];
  for (size_t i = split.size(); i-- > 0; stride *= std::max<int64_t>(split[i], 1)) {
    result.sizes.insert(dim, split[i]);
    result.strides.insert(dim, stride);
  }
  return result;
}

Layout detach(const Layout& self) { return self; }
Layout alias(const Layout& self) { return self; }

}  // namespace weft::views
