// Images sampled at the places of a grid, and the transpose, which adds values up at those places.
// Both take `order`: how often the weights of the pixels are differentiated by each coordinate of
// the place. So each is the other's gradient, and their own, as often as one likes.
#include <cmath>
#include <vector>

#include "core/thread_pool.h"
#include "native_padding.h"
#include "ops.h"
#include "ops/factory.h"
#include "ops/levels.h"
#include "ops/support.h"

namespace weft::native {
namespace sampling {
namespace {

enum class Mode : int64_t { Bilinear, Nearest, Bicubic };
enum class Padding : int64_t { Zeros, Border, Reflection };

constexpr int64_t kBlock = 256;  // places whose pixels and weights stay in the nearest cache
constexpr int64_t kDims = 3, kTaps = 4;

// What does not depend on the elements of a call.
struct Call {
  Mode mode;
  Padding padding;
  bool align;
  Dims order;  // by coordinates: the first is the last dimension of the image
  int64_t images, channels, places, pixels, dims;
  Dims sizes;  // of an image

  Call(const char* op, IntList input, IntList grid, int64_t mode, int64_t padding, bool align,
       IntList order)
      : mode(Mode{mode}),
        padding(Padding{padding}),
        align(align),
        order(order),
        dims(static_cast<int64_t>(input.size()) - 2) {
    WEFT_CHECK((dims == 2 || dims == 3) && grid.size() == input.size() && grid.back() == dims &&
                   grid[0] == input[0],
               op,
               ": expected an input (n, c, h, w) and a grid (n, h, w, 2), or (n, c, d, h, w) and "
               "(n, d, h, w, 3), got ",
               AsTuple{input}, " and ", AsTuple{grid});
    WEFT_CHECK(0 <= mode && mode < 3 && (this->mode != Mode::Bicubic || dims == 2), op,
               ": expected mode 0, 1 or, for images, 2, got ", mode);
    WEFT_CHECK(0 <= padding && padding < 3, op, ": expected padding mode 0, 1 or 2, got ", padding);
    WEFT_CHECK(static_cast<int64_t>(order.size()) == kDims, op, ": expected 3 orders, got ",
               order.size());
    sizes = Dims(input.subspan(2));
    images = input[0];
    channels = input[1];
    places = count_of(grid.subspan(1, input.size() - 2));
    pixels = count_of(sizes);
    WEFT_CHECK(images == 0 || channels * pixels > 0, op, ": expected a non-empty input, got ",
               AsTuple{input});
    WEFT_CHECK(pixels < (int64_t{1} << 31), op, ": expected fewer than 2^31 pixels, got ", pixels);
  }

  Dims result() const { return Dims{images, channels, places}; }
  int64_t taps() const { return mode == Mode::Nearest ? 1 : mode == Mode::Bilinear ? 2 : kTaps; }

 private:
  static int64_t count_of(IntList sizes) {
    int64_t count = 1;
    for (const int64_t n : sizes) count *= n;
    return count;
  }
};

// Keys's cubic for a = -0.75: a polynomial from 0 to 1 and one from 1 to 2, differentiated.
template <class T>
struct Cubic {
  T of[4];

  Cubic(std::initializer_list<double> coefficients, int64_t order) {
    std::copy_n(coefficients.begin(), 4, of);
    for (int64_t i = 0; i < std::min<int64_t>(order, 4); ++i) {
      for (int64_t k = 0; k < 3; ++k) of[k] = static_cast<T>(k + 1) * of[k + 1];
      of[3] = 0;
    }
  }
  static Cubic near(int64_t order) { return {{1, 0, -2.25, 1.25}, order}; }
  static Cubic far(int64_t order) { return {{3, -6, 3.75, -0.75}, order}; }

  WEFT_INLINE T operator()(T d) const { return ((of[3] * d + of[2]) * d + of[1]) * d + of[0]; }
};

// The pixels and weights of a block of places.
template <class T>
class Block {
 public:
  Block(const Call& call, const T* grid, int64_t count) : call_(call), count_(count) {
    at_level([&](auto) WEFT_INLINED {
      for (int64_t d = 0; d < call.dims; ++d) {
        const int64_t coordinate = call.dims - 1 - d;
        fill(grid + coordinate, d, call.order[static_cast<size_t>(coordinate)]);
      }
      combine();
    });
  }

