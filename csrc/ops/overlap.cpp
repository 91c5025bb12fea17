#include "ops/overlap.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace weft {
namespace {

// One term of the byte distance between an element of the one and an element of the other:
// stride * k for low <= k <= high.
struct Term {
  int64_t stride, low, high;
};

// Whether distance + sum of terms can come within `width` bytes of zero. Terms go by falling
// stride, so that few values of k stay possible for each; a budget keeps odd layouts cheap.
class Search {
 public:
  Search(std::vector<Term> terms, int64_t width) : terms_(std::move(terms)), width_(width) {
    reach_.resize(terms_.size() + 1, 0);
    for (size_t i = terms_.size(); i-- > 0;) {
      const int64_t most = std::max(std::abs(terms_[i].low), std::abs(terms_[i].high));
      reach_[i] = reach_[i + 1] + most * terms_[i].stride;
    }
  }

  bool hits(int64_t distance, size_t at = 0) {
    if (std::abs(distance) >= reach_[at] + width_) return false;
    if (at == terms_.size()) return true;
    if (--budget_ < 0) return true;
    const Term& term = terms_[at];
    const int64_t slack = reach_[at + 1] + width_ - 1;
    const int64_t first = std::max(term.low, floor_div(-distance - slack, term.stride));
    const int64_t last = std::min(term.high, floor_div(-distance + slack, term.stride));
    for (int64_t k = first; k <= last; ++k) {
      if (hits(distance + k * term.stride, at + 1)) return true;
    }
    return false;
  }

 private:
  static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

  std::vector<Term> terms_;
  std::vector<int64_t> reach_;  // how far the terms from i on can move the distance
  int64_t width_;
  int budget_ = 256;
};

void add_terms(std::vector<Term>& terms, const Tensor& tensor, int64_t sign) {
  for (size_t d = 0; d < tensor.sizes().size(); ++d) {
    const int64_t steps = tensor.sizes()[d] - 1;
    const int64_t stride = tensor.strides()[d] * static_cast<int64_t>(tensor.item_size()) * sign;
    if (steps <= 0 || stride == 0) continue;
    const bool up = stride > 0;
    const Term term{std::abs(stride), up ? 0 : -steps, up ? steps : 0};
    auto same = std::find_if(terms.begin(), terms.end(),
                             [&](const Term& t) { return t.stride == term.stride; });
    if (same == terms.end()) {
      terms.push_back(term);
    } else {
      same->low += term.low;
      same->high += term.high;
    }
  }
}

bool same_walk(const Tensor& writer, const Tensor& reader) {
  if (writer.dtype() != reader.dtype() || writer.sizes() != reader.sizes()) return false;
  for (size_t d = 0; d < writer.sizes().size(); ++d) {
    if (writer.sizes()[d] > 1 && writer.strides()[d] != reader.strides()[d]) return false;
  }
  return writer.address() == reader.address();
}

struct Bytes {
  const char *begin, *end;
};
Bytes bytes_of(const Tensor& tensor) {
  const Layout::Extent extent = tensor.layout().extent();
  const auto item = static_cast<int64_t>(tensor.item_size());
  const char* base = static_cast<const char*>(tensor.storage()->address());
  return {base + extent.begin * item, base + extent.end * item};
}

}  // namespace

Overlap overlap(const Tensor& writer, const Tensor& reader) {
  if (writer.numel() == 0 || reader.numel() == 0) return Overlap::None;
  // Addresses decide, not storages: two foreign storages may wrap the same memory.
  const Bytes w = bytes_of(writer), r = bytes_of(reader);
  if (w.end <= r.begin || r.end <= w.begin) return Overlap::None;
  if (same_walk(writer, reader)) return Overlap::Exact;
  std::vector<Term> terms;
  add_terms(terms, writer, 1);
  add_terms(terms, reader, -1);
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return a.stride > b.stride; });
  const auto width = static_cast<int64_t>(std::max(writer.item_size(), reader.item_size()));
  const int64_t distance =
      static_cast<const char*>(writer.address()) - static_cast<const char*>(reader.address());
  return Search(std::move(terms), width).hits(distance) ? Overlap::Some : Overlap::None;
}

}  // namespace weft
