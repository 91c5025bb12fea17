#include "ops/conv_winograd.h"

#include <cstring>

#include "core/thread_pool.h"
#include "ops/blas.h"
#include "ops/deinterleave.h"
#include "ops/levels.h"
#include "ops/scratch.h"
#include "ops/tiled_gemm.h"

namespace weft::native::conv {
namespace {

constexpr int64_t kLanes = 16, kPoints = 16;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Places __attribute__((vector_size(kLanes * sizeof(int32_t))));

WEFT_INLINE void load(Lanes& lanes, const float* from) { std::memcpy(&lanes, from, sizeof(lanes)); }
WEFT_INLINE void store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof(lanes)); }

// One convolution: of a gradient it is the one that leads back to the input.
struct Task {
  int64_t batch, in_channels, out_channels;  // of a group
  int64_t groups;
  int64_t height, width, out_height, out_width, pad_h, pad_w;
  bool turned;  // weight is [in, out, 3, 3], to be turned by 180 degrees

  int64_t tile_rows() const { return (out_height + 1) / 2; }
  // Tiles of a row and one more, which holds nothing: so tiles of a whole image follow each other
  // at equal distances (see Planes).
  int64_t row_tiles() const { return (out_width + 1) / 2 + 1; }
};

// ---- weight: U = G g G^T, [point][out][in] ----

// The kernels of one output channel: tap k of channel c at taps[k * line + c], point k of it goes
// to u[k * line + c]. `line`: whole vectors.
WEFT_INLINE void transform_kernels_body(const float* taps, int64_t line, float* u) {
  const Lanes half_of = Lanes{} + 0.5f;
  for (int64_t c = 0; c < line; c += kLanes) {
    Lanes half[4][3];  // G g
    for (int j = 0; j < 3; ++j) {
      Lanes middle;
      load(half[0][j], taps + j * line + c);
      load(middle, taps + (3 + j) * line + c);
      load(half[3][j], taps + (6 + j) * line + c);
      const Lanes outer = half[0][j] + half[3][j];
      half[1][j] = half_of * (outer + middle);
      half[2][j] = half_of * (outer - middle);
    }
    for (int i = 0; i < 4; ++i) {
      float* const to = u + 4 * i * line + c;
      const Lanes outer = half[i][0] + half[i][2];
      store(half[i][0], to);
      store(half_of * (outer + half[i][1]), to + line);
      store(half_of * (outer - half[i][1]), to + 2 * line);
      store(half[i][2], to + 3 * line);
    }
  }
}

#define DEFINE(level, target, width)                                                 \
  target void transform_kernels_##level(const float* taps, int64_t line, float* u) { \
    transform_kernels_body(taps, line, u);                                           \
  }
WEFT_LEVELS(DEFINE)
#undef DEFINE

void transform_kernels(const float* taps, int64_t line, float* u) {
  WEFT_PICK(transform_kernels, taps, line, u);
}

// Points lie a power of two apart where the numbers of channels are: one number of each at a time
// would crowd into few places of the cache, so that a channel's lines are copied as a whole.
void transform_weight(const Task& t, const float* weight, float* u) {
  const int64_t in = t.in_channels, out = t.out_channels, count = in * out;
  const int64_t line = (in + kLanes - 1) / kLanes * kLanes;
  parallel_for(out * t.groups, 4096 / in + 1, [&](int64_t begin, int64_t end) {
    Scratch<float> taps(9 * line), points(kPoints * line);
    std::fill_n(taps.data(), 9 * line, 0.0f);
    for (int64_t index = begin; index < end; ++index) {
      const int64_t group = index / out, o = index % out;
      const float* from = weight + group * count * 9;
      // Tap k of channel c lies at from[k * step + c * apart].
      const int64_t apart = 9 * (t.turned ? out : 1), step = t.turned ? -1 : 1;
      from += t.turned ? 9 * o + 8 : 9 * o * in;
      blas::pack_rows<float>({from, step, apart}, 9, in, taps.data(), line);
      transform_kernels(taps.data(), line, points.data());
      float* const to = u + group * count * kPoints + o * in;
      for (int64_t k = 0; k < kPoints; ++k)
        std::copy_n(points.data() + k * line, in, to + k * count);
    }
  });
}

