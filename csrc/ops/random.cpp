// Random numbers: the in-place fills every other random operator is made of.
//
// The streams are PyTorch's: the same seed gives the same numbers, dtype by dtype. A tensor that is
// not contiguous is filled in the order of its memory.
#include "ops/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/thread_pool.h"
#include "native_randoms.h"
#include "ops/box_muller.h"
#include "ops/support.h"
#include "ops/view_dtype.h"
#include "ops/views.h"

namespace weft::native {

const Ref<Generator>& generator_or_default(const Ref<Generator>& generator) {
  return generator ? generator : default_generator();
}

double draw_normal(Generator& generator) {
  if (generator.next_double_normal) {
    const double value = *generator.next_double_normal;
    generator.next_double_normal.reset();
    return value;
  }
  const double u1 = generator.uniform_double(), u2 = generator.uniform_double();
  const double radius = std::sqrt(-2 * std::log1p(-u2)), theta = 2 * std::numbers::pi * u1;
  generator.next_double_normal = radius * std::sin(theta);
  return radius * std::cos(theta);
}

namespace {

// The tensor with its dimensions sorted by stride: its elements in the order of memory.
Tensor memory_order(const Tensor& tensor) {
  Dims order(static_cast<size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(tensor.strides()[a]) > std::abs(tensor.strides()[b]);
  });
  return tensor.with_layout(views::permute(tensor.layout(), order));
}

// Runs fill(contiguous tensor) on the tensor itself or on a copy that is then written back.
template <class Fn>
void fill_in_memory_order(const char* op, const Tensor& self, Fn&& fill) {
  self.check_writable(op);
  if (self.numel() == 0 || self.device().type == DeviceType::Meta) return;
  if (self.is_contiguous()) return fill(self);
  const Tensor sorted = memory_order(self);
  if (sorted.is_contiguous()) return fill(sorted);
  Tensor dense = Tensor::empty(sorted.sizes(), self.dtype(), self.device(), op);
  fill(dense);
  copy_into(sorted, dense);
}

// Fills with next() cast to the element type; complex elements take two.
template <class Next>
void fill_each(const char* op, const Tensor& self, const Ref<Generator>& generator, Next&& next) {
  Generator& source = *generator_or_default(generator);
  fill_in_memory_order(op, self, [&](const Tensor& dense) {
    const std::lock_guard lock(source);
    dispatch(dense.dtype(), [&]<class T>(std::type_identity<T> type) {
      T* data = dense.data_as<T>();
      for (int64_t i = 0, count = dense.numel(); i < count; ++i) data[i] = next(source, type);
    });
  });
}

void check_floating(const char* op, const Tensor& self) {
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()) || is_complex(self.dtype()), op,
                ": expected a floating or complex dtype, got ", self.dtype());
}

// A complex tensor as real numbers, a dimension of two more.
Tensor as_real(const Tensor& self) {
  return self.alias(views::parts_of_complex(self.layout()), real_of(self.dtype()));
}

// In [from, to). Rounding may reach the end, which is then taken for the beginning.
template <class T>
T draw_uniform(Generator& generator, double from, double to) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Real unit;
  if constexpr (std::is_same_v<T, double>) {
    unit = generator.uniform_double();
  } else {
    unit = generator.uniform_float();
  }
  const Real low = static_cast<Real>(from), high = static_cast<Real>(to);
  if (low != 0 || high != 1) unit = std::fma(unit, high - low, low);
  const T value = cast_number<T>(unit), end = cast_number<T>(to);
  return static_cast<Real>(value) == static_cast<Real>(end) ? cast_number<T>(from) : value;
}

// Sixteen uniforms become sixteen normals, eight Box-Muller pairs.
void box_muller_16(double* data, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2 * std::log(1 - data[j]));
    const double theta = 2 * std::numbers::pi * data[j + 8];
    data[j] = std::fma(radius * std::cos(theta), std, mean);
    data[j + 8] = std::fma(radius * std::sin(theta), std, mean);
  }
}

