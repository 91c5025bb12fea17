#include "ops/few_rows.h"

#include <algorithm>

#include "ops/fft_vector.h"
#include "ops/scratch.h"

namespace weft::blas {
namespace {

using fft::load;
using fft::store;
using fft::Vector;

// Rows that meet an element of b at once; integers come one by one.
template <class T>
constexpr int kRows = std::is_floating_point_v<T> ? 4 : 1;

// Calls fn with the number of rows, at most kRows<T>, as a constant.
template <class T, class Fn>
WEFT_INLINE void with_rows(int64_t rows, Fn&& fn) {
  if constexpr (kRows<T> > 1) {
    if (rows >= 4) return fn(std::integral_constant<int, 4>{});
    if (rows == 3) return fn(std::integral_constant<int, 3>{});
    if (rows == 2) return fn(std::integral_constant<int, 2>{});
  }
  fn(std::integral_constant<int, 1>{});
}

template <class T, class V>
WEFT_INLINE T sum_of(const V& value) {
  constexpr int kLanes = sizeof(V) / sizeof(T);
  T lanes[kLanes];
  store(value, lanes);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] = static_cast<T>(lanes[l] + lanes[l + width]);
  }
  return lanes[0];
}

// ---- b column by column: Rows x Columns sums of products along k ----

// Rows of a are filled up with zeros to whole vectors.
template <int kBytes, int Rows, int Columns, class T>
WEFT_INLINE void dots(int64_t k, T alpha, const T* a, int64_t a_row, const T* b, int64_t b_column,
                      T beta, T* c, int64_t c_row) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  Vector<T, kBytes> sums[Rows][Columns], left, right[Columns];
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Columns; ++j) sums[r][j] = Vector<T, kBytes>{};
  }
  const auto add = [&](int64_t p) __attribute__((always_inline)) {
    for (int r = 0; r < Rows; ++r) {
      load(left, a + r * a_row + p);
      for (int j = 0; j < Columns; ++j) sums[r][j] += left * right[j];
    }
  };
  const int64_t whole = k / kLanes * kLanes;
  for (int64_t p = 0; p < whole; p += kLanes) {
    for (int j = 0; j < Columns; ++j) load(right[j], b + j * b_column + p);
    add(p);
  }
  if (whole < k) {
    for (int j = 0; j < Columns; ++j) {
      T tail[kLanes] = {};
      for (int64_t p = whole; p < k; ++p) tail[p - whole] = b[j * b_column + p];
      load(right[j], tail);
    }
    add(whole);
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Columns; ++j) {
      T& to = c[r * c_row + j];
      const T value = static_cast<T>(alpha * sum_of<T>(sums[r][j]));
      to = beta == T(0) ? value : static_cast<T>(value + beta * to);
    }
  }
}

// All rows meet a block of columns while it is in the nearest cache.
template <int kBytes, class T>
WEFT_INLINE void dots_body(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,
                           const T* b, int64_t b_column, T beta, T* c, int64_t c_row) {
  constexpr int64_t kBlock = 12;
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t last = std::min(first + kBlock, n);
    for (int64_t i = 0; i < m; i += kRows<T>) {
      with_rows<T>(m - i, [&](auto rows) __attribute__((always_inline)) {
        constexpr int kColumns = rows() < 3 ? 6 : kBlock / rows();  // up to 12 sums in registers
        const T* const left = a + i * a_row;
        T* const to = c + i * c_row;
        int64_t j = first;
        for (; j + kColumns <= last; j += kColumns) {
          dots<kBytes, rows(), kColumns>(k, alpha, left, a_row, b + j * b_column, b_column, beta,
                                         to + j, c_row);
        }
        for (; j < last; ++j) {
          dots<kBytes, rows(), 1>(k, alpha, left, a_row, b + j * b_column, b_column, beta, to + j,
                                  c_row);
        }
      });
    }
  }
}

// ---- b row by row: Step rows of it are added up, then to Rows rows of c: fewer roundings ----

constexpr int64_t kStep = 4;

// x: [Rows][Step].
template <int kBytes, int Rows, int Step, class T>
WEFT_INLINE void add_rows(int64_t n, const T* x, int64_t x_row, const T* b, int64_t b_row, T* c,
                          int64_t c_row) {
  constexpr int64_t kLanes = kBytes / sizeof(T);
  constexpr int kCount = 2;
  using V = Vector<T, kBytes>;
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // uint16_t would become int
  int64_t j = 0;
  for (; j + kCount * kLanes <= n; j += kCount * kLanes) {
    V right[Step][kCount], sums[kCount], old[kCount];
    for (int p = 0; p < Step; ++p) {
      for (int v = 0; v < kCount; ++v) load(right[p][v], b + p * b_row + j + v * kLanes);
    }
    for (int r = 0; r < Rows; ++r) {
      T* const to = c + r * c_row + j;
      for (int v = 0; v < kCount; ++v) {
        load(old[v], to + v * kLanes);
        sums[v] = x[r * x_row] * right[0][v];
      }
      for (int p = 1; p < Step; ++p) {
        for (int v = 0; v < kCount; ++v) sums[v] += x[r * x_row + p] * right[p][v];
      }
      for (int v = 0; v < kCount; ++v) store(old[v] + sums[v], to + v * kLanes);
    }
  }
  for (; j < n; ++j) {
    for (int r = 0; r < Rows; ++r) {
      Wide sum = 0;
      for (int p = 0; p < Step; ++p) {
        sum += static_cast<Wide>(x[r * x_row + p]) * b[p * b_row + j];
      }
      c[r * c_row + j] = static_cast<T>(c[r * c_row + j] + sum);
    }
  }
}

