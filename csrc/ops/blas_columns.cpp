#include "ops/blas_columns.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "ops/scratch.h"
#include "ops/small_gemm.h"
#include "ops/tiled_gemm.h"

namespace weft::blas {
namespace {

constexpr int64_t kMostRows = 512;         // of a
constexpr int64_t kElements = 128 * 1024;  // of a part: it stays in the second-level cache

// A part: so many columns of b, and so many of its rows, one part behind the other.
struct Cut {
  int64_t width, depth;
};

// What is made as it is lies in stretches of a part's width: long ones are what the processor reads
// ahead. Turned, a part has all of k.
Cut cut_of(int64_t m, const RightSizes& b) {
  if (b.turned) {
    return {std::max(kStripColumns, kElements / b.k / kStripColumns * kStripColumns), b.k};
  }
  if (m > 1) return {16 * kStripColumns, kDepth};         // the depth at which tiles cut b
  constexpr int64_t kUnit = 64, kMost = 8192, kStep = 4;  // columns, columns, rows: as gemm's loop
  const int64_t each = (b.n + num_threads() - 1) / num_threads();
  const int64_t width = std::min(kMost, (each + kUnit - 1) / kUnit * kUnit);
  return {width, std::max(kStep, kElements / width / kStep * kStep)};
}

int64_t part_count(int64_t m, const RightSizes& b) {
  const int64_t width = cut_of(m, b).width;
  return (b.n + width - 1) / width;
}

// As gemm does it: one row by the loop for rows, others by tiles.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, T alpha, const Matrix<const T>& a,
              const Matrix<const T>& b, T beta, T* c, int64_t c_row, const Finish& finish) {
  if (m == 1) return gemm<T>(m, n, k, alpha, a, b, beta, c, c_row, finish);
  tiled_gemm<T>(m, n, k, alpha, a, b, beta, c, c_row, finish);
}

}  // namespace

template <class T>
bool takes_columns(int64_t m, const RightSizes& b) {
  if (m < 1 || m > kMostRows || b.n < 2 || b.k < 1) return false;
  if (m == 1) {
    // A lone column at the end would go another way than in gemm.
    if (b.k == 1 || b.n % cut_of(m, b).width == 1) return false;
    return b.turned ? part_count(m, b) >= 2 * num_threads()
                    : b.n >= 2 * kElements * num_threads() / b.k;
  }
  if (part_count(m, b) < 2 * num_threads()) return false;
  return goes_by_tiles<T>(m, b.n, b.k, {nullptr, b.turned ? 1 : b.n, b.turned ? b.k : 1});
}

template <class T>
void gemm_by_columns(int64_t m, const RightSizes& b, T alpha, Matrix<const T> a, T beta, T* c,
                     int64_t c_row, const PartMaker<T>& make, const Finish& finish) {
  const auto [width, depth] = cut_of(m, b);
  parallel_for(part_count(m, b), 1, [&, width = width, depth = depth](int64_t begin, int64_t end) {
    Scratch<T> made(std::min(depth, b.k) * std::min(width, b.n));
    for (int64_t j = begin * width; j < std::min(end * width, b.n); j += width) {
      const int64_t columns = std::min(width, b.n - j);
      if (b.turned) {
        make({j, columns, 0, b.k}, made.data());
        const Matrix<const T> right{made.data(), 1, b.k};
        multiply<T>(m, columns, b.k, alpha, a, right, beta, c + j, c_row, finish.at(0, j));
        continue;
      }
      for (int64_t p = 0; p < b.k; p += depth) {
        const int64_t here = std::min(depth, b.k - p);
        make({p, here, j, columns}, made.data());
        multiply<T>(m, columns, here, alpha, {a.data + p * a.column, a.row, a.column},
                    {made.data(), columns, 1}, p == 0 ? beta : T(1), c + j, c_row,
                    p + here == b.k ? finish.at(0, j) : Finish());
      }
    }
  });
}

#define INSTANTIATE(T)                                                                             \
  template bool takes_columns<T>(int64_t, const RightSizes&);                                      \
  template void gemm_by_columns<T>(int64_t, const RightSizes&, T, Matrix<const T>, T, T*, int64_t, \
                                   const PartMaker<T>&, const Finish&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace weft::blas