// In blocks of sixteen; the last sixteen are drawn anew where the count is no multiple.
void fill_normal(float* data, int64_t count, double mean, double std, Generator& generator) {
  const float shift = static_cast<float>(mean), scale = static_cast<float>(std);
  for (int64_t i = 0; i < count; ++i) data[i] = generator.uniform_float();
  parallel_for(count / 16, 2048, [&](int64_t begin, int64_t end) {
    box_muller(data + begin * 16, end - begin, shift, scale);
  });
  if (count % 16 == 0) return;
  float* last = data + count - 16;
  for (int i = 0; i < 16; ++i) last[i] = generator.uniform_float();
  box_muller(last, 1, shift, scale);
}

void fill_normal(double* data, int64_t count, double mean, double std, Generator& generator) {
  for (int64_t i = 0; i < count; ++i) data[i] = generator.uniform_double();
  for (int64_t i = 0; i + 16 <= count; i += 16) box_muller_16(data + i, mean, std);
  if (count % 16 == 0) return;
  double* last = data + count - 16;
  for (int i = 0; i < 16; ++i) last[i] = generator.uniform_double();
  box_muller_16(last, mean, std);
}

// The 16-bit floats: each block in float32, rounded once.
template <class T>
  requires is_small_float<T>
void fill_normal(T* data, int64_t count, double mean, double std, Generator& generator) {
  auto fill_block = [&](T* place) {
    float block[16];
    for (float& value : block) value = generator.uniform_float();
    box_muller(block, 1, static_cast<float>(mean), static_cast<float>(std));
    for (int i = 0; i < 16; ++i) place[i] = T(block[i]);
  };
  for (int64_t i = 0; i + 16 <= count; i += 16) fill_block(data + i);
  if (count % 16 != 0) fill_block(data + count - 16);
}

}  // namespace

Tensor uniform_(const Tensor& self, double from, double to, const Ref<Generator>& generator) {
  check_floating("uniform_", self);
  WEFT_CHECK(from <= to, "uniform_: expected from <= to, got ", from, " and ", to);
  if (is_complex(self.dtype())) {
    uniform_(as_real(self), from, to, generator);
    return self;
  }
  dispatch(self.dtype(), [&]<class T>(std::type_identity<T>) {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if constexpr (std::is_floating_point_v<T> || is_small_float<T>)
      for (const double number : {from, to, to - from})
        WEFT_CHECK(std::isfinite(static_cast<Real>(cast_number<T>(number))),
                   "uniform_: expected a range inside ", self.dtype(), ", got [", from, ", ", to,
                   ")");
  });
  fill_each("uniform_", self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T> || is_small_float<T>) {
      return draw_uniform<T>(source, from, to);
    } else {
      return T(0);
    }
  });
  return self;
}

Tensor normal_(const Tensor& self, double mean, double std, const Ref<Generator>& generator) {
  const char* op = "normal_";
  check_floating(op, self);
  WEFT_CHECK(std >= 0, op, ": expected std >= 0, got ", std);
  if (is_complex(self.dtype())) {
    // The variance is shared by both parts; as in PyTorch, both have the mean.
    normal_(as_real(self), mean, std / std::numbers::sqrt2, generator);
    return self;
  }
  if (self.numel() < 16 || !self.is_contiguous() || !self.on_cpu()) {
    fill_each(op, self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
      return cast_number<T>(std::fma(draw_normal(source), std, mean));
    });
    return self;
  }
  self.check_writable(op);
  Generator& source = *generator_or_default(generator);
  const std::lock_guard lock(source);
  dispatch(self.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T> || is_small_float<T>) {
      fill_normal(self.data_as<T>(), self.numel(), mean, std, source);
    }
  });
  return self;
}

Tensor exponential_(const Tensor& self, double lambd, const Ref<Generator>& generator) {
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()),
                "exponential_: expected a floating dtype, got ", self.dtype());
  WEFT_CHECK(lambd > 0, "exponential_: expected lambd > 0, got ", lambd);
  fill_each("exponential_", self, generator,
            [&]<class T>(Generator& source, std::type_identity<T>) {
              return cast_number<T>((-1 / lambd) * std::log1p(-source.uniform_double()));
            });
  return self;
}

