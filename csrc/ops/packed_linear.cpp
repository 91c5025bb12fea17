#include "ops/packed_linear.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "ops/few_rows.h"
#include "ops/packed_gemm.h"
#include "ops/packed_weight.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"

namespace weft::native {
namespace {

constexpr int64_t kStrip = blas::kStrip, kPair = 2 * kStrip;
constexpr int64_t kRows = 192;  // of a block: stays in the second-level cache

// Rows p of [first, first + depth) of so many columns, in strips that are `depth` rows each.
void pack(const blas::Matrix<const float>& b, int64_t depth, int64_t columns, float* to) {
  for (int64_t j = 0; j < columns; j += kStrip, to += depth * kStrip) {
    const int64_t count = std::min(kStrip, columns - j);
    blas::pack_rows<float>({b.data + j * b.column, b.row, b.column}, depth, count, to, kStrip);
    for (int64_t p = 0; p < depth && count < kStrip; ++p) {
      std::fill(to + p * kStrip + count, to + (p + 1) * kStrip, 0.0f);
    }
  }
}

struct Rows {
  const float* data;
  int64_t row;
};

// Memory of a thread: what it packs.
class Room {
 public:
  // Rows so far apart that they would share few places of the nearest cache are copied.
  Room(bool packs, const blas::Matrix<const float>& a)
      : copies_(a.row % 512 == 0),
        strips_(packs ? blas::kBlockDepth * kPair : 0),
        rows_(copies_ ? kRows * kLine : 0) {}
  bool copies() const { return copies_; }
  Rows copy(const Rows& from, int64_t count, int64_t depth) {
    blas::pack_rows<float>({from.data, from.row, 1}, count, depth, rows_.data(), kLine);
    return {rows_.data(), kLine};
  }
  const float* pack(const blas::Matrix<const float>& b, int64_t depth, int64_t columns) {
    weft::native::pack(b, depth, columns, strips_.data());
    return strips_.data();
  }

 private:
  static constexpr int64_t kLine = blas::kBlockDepth + kStrip;
  const bool copies_;
  Scratch<float> strips_, rows_;
};

struct Product {
  int64_t k, n;
  blas::Matrix<const float> a, b;
  const float* strips;  // of all of b; null: pack them
  blas::Sink sink;
  float* out;

  // Some rows and columns of the result: in parts of columns, which stay in the second-level cache
  // until they are finished.
  void run(const blas::Split::Piece& piece, Room& room) const {
    const auto [group, first, count, column, columns] = piece;
    constexpr int64_t kPart = 16 * kPair;
    const int64_t blocks = (k + blas::kBlockDepth - 1) / blas::kBlockDepth;
    for (int64_t j = column; j < column + columns; j += kPart) {
      const int64_t width = std::min(kPart, column + columns - j);
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t begin = k * block / blocks, depth = k * (block + 1) / blocks - begin;
        Rows from{a.data + first * a.row + begin, a.row};
        if (room.copies()) from = room.copy(from, count, depth);
        add(from, first, count, j, width, begin, depth, room);
      }
    }
  }

  // So much of the depth of so many columns.
  void add(const Rows& from, int64_t first, int64_t count, int64_t column, int64_t columns,
           int64_t begin, int64_t depth, Room& room) const {
    const int64_t step = strips ? columns : kPair;  // of what is multiplied at once
    for (int64_t j = column; j < column + columns; j += step) {
      const int64_t width = std::min(step, column + columns - j), at = first * n + j;
      const float* const to =
          strips
              ? strips + j * k + begin * kStrip
              : room.pack({b.data + begin * b.row + j * b.column, b.row, b.column}, depth, width);
      const blas::Sink last = begin + depth == k ? sink.at(at, j) : blas::Sink{};
      blas::gemm_strips(count, width, depth, from.data, from.row, to, (strips ? k : depth) * kStrip,
                        begin > 0, out + at, n, last);
    }
  }
};

bool fits(const Tensor& out, const Tensor& start, const Tensor& rows, const Tensor& weight) {
  constexpr int64_t kLeast = 128 * 128;  // elements of a weight: smaller ones are packed in no time
  const int64_t k = weight.sizes()[1], n = weight.sizes()[0];
  auto fits_dtype = [](const Tensor& t) { return t.dtype() == DType::F32; };
  if (!fits_dtype(out) || !fits_dtype(rows) || !fits_dtype(weight)) return false;
  if (k < kStrip || n < kPair || n * k < kLeast || rows.strides()[1] != 1) return false;
  if (blas::takes_few_rows<float>(rows.sizes()[0], {nullptr, 1, k})) return false;
  return !start.defined() || (fits_dtype(start) && start.dim() == 1 && start.sizes()[0] == n &&
                              start.strides()[0] == 1);
}

Ref<PackedWeight> kept_strips(const Tensor& weight, const blas::Matrix<const float>& b) {
  const int64_t k = weight.sizes()[1], n = weight.sizes()[0], strips = blas::strips_of(n);
  return kept_weight(weight, PackedForm::Strips, 1, blas::packed_size(k, n), [&](float* to) {
    parallel_for(strips / 2, 1 + 16384 / (k * kPair), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * kPair; j < end * kPair; j += kPair) {
        const int64_t columns = std::min(kPair, n - j);
        pack({b.data + j * b.column, b.row, b.column}, k, columns, to + j * k);
        if (columns <= kStrip) std::fill_n(to + (j + kStrip) * k, k * kStrip, 0.0f);
      }
    });
  });
}

}  // namespace

bool packed_linear(const Tensor& out, const Tensor& start, const Tensor& rows,
                   const Tensor& weight) {
  if (!fits(out, start, rows, weight)) return false;
  const int64_t m = rows.sizes()[0], k = weight.sizes()[1], n = weight.sizes()[0];
  const blas::Matrix<const float> b{weight.data_as<const float>(), weight.strides()[1],
                                    weight.strides()[0]};
  const Ref<PackedWeight> kept = kept_strips(weight, b);
  const Product product{k,
                        n,
                        {rows.data_as<const float>(), rows.strides()[0], 1},
                        b,
                        kept ? kept->data() : nullptr,
                        {start.defined() ? start.data_as<const float>() : nullptr},
                        out.data_as<float>()};
  const blas::Split s = blas::split_work(m, kRows, n, 1, k);
  parallel_for(s.pieces(), s.grain, [&](int64_t begin, int64_t end) {
    Room room(!kept, product.a);
    for (int64_t i = begin; i < end; ++i) {
      const blas::Split::Piece piece = s[i];
      if (piece.count > 0) product.run(piece, room);
    }
  });
  return true;
}

}  // namespace weft::native
