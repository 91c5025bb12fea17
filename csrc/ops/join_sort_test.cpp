// Joining, splitting, sorting, patterns: native operators that put elements in places.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/thread_pool.h"
#include "native_counting.h"
#include "native_factories.h"
#include "native_indexing.h"
#include "ops/samples_testing.h"
#include "ops/sort_keys.h"
#include "ops/views.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

}  // namespace

TEST(cat_joins) {
  const Tensor a = counting<float>({2, 2}), b = counting<float>({2, 1}, 10);
  CHECK_EQ(values<float>(native::cat({a, b}, 1)), (Floats{0, 1, 10, 2, 3, 11}));
  CHECK_EQ(values<float>(native::cat({a, a}, 0)), (Floats{0, 1, 2, 3, 0, 1, 2, 3}));
  const Tensor t = viewed(a, views::transpose(a.layout(), 0, 1));
  CHECK_EQ(values<float>(native::cat({t, b}, -1)), (Floats{0, 2, 10, 1, 3, 11}));
  const Tensor mixed = native::cat({a, counting<int64_t>({1, 2}, 5)}, 0);
  CHECK_EQ(mixed.dtype(), DType::F32);
  CHECK_EQ(values<float>(mixed), (Floats{0, 1, 2, 3, 5, 6}));
  CHECK_EQ(native::cat({Tensor::empty(Dims{0}, DType::F32), a}, 1).sizes(), (Dims{2, 2}));
  CHECK_THROWS_MSG(native::cat({a, counting<float>({3, 2})}, 1),
                   "cat: expected sizes that match (2, 2) but for dim 1, got (3, 2) for tensor 1");
  CHECK_THROWS_MSG(native::cat({}, 0), "cat: expected at least one tensor, got none");
  CHECK_THROWS_AS(Index, native::cat({a}, 2), "cat: expected dim in [-2, 1], got 2");
}

TEST(sort_orders_every_dtype) {
  const Tensor x = tensor_of<float>({7}, {3, -1, NAN, 0.f, -0.f, -INFINITY, 2});
  const auto [sorted, at] = native::sort(x, -1, false);
  CHECK_EQ(values<int64_t>(at), (Ints{5, 1, 3, 4, 6, 0, 2}));
  const auto [down, at_down] = native::sort(x, -1, true);
  CHECK_EQ(values<int64_t>(at_down), (Ints{2, 0, 6, 3, 4, 1, 5}));
  CHECK_EQ(values<int8_t>(
               std::get<0>(native::sort(tensor_of<int8_t>({4}, {-128, 127, 0, -1}), 0, false))),
           (std::vector<int8_t>{-128, -1, 0, 127}));
  CHECK_EQ(values<int64_t>(std::get<1>(
               native::sort(tensor_of<int64_t>({3}, {INT64_MAX, INT64_MIN, 0}), 0, false))),
           (Ints{1, 2, 0}));
}

// Many equal values, the zeros of both signs and NaN among them.
template <class T>
Tensor crowded(int64_t rows, int64_t length) {
  const Tensor x = noise<T>({rows, length}, 5);
  T* data = x.data_as<T>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] *= static_cast<T>(1 + i % 100);
  for (int64_t i = 0; i < x.numel(); i += 7) data[i] = i % 2 ? T(0) : -T(0);
  for (int64_t i = 3; i < x.numel(); i += 11) data[i] = std::numeric_limits<T>::quiet_NaN();
  return x;
}

template <class T>
bool comes_before(T a, T b, bool descending) {
  if (descending) std::swap(a, b);
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

template <class T>
void check_stable_sort(int64_t length) {
  const Tensor x = crowded<T>(2, length);
  const auto original = values<T>(x);
  for (bool descending : {false, true}) {
    const auto [sorted, at] = native::sort(x, 1, descending);
    const auto v = values<T>(sorted);
    const auto index = values<int64_t>(at);
    bool same = true, ordered = true;
    for (size_t i = 0; i < v.size(); ++i) {
      const T from = original[i / static_cast<size_t>(length) * static_cast<size_t>(length) +
                              static_cast<size_t>(index[i])];
      same = same && std::memcmp(&v[i], &from, sizeof(T)) == 0;
      if (i % static_cast<size_t>(length) == 0) continue;
      ordered = ordered && (comes_before(v[i - 1], v[i], descending) ||
                            (!comes_before(v[i], v[i - 1], descending) && index[i - 1] < index[i]));
    }
    CHECK_TRUE(same);
    CHECK_TRUE(ordered);
  }
}

TEST(sort_long_rows_are_stable) {
  const int before = num_threads();
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    for (int64_t n : {31, 128, 300, 8191, 8192, 150000}) {
      check_stable_sort<float>(n);
      check_stable_sort<double>(n);
    }
  }
  set_num_threads(before);
}