// ---- input: V = B^T d B, [point][in][tile] ----

// Rows of one image channel under consecutive tile rows, parted by the parity of row and column:
// element (row 2a + p, column 2b + q) lies at of[p][q][a * row_tiles + b]. Then what a tile reads
// lies at equal places beside what its neighbour reads.
struct Planes {
  float* of[2][2];
};

void split_row(const Task& t, const float* image, int64_t row, float* even, float* odd) {
  const int64_t tiles = t.row_tiles();
  if (row < 0 || row >= t.height) {
    std::fill_n(even, tiles, 0.0f);
    std::fill_n(odd, tiles, 0.0f);
    return;
  }
  const float* from = image + row * t.width;
  auto at = [&](int64_t x) { return x >= 0 && x < t.width ? from[x] : 0.0f; };
  // Pairs that lie inside of the image need no questions.
  const int64_t first = std::min((t.pad_w + 1) / 2, tiles);
  const int64_t last = std::max(first, std::min(tiles, (t.width + t.pad_w) / 2));
  auto careful = [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      even[b] = at(2 * b - t.pad_w);
      odd[b] = at(2 * b + 1 - t.pad_w);
    }
  };
  careful(0, first);
  deinterleave(from + 2 * first - t.pad_w, last - first, even + first, odd + first);
  careful(last, tiles);
}

void split_rows(const Task& t, const float* image, int64_t first, int64_t count, Planes& planes) {
  for (int64_t a = 0; a <= count; ++a) {
    for (int p = 0; p < 2; ++p) {
      const int64_t at = a * t.row_tiles();
      split_row(t, image, 2 * (first + a) + p - t.pad_h, planes.of[p][0] + at,
                planes.of[p][1] + at);
    }
  }
}

// The transform of `tiles` tiles of one channel; point k goes to v + k * distance. Writes up to
// kLanes - 1 elements more.
WEFT_INLINE void transform_input_body(const Planes& planes, int64_t row_tiles, int64_t tiles,
                                      float* v, int64_t distance) {
  for (int64_t f = 0; f < tiles; f += kLanes) {
    Lanes d[4][4];
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        load(d[i][j], planes.of[i % 2][j % 2] + f + i / 2 * row_tiles + j / 2);
      }
    }
    Lanes rows[4][4];
    for (int j = 0; j < 4; ++j) {
      rows[0][j] = d[0][j] - d[2][j];
      rows[1][j] = d[1][j] + d[2][j];
      rows[2][j] = d[2][j] - d[1][j];
      rows[3][j] = d[1][j] - d[3][j];
    }
    for (int i = 0; i < 4; ++i) {
      float* to = v + f + 4 * i * distance;
      store(rows[i][0] - rows[i][2], to);
      store(rows[i][1] + rows[i][2], to + distance);
      store(rows[i][2] - rows[i][1], to + 2 * distance);
      store(rows[i][1] - rows[i][3], to + 3 * distance);
    }
  }
}

// ---- output: Y = A^T m A, lines[p][2 * tile + q] ----

WEFT_INLINE void transform_output_body(const float* m, int64_t distance, int64_t tiles, float bias,
                                       float* even, float* odd) {
  const Places low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Places high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  for (int64_t f = 0; f < tiles; f += kLanes) {
    Lanes rows[2][4];
    for (int j = 0; j < 4; ++j) {
      Lanes a, b, c, d;
      load(a, m + f + j * distance);
      load(b, m + f + (4 + j) * distance);
      load(c, m + f + (8 + j) * distance);
      load(d, m + f + (12 + j) * distance);
      rows[0][j] = a + b + c;
      rows[1][j] = b - c - d;
    }
    for (int p = 0; p < 2; ++p) {
      const Lanes left = rows[p][0] + rows[p][1] + rows[p][2] + bias;
      const Lanes right = rows[p][1] - rows[p][2] - rows[p][3] + bias;
      float* to = (p ? odd : even) + 2 * f;
      store(__builtin_shuffle(left, right, low), to);
      store(__builtin_shuffle(left, right, high), to + kLanes);
    }
  }
}

