#include "native_indexing.h"
#include "ops/index_plan.h"
#include "ops/samples_testing.h"
#include "ops/views.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

using Ints = std::vector<int64_t>;

Tensor ints(const Ints& values) {
  return tensor_of<int64_t>({static_cast<int64_t>(values.size())}, values);
}
Tensor mask_of(Dims sizes, const std::vector<int>& bits) {
  Tensor mask = Tensor::empty(sizes, DType::Bool);
  for (size_t i = 0; i < bits.size(); ++i) mask.data_as<bool>()[i] = bits[i] != 0;
  return mask;
}

}  // namespace

TEST(index_rows_and_columns) {
  const Tensor x = counting<float>({3, 4});
  CHECK_EQ(values<float>(native::index(x, {ints({2, 0, -1})})),
           (std::vector<float>{8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}));
  const Tensor columns = native::index(x, {Tensor(), ints({3, 1})});
  CHECK_EQ(columns.sizes(), (Dims{3, 2}));
  CHECK_EQ(values<float>(columns), (std::vector<float>{3, 1, 7, 5, 11, 9}));
  const Tensor both = native::index(x, {tensor_of<int64_t>({2, 1}, {0, 2}), ints({1, -1})});
  CHECK_EQ(both.sizes(), (Dims{2, 2}));
  CHECK_EQ(values<float>(both), (std::vector<float>{1, 3, 9, 11}));
}

TEST(index_apart_goes_to_the_front) {
  const Tensor x = counting<int32_t>({2, 3, 4});
  const Tensor out = native::index(x, {ints({1, 0}), Tensor(), ints({3, 0})});
  CHECK_EQ(out.sizes(), (Dims{2, 3}));
  CHECK_EQ(values<int32_t>(out), (std::vector<int32_t>{15, 19, 23, 0, 4, 8}));
  const Tensor middle = native::index(x, {Tensor(), ints({2}), Tensor()});
  CHECK_EQ(middle.sizes(), (Dims{2, 1, 4}));
}

TEST(index_masks_and_strides) {
  const Tensor x = counting<double>({2, 3});
  CHECK_EQ(values<double>(native::index(x, {mask_of({2, 3}, {1, 0, 0, 0, 1, 1})})),
           (std::vector<double>{0, 4, 5}));
  CHECK_EQ(native::index(x, {mask_of({2}, {0, 1})}).sizes(), (Dims{1, 3}));
  const Tensor t = viewed(x, views::transpose(x.layout(), 0, 1));
  CHECK_EQ(values<double>(native::index(t, {ints({2, 0})})), (std::vector<double>{2, 5, 0, 3}));
  const Tensor reversed = viewed(x, views::slice(x.layout(), 1, {}, {}, -1));
  CHECK_EQ(values<double>(native::index(reversed, {ints({1})})), (std::vector<double>{5, 4, 3}));
  CHECK_EQ(native::index(x, {ints({})}).sizes(), (Dims{0, 3}));
}