  // For each combination of the dimensions' taps, pixels of the image and weights of the places.
  int64_t combinations() const { return made_; }
  const int32_t* pixels(int64_t i) const { return flat_[i]; }      // -1 for a 0
  const int32_t* clamped(int64_t i) const { return clamped_[i]; }  // pixels, 0 for -1
  const T* weights(int64_t i) const { return product_[i]; }

 private:
  int64_t size(int64_t d) const { return call_.sizes[static_cast<size_t>(d)]; }

  // The taps of one dimension, their weights differentiated `order` times.
  WEFT_INLINE void fill(const T* grid, int64_t d, int64_t order) {
    const T n = static_cast<T>(size(d)), scale = call_.align ? (n - 1) / 2 : n / 2;
    for (int64_t i = 0; i < count_; ++i) {
      const T g = grid[i * call_.dims] + 1;
      place_[i] = call_.align ? g * scale : (g * n - 1) / 2;
      slope_[i] = scale;
    }
    if (call_.mode == Mode::Bicubic) return fill_cubic(n, d, order, std::pow(scale, T(order)));
    move_inside(n, place_);
    if (call_.mode == Mode::Nearest) {
      for (int64_t i = 0; i < count_; ++i) place_[i] = std::nearbyint(place_[i]);
      find_pixels(n, place_, pixel_[d][0]);
      std::fill_n(weight_[d][0], count_, order == 0 ? T(1) : T(0));
      return;
    }
    for (int64_t i = 0; i < count_; ++i) low_[i] = std::floor(place_[i]);
    find_pixels(n, low_, pixel_[d][0]);
    for (int64_t i = 0; i < count_; ++i) {
      const T left = place_[i] - low_[i], change = order == 1 ? slope_[i] : T(0);
      weight_[d][0][i] = order == 0 ? low_[i] + 1 - place_[i] : -change;
      weight_[d][1][i] = order == 0 ? left : change;
      low_[i] += 1;
    }
    find_pixels(n, low_, pixel_[d][1]);
  }

  WEFT_INLINE void fill_cubic(T n, int64_t d, int64_t order, T scale) {
    const auto near = Cubic<T>::near(order), far = Cubic<T>::far(order);
    const T back = order % 2 ? -scale : scale;
    for (int64_t i = 0; i < count_; ++i) {
      low_[i] = std::floor(place_[i]);
      const T t = place_[i] - low_[i];
      weight_[d][0][i] = scale * far(t + 1);
      weight_[d][1][i] = scale * near(t);
      weight_[d][2][i] = back * near(1 - t);
      weight_[d][3][i] = back * far(2 - t);
    }
    for (int64_t k = 0; k < kTaps; ++k) {
      for (int64_t i = 0; i < count_; ++i) place_[i] = low_[i] + static_cast<T>(k - 1);
      move_inside(n, place_);
      find_pixels(n, place_, pixel_[d][k]);
    }
  }

  // Moves places inside of n pixels, as the padding says; slopes become those of the result.
  WEFT_INLINE void move_inside(T n, T* places) {
    if (call_.padding == Padding::Zeros) return;
    if (call_.padding == Padding::Reflection)
      reflect(call_.align ? 0 : T(-0.5), call_.align ? n - 1 : n, places);
    for (int64_t i = 0; i < count_; ++i) {
      const T place = places[i];
      slope_[i] = place > 0 && place < n - 1 ? slope_[i] : T(0);
      const T raised = place < 0 ? T(0) : place;
      places[i] = raised > n - 1 ? n - 1 : raised;
    }
  }

  WEFT_INLINE void reflect(T low, T span, T* places) {
    for (int64_t i = 0; i < count_; ++i) {
      const T away = std::abs(places[i] - low), turns = span > 0 ? std::floor(away / span) : T(0);
      const T rest = span > 0 ? away - turns * span : away * 0;
      const bool even = turns == 2 * std::floor(turns / 2);
      slope_[i] = even == (places[i] >= low) ? slope_[i] : -slope_[i];
      places[i] = even ? rest + low : span - rest + low;
    }
  }