// c += x @ b, b as few rows as stay in the nearest cache while all rows of c meet them.
template <int kBytes, class T>
WEFT_INLINE void add_body(int64_t m, int64_t n, int64_t k, const T* x, int64_t x_row, const T* b,
                          int64_t b_row, T* c, int64_t c_row) {
  for (int64_t p = 0; p < k; p += p + kStep <= k ? kStep : 1) {
    for (int64_t i = 0; i < m; i += kRows<T>) {
      with_rows<T>(m - i, [&](auto rows) __attribute__((always_inline)) {
        const T* const left = x + i * x_row + p;
        T* const to = c + i * c_row;
        if (p + kStep <= k) {
          add_rows<kBytes, rows(), kStep>(n, left, x_row, b + p * b_row, b_row, to, c_row);
        } else {
          add_rows<kBytes, rows(), 1>(n, left, x_row, b + p * b_row, b_row, to, c_row);
        }
      });
    }
  }
}

#define DEFINE(level, target, width)                                                              \
  template <class T>                                                                              \
  target void dots_##level(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row,   \
                           const T* b, int64_t b_column, T beta, T* c, int64_t c_row) {           \
    dots_body<width>(m, n, k, alpha, a, a_row, b, b_column, beta, c, c_row);                      \
  }                                                                                               \
  template <class T>                                                                              \
  target void add_##level(int64_t m, int64_t n, int64_t k, const T* x, int64_t x_row, const T* b, \
                          int64_t b_row, T* c, int64_t c_row) {                                   \
    add_body<width>(m, n, k, x, x_row, b, b_row, c, c_row);                                       \
  }
WEFT_LEVELS(DEFINE)
#undef DEFINE

template <class T>
void dots(int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t a_row, const T* b,
          int64_t b_column, T beta, T* c, int64_t c_row) {
  WEFT_PICK(dots, m, n, k, alpha, a, a_row, b, b_column, beta, c, c_row);
}
template <class T>
void add(int64_t m, int64_t n, int64_t k, const T* x, int64_t x_row, const T* b, int64_t b_row,
         T* c, int64_t c_row) {
  WEFT_PICK(add, m, n, k, x, x_row, b, b_row, c, c_row);
}

}  // namespace

template <class T>
bool takes_few_rows(int64_t m, const Matrix<const T>& b) {
  if (b.row != 1 && b.column != 1) return false;
  if (std::is_integral_v<T> || m == 1) return m == 1;
  // From here on tiles share what they pack among enough rows.
  const bool by_columns = b.column != 1;
  if (tile::active_isa() == tile::Isa::V4) return m < (by_columns ? 6 : 4);
  return m <= (by_columns ? 16 : 6);
}

template <class T>
void few_rows(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
              const Matrix<const T>& b, T beta, T* c, int64_t c_row) {
  constexpr int64_t kUnit = 16;  // elements of the widest vector of four bytes
  const bool by_columns = b.row == 1 && (b.column != 1 || n == 1);
  const int64_t line = by_columns ? (k + kUnit - 1) / kUnit * kUnit : k;
  const bool in_place = a.column == 1 && line == k && (by_columns || alpha == T(1));
  Scratch<T> packed(in_place ? 0 : m * line);
  for (int64_t i = 0; i < m && !in_place; ++i) {
    T* const to = packed.data() + i * line;
    const T scale = by_columns ? T(1) : alpha;
    for (int64_t p = 0; p < k; ++p)
      to[p] = static_cast<T>(scale * a.data[i * a.row + p * a.column]);
    std::fill(to + k, to + line, T(0));
  }
  const T* const x = in_place ? a.data : packed.data();
  const int64_t x_row = in_place ? a.row : line;
  if (by_columns) return dots(m, n, k, alpha, x, x_row, b.data, b.column, beta, c, c_row);
  // Columns of c stay in the nearest cache while the rows of b stream by.
  const int64_t panel = 4096 / m / 64 * 64;
  for (int64_t j = 0; j < n; j += panel) {
    const int64_t width = std::min(panel, n - j);
    for (int64_t i = 0; i < m; ++i) {
      T* const to = c + i * c_row + j;
      for (int64_t l = 0; l < width; ++l)
        to[l] = beta == T(0) ? T(0) : static_cast<T>(beta * to[l]);
    }
    add(m, width, k, x, x_row, b.data + j, b.row, c + j, c_row);
  }
}

#define INSTANTIATE(T)                                                            \
  template bool takes_few_rows<T>(int64_t, const Matrix<const T>&);               \
  template void few_rows<T>(int64_t, int64_t, int64_t, T, const Matrix<const T>&, \
                            const Matrix<const T>&, T, T*, int64_t);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(uint8_t)
INSTANTIATE(uint16_t)
INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE

}  // namespace weft::blas
