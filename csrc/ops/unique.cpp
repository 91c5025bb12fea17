// Distinct elements and slices: unique, unique_consecutive.
//
// Both see a list of items (elements, or slices along a dimension brought to the front) in an order
// in which equal ones are neighbours, and make one of each run.
#include <algorithm>
#include <numeric>

#include "native_counting.h"
#include "ops/radix_sort.h"
#include "ops/scratch.h"
#include "ops/sort_keys.h"
#include "ops/support.h"
#include "ops_indexing.h"
#include "ops_views.h"

namespace weft::native {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// The items in an order in which equal ones are neighbours.
struct Runs {
  Runs(int64_t count, bool sort)
      : count(count), sorted(sort), order(sort ? count : 0), starts(count) {}

  int64_t at(int64_t place) { return sorted ? order.data()[place] : place; }

  int64_t count;
  bool sorted;
  Scratch<int64_t> order;  // the item at each place, of sorted ones
  Scratch<bool> starts;    // whether it differs from the one before
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

template <class T>
void find_runs(const Items<T>& all, Runs& runs) {
  if (runs.sorted) {
    int64_t* const order = runs.order.data();
    std::iota(order, order + runs.count, int64_t{0});
    std::stable_sort(order, order + runs.count,
                     [&](int64_t a, int64_t b) { return all.less(a, b); });
  }
  bool* const starts = runs.starts.data();
  const auto mark = [&](const Items<T>& items, const auto& at) {
    for (int64_t i = 1; i < runs.count; ++i) starts[i] = !items.same(at(i), at(i - 1));
  };
  const auto in_place = [](int64_t i) { return i; };
  if (runs.count > 0) starts[0] = true;
  if (all.width == 1) {  // known to the compiler: it takes several at once
    mark({all.data, 1}, in_place);
  } else if (runs.sorted) {
    mark(all, [order = runs.order.data()](int64_t i) { return order[i]; });
  } else {
    mark(all, in_place);
  }
}

// Of single elements: by digits. Only NaN differs from what has its key.
template <class T>
void find_sorted_runs(const char* op, const T* data, Runs& runs) {
  WEFT_CHECK(runs.count <= int64_t{UINT32_MAX}, op, ": expected at most 2^32 - 1 items, got ",
             runs.count);
  using Key = typename KeyOf<T>::Key;
  Scratch<Key> keys(runs.count);
  radix_sort<Key>(
      runs.count, [data](int64_t i) { return KeyOf<T>::make(data[i]); },
      [&](int64_t place, Key key, int64_t index) {
        keys.data()[place] = key;
        runs.order.data()[place] = index;
      });
  const Items<T> all{data, 1};
  const int64_t* order = runs.order.data();
  for (int64_t i = 0; i < runs.count; ++i) {
    runs.starts.data()[i] =
        i == 0 || keys.data()[i] != keys.data()[i - 1] || !all.same(order[i], order[i - 1]);
  }
}

void find_runs(const char* op, const Tensor& items, Runs& runs) {
  dispatch(items.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_number<T>) {
      WEFT_CHECK_AS(NotImplemented, false, op, ": expected a dtype with an order, got ",
                    items.dtype());
    } else {
      const T* data = items.data_as<const T>();
      const int64_t width = runs.count == 0 ? 0 : items.numel() / runs.count;
      if (runs.sorted && width == 1) {
        find_sorted_runs(op, data, runs);
      } else {
        find_runs(Items<T>{data, width}, runs);
      }
    }
  });
}

// Indices of one item a run, the run of each item, and the lengths of the runs.
struct Summary {
  Tensor firsts, inverse, counts;
};

Tensor of_indices(int64_t count) {
  const int64_t sizes[] = {count};
  return Tensor::empty(sizes, DType::I64, {}, "unique");
}

// From the last place to the first: the last that a run writes is its first item.
Summary summarise(Runs& runs, bool with_inverse, bool with_counts) {
  const bool* starts = runs.starts.data();
  const int64_t found = std::count(starts, starts + runs.count, true);
  const Summary out{of_indices(found), of_indices(with_inverse ? runs.count : 0),
                    of_indices(with_counts ? found : 0)};
  auto *firsts = out.firsts.data_as<int64_t>(), *counts = out.counts.data_as<int64_t>();
  auto* inverse = out.inverse.data_as<int64_t>();
  for (int64_t i = runs.count - 1, run = found - 1; i >= 0; run -= starts[i--]) {
    firsts[run] = runs.at(i);
    if (with_counts) counts[run] = i;
    if (with_inverse) inverse[runs.at(i)] = run;
  }
  for (int64_t run = 0; with_counts && run < found; ++run) {
    counts[run] = (run + 1 < found ? counts[run + 1] : runs.count) - counts[run];
  }
  return out;
}

Triple of_elements(const char* op, const Tensor& self, bool sort, bool inverse, bool counts) {
  const Tensor x = in_order(plain_bools(self));
  Runs runs(x.numel(), sort);
  find_runs(op, x, runs);
  const Summary found = summarise(runs, inverse, counts);
  const Tensor values = Tensor::empty(found.firsts.sizes(), x.dtype(), x.device(), op);
  const int64_t* const firsts = found.firsts.data_as<const int64_t>();
  dispatch(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* const from = x.data_as<const T>();
    std::transform(firsts, firsts + values.numel(), values.data_as<T>(),
                   [from](int64_t i) { return from[i]; });
  });
  return {values, inverse ? ops::reshape(found.inverse, self.sizes()) : found.inverse,
          found.counts};
}

Triple of_slices(const char* op, const Tensor& self, int64_t dim, bool sort, bool inverse,
                 bool counts) {
  dim = wrap_dim(op, dim, self.dim());
  if (self.dim() == 0) return of_elements(op, self, sort, inverse, counts);
  const Tensor items = in_order(ops::movedim(plain_bools(self), dim, 0));
  Runs runs(self.size(dim), sort);
  find_runs(op, items, runs);
  const Summary found = summarise(runs, inverse, counts);
  return {ops::index_select(self, dim, found.firsts), found.inverse, found.counts};
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
