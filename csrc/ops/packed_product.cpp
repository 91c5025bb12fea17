#include "ops/packed_product.h"

#include <algorithm>
#include <vector>

#include "core/thread_pool.h"
#include "ops/packed_words.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"

namespace weft::blas {
namespace {

constexpr int64_t kPair = 2 * kStrip;
constexpr int64_t kRows = 192;  // of a block: stays in the second-level cache

struct Rows {
  const float* data;
  int64_t row;
};

// Memory of a thread: what it packs.
class Workspace {
 public:
  // Rows so far apart that those of a tile would share few places of the nearest cache are copied.
  explicit Workspace(const PackedProduct& t)
      : t_(t),
        copies_(t.factors || t.a.column != 1 ||
                t.a.row % (t.of == Elements::Floats ? 1024 : 512) == 0),
        strips_(t.strips ? 0 : kBlockDepth * kPair),
        rows_(copies_ ? kRows * kLine : 0) {}
  Rows rows(int64_t first, int64_t count, int64_t begin, int64_t depth) {
    const float* const from = t_.a.data + first * t_.a.row + begin * t_.a.column;
    if (!copies_) return {from, t_.a.row};
    if (t_.factors) {
      t_.factors->rows(first, count, begin, depth, rows_.data(), kLine);
    } else {
      pack_rows<float>({from, t_.a.row, t_.a.column}, count, depth, rows_.data(), kLine);
    }
    return {rows_.data(), kLine};
  }
  const float* strips(int64_t begin, int64_t depth, int64_t column, int64_t columns) {
    if (t_.strips) return t_.strips + column * t_.k + begin * kStrip;
    if (t_.factors) {
      t_.factors->strips(begin, depth, column, columns, strips_.data());
    } else {
      const float* const from = t_.b.data + begin * t_.b.row + column * t_.b.column;
      pack_strips<float>({from, t_.b.row, t_.b.column}, depth, columns, kStrip, strips_.data());
    }
    return strips_.data();
  }

 private:
  static constexpr int64_t kLine = kBlockDepth + kStrip;
  const PackedProduct& t_;
  const bool copies_;
  Scratch<float> strips_, rows_;
};

// So much of the depth of so many columns.
void add_part(const PackedProduct& t, const Rows& from, int64_t first, int64_t count,
              int64_t column, int64_t columns, int64_t begin, int64_t depth, Workspace& workspace) {
  const int64_t step = t.strips ? columns : kPair;  // of what is multiplied at once
  for (int64_t j = column; j < column + columns; j += step) {
    const int64_t width = std::min(step, column + columns - j), at = first * t.n + j;
    const float* const to = workspace.strips(begin, depth, j, width);
    const Sink last = begin + depth == t.k ? t.sink.at(at, j) : Sink{};
    gemm_strips(count, width, depth, from.data, from.row, to, (t.strips ? t.k : depth) * kStrip,
                t.add || begin > 0, t.out + at, t.n, last, t.of);
  }
}

// Some rows and columns of the result: in parts of columns, which stay in the second-level cache
// until they are finished.
void run_piece(const PackedProduct& t, const Split::Piece& piece, Workspace& workspace) {
  const auto [group, first, count, column, columns] = piece;
  constexpr int64_t kPart = 16 * kPair;
  const int64_t blocks = (t.k + kBlockDepth - 1) / kBlockDepth;
  for (int64_t j = column; j < column + columns; j += kPart) {
    const int64_t width = std::min(kPart, column + columns - j);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t begin = t.k * block / blocks, depth = t.k * (block + 1) / blocks - begin;
      const Rows from = workspace.rows(first, count, begin, depth);
      add_part(t, from, first, count, j, width, begin, depth, workspace);
    }
  }
}

}  // namespace

void PackedProduct::run() const {
  const Split s = split_work(m, kRows, n, 1, k);
  parallel_for(s.pieces(), s.grain, [&](int64_t begin, int64_t end) {
    Workspace workspace(*this);
    for (int64_t i = begin; i < end; ++i) {
      const Split::Piece piece = s[i];
      if (piece.count > 0) run_piece(*this, piece, workspace);
    }
  });
}

void pack_matrix(const Matrix<const float>& b, int64_t k, int64_t n, float* to) {
  parallel_for(strips_of(n) / 2, 1 + 16384 / (k * kPair), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * kPair; j < end * kPair; j += kPair) {
      const int64_t columns = std::min(kPair, n - j);
      pack_strips<float>({b.data + j * b.column, b.row, b.column}, k, columns, kStrip, to + j * k);
      if (columns <= kStrip) std::fill_n(to + (j + kStrip) * k, k * kStrip, 0.0f);
    }
  });
}

namespace {

template <class T>
void word_gemm(int64_t m, int64_t n, int64_t k, const WordMatrix<T>& a, const WordMatrix<T>& b,
               const Sink& sink, bool add, Elements of, float* c) {
  const int64_t words = (k + WordMatrix<T>::kEach - 1) / WordMatrix<T>::kEach;
  Scratch<float> strips(packed_size(words, n));
  pack_matrix(b.words().transposed(), words, n, strips.data());
  PackedProduct{m, n, words, a.words(), b.words().transposed(), strips.data(), sink, add, of, c}
      .run();
}

}  // namespace

void bfloat16_gemm(int64_t m, int64_t n, int64_t k, const Matrix<const uint16_t>& a,
                   const Matrix<const uint16_t>& b, bool add, float* c) {
  const WordMatrix<uint16_t> left(a, m, k), right(b.transposed(), n, k);
  word_gemm(m, n, k, left, right, {}, add, Elements::BFloat16Pairs, c);
}

// The processor multiplies unsigned by signed numbers: 128 is added to those of a, and what that
// adds to a column is taken off again.
void int8_gemm(int64_t m, int64_t n, int64_t k, const Matrix<const uint8_t>& a,
               const Matrix<const uint8_t>& b, int32_t* c) {
  constexpr uint32_t kSigns = 0x80808080;
  const WordMatrix<uint8_t> left(a, m, k, kSigns), right(b.transposed(), n, k);
  std::vector<uint32_t> bias(static_cast<size_t>(n));  // unsigned: sums wrap around
  parallel_for(n, 1 + 16384 / (k + 1), [&](int64_t begin, int64_t end) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = begin; j < end; ++j) {
        const auto value = static_cast<int8_t>(b.data[p * b.row + j * b.column]);
        bias[static_cast<size_t>(j)] -= 128 * static_cast<uint32_t>(value);
      }
    }
  });
  word_gemm(m, n, k, left, right, {reinterpret_cast<const float*>(bias.data())}, false,
            Elements::Int8Quads, reinterpret_cast<float*>(c));
}

}  // namespace weft::blas
