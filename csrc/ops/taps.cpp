// Weighted sums of entries whose places differ from result to result: sampling on a grid. Images
// are (n, c, entries), tables of places and weights (n, taps, results); at a place of -1 lies a 0.
// The three operators are each other's gradients.
#include "core/thread_pool.h"
#include "native_padding.h"
#include "ops/factory.h"
#include "ops/levels.h"
#include "ops/support.h"

namespace weft::native {
namespace sampling {
namespace {

constexpr int64_t kBlock = 512;  // results whose places and weights stay in the nearest cache

// A checked table of places.
struct Places {
  int64_t images, taps, results;
  Tensor index;

  Places(const char* op, const Tensor& of, int64_t entries)
      : images(of.dim() == 3 ? of.size(0) : 0),
        taps(of.dim() == 3 ? of.size(1) : 0),
        results(of.dim() == 3 ? of.size(2) : 0),
        index(of) {
    WEFT_CHECK(of.dim() == 3 && of.dtype() == DType::I64, op,
               ": expected an int64 index (n, taps, results), got ", of.dtype(), " of shape ",
               AsTuple{of.sizes()});
    index = in_order(of);
    bool fits = true;  // asked of all: a loop that ends early has no vectors
    for (int64_t i = 0; i < index.numel(); ++i) fits &= at()[i] >= -1 && at()[i] < entries;
    for (int64_t i = 0; !fits && i < index.numel(); ++i) {
      WEFT_CHECK_INDEX(at()[i] >= -1 && at()[i] < entries, op, ": expected indices in [-1, ",
                       entries - 1, "], got ", at()[i]);
    }
  }
  const int64_t* at() const { return index.data_as<const int64_t>(); }
};

// An operand (n, c or taps, *) of those tables, as the loops want it.
Tensor operand(const char* op, const char* what, const Tensor& x, const Places& places,
               DType kind) {
  WEFT_CHECK(x.dim() == 3 && x.size(0) == places.images, op, ": expected ", what, " of ",
             places.images, " images in 3 dims, got shape ", AsTuple{x.sizes()});
  return in_order(as_dtype(x, kind));
}

int64_t grain_of(int64_t work) { return (int64_t{1} << 15) / std::max<int64_t>(1, work) + 1; }

// to[i] += weight[i] * from[index[i]].
template <class T>
WEFT_INLINE void add_taken(int64_t count, const int64_t* index, const T* weight, const T* from,
                           T* to) {
  for (int64_t i = 0; i < count; ++i) {
    const T entry = from[std::max<int64_t>(index[i], 0)];
    to[i] += weight[i] * (index[i] < 0 ? T(0) : entry);  // a weight that is NaN stays
  }
}

// Rows of `weight` times entries of x, added to rows of `out`: weights of taps to channels, or
// those of channels to taps.
template <class T>
void add_taps(const Places& p, int64_t channels, int64_t entries, const T* x, const T* weight,
              bool to_channels, T* out) {
  if (entries == 0) return;  // all places are -1
  const int64_t blocks = (p.results + kBlock - 1) / kBlock;
  const int64_t least = grain_of(kBlock * p.taps * channels);
  parallel_for(p.images * blocks, least, [&](int64_t begin, int64_t end) {
    at_level([&](auto) WEFT_INLINED {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t n = b / blocks, first = b % blocks * kBlock;
        const int64_t count = std::min(kBlock, p.results - first);
        for (int64_t c = n * channels; c < (n + 1) * channels; ++c) {
          for (int64_t t = n * p.taps; t < (n + 1) * p.taps; ++t) {
            const int64_t channel = c * p.results + first, tap = t * p.results + first;
            add_taken(count, p.at() + tap, weight + (to_channels ? tap : channel), x + c * entries,
                      out + (to_channels ? channel : tap));
          }
        }
      }
    });
  });
}

}  // namespace
}  // namespace sampling

