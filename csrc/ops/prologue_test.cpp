// Every operator with a prologue gives the values of the one that gets its operand whole, and asks
// for parts of it or for all of it: a product for each element once; a convolution for none twice,
// where one thread is at work.
#include <atomic>
#include <vector>

#include "native_linalg.h"
#include "ops/head_samples.h"
#include "ops/tile.h"
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
    for (int64_t i = 0; i < part.rows; ++i) {
      for (int64_t j = 0; j < part.columns; ++j) {
        const int64_t at = (part.row + i) * columns_ + part.column + j;
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
  bool gave_all() const { return gave_none_twice() && (!gave_parts() || least() == 1); }
  bool gave_none_twice() const { return most() <= 1 && gave_one_way(); }
  bool gave_one_way() const { return gave_parts() ? wholes_ == 0 : wholes_ == 1 && most() == 0; }

 private:
  int least() const {
    int least = 1;
    for (const std::atomic<int>& times : asked_) least = std::min<int>(least, times);
    return least;
  }
  int most() const {
    int most = 0;
    for (const std::atomic<int>& times : asked_) most = std::max<int>(most, times);
    return most;
  }

  const Tensor operand_;
  int64_t columns_ = 0;
  int wholes_ = 0;
  std::vector<std::atomic<int>> asked_;
};

// `run` calls the operator with an operand and what is around it; `asks_well` is asked of the giver
// then. Whether parts were asked for.
template <class T, class Fn>
bool check_parts(const Tensor& operand, Fn&& run,
                 bool (Giver<T>::*asks_well)() const = &Giver<T>::gave_all) {
  const Tensor expected = run(operand, Around());
  Giver<T> giver(operand);
  const Tensor got = run(giver.stand_in(), Around(nullptr, &giver));
  CHECK_EQ(got.sizes(), expected.sizes());
  CHECK_EQ(values<T>(got), values<T>(expected));
  CHECK_TRUE((giver.*asks_well)());
  return giver.gave_parts();
}

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
  with_threads({1, 2, 3}, [] {
    check_products<float>();
    check_products<double>();
  });
}

// Of the right operand: whether parts were asked for.
template <class T>
bool check_right(int64_t m, int64_t n, int64_t k, bool turned) {
  const Tensor b = noise<T>(turned ? Dims{n, k} : Dims{k, n}, 2), start = noise<T>({n}, 5);
  bool parts = false;
  for (const Tensor& a : {noise<T>({m, k}, 1), transposed(noise<T>({k, m}, 3))}) {
    const auto with = [&](auto&& call) {
      const auto run = [&](const Tensor& made, const Around& around) {
        return call(made, Around(around.behind, around.before, true));
      };
      return check_parts<T>(b, run);
    };
    if (turned) {
      parts = with(
          [&](const Tensor& w, const Around& around) { return native::linear(a, w, {}, around); });
      with([&](const Tensor& w, const Around& around) {
        return native::linear(a, w, start, around);
      });
      continue;
    }
    parts = with([&](const Tensor& w, const Around& around) { return native::mm(a, w, around); });
    with([&](const Tensor& w, const Around& around) {
      return native::addmm(start, a, w, 2, 0.5, around);
    });
    with([&](const Tensor& w, const Around& around) { return native::matmul(a, w, around); });
  }
  return parts;
}

TEST(prologue_of_right_operands) {
  struct Case {
    int64_t m, n, k;
    bool turned, row, tiles;  // parts of one row's product, of that of a few
  };
  const Case cases[] = {
      {1, 3100, 270, false, true, false},   {1, 513, 70, false, false, false},
      {1, 2900, 300, true, true, false},    {1, 1, 9, true, false, false},
      {20, 3100, 513, false, false, true},  {300, 3073, 40, false, false, true},
      {18, 2901, 301, true, false, true},   {512, 2901, 255, true, false, true},
      {513, 3100, 40, false, false, false}, {2, 3100, 300, false, false, false},
      {20, 40, 300, false, false, false},   {20, 3100, 0, false, false, false},
  };
  with_threads({1, 2, 3}, [&] {
    for (const auto& [m, n, k, turned, row, tiles] : cases) {
      const bool expected = row || (tiles && has_tiles());
      CHECK_EQ(check_right<float>(m, n, k, turned), expected);
      CHECK_EQ(check_right<double>(m, n, k, turned), expected);
    }
  });
}