  // -1 for places outside.
  WEFT_INLINE void find_pixels(T n, const T* places, int32_t* to) {
    for (int64_t i = 0; i < count_; ++i) {
      const bool is_one = places[i] >= 0 && places[i] <= n - 1;
      to[i] = static_cast<int32_t>(is_one ? places[i] : T(-1));
    }
  }

  WEFT_INLINE void combine() {
    const int64_t taps = call_.taps(), last = call_.dims - 1;
    for (int64_t z = 0; z < (last == 2 ? taps : 1); ++z) {
      for (int64_t y = 0; y < taps; ++y) {
        const int32_t* pixels = pixel_[0][y];
        const T* weights = weight_[0][y];
        if (last == 2) {
          join(pixel_[0][z], weight_[0][z], 1, y, plane_, share_);
          pixels = plane_;
          weights = share_;
        }
        for (int64_t x = 0; x < taps; ++x, ++made_) {
          join(pixels, weights, last, x, flat_[made_], product_[made_]);
          for (int64_t i = 0; i < count_; ++i) clamped_[made_][i] = std::max(flat_[made_][i], 0);
        }
      }
    }
  }

  WEFT_INLINE void join(const int32_t* pixels, const T* weights, int64_t d, int64_t tap,
                        int32_t* to_pixels, T* to_weights) {
    const auto n = static_cast<int32_t>(size(d));
    for (int64_t i = 0; i < count_; ++i) {
      const int32_t a = pixels[i], b = pixel_[d][tap][i];
      to_pixels[i] = (a | b) < 0 ? -1 : a * n + b;
      to_weights[i] = weights[i] * weight_[d][tap][i];
    }
  }

  const Call& call_;
  const int64_t count_;
  int64_t made_ = 0;
  int32_t pixel_[kDims][kTaps][kBlock], plane_[kBlock], flat_[kTaps * kTaps][kBlock],
      clamped_[kTaps * kTaps][kBlock];
  T weight_[kDims][kTaps][kBlock], share_[kBlock], product_[kTaps * kTaps][kBlock];
  T place_[kBlock], slope_[kBlock], low_[kBlock];
};

// to[i] += a weight times the pixel of `from`, for a combination of taps.
template <class T>
void add_pixels(const Block<T>& block, int64_t combination, int64_t count, const T* from, T* to) {
  const int32_t *pixels = block.pixels(combination), *clamped = block.clamped(combination);
  const T* weights = block.weights(combination);
  at_level([=](auto) WEFT_INLINED {
    T entries[kBlock];  // read without a branch for each
    for (int64_t i = 0; i < count; ++i) entries[i] = from[clamped[i]];
    for (int64_t i = 0; i < count; ++i) {  // a weight that is NaN stays
      to[i] += weights[i] * (pixels[i] < 0 ? T(0) : entries[i]);
    }
  });
}

template <class T>
void sample(const Call& call, const T* x, const T* grid, T* out) {
  const int64_t blocks = (call.places + kBlock - 1) / kBlock;
  const int64_t least = grain_of(kBlock * call.taps() * call.dims * (call.channels + 4));
  parallel_for(call.images * blocks, least, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t n = b / blocks, first = b % blocks * kBlock;
      const int64_t count = std::min(kBlock, call.places - first);
      const Block<T> block(call, grid + (n * call.places + first) * call.dims, count);
      for (int64_t c = n * call.channels; c < (n + 1) * call.channels; ++c) {
        for (int64_t i = 0; i < block.combinations(); ++i) {
          add_pixels(block, i, count, x + c * call.pixels, out + c * call.places + first);
        }
      }
    }
  });
}

template <class T>
void spread(const Call& call, const T* grad, const T* grid, T* out) {
  const int64_t lines = call.images * call.channels;
  parallel_for(
      lines, grain_of(call.places * call.taps() * call.dims), [&](int64_t begin, int64_t end) {
        for (int64_t n = begin / call.channels; n * call.channels < end; ++n) {
          const int64_t low = std::max(begin, n * call.channels);
          const int64_t high = std::min(end, (n + 1) * call.channels);
          for (int64_t first = 0; first < call.places; first += kBlock) {
            const int64_t count = std::min(kBlock, call.places - first);
            const Block<T> block(call, grid + (n * call.places + first) * call.dims, count);
            for (int64_t c = low; c < high; ++c) {
              const T* from = grad + c * call.places + first;
              T* to = out + c * call.pixels;
              for (int64_t k = 0; k < block.combinations(); ++k) {
                const int32_t* pixels = block.pixels(k);
                for (int64_t i = 0; i < count; ++i) {
                  if (pixels[i] >= 0) to[pixels[i]] += block.weights(k)[i] * from[i];
                }
              }
            }
          }
        }
      });
}

// Operands as the loops want them, in a dtype that computes.
struct Operands {
  DType kind;
  Tensor values, grid;

