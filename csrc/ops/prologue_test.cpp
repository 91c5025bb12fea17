// Every operator with a prologue gives the values of the one that gets its operand whole, and asks
// for each element of it once, or for all of it.
#include <atomic>
#include <vector>

#include "core/thread_pool.h"
#include "native.h"
#include "ops/heads.h"
#include "ops/samples.h"
#include "ops/tile.h"
#include "ops/views.h"
#include "testing.h"

namespace weft {
namespace {

using namespace samples;

// Gives parts of an operand that is there, and keeps a record.
template <class T>
class Giver final : public Prologue {
 public:
  explicit Giver(const Tensor& operand)
      : operand_(operand), asked_(static_cast<size_t>(operand.numel())) {}

  bool begin(int64_t columns) override {
    columns_ = columns;
    return true;
  }
  void part(const Part& part, void* out) override {
    T* to = static_cast<T*>(out);
    for (int64_t i = part.row; i < part.row + part.rows; ++i) {
      for (int64_t j = part.column; j < part.column + part.columns; ++j) {
        const int64_t at = i * columns_ + j;
        ++asked_[static_cast<size_t>(at)];
        *to++ = operand_.data_as<const T>()[at];
      }
    }
  }
  Tensor whole() override {
    ++wholes_;
    return operand_;
  }

  Tensor stand_in() const {
    return Tensor(Storage::wrap(nullptr, operand_.storage()->nbytes(), nullptr, nullptr),
                  operand_.layout(), operand_.dtype());
  }
  bool gave_parts() const { return columns_ > 0; }
  bool gave_all() const {
    for (const std::atomic<int>& times : asked_) {
      if (times != (gave_parts() ? 1 : 0)) return false;
    }
    return wholes_ == (gave_parts() ? 0 : 1);
  }

 private:
  const Tensor operand_;
  int64_t columns_ = 0;
  int wholes_ = 0;
  std::vector<std::atomic<int>> asked_;
};

// `run` calls the operator with an operand and what is around it. Whether parts were asked for.
template <class T, class Fn>
bool check_parts(const Tensor& operand, Fn&& run) {
  const Tensor expected = run(operand, Around());
  Giver<T> giver(operand);
  const Tensor got = run(giver.stand_in(), Around(nullptr, &giver));
  CHECK_EQ(got.sizes(), expected.sizes());
  CHECK_EQ(values<T>(got), values<T>(expected));
  CHECK_TRUE(giver.gave_all());
  return giver.gave_parts();
}

Tensor transposed(const Tensor& t) { return viewed(t, views::transpose(t.layout(), -2, -1)); }

bool has_tiles() { return tile::active_isa() == tile::Isa::V4; }

template <class T>
void check_products() {
  const int64_t shapes[][3] = {{1, 1, 1},        {3, 16, 200},   {5, 7, 0},
                               {1700, 1, 40},    {1700, 33, 70}, {1601, 70, 13},
                               {1600, 300, 300}, {600, 40, 40},  {1600, 16, 1100}};
  for (const auto& [m, n, k] : shapes) {
    const Tensor a = noise<T>({m, k}, 1), b = noise<T>({k, n}, 2), start = noise<T>({n}, 5);
    const bool many = has_tiles() && n > 1 && m >= 2 * 264 * num_threads();
    const bool parts = many && k * static_cast<int64_t>(sizeof(T)) <= 4096;
    for (const Tensor& right : {b, transposed(noise<T>({n, k}, 4))}) {
      CHECK_EQ(parts, check_parts<T>(a, [&](const Tensor& x, const Around& around) {
                 return native::mm(x, right, around);
               }));
      check_parts<T>(a, [&](const Tensor& x, const Around& around) {
        return native::addmm(start, x, right, 2, 0.5, around);
      });
      check_parts<T>(a, [&](const Tensor& x, const Around& around) {
        return native::linear(x, transposed(right), start, around);
      });
    }
  }
}

}  // namespace

TEST(prologue_of_products) {
  const int before = num_threads();
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    check_products<float>();
    check_products<double>();
  }
  set_num_threads(before);
}

