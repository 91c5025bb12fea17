#include "ops/blas.h"

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <vector>

#include "core/thread_pool.h"
#include "ops/few_rows.h"
#include "ops/packed_gemm.h"
#include "ops/packed_product.h"
#include "testing.h"

namespace weft {
namespace {

using blas::Matrix;

// Small whole numbers: every product is exact in every type.
template <class T>
std::vector<T> numbers(int64_t count, int seed) {
  std::vector<T> values(static_cast<size_t>(count));
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<int>(state >> 29));
  }
  return values;
}

enum class Form { Rows, Columns, Gaps };

// Memory for a rows x columns matrix of the form, and its strides.
template <class T>
struct Sample {
  std::vector<T> memory;
  Matrix<const T> matrix;
  Sample(int64_t rows, int64_t columns, Form form, int seed)
      : memory(numbers<T>(4 * (rows + 1) * (columns + 1), seed)) {
    matrix.data = memory.data();
    matrix.row = form == Form::Rows ? columns : form == Form::Columns ? 1 : 2 * columns + 1;
    matrix.column = form == Form::Rows ? 1 : form == Form::Columns ? rows : 2;
  }
  T at(int64_t i, int64_t j) const { return matrix.data[i * matrix.row + j * matrix.column]; }
};

template <class T>
void check_gemm(int64_t m, int64_t n, int64_t k, Form a_form, Form b_form, T alpha, T beta,
                int64_t extra) {
  const Sample<T> a(m, k, a_form, 1), b(k, n, b_form, 2);
  const int64_t c_row = n + extra;
  std::vector<T> c = numbers<T>(m * c_row, 3), start = c;
  blas::gemm<T>(m, n, k, alpha, a.matrix, b.matrix, beta, c.data(), c_row);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum(0);
      for (int64_t p = 0; p < k; ++p) sum = static_cast<T>(sum + a.at(i, p) * b.at(p, j));
      const T expected =
          static_cast<T>(alpha * sum + (beta == T(0) ? T(0) : beta * start[i * c_row + j]));
      CHECK_TRUE(c[i * c_row + j] == expected);
    }
    for (int64_t j = n; j < c_row; ++j) CHECK_TRUE(c[i * c_row + j] == start[i * c_row + j]);
  }
}

template <class T>
void check_all() {
  const int64_t shapes[][3] = {{1, 1, 1},   {3, 5, 7},    {16, 8, 16}, {1, 33, 70}, {40, 1, 65},
                               {65, 33, 2}, {33, 49, 65}, {0, 3, 2},   {3, 0, 2},   {2, 3, 0}};
  for (const auto& shape : shapes) {
    for (Form a : {Form::Rows, Form::Columns, Form::Gaps}) {
      for (Form b : {Form::Rows, Form::Columns, Form::Gaps}) {
        check_gemm<T>(shape[0], shape[1], shape[2], a, b, T(1), T(0), 0);
        check_gemm<T>(shape[0], shape[1], shape[2], a, b, T(2), T(3), 5);
      }
    }
  }
}

template <class T>
void check_packed(int64_t m, int64_t groups, int64_t n, int64_t k, Form form, int64_t rows) {
  const int64_t columns = groups * n, c_row = columns + 3;
  const Sample<T> b(k, columns, form, 1);
  const std::vector<T> a = numbers<T>(m * (k + 1), 2), bias = numbers<T>(columns, 3);
  const std::vector<T> start = numbers<T>(m * c_row, 4);
  for (const bool more : {false, true}) {
    const blas::PackedMatrix<T> packed(b.matrix, k, groups, n, more ? bias.data() : nullptr, rows);
    std::vector<T> c = start;  // what it holds does not count
    packed.for_each_share(m, [&](int64_t first, int64_t last) {
      packed.multiply(first, last, m, a.data(), k + 1, more ? start.data() : nullptr, c.data(),
                      c_row);
    });
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const auto at = static_cast<size_t>(i * c_row + j);
        T sum = more ? start[at] + bias[static_cast<size_t>(j)] : T(0);
        for (int64_t p = 0; p < k; ++p) sum += a[static_cast<size_t>(i * (k + 1) + p)] * b.at(p, j);
        CHECK_TRUE(c[at] == sum);
      }
      for (int64_t j = columns; j < c_row; ++j) {
        CHECK_TRUE(c[static_cast<size_t>(i * c_row + j)] ==
                   start[static_cast<size_t>(i * c_row + j)]);
      }
    }
  }
}

}  // namespace