Tensor log_normal_(const Tensor& self, double mean, double std, const Ref<Generator>& generator) {
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()),
                "log_normal_: expected a floating dtype, got ", self.dtype());
  WEFT_CHECK(std > 0, "log_normal_: expected std > 0, got ", std);
  fill_each("log_normal_", self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
    return cast_number<T>(std::exp(std::fma(draw_normal(source), std, mean)));
  });
  return self;
}

Tensor cauchy_(const Tensor& self, double median, double sigma, const Ref<Generator>& generator) {
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()),
                "cauchy_: expected a floating dtype, got ", self.dtype());
  WEFT_CHECK(sigma > 0, "cauchy_: expected sigma > 0, got ", sigma);
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();  // the tails stay finite
  fill_each("cauchy_", self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
    const double u = std::clamp(source.uniform_double(), kEpsilon, 1 - kEpsilon);
    return cast_number<T>(std::fma(sigma, std::tan(std::numbers::pi * (u - 0.5)), median));
  });
  return self;
}

Tensor geometric_(const Tensor& self, double p, const Ref<Generator>& generator) {
  WEFT_CHECK_AS(NotImplemented, !is_complex(self.dtype()) && self.dtype() != DType::Bool,
                "geometric_: expected a real dtype other than bool, got ", self.dtype());
  WEFT_CHECK(p > 0 && p < 1, "geometric_: expected p in (0, 1), got ", p);
  fill_each("geometric_", self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
    return cast_number<T>(std::ceil(std::log(source.uniform_double()) / std::log1p(-p)));
  });
  return self;
}

Tensor bernoulli_(const Tensor& self, double p, const Ref<Generator>& generator) {
  WEFT_CHECK(p >= 0 && p <= 1, "bernoulli_: expected p in [0, 1], got ", p);
  WEFT_CHECK_AS(NotImplemented, !is_complex(self.dtype()),
                "bernoulli_: expected a real dtype, got ", self.dtype());
  fill_each("bernoulli_", self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
    return cast_number<T>(source.uniform_double() < p ? 1 : 0);
  });
  return self;
}

Tensor bernoulli_(const Tensor& self, const Tensor& p, const Ref<Generator>& generator) {
  const char* op = "bernoulli_";
  WEFT_CHECK_AS(NotImplemented, is_floating(p.dtype()), op,
                ": expected probabilities of a floating dtype, got ", p.dtype());
  WEFT_CHECK(broadcast_sizes(op, p.sizes(), self.sizes()) == self.sizes(), op,
             ": expected probabilities that broadcast to ", AsTuple{self.sizes()}, ", got shape ",
             AsTuple{p.sizes()});
  WEFT_CHECK_AS(NotImplemented, !is_complex(self.dtype()), op, ": expected a real dtype, got ",
                self.dtype());
  self.check_writable(op);
  Tensor chances = Tensor::empty(self.sizes(), DType::F64, self.device(), op);
  copy_into(chances, p);
  const double* chance = chances.data_as<const double>();
  const bool wide = p.dtype() == DType::F64;
  Generator& source = *generator_or_default(generator);
  {
    const std::lock_guard lock(source);
    for (int64_t i = 0; i < self.numel(); ++i) {
      WEFT_CHECK(chance[i] >= 0 && chance[i] <= 1, op, ": expected p in [0, 1], got ", chance[i]);
      const double u = wide ? source.uniform_double() : static_cast<double>(source.uniform_float());
      chances.data_as<double>()[i] = u < chance[i] ? 1 : 0;
    }
  }
  copy_into(self, chances);
  return self;
}