Tensor _gather_taps(const Tensor& self, const Tensor& index, const Tensor& weight) {
  const char* op = "_gather_taps";
  const DType kind = compute_type(self.dtype());
  const int64_t entries = self.dim() == 3 ? self.size(2) : 0;
  const sampling::Places p(op, index, entries);
  const Tensor x = sampling::operand(op, "an input", self, p, kind),
               w = sampling::operand(op, "weights", weight, p, kind);
  WEFT_CHECK(same(w.sizes(), index.sizes()), op, ": expected weights of shape ",
             AsTuple{index.sizes()}, ", got ", AsTuple{weight.sizes()});
  const int64_t channels = x.size(1);
  const Tensor out = zeros_of(Dims{p.images, channels, p.results}, kind, self.device(), op);
  dispatch_float(op, kind, [&]<class T>(std::type_identity<T>) {
    sampling::add_taps(p, channels, entries, x.data_as<const T>(), w.data_as<const T>(), true,
                       out.data_as<T>());
  });
  return as_dtype(out, self.dtype());
}

Tensor _scatter_taps(const Tensor& grad_output, const Tensor& index, const Tensor& weight,
                     int64_t size) {
  const char* op = "_scatter_taps";
  const DType kind = compute_type(grad_output.dtype());
  const sampling::Places p(op, index, size);
  const Tensor grad = sampling::operand(op, "a gradient", grad_output, p, kind),
               w = sampling::operand(op, "weights", weight, p, kind);
  WEFT_CHECK(same(w.sizes(), index.sizes()) && grad.size(2) == p.results, op,
             ": expected weights and a gradient of the results of an index of shape ",
             AsTuple{index.sizes()}, ", got shapes ", AsTuple{weight.sizes()}, " and ",
             AsTuple{grad_output.sizes()});
  const int64_t channels = grad.size(1);
  const Tensor out = zeros_of(Dims{p.images, channels, size}, kind, grad_output.device(), op);
  dispatch_float(op, kind, [&]<class T>(std::type_identity<T>) {
    parallel_for(p.images * channels, sampling::grain_of(p.taps * p.results),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t line = begin; line < end; ++line) {
                     const int64_t n = line / channels;
                     const T* from = grad.data_as<const T>() + line * p.results;
                     const T* weights = w.data_as<const T>() + n * p.taps * p.results;
                     const int64_t* places = p.at() + n * p.taps * p.results;
                     T* to = out.data_as<T>() + line * size;
                     for (int64_t i = 0; i < p.taps * p.results; i += p.results) {
                       for (int64_t r = 0; r < p.results; ++r) {
                         if (places[i + r] >= 0) to[places[i + r]] += weights[i + r] * from[r];
                       }
                     }
                   }
                 });
  });
  return as_dtype(out, grad_output.dtype());
}

Tensor _dot_taps(const Tensor& grad_output, const Tensor& self, const Tensor& index) {
  const char* op = "_dot_taps";
  const DType kind = compute_type(grad_output.dtype());
  const int64_t entries = self.dim() == 3 ? self.size(2) : 0;
  const sampling::Places p(op, index, entries);
  const Tensor grad = sampling::operand(op, "a gradient", grad_output, p, kind),
               x = sampling::operand(op, "an input", self, p, kind);
  WEFT_CHECK(grad.size(1) == x.size(1) && grad.size(2) == p.results, op,
             ": expected a gradient of shape ", AsTuple{Dims{p.images, x.size(1), p.results}},
             ", got ", AsTuple{grad_output.sizes()});
  const int64_t channels = x.size(1);
  const Tensor out = zeros_of(p.index.sizes(), kind, grad_output.device(), op);
  dispatch_float(op, kind, [&]<class T>(std::type_identity<T>) {
    sampling::add_taps(p, channels, entries, x.data_as<const T>(), grad.data_as<const T>(), false,
                       out.data_as<T>());
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