TEST(blas_gemm_float) { check_all<float>(); }
TEST(blas_gemm_double) { check_all<double>(); }
TEST(blas_gemm_complex) {
  check_all<std::complex<float>>();
  check_all<std::complex<double>>();
}
TEST(blas_gemm_integers) {
  check_all<int64_t>();
  check_all<int32_t>();
  check_all<int16_t>();
  check_all<uint8_t>();
}

TEST(blas_gemm_threads) {
  const int before = num_threads();
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    check_gemm<float>(150, 97, 101, Form::Rows, Form::Columns, 1.f, 1.f, 3);
    check_gemm<float>(31, 300, 150, Form::Gaps, Form::Rows, 1.f, 0.f, 0);
    check_gemm<float>(1, 3000, 90, Form::Rows, Form::Rows, 1.f, 2.f, 0);
    check_gemm<float>(1, 900, 300, Form::Rows, Form::Columns, 1.f, 0.f, 0);
    check_gemm<int64_t>(130, 100, 300, Form::Rows, Form::Rows, 1, 1, 0);
  }
  set_num_threads(before);
}

// Rows of the whole product choose how it is computed, not those that a thread gets: 20 are many,
// 10 are few.
TEST(blas_gemm_chooses_by_all_rows) {
  const int before = num_threads();
  std::vector<double> a = numbers<double>(20 * 1000, 1), b = numbers<double>(100 * 1000, 2);
  for (double& x : a) x = 1 / (x + 3);
  std::array<std::vector<double>, 2> found;
  for (int threads : {1, 2}) {
    set_num_threads(threads);
    std::vector<double>& c = found[static_cast<size_t>(threads) - 1];
    c.resize(20 * 100);
    blas::gemm<double>(20, 100, 1000, 1., {a.data(), 1000, 1}, {b.data(), 1, 1000}, 0., c.data(),
                       100);
  }
  set_num_threads(before);
  CHECK_TRUE(found[0] == found[1]);
}

TEST(blas_gemm_blocks) {
  check_gemm<float>(250, 130, 260, Form::Columns, Form::Rows, 1.f, 1.f, 0);
  check_gemm<float>(20, 140, 256, Form::Rows, Form::Columns, 2.f, 0.f, 0);
  check_gemm<float>(13, 1060, 270, Form::Gaps, Form::Rows, 1.f, 1.f, 2);
  check_gemm<double>(250, 130, 260, Form::Columns, Form::Columns, 1., 1., 0);
  check_gemm<float>(280, 1100, 300, Form::Rows, Form::Columns, 1.f, 0.f, 3);
  check_gemm<float>(270, 1100, 513, Form::Rows, Form::Rows, 1.f, 3.f, 0);
  check_gemm<int32_t>(65, 190, 300, Form::Columns, Form::Gaps, 3, 2, 1);
  check_gemm<uint8_t>(40, 150, 260, Form::Rows, Form::Columns, 1, 1, 1);
}

TEST(blas_gemm_few_rows) {
  for (int64_t m : {1, 2, 3, 4, 5, 7, 16}) {
    for (Form b : {Form::Rows, Form::Columns}) {
      check_gemm<float>(m, 145, 261, Form::Rows, b, 2.f, 3.f, 1);
      check_gemm<float>(m, 20, 64, Form::Columns, b, 1.f, 0.f, 0);
      check_gemm<double>(m, 37, 19, Form::Gaps, b, 3., 1., 2);
      for (int64_t k : {1, 2, 7, 8, 13}) check_gemm<float>(m, 5000, k, Form::Rows, b, 2.f, 3.f, 1);
    }
  }
  check_gemm<uint8_t>(1, 150, 70, Form::Rows, Form::Rows, 3, 1, 0);
  check_gemm<uint16_t>(1, 150, 70, Form::Rows, Form::Columns, 3, 1, 0);
}

