#include "ops/conv_winograd.h"

#include <cstring>

#include "core/thread_pool.h"
#include "ops/conv_channels.h"
#include "ops/packed_weight.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"
#include "ops/vector.h"

namespace weft::native::conv {
namespace {

using blas::kStrip;
constexpr int64_t kPoints = 16;

// Calls fn(i) for vectors that cover [0, count). The last one starts early enough to be whole.
template <class Vector, class Fn>
WEFT_INLINE void for_vectors(int64_t count, Fn&& fn) {
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
  for (int64_t i = 0; i < count; i += kWidth) fn(std::min(i, count - kWidth));
}

// ---- weight: U = G g G^T, [point] of strips ----

// Tap t of kStrip kernels lies at taps + t * step; the points lie `distance` apart.
template <class Vector>
WEFT_INLINE void transform_kernels_body(const float* taps, int64_t step, float* u,
                                        int64_t distance) {
  for_vectors<Vector>(kStrip, [&](int64_t c) __attribute__((always_inline)) {
    Vector rows[4][3];  // G g
    for (int j = 0; j < 3; ++j) {
      Vector top, middle, bottom;
      load(top, taps + j * step + c);
      load(middle, taps + (3 + j) * step + c);
      load(bottom, taps + (6 + j) * step + c);
      rows[0][j] = top;
      rows[1][j] = 0.5f * (top + bottom + middle);
      rows[2][j] = 0.5f * (top + bottom - middle);
      rows[3][j] = bottom;
    }
    for (int i = 0; i < 4; ++i) {
      float* const to = u + 4 * i * distance + c;
      const Vector outer = rows[i][0] + rows[i][2];
      store(rows[i][0], to);
      store(0.5f * (outer + rows[i][1]), to + distance);
      store(0.5f * (outer - rows[i][1]), to + 2 * distance);
      store(rows[i][2], to + 3 * distance);
    }
  });
}

// ---- input: V = B^T d B, [point][tile][in] ----

template <class Vector>
WEFT_INLINE void transform_input_body(const float* const* pixels, int64_t channels, float* v,
                                      int64_t distance) {
  for_vectors<Vector>(channels, [&](int64_t c) __attribute__((always_inline)) {
    Vector rows[4][4];
    for (int j = 0; j < 4; ++j) {
      Vector d[4];
      for (int i = 0; i < 4; ++i) load(d[i], pixels[4 * i + j] + c);
      rows[0][j] = d[0] - d[2];
      rows[1][j] = d[1] + d[2];
      rows[2][j] = d[2] - d[1];
      rows[3][j] = d[1] - d[3];
    }
    for (int i = 0; i < 4; ++i) {
      float* const to = v + 4 * i * distance + c;
      store(rows[i][0] - rows[i][2], to);
      store(rows[i][1] + rows[i][2], to + distance);
      store(rows[i][2] - rows[i][1], to + 2 * distance);
      store(rows[i][1] - rows[i][3], to + 3 * distance);
    }
  });
}

// ---- output: Y = A^T m A ----

// Where the 2x2 results of a tile go; null outside of the image.
struct Results {
  float* to[4];
  blas::Sink sink[4];
};

template <class Vector>
WEFT_INLINE void transform_output_body(const float* m, int64_t distance, int64_t channels,
                                       const Results& results) {
  for_vectors<Vector>(channels, [&](int64_t c) __attribute__((always_inline)) {
    Vector rows[2][4], more;
    for (int j = 0; j < 4; ++j) {
      Vector of[4];
      for (int i = 0; i < 4; ++i) load(of[i], m + (4 * i + j) * distance + c);
      rows[0][j] = of[0] + of[1] + of[2];
      rows[1][j] = of[1] - of[2] - of[3];
    }
    for (int p = 0; p < 4; ++p) {
      if (!results.to[p]) continue;
      const Vector* const row = rows[p / 2];
      Vector sum = p % 2 ? row[1] - row[2] - row[3] : row[0] + row[1] + row[2];
      const blas::Sink& sink = results.sink[p];
      if (sink.bias) {
        load(more, sink.bias + c);
        sum += more;
      }
      if (sink.residual) {
        load(more, sink.residual + c);
        sum += more;
      }
      if (sink.relu) blas::hold(sum, sink.high);
      store(sum, results.to[p] + c);
    }
  });
}

void transform_kernels(const float* taps, int64_t step, float* u, int64_t distance) {
  at_level([&](auto bytes) WEFT_INLINED {
    transform_kernels_body<Vector<float, bytes()>>(taps, step, u, distance);
  });
}
void transform_input(const float* const* pixels, int64_t channels, float* v, int64_t distance) {
  at_level([&](auto bytes) WEFT_INLINED {
    transform_input_body<Vector<float, bytes()>>(pixels, channels, v, distance);
  });
}
void transform_output(const float* m, int64_t distance, int64_t channels, const Results& results) {
  at_level([&](auto bytes) WEFT_INLINED {
    transform_output_body<Vector<float, bytes()>>(m, distance, channels, results);
  });
}

// Points, and what is transformed together, lie a line of the cache more apart than they are long:
// at a multiple of 4096 bytes all 16 would share one set of the cache.
constexpr int64_t kGap = 64 / sizeof(float);

// From one point of a group's weight to the next, in elements.
int64_t point_size(const Geometry& g) {
  return blas::packed_size(g.group_in(), g.group_out()) + kGap;
}

// The taps of `count` kernels for kInputs of their inputs, as the transformation reads them.
class TapRows {
 public:
  static constexpr int64_t kInputs = 16;

