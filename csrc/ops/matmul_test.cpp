#include "core/thread_pool.h"
#include "native_linalg.h"
#include "ops/samples_testing.h"
#include "ops/views.h"
#include "ops_copying.h"
#include "ops_views.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

Tensor naive_mm(const Tensor& a, const Tensor& b) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const auto left = values<float>(a), right = values<float>(b);
  Tensor out = Tensor::empty(Dims{m, n}, DType::F32);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += left[i * k + p] * right[p * n + j];
      out.data_as<float>()[i * n + j] = sum;
    }
  }
  return out;
}

Tensor swapped(const Tensor& t) { return viewed(t, views::transpose(t.layout(), -2, -1)); }

}  // namespace

TEST(matmul_mm_reads_any_strides) {
  const Tensor a = noise<float>({9, 7}, 1), b = noise<float>({7, 40}, 2);
  CHECK_EQ(distance<float>(native::mm(a, b), naive_mm(a, b)), 0);
  const Tensor at = swapped(noise<float>({7, 9}, 3)), bt = swapped(noise<float>({40, 7}, 4));
  CHECK_EQ(distance<float>(native::mm(at, bt), naive_mm(at, bt)), 0);
  const Tensor reversed = viewed(a, views::slice(a.layout(), 0, {}, {}, -1));
  CHECK_EQ(distance<float>(native::mm(reversed, b), naive_mm(reversed, b)), 0);
  const Tensor row = noise<float>({1, 7}, 5);
  const Tensor broadcast = viewed(row, views::expand(row.layout(), Dims{50, 7}));
  CHECK_EQ(distance<float>(native::mm(broadcast, b), naive_mm(broadcast, b)), 0);
}

TEST(matmul_addmm_and_linear) {
  const Tensor a = noise<float>({5, 7}, 1), b = noise<float>({7, 6}, 2),
               bias = noise<float>({6}, 3);
  const Tensor product = naive_mm(a, b);
  const Tensor out = native::addmm(bias, a, b, Scalar(2), Scalar(0.5));
  const Tensor lin = native::linear(a, swapped(b), bias);
  for (int64_t i = 0; i < 30; ++i) {
    const float expected = product.data_as<float>()[i], shift = bias.data_as<float>()[i % 6];
    CHECK_EQ(out.data_as<float>()[i], 0.5f * expected + 2 * shift);
    CHECK_EQ(lin.data_as<float>()[i], expected + shift);
  }
  const Tensor nan = tensor_of<float>({1}, {NAN});
  CHECK_EQ(distance<float>(native::addmm(nan, a, b, Scalar(0), Scalar(1)), product), 0);
}

TEST(matmul_linear_takes_leading_dims) {
  const Tensor x = noise<float>({2, 3, 4}, 1), w = noise<float>({5, 4}, 2);
  const Tensor flat = viewed(x, Layout::contiguous(Dims{6, 4}));
  const Tensor expected = naive_mm(flat, swapped(w));
  const Tensor out = native::linear(x, w, {});
  CHECK_EQ(out.sizes(), (Dims{2, 3, 5}));
  CHECK_EQ(values<float>(out), values<float>(expected));
  const Tensor swapped = viewed(x, views::transpose(x.layout(), 0, 1));
  CHECK_EQ(native::linear(swapped, w, {}).sizes(), (Dims{3, 2, 5}));
  const Tensor vector = viewed(x, {{4}, {1}, 0});
  CHECK_EQ(native::linear(vector, w, {}).sizes(), Dims{5});
}

