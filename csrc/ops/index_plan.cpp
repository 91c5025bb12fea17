#include "ops/index_plan.h"

#include <atomic>

#include "core/thread_pool.h"
#include "core/warning.h"
#include "native_indexing.h"

namespace weft::native {
namespace {

constexpr int64_t kIndexGrain = int64_t{1} << 15;  // indices worth a thread

}  // namespace

std::vector<int64_t> element_offsets(IntList sizes, IntList strides) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  if (count == 0) return offsets;
  // Each dimension repeats what the inner ones gave, shifted; filled from the back.
  int64_t filled = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    for (int64_t i = 1; i < sizes[d]; ++i) {
      for (int64_t j = 0; j < filled; ++j) {
        offsets[static_cast<size_t>(i * filled + j)] =
            offsets[static_cast<size_t>(j)] + i * strides[d];
      }
    }
    filled *= sizes[d];
  }
  return offsets;
}

void check_no_overlap(const char* op, const Tensor& self) {
  WEFT_CHECK(self.layout().is_non_overlapping(), op,
             ": expected a tensor whose elements do not share memory, got strides ",
             AsTuple{self.strides()}, "; clone it first");
}

bool indices_fit(const int64_t* values, int64_t count, int64_t low, int64_t size) {
  // A sign for each index that is too low or above the last: no vector has a maximum of 64 bits.
  const auto least = static_cast<uint64_t>(low), last = static_cast<uint64_t>(size - 1);
  std::atomic<uint64_t> signs{0};
  parallel_for(count, kIndexGrain, [&](int64_t begin, int64_t end) {
    uint64_t seen = 0;
    for (; begin < end; ++begin) {
      const auto value = static_cast<uint64_t>(values[begin]);
      seen |= (value - least) | (last - value);
    }
    signs.fetch_or(seen, std::memory_order_relaxed);
  });
  return static_cast<int64_t>(signs.load()) >= 0;
}

Tensor index_values(const char* op, const Tensor& index) {
  WEFT_CHECK(index.dtype() == DType::I64 || index.dtype() == DType::I32, op,
             ": expected an int64 or int32 index, got ", index.dtype());
  return in_order(as_dtype(index, DType::I64));
}

namespace {

bool is_mask(const Tensor& index) {
  return index.defined() && (index.dtype() == DType::Bool || index.dtype() == DType::U8);
}

// Replaces masks by the positions they select; the list then has one entry a dimension.
TensorList positions_of(const char* op, const Tensor& self, const TensorList& indices) {
  TensorList result;
  for (const Tensor& index : indices) {
    if (!is_mask(index)) {
      if (index.defined()) {
        WEFT_CHECK_INDEX(index.dtype() == DType::I64 || index.dtype() == DType::I32, op,
                         ": expected indices of dtype int64, int32, bool or uint8, got ",
                         index.dtype());
      }
      result.push_back(index);
      continue;
    }
    if (index.dtype() == DType::U8) {
      warn(str(op, ": masks of dtype uint8 are deprecated; give bool, as mask.bool() does"));
    }
    const auto first = static_cast<int64_t>(result.size());
    for (int64_t d = 0; d < index.dim(); ++d) {
      WEFT_CHECK_INDEX(first + d < self.dim() && index.sizes()[d] == self.sizes()[first + d], op,
                       ": expected a mask that matches shape ", AsTuple{self.sizes()}, " from dim ",
                       first, " on, got ", AsTuple{index.sizes()});
    }
    const Tensor found = nonzero(index);  // [count, dims of the mask]
    for (int64_t d = 0; d < index.dim(); ++d) {
      Layout column = found.layout();
      column.offset += d * column.strides[1];
      column.sizes.erase(1);
      column.strides.erase(1);
      result.push_back(found.with_layout(std::move(column)));
    }
    WEFT_CHECK_INDEX(index.dim() > 0, op, ": expected a mask of at least 1 dim, got a 0-d one");
  }
  WEFT_CHECK_INDEX(static_cast<int64_t>(result.size()) <= self.dim(), op, ": expected at most ",
                   self.dim(), " indices, got ", result.size());
  result.resize(static_cast<size_t>(self.dim()));
  return result;
}

// Adds index * stride for one index tensor, broadcast to `shape`.
void add_offsets(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                 IntList shape, bool negatives, std::vector<int64_t>& offsets) {
  const Tensor values = index_values(op, index);
  if (offsets.empty()) return;  // broadcast to nothing: no value selects a place
  const int64_t size = self.sizes()[dim], stride = self.strides()[dim];
  const int64_t low = negatives ? -size : 0;
  const int64_t* at = values.data_as<const int64_t>();
  const bool fit = indices_fit(at, values.numel(), low, size);
  for (int64_t i = 0; !fit && i < values.numel(); ++i) {
    WEFT_CHECK_INDEX(at[i] >= low && at[i] < size, op, ": expected index in [", low, ", ", size - 1,
                     "] for dim ", dim, ", got ", at[i]);
  }
  auto place = [&](int64_t value) { return (value < 0 ? value + size : value) * stride; };
  if (same(values.sizes(), shape)) {
    return parallel_for(values.numel(), kIndexGrain, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) offsets[static_cast<size_t>(begin)] += place(at[begin]);
    });
  }
  Dims strides(shape.size());
  const size_t added = shape.size() - values.sizes().size();
  for (size_t d = added; d < shape.size(); ++d) {
    strides[d] = values.sizes()[d - added] == 1 ? 0 : values.strides()[d - added];
  }
  const std::vector<int64_t> from = element_offsets(shape, strides);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += place(at[from[i]]);
}

// A stretch of self's dimensions.
struct Stretch {
  Dims sizes, strides;
  void add(const Tensor& self, int64_t dim) {
    sizes.push_back(self.sizes()[dim]);
    strides.push_back(self.strides()[dim]);
  }
};

}  // namespace

IndexPlan plan_index(const char* op, const Tensor& self, const TensorList& given, bool negatives) {
  const TensorList indices = positions_of(op, self, given);
  Dims shape;
  int64_t first = -1, last = -1, count = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indices[d].defined()) continue;
    Dims joined;
    WEFT_CHECK_INDEX(broadcast_into(joined, shape, indices[d].sizes()), op,
                     ": expected broadcastable shapes, got ", AsTuple{shape}, " and ",
                     AsTuple{indices[d].sizes()});
    shape = std::move(joined);
    if (first < 0) first = d;
    last = d;
    ++count;
  }
  WEFT_CHECK_INDEX(count > 0, op, ": expected at least one index tensor, got none");
  // Index tensors side by side keep their place; otherwise their dimensions come first.
  const bool adjacent = last - first + 1 == count;
  Stretch before, after;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indices[d].defined()) (adjacent && d < first ? before : after).add(self, d);
  }
  IndexPlan plan;
  plan.picked.assign(static_cast<size_t>(checked_numel(op, shape)), 0);
  for (int64_t d = first; d <= last; ++d) {
    if (indices[d].defined()) add_offsets(op, self, d, indices[d], shape, negatives, plan.picked);
  }
  plan.before = element_offsets(before.sizes, before.strides);
  const Layout tail{after.sizes, after.strides, 0};
  plan.run = tail.numel();
  if (!tail.is_contiguous()) plan.after = element_offsets(after.sizes, after.strides);
  plan.result_sizes = before.sizes;
  for (int64_t size : shape) plan.result_sizes.push_back(size);
  for (int64_t size : after.sizes) plan.result_sizes.push_back(size);
  return plan;
}

}  // namespace weft::native