  explicit TapRows(const Taps& t)
      : t_(t),
        in_row_(t.in == 9 && t.row == 3 * t.column && t.column * t.column == 1),
        back_(in_row_ && t.column < 0) {}

  int64_t step() const { return in_row_ ? (back_ ? -kStrip : kStrip) : kInputs * kStrip; }
  // The first tap of the input that was read as number i.
  const float* first(int64_t i) const {
    return taps_ + (in_row_ ? i * 9 + (back_ ? 8 : 0) : i) * kStrip;
  }

  void read(const float* from, int64_t inputs, int64_t count) {
    if (in_row_) {
      const float* const lowest = back_ ? from - 8 : from;
      return blas::pack_rows<float>({lowest, 1, t_.out}, 9 * inputs, count, taps_, kStrip);
    }
    for (int64_t k = 0; k < 9; ++k) {
      const float* const tap = from + k / 3 * t_.row + k % 3 * t_.column;
      blas::pack_rows<float>({tap, t_.in, t_.out}, inputs, count, taps_ + k * step(), kStrip);
    }
  }

 private:
  const Taps t_;
  const bool in_row_, back_;
  float taps_[9 * kStrip * kInputs] = {};  // 0 for kernels that are none
};

void transform_weight(const Geometry& g, const Taps& t, float* u) {
  const int64_t in = g.group_in(), strips = blas::strips_of(g.group_out());
  parallel_for(g.groups * strips, 256 / in + 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t group = s / strips, first = s % strips * kStrip;
      const int64_t count = std::clamp<int64_t>(g.group_out() - first, 0, kStrip);
      const float* const from = t.data + group * t.of_group + first * t.out;
      float* to = u + group * kPoints * point_size(g) + s % strips * in * kStrip;
      TapRows taps(t);
      for (int64_t c = 0, here; c < in; c += here) {
        here = std::min(TapRows::kInputs, in - c);
        taps.read(from + c * t.in, here, count);
        for (int64_t i = 0; i < here; ++i, to += kStrip) {
          transform_kernels(taps.first(i), taps.step(), to, point_size(g));
        }
      }
      if (s % strips + 1 < strips) continue;
      for (int64_t k = 0; k < kPoints; ++k) std::fill_n(to + k * point_size(g), kGap, 0.0f);
    }
  });
}

// ---- blocks ----

int64_t tile_columns(const Geometry& g) { return (g.out_width + 1) / 2; }
int64_t tiles_of(const Geometry& g) { return g.batch * ((g.out_height + 1) / 2) * tile_columns(g); }

// Tile t: the place of its first result.
struct Place {
  int64_t image, y, x;

  Place(const Geometry& g, int64_t t)
      : image(t / tile_columns(g) / ((g.out_height + 1) / 2)),
        y(t / tile_columns(g) % ((g.out_height + 1) / 2) * 2),
        x(t % tile_columns(g) * 2) {}
};

// One thread's part: tiles of a group, whose V and products stay near.
class Worker {
 public:
  Worker(const Geometry& g, const float* input, const float* u, const blas::Sink& sink, float* out,
         int64_t tiles)
      : g_(g),
        input_(input),
        u_(u),
        sink_(sink),
        out_(out),
        line_(g.group_in() + kStrip),
        plane_(tiles * line_ + kGap),
        chunk_(std::min(g.group_out(), kChunk + kStrip)),
        products_(tiles * chunk_ + kGap),
        v_(kPoints * plane_),
        m_(kPoints * products_),
        zeros_(g.group_in()) {
    std::fill_n(zeros_.data(), g.group_in(), 0.0f);
  }

  // Tiles of a block.
  static int64_t most_tiles(const Geometry& g) {
    constexpr int64_t kElements = 128 * 1024;
    const int64_t tile = kPoints * (g.group_in() + std::min(g.group_out(), kChunk));
    return std::clamp<int64_t>(kElements / tile, 48, 192);
  }