TEST(topk_is_the_beginning_of_sort) {
  for (int64_t n : {64, 200, 5000}) {
    const Tensor x = crowded<float>(3, n);
    for (bool largest : {false, true}) {
      const auto [sorted, at] = native::sort(x, 1, largest);
      for (int64_t k : {1, 2, 63, 64}) {
        const auto [top, where] = native::topk(x, k, 1, largest, true);
        CHECK_EQ(values<int64_t>(where),
                 values<int64_t>(viewed(at, {{3, k}, {n, 1}, at.offset()})));
      }
    }
  }
}

TEST(unique_of_many) {
  const Tensor x = noise<int32_t>({20000});
  for (int64_t i = 0; i < x.numel(); ++i) x.data_as<int32_t>()[i] *= static_cast<int32_t>(i % 300);
  const auto [found, inverse, counts] = native::_unique2(x, true, true, true);
  const auto distinct = values<int32_t>(found), all = values<int32_t>(x);
  const auto of = values<int64_t>(inverse), times = values<int64_t>(counts);
  Ints counted(distinct.size());
  bool same = true;
  for (size_t i = 0; i < all.size(); ++i) {
    same = same && distinct[static_cast<size_t>(of[i])] == all[i];
    ++counted[static_cast<size_t>(of[i])];
  }
  CHECK_TRUE(same);
  CHECK_TRUE(std::is_sorted(distinct.begin(), distinct.end()));
  CHECK_EQ(counted, times);
}

TEST(sort_along_any_dim) {
  const Tensor x = tensor_of<float>({3, 2}, {3, 1, 1, 2, 2, 0});
  const auto [sorted, at] = native::sort(x, 0, false);
  CHECK_EQ(values<float>(sorted), (Floats{1, 0, 2, 1, 3, 2}));
  CHECK_TRUE(sorted.is_contiguous());
  const auto [top, where] = native::topk(x, 2, 0, true, true);
  CHECK_EQ(values<float>(top), (Floats{3, 2, 2, 1}));
  CHECK_EQ(values<int64_t>(where), (Ints{0, 1, 2, 0}));
  CHECK_EQ(std::get<0>(native::topk(x, 0, 0, true, true)).sizes(), (Dims{0, 2}));
  CHECK_THROWS_MSG(native::topk(x, 4, 0, true, true), "topk: expected k in [0, 3], got 4");
  CHECK_EQ(std::get<0>(native::sort(tensor_of<float>({}, {1}), 0, false)).dim(), 0);
}

TEST(patterns) {
  CHECK_EQ(values<int64_t>(native::arange(Scalar(1), Scalar(8), Scalar(3), {}, {}, {}, {})),
           (Ints{1, 4, 7}));
  CHECK_EQ(values<int64_t>(native::arange(Scalar(3), Scalar(0), Scalar(-1), {}, {}, {}, {})),
           (Ints{3, 2, 1}));
  CHECK_EQ(native::arange(Scalar(0.0), Scalar(1.0), Scalar(0.1), {}, {}, {}, {}).numel(), 10);
  CHECK_THROWS_MSG(native::arange(Scalar(0), Scalar(5), Scalar(-1), {}, {}, {}, {}),
                   "arange: expected a step that leads from 0 to 5, got -1");
  CHECK_EQ(values<float>(native::linspace(Scalar(0), Scalar(1), 5, {}, {}, {}, {})),
           (Floats{0, .25f, .5f, .75f, 1}));
  CHECK_EQ(values<float>(native::eye(2, 3, {}, {}, {}, {})), (Floats{1, 0, 0, 0, 1, 0}));
  const Tensor x = counting<float>({3, 3}, 1);
  CHECK_EQ(values<float>(native::tril(x, 0)), (Floats{1, 0, 0, 4, 5, 0, 7, 8, 9}));
  CHECK_EQ(values<float>(native::triu(x, 1)), (Floats{0, 2, 3, 0, 0, 6, 0, 0, 0}));
  CHECK_EQ(values<float>(native::tril(x, INT64_MIN)), Floats(9, 0));
  CHECK_EQ(values<int64_t>(native::one_hot(tensor_of<int64_t>({2}, {2, 0}), -1)),
           (Ints{0, 0, 1, 1, 0, 0}));
  CHECK_EQ(values<float>(native::flip(x, Dims{0, 1})), (Floats{9, 8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(factories_check_options) {
  CHECK_THROWS_MSG(native::zeros(Dims{2}, {}, 1, {}, {}),
                   "zeros: expected the strided layout, got another one");
  CHECK_THROWS_MSG(native::ones(Dims{2}, {}, {}, {}, true),
                   "ones: expected pin_memory=False, got True");
  CHECK_EQ(native::empty(Dims{2, 3, 4, 5}, {}, {}, {}, {}, 2).strides(), (Dims{60, 1, 15, 3}));
  CHECK_EQ(native::full(Dims{2}, Scalar(true), {}, {}, {}, {}).dtype(), DType::Bool);
  CHECK_EQ(values<int64_t>(native::full(Dims{2}, Scalar(7), {}, {}, {}, {})), (Ints{7, 7}));
}

}  // namespace weft