  Operands(const char* op, const Tensor& values, const Tensor& grid)
      : kind(checked(op, values, grid)),
        values(in_order(as_dtype(values, kind))),
        grid(in_order(as_dtype(grid, kind))) {}

 private:
  static DType checked(const char* op, const Tensor& values, const Tensor& grid) {
    WEFT_CHECK_AS(NotImplemented, is_floating(values.dtype()), op,
                  ": expected a floating dtype, got ", values.dtype());
    WEFT_CHECK(values.dtype() == grid.dtype(), op, ": expected a grid of dtype ", values.dtype(),
               ", got ", grid.dtype());
    return compute_type(values.dtype());
  }
};

}  // namespace
}  // namespace sampling

Tensor _sample_grid(const Tensor& self, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align_corners, IntList order) {
  const char* op = "grid_sampler";
  const sampling::Call call(op, self.sizes(), grid.sizes(), mode, padding, align_corners, order);
  const sampling::Operands given(op, self, grid);
  Dims sizes(IntList(grid.sizes()).first(grid.sizes().size() - 1));
  sizes.insert(1, call.channels);
  const Tensor out = zeros_of(sizes, given.kind, self.device(), op);
  dispatch_float(op, given.kind, [&]<class T>(std::type_identity<T>) {
    sampling::sample(call, given.values.data_as<const T>(), given.grid.data_as<const T>(),
                     out.data_as<T>());
  });
  return as_dtype(out, self.dtype());
}

Tensor _spread_on_grid(const Tensor& grad_output, const Tensor& grid, IntList input_size,
                       int64_t mode, int64_t padding, bool align_corners, IntList order) {
  const char* op = "grid_sampler";
  const sampling::Call call(op, input_size, grid.sizes(), mode, padding, align_corners, order);
  const sampling::Operands given(op, grad_output, grid);
  WEFT_CHECK(grad_output.numel() == call.images * call.channels * call.places, op,
             ": expected a gradient of shape ", AsTuple{call.result()}, ", got ",
             AsTuple{grad_output.sizes()});
  const Tensor out = zeros_of(Dims(input_size), given.kind, grad_output.device(), op);
  dispatch_float(op, given.kind, [&]<class T>(std::type_identity<T>) {
    sampling::spread(call, given.values.data_as<const T>(), given.grid.data_as<const T>(),
                     out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

Tensor _grid_gradient(const Tensor& grad_output, const Tensor& self, const Tensor& grid,
                      int64_t mode, int64_t padding, bool align_corners, IntList order) {
  sampling::Call("grid_sampler", self.sizes(), grid.sizes(), mode, padding, align_corners, order);
  std::vector<Tensor> parts;
  for (int64_t d = 0; d < grid.size(-1); ++d) {
    Dims raised(order);
    ++raised[static_cast<size_t>(d)];
    const Tensor slope = ops::_sample_grid(self, grid, mode, padding, align_corners, raised);
    parts.push_back(ops::sum(ops::mul(grad_output, slope), Dims{1}, false, std::nullopt));
  }
  return ops::stack(parts, -1);
}

}  // namespace weft::native