  void run(const blas::Split::Piece& p) {
    for (int64_t t = 0; t < p.count; ++t) read_tile(p.group, p.first + t, v_.data() + t * line_);
    for (int64_t o = p.column, here; o < p.column + p.columns; o += here) {
      const int64_t left = p.column + p.columns - o;
      here = left <= chunk_ ? left : kChunk;  // none is narrower than a vector
      multiply(p.group, p.count, o, here);
      for (int64_t t = 0; t < p.count; ++t) {
        write_tile(p.first + t, p.group * g_.group_out() + o, here, m_.data() + t * chunk_);
      }
    }
  }

 private:
  static constexpr int64_t kChunk = 128;  // output channels multiplied before they are transformed

  void read_tile(int64_t group, int64_t tile, float* v) {
    const Place at(g_, tile);
    const float* pixels[16];
    for (int64_t p = 0; p < 16; ++p) {
      const int64_t y = at.y + p / 4 - g_.pad_h, x = at.x + p % 4 - g_.pad_w;
      const bool inside = y >= 0 && y < g_.height && x >= 0 && x < g_.width;
      const int64_t pixel = (at.image * g_.height + y) * g_.width + x;
      pixels[p] = inside ? input_ + pixel * g_.in_channels + group * g_.group_in() : zeros_.data();
    }
    transform_input(pixels, g_.group_in(), v, plane_);
  }

  void multiply(int64_t group, int64_t tiles, int64_t column, int64_t columns) {
    const int64_t in = g_.group_in(), strip = in * kStrip;
    for (int64_t k = 0; k < kPoints; ++k) {
      const float* b = u_ + (group * kPoints + k) * point_size(g_) + column / kStrip * strip;
      for (int64_t p = 0; p < in; p += blas::kBlockDepth) {
        blas::gemm_strips(tiles, columns, std::min(blas::kBlockDepth, in - p),
                          v_.data() + k * plane_ + p, line_, b + p * kStrip, strip, p > 0,
                          m_.data() + k * products_, chunk_, {});
      }
    }
  }

  void write_tile(int64_t tile, int64_t channel, int64_t count, const float* m) {
    const Place at(g_, tile);
    Results results;
    for (int64_t p = 0; p < 4; ++p) {
      const int64_t y = at.y + p / 2, x = at.x + p % 2;
      const int64_t pixel = (at.image * g_.out_height + y) * g_.out_width + x;
      const int64_t place = pixel * g_.out_channels + channel;
      results.to[p] = y < g_.out_height && x < g_.out_width ? out_ + place : nullptr;
      results.sink[p] = sink_.at(place, channel);
    }
    transform_output(m, products_, count, results);
  }

  const Geometry& g_;
  const float *const input_, *const u_;
  const blas::Sink& sink_;
  float* const out_;
  const int64_t line_, plane_, chunk_, products_;
  Scratch<float> v_, m_, zeros_;
};

}  // namespace

bool fits_winograd(const Geometry& g) {
  constexpr int64_t kChannels = 16, kPositions = 48;
  const bool plain = g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 &&
                     g.dilation_h == 1 && g.dilation_w == 1 && g.pad_h <= 2 && g.pad_w <= 2;
  return plain && g.group_in() >= kChannels && g.group_out() >= kChannels &&
         g.batch * g.positions() >= kPositions;
}

Ref<PackedWeight> winograd_weight(const Geometry& g, const Tensor& weight) {
  return packed_weight(weight, PackedForm::Winograd, g.groups, g.groups * kPoints * point_size(g),
                       [&](float* to) { transform_weight(g, taps_of(g, weight), to); });
}

Ref<PackedWeight> winograd_turned_weight(const Geometry& g, const Tensor& weight) {
  const Geometry back = turned(g);
  return packed_weight(weight, PackedForm::WinogradTurned, g.groups,
                       g.groups * kPoints * point_size(back), [&](float* to) {
                         const Taps t = taps_of(g, weight);
                         const float* last = t.data + 2 * (t.row + t.column);
                         transform_weight(back, {last, t.of_group, t.in, t.out, -t.row, -t.column},
                                          to);
                       });
}

Geometry turned(const Geometry& g) {
  Geometry t = g;
  std::swap(t.in_channels, t.out_channels);
  std::swap(t.height, t.out_height);
  std::swap(t.width, t.out_width);
  t.pad_h = 2 - g.pad_h;
  t.pad_w = 2 - g.pad_w;
  return t;
}

void winograd_forward(const Geometry& g, const float* input, const float* weight,
                      const blas::Sink& sink, float* out) {
  const int64_t tiles = tiles_of(g);
  const blas::Split s = blas::split_work(tiles, Worker::most_tiles(g), g.group_out(), g.groups,
                                         kPoints * g.group_in());
  parallel_for(s.pieces(), s.grain, [&](int64_t begin, int64_t end) {
    Worker worker(g, input, weight, sink, out, s.block);
    for (int64_t i = begin; i < end; ++i) {
      const blas::Split::Piece piece = s[i];
      if (piece.count > 0) worker.run(piece);
    }
  });
}

}  // namespace weft::native::conv
