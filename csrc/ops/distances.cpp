// Distances of all pairs of rows, by sums of squares or of magnitudes, and the sums that their
// gradients are.
#include <cmath>

#include "core/thread_pool.h"
#include "native_products.h"
#include "ops.h"
#include "ops/matrices.h"
#include "ops/scratch.h"
#include "ops/support.h"
#include "ops/tiled_gemm.h"
#include "ops/vector.h"

namespace weft::native {
namespace distances {
namespace {

// Rows x1 (batch, m, k) and x2 (batch, n, k) in order, in a dtype that computes.
struct Pairs {
  DType kind;
  Dims batch;
  int64_t count = 1, m, n, k;
  Tensor x1, x2;

  Pairs(const char* op, const Tensor& first, const Tensor& second)
      : kind(checked(op, first, second)),
        batch(broadcast_sizes(op, matrices::batch_sizes(first, 2, {}),
                              matrices::batch_sizes(second, 2, {}))),
        m(first.size(-2)),
        n(second.size(-2)),
        k(first.size(-1)),
        x1(expanded(first)),
        x2(expanded(second)) {
    for (const int64_t size : batch) count *= size;
  }

  Tensor expanded(const Tensor& x) const {
    Dims sizes = batch;
    sizes.push_back(x.size(-2));
    sizes.push_back(x.size(-1));
    return in_order(as_dtype(ops::expand(x, sizes, false), kind));
  }

 private:
  static DType checked(const char* op, const Tensor& first, const Tensor& second) {
    WEFT_CHECK(first.dim() >= 2 && second.dim() >= 2 && first.size(-1) == second.size(-1), op,
               ": expected shapes (..., m, k) and (..., n, k), got ", AsTuple{first.sizes()},
               " and ", AsTuple{second.sizes()});
    return compute_type(first.dtype());
  }
};

constexpr int64_t kWidth = 32;   // columns of a strip of x2, turned: a row of them for each feature
constexpr int64_t kHeight = 64;  // rows of x1 that a thread takes at a time

// The sums of |difference|^kPower of R rows and the columns of a strip; `out` has rows of kWidth.
template <int kPower, int R, class T, int kBytes>
WEFT_INLINE void tile(int64_t k, const T* rows, const T* strip, T* out) {
  using Vector = weft::Vector<T, kBytes>;
  constexpr int kLanes = kBytes / sizeof(T), kVectors = kWidth / kLanes,
                kAtOnce = kVectors < 4 ? kVectors : 4;
  for (int v = 0; v < kVectors; v += kAtOnce) {
    Vector sums[R][kAtOnce] = {};
    for (int64_t p = 0; p < k; ++p) {
#pragma GCC unroll 4
      for (int i = 0; i < kAtOnce; ++i) {
        Vector column;
        load(column, strip + p * kWidth + (v + i) * kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const Vector difference = rows[r * k + p] - column;
          if constexpr (kPower == 1) {
            sums[r][i] += difference < 0 ? -difference : difference;
          } else {
            sums[r][i] += difference * difference;
          }
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int i = 0; i < kAtOnce; ++i) store(sums[r][i], out + r * kWidth + (v + i) * kLanes);
    }
  }
}

template <int kPower, class T>
void distances_from(int64_t rows, int64_t columns, int64_t k, const T* x1, const T* strip,
                    int64_t n, T* out) {
  at_level([&](auto bytes) WEFT_INLINED {
    T sums[4 * kWidth];
    for (int64_t i = 0; i < rows;) {
      const int64_t here = rows - i >= 4 ? 4 : 1;
      if (here == 4) {
        tile<kPower, 4, T, bytes()>(k, x1 + i * k, strip, sums);
      } else {
        tile<kPower, 1, T, bytes()>(k, x1 + i * k, strip, sums);
      }
      for (int64_t r = 0; r < here; ++r, ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const T sum = sums[r * kWidth + j];
          out[i * n + j] = kPower == 1 ? sum : std::sqrt(sum);
        }
      }
    }
  });
}

template <int kPower, class T>
void run(const Pairs& p, const T* x1, const T* x2, T* out) {
  if (p.n == 0) return;
  const int64_t strips = (p.n + kWidth - 1) / kWidth, parts = (p.m + kHeight - 1) / kHeight;
  const int64_t work = kHeight * kWidth * std::max<int64_t>(p.k, 1);
  parallel_for(p.count * parts, (1 << 16) / (work * strips) + 1, [&](int64_t begin, int64_t end) {
    Scratch<T> strip(p.k * kWidth);
    std::fill_n(strip.data(), p.k * kWidth, T(0));
    // A strip, once packed, serves all rows that the thread has of a matrix.
    for (int64_t part = begin; part < end;) {
      const int64_t b = part / parts, last = std::min(end, (b + 1) * parts);
      const int64_t first = part % parts * kHeight,
                    rows = std::min(p.m, (last - b * parts) * kHeight) - first;
      for (int64_t j = 0; j < p.n; j += kWidth) {
        const int64_t columns = std::min(kWidth, p.n - j);
        blas::pack_rows<T>({x2 + (b * p.n + j) * p.k, 1, p.k}, p.k, columns, strip.data(), kWidth);
        distances_from<kPower>(rows, columns, p.k, x1 + (b * p.m + first) * p.k, strip.data(), p.n,
                               out + (b * p.m + first) * p.n + j);
      }
      part = last;
    }
  });
}

// The value itself, or its sign.
template <bool kSigns, class V>
WEFT_INLINE void to_slope(V& value) {
  if constexpr (kSigns) value = value > 0 ? V{} + 1 : (value < 0 ? V{} - 1 : V{});
}

// to[p] += weight[j] * (row[p] - x2[j][p]) for all j, or its sign.
template <bool kSigns, class T>
void add_differences(int64_t n, int64_t k, const T* weight, const T* row, const T* x2, T* to) {
  at_level([&](auto bytes) WEFT_INLINED {
    using Vector = weft::Vector<T, bytes()>;
    constexpr int64_t kLanes = bytes() / sizeof(T), kAtOnce = 4 * kLanes;
    int64_t p = 0;
    for (; p + kAtOnce <= k; p += kAtOnce) {
      Vector sums[4] = {}, own[4];
      for (int i = 0; i < 4; ++i) load(own[i], row + p + i * kLanes);
      for (int64_t j = 0; j < n; ++j) {
        for (int i = 0; i < 4; ++i) {
          Vector other;
          load(other, x2 + j * k + p + i * kLanes);
          other = own[i] - other;
          to_slope<kSigns>(other);
          sums[i] += weight[j] * other;
        }
      }
      for (int i = 0; i < 4; ++i) store(sums[i], to + p + i * kLanes);
    }
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t q = p; q < k; ++q) {
        T slope = row[q] - x2[j * k + q];
        to_slope<kSigns>(slope);
        to[q] += weight[j] * slope;
      }
    }
  });
}

}  // namespace
}  // namespace distances