TEST(blas_gemm_in_place) {
  const Sample<float> a(30, 70, Form::Columns, 1);
  for (int64_t n : {5, 16, 45}) {
    const std::vector<float> b = numbers<float>(70 * n + blas::kSlack, 2);
    std::vector<float> c = numbers<float>(30 * n, 3), expected = c;
    blas::gemm<float>(30, n, 70, 1, a.matrix, {b.data(), n, 1}, 1, expected.data(), n);
    blas::gemm_in_place<float>(30, n, 70, a.matrix, b.data(), n, blas::kSlack, 1, c.data(), n);
    CHECK_TRUE(c == expected);
    blas::gemm_in_place<float>(30, n, 70, a.matrix, b.data(), n, 0, 0, c.data(), n);
    blas::gemm<float>(30, n, 70, 1, a.matrix, {b.data(), n, 1}, 0, expected.data(), n);
    CHECK_TRUE(c == expected);
  }
}

TEST(blas_gemm_does_not_read_c_when_beta_is_zero) {
  for (int64_t n : {3, 90}) {
    const Sample<float> a(n, n, Form::Rows, 1), b(n, n, Form::Rows, 2);
    std::vector<float> c(static_cast<size_t>(n * n), NAN);
    blas::gemm<float>(n, n, n, 1, a.matrix, b.matrix, 0, c.data(), n);
    for (float value : c) CHECK_TRUE(value == value);
  }
}

TEST(blas_integers_wrap_around) {
  const int32_t a = INT32_MAX, b = INT32_MAX;
  int32_t c = 0;
  blas::gemm<int32_t>(1, 1, 1, 1, {&a, 1, 1}, {&b, 1, 1}, 0, &c, 1);
  CHECK_EQ(c, 1);
}

TEST(blas_dot) {
  const std::vector<double> a = numbers<double>(400, 1), b = numbers<double>(400, 2);
  for (int64_t n : {0, 1, 15, 64, 130}) {
    double dense = 0, strided = 0;
    for (int64_t i = 0; i < n; ++i) {
      dense += a[i] * b[i];
      strided += a[i * 3] * b[i * 2];
    }
    CHECK_EQ(blas::dot<double>(n, a.data(), 1, b.data(), 1), dense);
    CHECK_EQ(blas::dot<double>(n, a.data(), 3, b.data(), 2), strided);
  }
}

// bfloat16 is the upper half of a float; sums of small whole numbers are exact.
TEST(bfloat16_products_in_pairs) {
  if (!blas::multiplies(blas::Elements::BFloat16Pairs)) return;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 8, 1}, {13, 33, 65}, {25, 70, 800}, {49, 48, 96}}) {
    for (const Form a_form : {Form::Rows, Form::Columns, Form::Gaps}) {
      for (const Form b_form : {Form::Rows, Form::Columns, Form::Gaps}) {
        Sample<uint16_t> a(m, k, a_form, 1), b(k, n, b_form, 2);
        const Sample<uint16_t> left = a, right = b;
        auto halved = [](std::vector<uint16_t>& numbers) {
          for (uint16_t& x : numbers) {
            x = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(x)) >> 16);
          }
        };
        halved(a.memory), halved(b.memory);
        std::vector<float> c(static_cast<size_t>(m * n), 2.0f);
        for (const bool add : {true, false}) {
          a.matrix.data = a.memory.data(), b.matrix.data = b.memory.data();
          blas::bfloat16_gemm(m, n, k, a.matrix, b.matrix, add, c.data());
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              float sum = add ? 2 : 0;
              for (int64_t p = 0; p < k; ++p) {
                sum += static_cast<float>(left.memory[i * a.matrix.row + p * a.matrix.column]) *
                       static_cast<float>(right.memory[p * b.matrix.row + j * b.matrix.column]);
              }
              CHECK_EQ(c[static_cast<size_t>(i * n + j)], sum);
            }
          }
        }
      }
    }
  }
}

