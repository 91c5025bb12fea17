#include "ops/few_rows.h"

#include <algorithm>

#include "ops/small_gemm.h"
#include "ops/tiled_gemm.h"
#include "ops/vector.h"

namespace weft::blas {
namespace {

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

// ---- b packed: strips of some vectors, k rows each; sums start from a row ----

constexpr int64_t kPackingRows = 32;  // so many, met by them, pay for packing b
// With 4 rows as many sums as cover the time of an addition, and no more than there are registers.
template <int kBytes>
constexpr int kStripVectors = kBytes == 64 ? 2 : 3;

template <int kBytes, int Rows, class T>
WEFT_INLINE void packed_strip(int64_t k, const T* a, int64_t a_row, const T* b, const T* bias,
                              const T* start, T* c, int64_t c_row) {
  constexpr int64_t kCount = kStripVectors<kBytes>, kLanes = kBytes / sizeof(T);
  Vector<T, kBytes> sums[Rows][kCount], line[kCount];
  for (int v = 0; v < kCount; ++v) load(line[v], bias + v * kLanes);
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < kCount; ++v) sums[r][v] = line[v];
    for (int64_t j = 0; j < kCount * kLanes;
         j += 64 / sizeof(T)) {  // what the end needs is on its way
      __builtin_prefetch(c + r * c_row + j, 1);
      if (start) __builtin_prefetch(start + r * c_row + j);
    }
  }
  for (int64_t p = 0; p < k; ++p, b += kCount * kLanes) {
    for (int v = 0; v < kCount; ++v) load(line[v], b + v * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const T x = a[r * a_row + p];
      for (int v = 0; v < kCount; ++v) sums[r][v] += x * line[v];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < kCount && start; ++v) {
      load(line[v], start + r * c_row + v * kLanes);
      sums[r][v] += line[v];
    }
    for (int v = 0; v < kCount; ++v) store(sums[r][v], c + r * c_row + v * kLanes);
  }
}

// n columns of the strips of all groups, which lie one behind the other, as do the rows of `bias`;
// in c they are c_group apart. Where that is not all of a strip, it goes by way of a copy.
template <int kBytes, class T>
WEFT_INLINE void strips_body(int64_t groups, int64_t c_group, int64_t m, int64_t n, int64_t k,
                             const T* a, int64_t a_row, const T* b, const T* bias, const T* start,
                             T* c, int64_t c_row) {
  constexpr int64_t kWidth = kStripVectors<kBytes> * kBytes / sizeof(T);
  const bool whole = n == kWidth;
  for (int64_t g = 0; g < groups; ++g, b += k * kWidth, bias += kWidth) {
    for (int64_t i = 0; i < m; i += kRows<T>) {
      T* const to = c + i * c_row + g * c_group;
      const T* const from = start ? start + (to - c) : nullptr;
      with_rows<T>(m - i, [&](auto rows) __attribute__((always_inline)) {
        T copy[rows() * kWidth];
        for (int r = 0; r < rows() && from && !whole; ++r) {
          std::copy_n(from + r * c_row, n, copy + r * kWidth);
        }
        packed_strip<kBytes, rows()>(k, a + i * a_row, a_row, b, bias, from && !whole ? copy : from,
                                     whole ? to : copy, whole ? c_row : kWidth);
        for (int r = 0; r < rows() && !whole; ++r)
          std::copy_n(copy + r * kWidth, n, to + r * c_row);
      });
    }
  }
}

int64_t strip_bytes() {
  return at_level([](auto bytes) WEFT_INLINED { return kStripVectors<bytes()> * bytes(); });
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
  // Short columns are turned into rows, unless they fill vectors of 32 bytes.
  const bool turns = b.row == 1 && b.column != 1 && k < kUnit && k * sizeof(T) % 32 != 0;
  const bool by_columns = b.row == 1 && (b.column != 1 || n == 1) && !turns;
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
  if (by_columns) {
    return at_level([](auto bytes, auto... given) WEFT_INLINED { dots_body<bytes()>(given...); }, m,
                    n, k, alpha, x, x_row, b.data, b.column, beta, c, c_row);
  }
  // Columns of c stay in the nearest cache while the rows of b stream by.
  const int64_t panel = 4096 / m / 64 * 64;
  Scratch<T> turned(turns ? k * panel : 0);
  for (int64_t j = 0; j < n; j += panel) {
    const int64_t width = std::min(panel, n - j);
    if (turns) pack_rows<T>({b.data + j * b.column, 1, b.column}, k, width, turned.data(), panel);
    for (int64_t i = 0; i < m; ++i) {
      T* const to = c + i * c_row + j;
      for (int64_t l = 0; l < width; ++l)
        to[l] = beta == T(0) ? T(0) : static_cast<T>(beta * to[l]);
    }
    at_level([](auto bytes, auto... given) WEFT_INLINED { add_body<bytes()>(given...); }, m, width,
             k, x, x_row, turns ? turned.data() : b.data + j, turns ? panel : b.row, c + j, c_row);
  }
}