TEST(prologue_of_batches) {
  const Tensor a = noise<float>({8, 30, 40}, 1), b = noise<float>({8, 40, 90}, 2);
  const Tensor start = noise<float>({8, 30, 90}, 3);
  const int before = num_threads();
  for (int threads : {1, 4, 5}) {
    set_num_threads(threads);
    const bool parts = check_parts<float>(
        a, [&](const Tensor& x, const Around& around) { return native::bmm(x, b, around); });
    CHECK_EQ(parts, threads < 5);
    check_parts<float>(a, [&](const Tensor& x, const Around& around) {
      return native::baddbmm(start, x, b, 1, 1, around);
    });
  }
  set_num_threads(before);
}

TEST(prologue_of_leading_dims) {
  const Tensor x = noise<float>({4, 400, 40}, 1), w = noise<float>({50, 40}, 2);
  const auto linear = [&](const Tensor& in, const Around& around) {
    return native::linear(in, w, {}, around);
  };
  const auto matmul = [&](const Tensor& in, const Around& around) {
    return native::matmul(in, transposed(w), around);
  };
  check_parts<float>(x, linear);
  check_parts<float>(x, matmul);
  const Tensor vector = viewed(w, {{40}, {1}, 0}), batch = noise<float>({4, 40, 7}, 3);
  check_parts<float>(x, [&](const Tensor& in, const Around& around) {
    return native::linear(in, vector, {}, around);
  });
  check_parts<float>(
      x, [&](const Tensor& in, const Around& around) { return native::matmul(in, batch, around); });
  for (const Dims& sizes : {Dims{1, 40, 40}, Dims{40, 40}, Dims{40}}) {  // repeated: only the whole
    const auto run = [&](const Tensor& in, const Around& around) {
      return native::matmul(in, batch, around);
    };
    CHECK_FALSE(check_parts<float>(noise<float>(sizes, 4), run));
  }
}

TEST(prologue_of_convolutions) {
  struct Case {
    Dims input, weight, stride;
    int64_t groups;
    bool parts;
  };
  const Case cases[] = {
      {{6, 20, 12, 13}, {9, 20, 1, 1}, {1, 1}, 1, true},
      {{2, 600, 25, 30}, {20, 600, 1, 1}, {1, 1}, 1, true},  // several parts of an image
      {{6, 40, 12, 12}, {16, 20, 1, 1}, {1, 1}, 2, true},
      {{20, 12, 12}, {9, 20, 1, 1}, {1, 1}, 1, false},  // one part for all threads
      {{6, 20, 12, 12}, {9, 20, 1, 1}, {2, 2}, 1, false},
      {{6, 20, 12, 12}, {9, 20, 3, 3}, {1, 1}, 1, false},
      {{0, 20, 12, 12}, {9, 20, 1, 1}, {1, 1}, 1, false},
  };
  const int before = num_threads();
  set_num_threads(2);
  for (const Case& c : cases) {
    const Tensor x = noise<float>(c.input, 1), w = noise<float>(c.weight, 2);
    for (const Tensor& bias : {Tensor(), noise<float>({c.weight[0]}, 3)}) {
      const bool parts = check_parts<float>(x, [&](const Tensor& in, const Around& around) {
        return native::conv2d(in, w, bias, c.stride, Dims{0, 0}, Dims{1, 1}, c.groups, around);
      });
      CHECK_EQ(parts, c.parts && has_tiles());
    }
  }
  set_num_threads(before);
}

TEST(prologue_is_asked_for_the_whole_of_values_that_are_rounded) {
  const Tensor a = native::as_dtype(noise<float>({1700, 40}), DType::BF16);
  const Tensor b = native::as_dtype(noise<float>({40, 20}), DType::BF16);
  Giver<uint16_t> giver(a);
  const Tensor got = native::mm(giver.stand_in(), b, Around(nullptr, &giver));
  CHECK_EQ(values<uint16_t>(got), values<uint16_t>(native::mm(a, b)));
  CHECK_FALSE(giver.gave_parts());
  CHECK_TRUE(giver.gave_all());
}

}  // namespace weft