// Sums of whole numbers wrap around, also those of the columns alone.
TEST(int8_products_in_quads) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 8, 1}, {13, 33, 65}, {2, 3, 140000}, {49, 48, 192}}) {
    for (const Form form : {Form::Rows, Form::Columns, Form::Gaps}) {
      Sample<uint8_t> a(m, k, form, 1), b(k, n, form, 2);
      for (uint8_t& x : a.memory) x = static_cast<uint8_t>(120 + x);
      for (uint8_t& x : b.memory) x = static_cast<uint8_t>(120 + x);
      a.matrix.data = a.memory.data(), b.matrix.data = b.memory.data();
      std::vector<int32_t> c(static_cast<size_t>(m * n));
      blas::int8_gemm(m, n, k, a.matrix, b.matrix, c.data());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          int64_t sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            sum += static_cast<int8_t>(a.at(i, p)) * static_cast<int8_t>(b.at(p, j));
          }
          CHECK_EQ(c[static_cast<size_t>(i * n + j)], static_cast<int32_t>(sum));
        }
      }
    }
  }
}

// Tiles by rows and by columns, of all rests; what follows the sums; memory between rows as before.
TEST(packed_strips_give_products_with_sinks) {
  const int64_t shapes[][3] = {{1, 16, 8},    {13, 40, 3},   {97, 33, 20}, {100, 96, 16},
                               {131, 64, 64}, {192, 70, 27}, {98, 20, 90}, {200, 17, 1}};
  constexpr int64_t kStrip = blas::kStrip, kGap = 3;
  for (const auto& [m, n, k] : shapes) {
    const int64_t a_row = k + kGap, c_row = n + kGap;
    const auto a = numbers<float>(m * a_row, 1), b = numbers<float>(k * n, 2);
    const auto start = numbers<float>(m * c_row, 3), residual = numbers<float>(m * c_row, 4);
    const auto bias = numbers<float>(n, 5);
    std::vector<float> strips(static_cast<size_t>(blas::packed_size(k, n)));
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        strips[static_cast<size_t>((j / kStrip * k + p) * kStrip + j % kStrip)] = b[p * n + j];
      }
    }
    for (const bool more : {false, true}) {
      constexpr float kHigh = 400;
      const blas::Sink sink =
          more ? blas::Sink{bias.data(), residual.data(), true, kHigh} : blas::Sink{};
      std::vector<float> c = start;
      blas::gemm_strips(m, n, k, a.data(), a_row, strips.data(), k * kStrip, more, c.data(), c_row,
                        sink);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < c_row; ++j) {
          const auto at = static_cast<size_t>(i * c_row + j);
          float sum = j >= n || more ? start[at] : 0;
          for (int64_t p = 0; p < k && j < n; ++p) sum += a[i * a_row + p] * b[p * n + j];
          if (more && j < n) sum = std::min(sum + bias[j] + residual[at], kHigh);
          CHECK_EQ(c[at], sum);
        }
      }
    }
  }
}

// Columns of groups at the edge of strips, with and without packing.
TEST(packed_matrices_give_products_of_few_rows) {
  for (const int64_t n : {1, 8, 23, 24, 31, 50, 100}) {
    for (const int64_t m : {1, 2, 3, 4, 5, 9}) {
      for (const int64_t rows : {1, 1000}) {
        check_packed<float>(m, 2, n, 5, Form::Columns, rows);
        check_packed<double>(m, 3, n, 7, Form::Rows, rows);
      }
    }
  }
  check_packed<float>(4, 2, 30, 0, Form::Columns, 1000);
}

}  // namespace weft

// Few blocks of rows are as many for each thread, and cover the product.
TEST(packed_products_are_split_evenly) {
  const int before = weft::num_threads();
  for (const int threads : {2, 3, 4}) {
    weft::set_num_threads(threads);
    for (const int64_t rows : {130, 196, 784, 1000, 3136, 100000}) {
      for (const int64_t groups : {1, 3}) {
        const weft::blas::Split s = weft::blas::split_work(rows, 192, 96, groups, 600);
        if (s.pieces() >= threads && s.pieces() < 8 * threads && rows > 24 * threads) {
          CHECK_EQ(s.pieces() % threads, 0);
        }
        int64_t results = 0;
        for (int64_t i = 0; i < s.pieces(); ++i) {
          if (s[i].count > 0) results += s[i].count * s[i].columns;
        }
        CHECK_EQ(results, rows * 96 * groups);
      }
    }
  }
  weft::set_num_threads(before);
}