TEST(matmul_batches) {
  const Tensor a = noise<float>({3, 4, 5}, 1), b = noise<float>({3, 5, 6}, 2);
  const Tensor out = native::bmm(a, b);
  for (int64_t i = 0; i < 3; ++i) {
    auto part = [&](const Tensor& t) { return viewed(t, views::select(t.layout(), 0, i)); };
    CHECK_EQ(distance<float>(part(out), naive_mm(part(a), part(b))), 0);
  }
  CHECK_EQ(native::bmm(noise<float>({0, 4, 5}), noise<float>({0, 5, 6})).sizes(), (Dims{0, 4, 6}));
  CHECK_EQ(native::matmul(noise<float>({2, 1, 4, 5}), noise<float>({3, 5, 6})).sizes(),
           (Dims{2, 3, 4, 6}));
  CHECK_EQ(native::matmul(noise<float>({5}), noise<float>({3, 5, 6})).sizes(), (Dims{3, 6}));
  CHECK_EQ(native::matmul(noise<float>({3, 4, 5}), noise<float>({5})).sizes(), (Dims{3, 4}));
  CHECK_EQ(native::matmul(noise<float>({5}), noise<float>({5})).sizes(), Dims{});
  CHECK_EQ(native::matmul(noise<float>({4, 0}), noise<float>({0, 3})).sizes(), (Dims{4, 3}));
}

TEST(matmul_small_dtypes) {
  const Tensor a = counting<int64_t>({2, 3}), b = counting<int64_t>({3, 2});
  CHECK_EQ(values<int64_t>(native::mm(a, b)), (std::vector<int64_t>{10, 13, 28, 40}));
  const Tensor half =
      native::mm(native::as_dtype(a, DType::BF16), native::as_dtype(b, DType::BF16));
  CHECK_EQ(half.dtype(), DType::BF16);
  CHECK_EQ(values<float>(native::as_dtype(half, DType::F32)), (std::vector<float>{10, 13, 28, 40}));
}

TEST(matmul_errors) {
  const Tensor a = noise<float>({2, 3}), b = noise<float>({2, 3});
  CHECK_THROWS_MSG(native::mm(a, b),
                   "mm: expected shapes (..., k) and (k, n), got (2, 3) and (2, 3)");
  CHECK_THROWS_MSG(native::mm(a, counting<int64_t>({3, 2})),
                   "mm: expected tensors of one dtype, got float32 and int64");
  CHECK_THROWS_MSG(native::mm(a, noise<float>({3})), "mm: expected 2-d tensors, got shape (3,)");
  CHECK_THROWS_MSG(native::linear(a, noise<float>({4, 2}), {}),
                   "linear: expected an input of shape (..., 2), got (2, 3) for weight (4, 2)");
  CHECK_THROWS_MSG(native::addmm(noise<float>({5}), a, noise<float>({3, 2}), Scalar(1), Scalar(1)),
                   "addmm: expected broadcastable shapes, got (5,) and (2, 2)");
}

// A row that the result starts from is written block by block where there are many rows.
TEST(a_row_to_start_from_gives_the_bits_of_all_of_it) {
  const int before = num_threads();
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    for (const Dims& sizes : {Dims{1100, 40, 50}, Dims{1061, 300, 33}, Dims{600, 20, 1}}) {
      const int64_t left[] = {sizes[0], sizes[1]}, right[] = {sizes[1], sizes[2]};
      const int64_t all[] = {sizes[0], sizes[2]}, one[] = {sizes[2]};
      const Tensor a = noise<float>(Dims(IntList(left)), 1),
                   b = noise<float>(Dims(IntList(right)), 2);
      const Tensor row = noise<float>(Dims(IntList(one)), 3);
      const Tensor whole = ops::clone(ops::expand(row, all), std::nullopt);
      CHECK_EQ(values<float>(native::addmm(row, a, b, 0.3, 1.7)),
               values<float>(native::addmm(whole, a, b, 0.3, 1.7)));
      const Tensor turned = ops::clone(ops::transpose(b, 0, 1), std::nullopt);
      CHECK_EQ(values<float>(native::linear(a, turned, row)),
               values<float>(native::addmm(whole, a, ops::transpose(turned, 0, 1), 1, 1)));
    }
  }
  set_num_threads(before);
}

}  // namespace weft