template <class T>
PackedMatrix<T>::PackedMatrix(const Matrix<const T>& b, int64_t k, int64_t groups, int64_t n,
                              const T* bias, int64_t rows, Keep keep)
    : b_(b),
      bias_(bias),
      k_(k),
      groups_(groups),
      n_(n),
      width_(strip_bytes() / static_cast<int64_t>(sizeof(T))),
      strips_(rows < kPackingRows ? 0 : (n + width_ - 1) / width_),
      kept_(strips_ > 0 ? keep(elements(), [this](T* to) { pack(to); }) : nullptr),
      packed_(kept_ ? 0 : elements()),
      starts_(strips_ * groups * width_) {
  if (kept_ == nullptr) pack(packed_.data());
  T* to = starts_.data();
  for (int64_t j = 0; j < strips_ * width_; j += width_) {
    const int64_t columns = std::min(width_, n - j);
    for (int64_t at = j; at < groups * n; at += n, to += width_) {
      std::fill_n(to, width_, T(0));
      if (bias) std::copy_n(bias + at, columns, to);
    }
  }
}

template <class T>
void PackedMatrix<T>::pack(T* to) const {
  for_each_share(1, [&](int64_t first, int64_t last) {
    T* out = to + first * groups_ * k_;
    for (int64_t j = first; j < last && strips_ > 0; j += width_) {
      const int64_t columns = std::min(width_, last - j);
      if (columns < width_) std::fill_n(out, groups_ * k_ * width_, T(0));
      for (int64_t at = j; at < groups_ * n_; at += n_, out += k_ * width_) {
        pack_rows<T>({b_.data + at * b_.column, b_.row, b_.column}, k_, columns, out, width_);
      }
    }
  });
}

template <class T>
void PackedMatrix<T>::for_each_share(int64_t m, FunctionRef<void(int64_t, int64_t)> body) const {
  constexpr int64_t kGrain = int64_t{1} << 18;  // multiplications a thread should have at least
  if (strips_ == 0) return body(0, n_);
  // To read an element of b takes as long as 4 of them.
  const int64_t each = std::max<int64_t>(m, 4) * groups_ * (k_ + 1) * width_;
  parallel_for(strips_, kGrain / each + 1, [&](int64_t begin, int64_t end) {
    body(begin * width_, std::min(end * width_, n_));
  });
}

template <class T>
void PackedMatrix<T>::multiply(int64_t first, int64_t last, int64_t m, const T* a, int64_t a_row,
                               const T* start, T* c, int64_t c_row) const {
  const T* const packed = kept_ ? kept_ : packed_.data();
  for (int64_t j = first; j < last && strips_ > 0; j += width_) {
    at_level([](auto bytes, auto... given) WEFT_INLINED { strips_body<bytes()>(given...); },
             groups_, n_, m, std::min(width_, last - j), k_, a, a_row, packed + j * groups_ * k_,
             starts_.data() + j * groups_, start ? start + j : start, c + j, c_row);
  }
  for (int64_t at = 0; at < m * c_row && strips_ == 0; at += c_row) {
    for (int64_t j = 0; j < groups_ * n_; ++j) {
      c[at + j] = (start ? start[at + j] : T(0)) + (bias_ ? bias_[j] : T(0));
    }
  }
  if (strips_ == 0) gemm<T>(m, groups_ * n_, k_, T(1), {a, a_row, 1}, b_, T(1), c, c_row);
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

#define INSTANTIATE(T)                                                            \
  template bool takes_few_rows<T>(int64_t, const Matrix<const T>&);               \
  template void few_rows<T>(int64_t, int64_t, int64_t, T, const Matrix<const T>&, \
                            const Matrix<const T>&, T, T*, int64_t);
WEFT_GEMM_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace weft::blas
