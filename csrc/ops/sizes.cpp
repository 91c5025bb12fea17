#include "ops/sizes.h"

namespace weft::sizes {
namespace {

int64_t entry(IntList numbers, size_t dim) { return at(numbers, numbers.size() == 1 ? 0 : dim); }

}  // namespace

Dims matmul(IntList first, IntList second) {
  if (first.empty() || second.empty()) return {};
  const size_t rows = std::min<size_t>(first.size(), 2),
               columns = std::min<size_t>(second.size(), 2);
  Dims result = broadcast_sizes("matmul", first.first(first.size() - rows),
                                second.first(second.size() - columns));
  if (rows == 2) result.push_back(first[first.size() - 2]);
  if (columns == 2) result.push_back(second.back());
  return result;
}

Dims convolved(IntList image, IntList filters, IntList stride, IntList padding, IntList dilation) {
  if (filters.size() < 3 || image.size() + 1 < filters.size()) return {};
  const size_t spatial = filters.size() - 2, first = image.size() - spatial;
  Dims result(image);
  result[first - 1] = filters[0];
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = entry(dilation, d) * (filters[d + 2] - 1) + 1;
    const int64_t step = std::max<int64_t>(entry(stride, d), 1);
    result[first + d] = (image[first + d] + 2 * entry(padding, d) - reach) / step + 1;
  }
  return result;
}

}  // namespace weft::sizes