#define DEFINE(level, target, width)                                                          \
  target void transform_input_##level(const Planes& planes, int64_t row_tiles, int64_t tiles, \
                                      float* v, int64_t distance) {                           \
    transform_input_body(planes, row_tiles, tiles, v, distance);                              \
  }                                                                                           \
  target void transform_output_##level(const float* m, int64_t distance, int64_t tiles,       \
                                       float bias, float* even, float* odd) {                 \
    transform_output_body(m, distance, tiles, bias, even, odd);                               \
  }
WEFT_LEVELS(DEFINE)
#undef DEFINE

void transform_input(const Planes& planes, int64_t row_tiles, int64_t tiles, float* v,
                     int64_t distance) {
  WEFT_PICK(transform_input, planes, row_tiles, tiles, v, distance);
}
void transform_output(const float* m, int64_t distance, int64_t tiles, float bias, float* even,
                      float* odd) {
  WEFT_PICK(transform_output, m, distance, tiles, bias, even, odd);
}

// ---- blocks ----

// Consecutive tile rows of one image.
struct Segment {
  int64_t image, first, count;
};

// One thread's part: tile rows of a group, whose V and products stay in the second-level cache.
class Worker {
 public:
  Worker(const Task& t, const float* input)
      : t_(t),
        input_(input),
        rows_(rows_of(t)),
        line_(padded(rows_ * t.row_tiles() + kLanes)),
        chunk_(std::min(t.out_channels, kChunk)),
        plane_((rows_ + 1) * t.row_tiles() + kLanes),
        v_(kPoints * t.in_channels * line_),
        m_(kPoints * chunk_ * line_),
        planes_(4 * plane_),
        lines_(4 * line_) {
    // Lanes beyond the last tile are computed and multiplied too: denormals in what was left in
    // memory would make that slow.
    std::fill_n(planes_.data(), 4 * plane_, 0.0f);
    for (int k = 0; k < 4; ++k) split_.of[k / 2][k % 2] = planes_.data() + k * plane_;
  }

  // Tile rows of a block: those of all images in a row.
  static int64_t rows_of(const Task& t) {
    constexpr int64_t kElements = 256 * 1024;
    const int64_t tiles =
        kElements / (kPoints * (t.in_channels + std::min(t.out_channels, kChunk)));
    const int64_t row = t.row_tiles();
    return std::clamp<int64_t>(std::clamp<int64_t>(tiles, 64, 256) / row, 1,
                               t.batch * t.tile_rows());
  }

  void run(int64_t group, int64_t begin, int64_t end, const float* u, const float* bias,
           float* out) {
    const int64_t in_plane = t_.height * t_.width, tiles = (end - begin) * t_.row_tiles();
    for_each_segment(begin, end, [&](const Segment& s) {
      const float* image = input_ + (s.image * t_.groups + group) * t_.in_channels * in_plane;
      for (int64_t c = 0; c < t_.in_channels; ++c) {
        split_rows(t_, image + c * in_plane, s.first, s.count, split_);
        transform_input(split_, t_.row_tiles(), s.count * t_.row_tiles(),
                        v_.data() + c * line_ + (row_of(s) - begin) * t_.row_tiles(),
                        t_.in_channels * line_);
      }
    });
    u += group * t_.out_channels * t_.in_channels * kPoints;
    for (int64_t o = 0; o < t_.out_channels; o += chunk_) {
      const int64_t count = std::min(chunk_, t_.out_channels - o);
      for (int64_t k = 0; k < kPoints; ++k) {
        const float* a = u + (k * t_.out_channels + o) * t_.in_channels;
        blas::gemm_in_place<float>(count, tiles, t_.in_channels, {a, t_.in_channels, 1},
                                   v_.data() + k * t_.in_channels * line_, line_, blas::kSlack, 0,
                                   m_.data() + k * chunk_ * line_, line_);
      }
      for (int64_t c = 0; c < count; ++c) {
        const int64_t channel = group * t_.out_channels + o + c;
        write_channel(begin, end, c, channel, bias ? bias[channel] : 0, out);
      }
    }
  }

