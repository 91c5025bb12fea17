// Every operator with an epilogue gives the values of the one without, tells of each element once,
// and only when its value is final.
#include "ops/epilogue.h"

#include <mutex>
#include <vector>

#include "native_linalg.h"
#include "ops/blas.h"
#include "ops/head_samples.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

// Compares parts with the values that are expected, at the time they are told of.
template <class T>
class Watcher final : public Epilogue {
 public:
  explicit Watcher(const Tensor& expected)
      : expected_(values<T>(expected)), sizes_(expected.sizes()), told_(expected_.size()) {}

  bool begin(const Tensor& result, int64_t columns) override {
    CHECK_EQ(result.sizes(), sizes_);
    CHECK_TRUE(result.is_contiguous());
    result_ = result;
    columns_ = columns;
    return true;
  }
  void part(const Part& part) override {
    const std::lock_guard lock(mutex_);
    const T* values = result_.data_as<const T>();
    for (int64_t i = part.row; i < part.row + part.rows; ++i) {
      for (int64_t j = part.column; j < part.column + part.columns; ++j) {
        const auto at = static_cast<size_t>(i * columns_ + j);
        ++told_[at];
        wrong_ += !(values[at] == expected_[at]);
      }
    }
  }
  bool saw_all() const {
    for (int times : told_) {
      if (times != 1) return false;
    }
    return wrong_ == 0;
  }

 private:
  const std::vector<T> expected_;
  const Dims sizes_;
  std::mutex mutex_;
  Tensor result_;
  int64_t columns_ = 0, wrong_ = 0;
  std::vector<int> told_;
};

// `run` calls the operator with an epilogue, or with null.
template <class T, class Fn>
void check_parts(Fn&& run) {
  const Tensor expected = run(nullptr);
  Watcher<T> watcher(expected);
  const Tensor got = run(&watcher);
  CHECK_EQ(values<T>(got), values<T>(expected));
  CHECK_TRUE(watcher.saw_all());
}

template <class T>
void check_products() {
  const int64_t shapes[][3] = {{1, 1, 1},     {1, 300, 40},  {300, 1, 40},    {5, 7, 0},
                               {3, 16, 200},  {13, 33, 70},  {70, 100, 300},  {270, 130, 260},
                               {12, 600, 33}, {40, 1060, 7}, {256, 160, 256}, {5, 9, 300}};
  for (const auto& [m, n, k] : shapes) {
    const Tensor a = noise<T>({m, k}, 1), b = noise<T>({k, n}, 2);
    const Tensor at = transposed(noise<T>({k, m}, 3)), bt = transposed(noise<T>({n, k}, 4));
    const Tensor start = noise<T>({n}, 5);
    for (const Tensor& left : {a, at}) {
      for (const Tensor& right : {b, bt}) {
        check_parts<T>([&](Epilogue* e) { return native::mm(left, right, e); });
        check_parts<T>([&](Epilogue* e) { return native::addmm(start, left, right, 2, 0.5, e); });
      }
      check_parts<T>([&](Epilogue* e) { return native::linear(left, transposed(bt), start, e); });
    }
  }
}

}  // namespace

TEST(epilogue_of_products) {
  with_threads({1, 2, 3}, [] {
    check_products<float>();
    check_products<double>();
  });
}

TEST(epilogue_of_integers) {
  const Tensor a = counting<int64_t>({130, 70}), b = counting<int64_t>({70, 150});
  check_parts<int64_t>([&](Epilogue* e) { return native::mm(a, b, e); });
}

TEST(epilogue_sees_leading_dims) {
  const Tensor x = noise<float>({2, 3, 40}, 1), w = noise<float>({50, 40}, 2);
  check_parts<float>([&](Epilogue* e) { return native::linear(x, w, {}, e); });
  const Tensor vector = viewed(w, {{40}, {1}, 0});
  check_parts<float>([&](Epilogue* e) { return native::linear(x, vector, {}, e); });
  check_parts<float>([&](Epilogue* e) { return native::matmul(x, transposed(w), e); });
  const Tensor batch = noise<float>({4, 1, 3, 40}, 3), other = noise<float>({2, 40, 5}, 4);
  check_parts<float>([&](Epilogue* e) { return native::matmul(batch, other, e); });
}

TEST(epilogue_of_batches) {
  for (int64_t m : {3, 60}) {
    const Tensor a = noise<float>({5, m, 40}, 1), b = noise<float>({5, 40, 90}, 2);
    check_parts<float>([&](Epilogue* e) { return native::bmm(a, b, e); });
    const Tensor start = noise<float>({5, m, 90}, 3);
    check_parts<float>([&](Epilogue* e) { return native::baddbmm(start, a, b, 1, 1, e); });
  }
}

TEST(epilogue_is_not_asked_for_values_that_are_rounded_later) {
  const Tensor a = native::as_dtype(noise<float>({4, 5}), DType::BF16);
  Watcher<float> watcher(noise<float>({4, 4}));
  native::mm(a, transposed(a), &watcher);
  CHECK_FALSE(watcher.saw_all());
}

template <class T>
void check_convolutions() {
  for (const Convolution& c : kConvolutions) {
    const Tensor x = noise<T>(c.input, 1);
    for (const Tensor& bias : {Tensor(), noise<T>({c.weight[0]}, 3)}) {
      check_parts<T>([&](Epilogue* e) { return c.operator()<T>(x, bias, e); });
    }
  }
}

TEST(epilogue_of_convolutions) {
  with_threads({1, 2}, [] {
    check_convolutions<float>();
    check_convolutions<double>();
  });
}

}  // namespace weft