TEST(index_errors_before_writing) {
  Tensor x = counting<float>({3, 2});
  CHECK_THROWS_AS(Index, native::index(x, {ints({0, 5})}),
                  "index: expected index in [-3, 2] for dim 0, got 5");
  CHECK_THROWS_AS(Index, native::index_put_(x, {ints({0, -4})}, tensor_of<float>({1}, {9}), false),
                  "index_put_: expected index in [-3, 2] for dim 0, got -4");
  CHECK_EQ(values<float>(x), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  CHECK_THROWS_AS(Index, native::index(x, {mask_of({2}, {1, 1})}),
                  "index: expected a mask that matches shape (3, 2) from dim 0 on, got (2,)");
  CHECK_THROWS_AS(Index, native::index(x, {ints({0}), ints({0}), ints({0})}),
                  "index: expected at most 2 indices, got 3");
  CHECK_THROWS_AS(Index, native::index(x, {tensor_of<float>({1}, {0})}),
                  "index: expected indices of dtype int64, int32, bool or uint8, got float32");
}

TEST(index_put_sets_and_adds) {
  Tensor x = counting<float>({3, 2});
  native::index_put_(x, {ints({2, 0})}, tensor_of<float>({2, 1}, {7, 8}), false);
  CHECK_EQ(values<float>(x), (std::vector<float>{8, 8, 2, 3, 7, 7}));
  native::index_put_(x, {ints({1, 1, 1})}, tensor_of<float>({1}, {10}), true);
  CHECK_EQ(values<float>(x), (std::vector<float>{8, 8, 32, 33, 7, 7}));
  const Tensor t = viewed(x, views::transpose(x.layout(), 0, 1));
  native::index_put_(t, {ints({1})}, tensor_of<float>({3}, {1, 2, 3}), false);
  CHECK_EQ(values<float>(x), (std::vector<float>{8, 1, 32, 2, 7, 3}));
  native::index_put_(x, {ints({0, 1})}, viewed(x, views::slice(x.layout(), 0, 1, 3, 1)), false);
  CHECK_EQ(values<float>(x), (std::vector<float>{32, 2, 7, 3, 7, 3}));
  const Tensor row = counting<float>({1, 2});
  CHECK_THROWS_MSG(
      native::index_put_(viewed(row, views::expand(row.layout(), Dims{3, 2})), {ints({0})},
                         tensor_of<float>({1}, {0}), false),
      "index_put_: expected a tensor whose elements do not share memory, got strides (0, 1); "
      "clone it first");
}

TEST(index_select_and_add) {
  const Tensor x = counting<float>({2, 3});
  CHECK_EQ(values<float>(native::index_select(x, 1, ints({2, 2, 0}))),
           (std::vector<float>{2, 2, 0, 5, 5, 3}));
  CHECK_THROWS_AS(Index, native::index_select(x, 1, ints({-1})),
                  "index_select: expected index in [0, 2] for dim 1, got -1");
  const Tensor source = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor sum = native::index_add_(contiguous_copy(x), 1, ints({0, 0}), source, Scalar(1));
  CHECK_EQ(values<float>(sum), (std::vector<float>{3, 1, 2, 10, 4, 5}));
  CHECK_EQ(native::index_select(tensor_of<float>({}, {4}), 0, ints({0})).dim(), 0);
}

TEST(index_gather_scatter) {
  const Tensor x = counting<float>({2, 3});
  const Tensor at = tensor_of<int64_t>({2, 2}, {2, 0, 1, 1});
  CHECK_EQ(values<float>(native::gather(x, 1, at, false)), (std::vector<float>{2, 0, 4, 4}));
  const Tensor src = tensor_of<float>({2, 2}, {10, 20, 30, 40});
  CHECK_EQ(values<float>(native::scatter_(contiguous_copy(x), 1, at, src)),
           (std::vector<float>{20, 1, 10, 3, 40, 5}));
  CHECK_EQ(values<float>(native::scatter_add_(contiguous_copy(x), 1, at, src)),
           (std::vector<float>{20, 1, 12, 3, 74, 5}));
  CHECK_EQ(values<float>(native::scatter_(contiguous_copy(x), 1, at, Scalar(-1))),
           (std::vector<float>{-1, 1, -1, 3, -1, 5}));
  CHECK_THROWS_AS(Runtime, native::gather(x, 1, tensor_of<int64_t>({1, 1}, {3}), false),
                  "gather: expected index in [0, 2] for dim 1, got 3");
  CHECK_THROWS_MSG(
      native::gather(x, 1, tensor_of<int64_t>({3, 1}, {0, 0, 0}), false),
      "gather: expected an index no larger than self (2, 3) outside dim 1, got shape (3, 1)");
}

TEST(index_nonzero_and_masked_select) {
  const Tensor x = tensor_of<float>({2, 2}, {0.f, 3.f, -0.f, NAN});
  const Tensor found = native::nonzero(x);
  CHECK_EQ(found.sizes(), (Dims{2, 2}));
  CHECK_EQ(values<int64_t>(found), (Ints{0, 1, 1, 1}));
  CHECK_EQ(native::nonzero(tensor_of<float>({}, {2})).sizes(), (Dims{1, 0}));
  CHECK_EQ(values<float>(native::masked_select(counting<float>({2, 2}), mask_of({2}, {0, 1}))),
           (std::vector<float>{1, 3}));
}

TEST(index_embedding) {
  const Tensor table = counting<float>({4, 2});
  const Tensor at = tensor_of<int64_t>({2, 2}, {3, 1, 1, 0});
  const Tensor rows = native::embedding(table, at, -1, false, false);
  CHECK_EQ(rows.sizes(), (Dims{2, 2, 2}));
  CHECK_EQ(values<float>(rows), (std::vector<float>{6, 7, 2, 3, 2, 3, 0, 1}));
  const Tensor grad = native::embedding_dense_backward(rows, at, 4, 0, false);
  CHECK_EQ(values<float>(grad), (std::vector<float>{0, 0, 4, 6, 0, 0, 6, 7}));
  CHECK_THROWS_AS(Index, native::embedding(table, ints({4}), -1, false, false),
                  "embedding: expected index in [0, 3] for dim 0, got 4");
}

}  // namespace weft