Tensor dropout_mask(const Tensor& input, double p) {
  check_floating("dropout", input);
  WEFT_CHECK_AS(NotImplemented, !is_complex(input.dtype()), "dropout: expected a real dtype, got ",
                input.dtype());
  Tensor mask = empty_preserve(input, input.dtype(), input.device());
  const double keep = 1 - p;
  fill_each("dropout", mask, nullptr, [&]<class T>(Generator& source, std::type_identity<T>) {
    return cast_number<T>(source.uniform_double() < keep ? 1 / keep : 0);
  });
  return mask;
}

namespace {

// Values a random integer of the dtype may have when no range is given: [0, limit).
uint64_t default_limit(DType dtype) {
  return dispatch(dtype, []<class T>(std::type_identity<T>) -> uint64_t {
    if constexpr (is_small_float<T>) {
      return (uint64_t{1} << T::kDigits) + 1;
    } else if constexpr (std::is_floating_point_v<T>) {
      return (uint64_t{1} << std::numeric_limits<T>::digits) + 1;
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, uint64_t>) {
      return uint64_t{1} << std::numeric_limits<T>::digits;
    } else {
      return 0;  // all 64 bits
    }
  });
}

void check_real(const char* op, const Tensor& self) {
  WEFT_CHECK_AS(NotImplemented, !is_complex(self.dtype()), op, ": expected a real dtype, got ",
                self.dtype());
}

// Each element: base + draw % range. A range of 0 is all 64 bits.
void fill_integers(const Tensor& self, int64_t base, uint64_t range, bool wide,
                   const Ref<Generator>& generator) {
  fill_each("random_", self, generator, [&]<class T>(Generator& source, std::type_identity<T>) {
    const uint64_t draw = wide ? source.random64() : source.random();
    const uint64_t value = static_cast<uint64_t>(base) + (range == 0 ? draw : draw % range);
    if constexpr (is_complex_number<T>) {
      return T(0);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      return value;
    } else if constexpr (std::is_floating_point_v<T> || is_small_float<T> ||
                         std::is_same_v<T, bool>) {
      return cast_number<T>(static_cast<double>(static_cast<int64_t>(value)));
    } else {
      return static_cast<T>(static_cast<int64_t>(value));
    }
  });
}

// Raises unless every integer of [from, to - 1] has a place in the dtype.
void check_range(const char* op, DType dtype, int64_t from, int64_t last) {
  double low = -0x1p63, high = 0x1p63;
  if (!is_floating(dtype) && dtype != DType::I64 && dtype != DType::U64) {
    const double limit = static_cast<double>(default_limit(dtype));
    const bool is_signed = dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32;
    low = is_signed ? -limit : 0;
    high = limit - 1;
  } else if (dtype == DType::U64) {
    low = 0;
  } else if (dtype == DType::F16) {
    low = -65504;
    high = 65504;
  }
  WEFT_CHECK(static_cast<double>(from) >= low && static_cast<double>(last) <= high, op,
             ": expected a range inside ", dtype, ", got [", from, ", ", last, "]");
}

}  // namespace

Tensor random_(const Tensor& self, int64_t from, std::optional<int64_t> to,
               const Ref<Generator>& generator) {
  check_real("random_", self);
  constexpr uint64_t kWide = uint64_t{1} << 28;  // from here on two draws a number
  if (!to) {
    // Up to the dtype's largest value.
    const uint64_t limit = default_limit(self.dtype());
    const uint64_t range = limit - static_cast<uint64_t>(from);
    fill_integers(self, from, range, range == 0 || range >= kWide, generator);
    return self;
  }
  WEFT_CHECK(from < *to, "random_: expected from < to, got ", from, " and ", *to);
  check_range("random_", self.dtype(), from, *to - 1);
  const uint64_t range = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
  fill_integers(self, from, range, range >= kWide, generator);
  return self;
}

Tensor random_(const Tensor& self, const Ref<Generator>& generator) {
  check_real("random_", self);
  const DType dtype = self.dtype();
  const bool wide = dtype == DType::I64 || dtype == DType::U64 || dtype == DType::F64;
  fill_integers(self, 0, default_limit(dtype), wide, generator);
  return self;
}

}  // namespace weft::native
