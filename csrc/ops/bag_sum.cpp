// Sums of the rows of a matrix that bags of indices name: none of the rows is written before.
#include "core/thread_pool.h"
#include "native_indexing.h"
#include "ops/convert.h"
#include "ops/index_plan.h"
#include "ops/scratch.h"
#include "ops/vector.h"

namespace weft::native {
namespace {

constexpr int64_t kAhead = 16;    // entries before a row is added, it is asked for
constexpr int64_t kWidened = 16;  // rows of 16-bit floats that are converted at a time

struct Bags {
  const int64_t* indices;
  const int64_t* starts;
  int64_t count, entries, width;
  bool mean;

  int64_t end(int64_t bag) const { return bag + 1 < count ? starts[bag + 1] : entries; }
};

// Adds factors[i] * rows[at[i]] to one row for the first `count` of `known` entries i.
template <class T>
struct Entries {
  int64_t count, known;
  const int64_t* at;
  const T* factors;
  int64_t width;
  const T* rows;
  T* to;

  // kCount values V behind each other, from column j on as long as they fit.
  template <class V, int kCount>
  WEFT_INLINE void add(int64_t& j) const {
    constexpr int64_t kLanes = sizeof(V) / sizeof(T);
    for (; j + kCount * kLanes <= width; j += kCount * kLanes) {
      V sums[kCount], value;
      for (int k = 0; k < kCount; ++k) load(sums[k], to + j + k * kLanes);
      for (int64_t i = 0; i < count; ++i) {
        const T* ahead = rows + at[std::min(i + kAhead, known - 1)] * width + j;
        for (size_t k = 0; k < sizeof(sums); k += 64) __builtin_prefetch(ahead + k / sizeof(T));
        const T* row = rows + at[i] * width + j;
        const T factor = factors ? factors[i] : T(1);
        for (int k = 0; k < kCount; ++k) {
          load(value, row + k * kLanes);
          sums[k] += factor * value;
        }
      }
      for (int k = 0; k < kCount; ++k) store(sums[k], to + j + k * kLanes);
    }
  }

  template <int kBytes>
  WEFT_INLINE void add_all() const {
    int64_t j = 0;
    add<Vector<T, kBytes>, 4>(j);
    add<Vector<T, kBytes>, 1>(j);
    add<Vector<T, std::max(kBytes / 2, 16)>, 1>(j);
    add<Vector<T, 16>, 1>(j);
    add<T, 1>(j);
  }
};

// The same for 16-bit floats: `wide` has room for kWidened rows.
template <class T, int kBytes>
WEFT_INLINE void add_wide_rows(int64_t count, int64_t known, const int64_t* at,
                               const float* factors, int64_t width, const T* rows, float* to,
                               float* wide) {
  static constexpr int64_t kInOrder[kWidened] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                 8, 9, 10, 11, 12, 13, 14, 15};
  const auto widen = tile::convert_kernel(DType::F32, dtype_of<T>::value);
  for (int64_t i = 0; i < count; i += kWidened) {
    const int64_t here = std::min(kWidened, count - i);
    for (int64_t k = 0; k < here; ++k) {
      const T* ahead = rows + at[std::min(i + k + kAhead, known - 1)] * width;
      for (int64_t j = 0; j < width; j += 64 / sizeof(T)) __builtin_prefetch(ahead + j);
      void* const both[] = {wide + k * width, const_cast<T*>(rows + at[i + k] * width)};
      widen(both, width, nullptr);
    }
    Entries<float>{here, here, kInOrder, factors ? factors + i : nullptr, width, wide, to}
        .add_all<kBytes>();
  }
}

template <class T>
void sum_bags(const Bags& bags, const T* rows, const ComputeType<T>* factors, T* out, int64_t begin,
              int64_t end) {
  using C = ComputeType<T>;
  const int64_t width = bags.width;
  Scratch<C> wide(is_computed<T> ? 0 : (kWidened + 1) * width);
  at_level([&](auto bytes) WEFT_INLINED {
    for (int64_t bag = begin; bag < end; ++bag) {
      const int64_t first = bags.starts[bag], count = bags.end(bag) - first;
      const int64_t known = bags.entries - first;
      const int64_t* at = bags.indices + first;
      const C* scales = factors ? factors + first : nullptr;
      C* to = wide.data();
      if constexpr (is_computed<T>) to = out + bag * width;
      std::fill_n(to, width, C(0));
      if constexpr (is_computed<T>) {
        Entries<C>{count, known, at, scales, width, rows, to}.template add_all<bytes()>();
      } else {
        add_wide_rows<T, bytes()>(count, known, at, scales, width, rows, to, wide.data() + width);
      }
      for (int64_t j = 0; j < width && bags.mean && count > 0; ++j) to[j] /= static_cast<C>(count);
      if constexpr (!is_computed<T>) {
        void* const both[] = {out + bag * width, to};
        tile::convert_kernel(dtype_of<T>::value, DType::F32)(both, width, nullptr);
      }
    }
  });
}

void check_bags(const char* op, const Bags& bags, int64_t rows) {
  for (int64_t i = 0; i < bags.entries; ++i) {
    WEFT_CHECK(bags.indices[i] >= 0 && bags.indices[i] < rows, op, ": expected index in [0, ",
               rows - 1, "] for dim 0, got ", bags.indices[i]);
  }
  int64_t before = 0;
  for (int64_t bag = 0; bag < bags.count; ++bag) {
    const int64_t start = bags.starts[bag];
    WEFT_CHECK_VALUE(start >= before && start <= (bag == 0 ? 0 : bags.entries), op,
                     ": expected offsets that rise from 0 to at most ", bags.entries, ", got ",
                     start, " behind ", before);
    before = start;
  }
  WEFT_CHECK_VALUE(bags.count > 0 || bags.entries == 0, op, ": expected an offset, got none");
}

}  // namespace

