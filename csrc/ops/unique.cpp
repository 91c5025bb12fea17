// Distinct elements and slices: unique, unique_consecutive.
//
// Both see a list of items (elements, or slices along a dimension brought to the front) in an order
// in which equal ones are neighbours, and make one of each run.
#include <algorithm>
#include <numeric>

#include "native.h"
#include "ops.h"
#include "ops/sort_keys.h"
#include "ops/support.h"

namespace weft::native {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// order[i]: the item at place i; starts[i]: whether it differs from the one before.
struct Runs {
  std::vector<int64_t> order;
  std::vector<bool> starts;
};

// Compares items of `width` elements by their keys: NaN equals nothing, as in PyTorch.
template <class T>
struct Items {
  const T* data;
  int64_t width;

  bool less(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < width; ++i) {
      const auto x = KeyOf<T>::make(data[a * width + i]), y = KeyOf<T>::make(data[b * width + i]);
      if (x != y) return x < y;
    }
    return false;
  }
  bool same(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < width; ++i) {
      const T x = data[a * width + i], y = data[b * width + i];
      if constexpr (is_small_float<T>) {
        if (!(static_cast<float>(x) == static_cast<float>(y))) return false;
      } else {
        if (!(x == y)) return false;
      }
    }
    return true;
  }
};

Runs find_runs(const char* op, const Tensor& items, int64_t count, bool sort) {
  Runs runs;
  runs.order.resize(static_cast<size_t>(count));
  runs.starts.resize(static_cast<size_t>(count));
  std::iota(runs.order.begin(), runs.order.end(), int64_t{0});
  dispatch(items.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_complex_number<T>) {
      WEFT_CHECK(false, op, ": expected a dtype with an order, got ", items.dtype());
    } else {
      const Items<T> all{items.data_as<const T>(), count == 0 ? 0 : items.numel() / count};
      if (sort) {
        std::stable_sort(runs.order.begin(), runs.order.end(),
                         [&](int64_t a, int64_t b) { return all.less(a, b); });
      }
      for (size_t i = 0; i < runs.order.size(); ++i) {
        runs.starts[i] = i == 0 || !all.same(runs.order[i], runs.order[i - 1]);
      }
    }
  });
  return runs;
}

Tensor of_numbers(const std::vector<int64_t>& values) {
  const int64_t sizes[] = {static_cast<int64_t>(values.size())};
  Tensor out = Tensor::empty(sizes, DType::I64, {}, "unique");
  std::copy(values.begin(), values.end(), out.data_as<int64_t>());
  return out;
}

// Indices of one item a run, the run of each item, and the lengths of the runs.
struct Summary {
  Tensor firsts, inverse, counts;
};

Summary summarise(const Runs& runs) {
  std::vector<int64_t> firsts, counts, inverse(runs.order.size());
  for (size_t i = 0; i < runs.order.size(); ++i) {
    if (runs.starts[i]) {
      firsts.push_back(runs.order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(runs.order[i])] = static_cast<int64_t>(firsts.size()) - 1;
  }
  return {of_numbers(firsts), of_numbers(inverse), of_numbers(counts)};
}

Triple finish(const Tensor& values, const Tensor& inverse, const Tensor& counts, bool with_inverse,
              bool with_counts) {
  const int64_t none[] = {0};
  const Tensor empty = Tensor::empty(none, DType::I64, {}, "unique");
  return {values, with_inverse ? inverse : empty, with_counts ? counts : empty};
}

Triple of_elements(const char* op, const Tensor& self, bool sort, bool inverse, bool counts) {
  const Tensor x = in_order(self);
  const Summary found = summarise(find_runs(op, x, x.numel(), sort));
  const int64_t flat[] = {-1};
  const Tensor values = ops::index_select(ops::reshape(x, flat), 0, found.firsts);
  return finish(values, ops::reshape(found.inverse, self.sizes()), found.counts, inverse, counts);
}

Triple of_slices(const char* op, const Tensor& self, int64_t dim, bool sort, bool inverse,
                 bool counts) {
  dim = wrap_dim(op, dim, self.dim());
  if (self.dim() == 0) return of_elements(op, self, sort, inverse, counts);
  const Tensor items = in_order(ops::movedim(self, dim, 0));
  const Summary found = summarise(find_runs(op, items, self.size(dim), sort));
  return finish(ops::index_select(self, dim, found.firsts), found.inverse, found.counts, inverse,
                counts);
}

}  // namespace

Triple _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  return of_elements("unique", self, true, return_inverse, return_counts);
}

Triple unique_dim(const Tensor& self, int64_t dim, bool, bool return_inverse, bool return_counts) {
  return of_slices("unique", self, dim, true, return_inverse, return_counts);
}

Triple unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                          std::optional<int64_t> dim) {
  const char* op = "unique_consecutive";
  if (!dim) return of_elements(op, self, false, return_inverse, return_counts);
  return of_slices(op, self, *dim, false, return_inverse, return_counts);
}

}  // namespace weft::native