TEST(prologue_of_right_operands_of_batches) {
  const Tensor a = noise<float>({8, 30, 40}, 1), b = noise<float>({8, 40, 90}, 2);
  const Tensor start = noise<float>({8, 30, 90}, 3);
  with_threads({1, 4, 5}, [&] {
    const bool parts = check_parts<float>(b, [&](const Tensor& made, const Around& around) {
      return native::bmm(a, made, {around.behind, around.before, true});
    });
    CHECK_EQ(parts, num_threads() < 5);
    check_parts<float>(b, [&](const Tensor& made, const Around& around) {
      return native::baddbmm(start, a, made, 1, 1, {around.behind, around.before, true});
    });
  });
  const Tensor four = viewed(b, Layout::contiguous(Dims{2, 4, 40, 90}));
  for (const Tensor& left :
       {viewed(a, Layout::contiguous(Dims{2, 4, 30, 40})), noise<float>({30, 40}),
        noise<float>({40}), noise<float>({3, 1, 1, 30, 40})}) {
    const bool parts = check_parts<float>(four, [&](const Tensor& made, const Around& around) {
      return native::matmul(left, made, {around.behind, around.before, true});
    });
    CHECK_EQ(parts, left.dim() == 4 || left.dim() == 2);
  }
  const Tensor x = noise<float>({3, 5, 40}, 4), w = noise<float>({40, 3100}, 5);
  check_parts<float>(w, [&](const Tensor& made, const Around& around) {
    return native::matmul(x, made, {around.behind, around.before, true});
  });
}

TEST(prologue_of_batches) {
  const Tensor a = noise<float>({8, 30, 40}, 1), b = noise<float>({8, 40, 90}, 2);
  const Tensor start = noise<float>({8, 30, 90}, 3);
  with_threads({1, 4, 5}, [&] {
    const bool parts = check_parts<float>(
        a, [&](const Tensor& x, const Around& around) { return native::bmm(x, b, around); });
    CHECK_EQ(parts, num_threads() < 5);
    check_parts<float>(a, [&](const Tensor& x, const Around& around) {
      return native::baddbmm(start, x, b, 1, 1, around);
    });
  });
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

template <class T>
void check_convolutions() {
  const auto asks_well = num_threads() == 1 ? &Giver<T>::gave_none_twice : &Giver<T>::gave_one_way;
  for (const Convolution& c : kConvolutions) {
    const bool pointwise = c.weight[2] == 1 && c.stride[0] == 1;  // asks whether it goes by tiles
    for (const Tensor& bias : {Tensor(), noise<T>({c.weight[0]}, 3)}) {
      const auto run = [&](const Tensor& x, const Around& around) {
        return c.operator()<T>(x, bias, around);
      };
      const bool parts = check_parts<T>(noise<T>(c.input, 1), run, asks_well);
      if (!pointwise) CHECK_EQ(parts, c.units() >= 2 * num_threads());
    }
  }
}

TEST(prologue_of_convolutions) {
  with_threads({1, 2, 3}, [] {
    check_convolutions<float>();
    check_convolutions<double>();
  });
}

TEST(prologue_of_pointwise_convolutions) {
  struct Case {
    Convolution convolution;
    bool parts;
  };
  const Case cases[] = {
      {{{6, 20, 12, 13}, {9, 20, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}, true},
      {{{2, 600, 25, 30}, {20, 600, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}, true},  // parts of an image
      {{{6, 40, 12, 12}, {16, 20, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 2}, true},
      {{{20, 12, 12}, {9, 20, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}, false},  // one for all threads
      {{{0, 20, 12, 12}, {9, 20, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}, false},
  };
  with_threads({2}, [&] {
    for (const auto& [convolution, expected] : cases) {
      const auto run = [&](const Tensor& x, const Around& around) {
        return convolution.operator()<float>(x, {}, around);
      };
      CHECK_EQ(check_parts<float>(noise<float>(convolution.input, 1), run),
               expected && has_tiles());
    }
  });
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