 private:
  static constexpr int64_t kChunk = 144;  // output channels multiplied before they are transformed

  // Lines an odd number of cache lines apart do not crowd into the same places of the cache.
  static int64_t padded(int64_t n) {
    const int64_t lines = (n + kLanes - 1) / kLanes;
    return (lines | 1) * kLanes;
  }
  int64_t row_of(const Segment& s) const { return s.image * t_.tile_rows() + s.first; }

  template <class Fn>
  void for_each_segment(int64_t begin, int64_t end, Fn&& fn) {
    while (begin < end) {
      const int64_t first = begin % t_.tile_rows();
      const int64_t count = std::min(end - begin, t_.tile_rows() - first);
      fn(Segment{begin / t_.tile_rows(), first, count});
      begin += count;
    }
  }

  void write_channel(int64_t begin, int64_t end, int64_t c, int64_t channel, float bias,
                     float* out) {
    float *even = lines_.data(), *odd = even + 2 * line_;
    transform_output(m_.data() + c * line_, chunk_ * line_, (end - begin) * t_.row_tiles(), bias,
                     even, odd);
    for_each_segment(begin, end, [&](const Segment& s) {
      const int64_t planes = t_.groups * t_.out_channels;
      float* plane = out + (s.image * planes + channel) * t_.out_height * t_.out_width;
      for (int64_t a = 0; a < s.count; ++a) {
        const int64_t y = 2 * (s.first + a);
        const int64_t at = 2 * (row_of(s) + a - begin) * t_.row_tiles();
        std::copy_n(even + at, t_.out_width, plane + y * t_.out_width);
        if (y + 1 < t_.out_height)
          std::copy_n(odd + at, t_.out_width, plane + (y + 1) * t_.out_width);
      }
    });
  }

  const Task& t_;
  const float* const input_;
  const int64_t rows_, line_, chunk_, plane_;
  Scratch<float> v_, m_, planes_, lines_;
  Planes split_;
};

void run(const Task& t, const float* input, const float* weight, const float* bias, float* out) {
  Scratch<float> u(kPoints * t.groups * t.out_channels * t.in_channels);
  transform_weight(t, weight, u.data());
  const int64_t rows = t.batch * t.tile_rows();
  int64_t block = Worker::rows_of(t);
  // At least a block for each thread.
  block =
      std::min(block, std::max<int64_t>(1, (rows * t.groups + num_threads() - 1) / num_threads()));
  const int64_t blocks = (rows + block - 1) / block;
  block = (rows + blocks - 1) / blocks;  // about one size: each of them reads all of u
  parallel_for(blocks * t.groups, 1, [&](int64_t begin, int64_t end) {
    Worker worker(t, input);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * block;
      worker.run(i / blocks, first, std::min(first + block, rows), u.data(), bias, out);
    }
  });
}

}  // namespace

bool fits_winograd(const Geometry& g) {
  constexpr int64_t kChannels = 16, kTiles = 32;
  const bool plain = g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == 1 && g.stride_w == 1 &&
                     g.dilation_h == 1 && g.dilation_w == 1 && g.pad_h <= 2 && g.pad_w <= 2;
  return plain && g.group_in() >= kChannels && g.group_out() >= kChannels &&
         g.batch * g.positions() >= 4 * kTiles;
}

void winograd_forward(const Geometry& g, const float* input, const float* weight, const float* bias,
                      float* out) {
  run(Task{g.batch, g.group_in(), g.group_out(), g.groups, g.height, g.width, g.out_height,
           g.out_width, g.pad_h, g.pad_w, false},
      input, weight, bias, out);
}

void winograd_backward_input(const Geometry& g, const float* grad, const float* weight,
                             float* out) {
  run(Task{g.batch, g.group_out(), g.group_in(), g.groups, g.out_height, g.out_width, g.height,
           g.width, 2 - g.pad_h, 2 - g.pad_w, true},
      grad, weight, nullptr, out);
}

}  // namespace weft::native::conv