Tensor _bag_sum(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                const Tensor& per_sample_weights, bool mean, bool) {
  const char* op = "embedding_bag";
  WEFT_CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1, op,
             ": expected a 2-d weight, 1-d indices and offsets, got shapes ",
             AsTuple{weight.sizes()}, ", ", AsTuple{indices.sizes()}, " and ",
             AsTuple{offsets.sizes()});
  const Tensor at = index_values(op, indices), starts = index_values(op, offsets);
  const Bags bags{at.data_as<const int64_t>(),
                  starts.data_as<const int64_t>(),
                  starts.numel(),
                  at.numel(),
                  weight.size(1),
                  mean};
  check_bags(op, bags, weight.size(0));
  Tensor factors;
  if (per_sample_weights.defined()) {
    WEFT_CHECK(per_sample_weights.dtype() == weight.dtype() &&
                   per_sample_weights.sizes() == indices.sizes(),
               op, ": expected per_sample_weights of ", weight.dtype(), " and shape ",
               AsTuple{indices.sizes()}, ", got ", per_sample_weights.dtype(), " and ",
               AsTuple{per_sample_weights.sizes()});
    factors = in_order(as_dtype(per_sample_weights, compute_type(weight.dtype())));
  }
  const Tensor rows = in_order(weight);
  const int64_t sizes[] = {bags.count, bags.width};
  const Tensor out = Tensor::empty(sizes, weight.dtype(), weight.device(), op);
  const int64_t work = bags.width * (bags.entries / std::max<int64_t>(1, bags.count) + 1);
  const bool known = dispatch_among<float, double, Half, BFloat16>(
      weight.dtype(), [&]<class T>(std::type_identity<T>) {
        parallel_for(bags.count, grain_of(work), [&](int64_t begin, int64_t end) {
          sum_bags(bags, rows.data_as<const T>(),
                   factors.defined() ? factors.data_as<const ComputeType<T>>() : nullptr,
                   out.data_as<T>(), begin, end);
        });
      });
  WEFT_CHECK_AS(NotImplemented, known, op, ": expected a floating dtype, got ", weight.dtype());
  return out;
}

}  // namespace weft::native