Tensor _distances(const Tensor& x1, const Tensor& x2, double p) {
  const char* op = "cdist";
  WEFT_CHECK(p == 1 || p == 2, op, ": expected p of 1 or 2, got ", p);
  const distances::Pairs pairs(op, x1, x2);
  Dims sizes = pairs.batch;
  sizes.push_back(pairs.m);
  sizes.push_back(pairs.n);
  const Tensor out = Tensor::empty(sizes, pairs.kind, x1.device(), op);
  dispatch_float(op, pairs.kind, [&]<class T>(std::type_identity<T>) {
    const auto run = p == 1 ? distances::run<1, T> : distances::run<2, T>;
    run(pairs, pairs.x1.data_as<const T>(), pairs.x2.data_as<const T>(), out.data_as<T>());
  });
  return as_dtype(out, x1.dtype());
}

Tensor _difference_sums(const Tensor& weight, const Tensor& x1, const Tensor& x2, bool signs) {
  const char* op = "cdist";
  const distances::Pairs p(op, x1, x2);
  const Tensor weights = p.expanded(weight);
  WEFT_CHECK(weights.size(-2) == p.m && weights.size(-1) == p.n, op, ": expected weights (..., ",
             p.m, ", ", p.n, "), got shape ", AsTuple{weight.sizes()});
  const Tensor out = zeros_of(p.x1.sizes(), p.kind, x1.device(), op);
  dispatch_float(op, p.kind, [&]<class T>(std::type_identity<T>) {
    const int64_t work = std::max<int64_t>(p.n * p.k, 1);
    const auto add =
        signs ? distances::add_differences<true, T> : distances::add_differences<false, T>;
    parallel_for(p.count * p.m, (1 << 15) / work + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        add(p.n, p.k, weights.data_as<const T>() + i * p.n, p.x1.data_as<const T>() + i * p.k,
            p.x2.data_as<const T>() + i / p.m * p.n * p.k, out.data_as<T>() + i * p.k);
      }
    });
  });
  return as_dtype(out, x1.dtype());
}

}  // namespace weft::native
