// Numbers as they are stored, and divisors of whole ones: nextafter, frexp, gcd, lcm.
#include <bit>
#include <utility>

#include "native_special.h"
#include "ops/special_map.h"
#include "ops/vector.h"

namespace weft::native {
namespace {

DType floating_pair(const char* op, const Tensor& a, const Tensor& b) {
  const DType kind = common_dtype(a, b);
  WEFT_CHECK_AS(NotImplemented, is_floating(kind), op, ": expected a floating dtype, got ", kind);
  return kind;
}

// The type of a vector's numbers, or that of the number itself.
template <class V>
struct ElementOf {
  using type = V;
};
template <class V>
  requires requires(V v) { v[0]; }
struct ElementOf<V> {
  using type = std::remove_cvref_t<decltype(std::declval<V>()[0])>;
};
template <class V>
using Element = ElementOf<V>::type;

// Whole numbers with the bits of floats of a dtype, and those of infinity.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 2, int16_t,
                                std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
template <class T>
constexpr Bits<T> kEndless = std::bit_cast<Bits<T>>(std::numeric_limits<T>::infinity());
template <>
constexpr int16_t kEndless<Half> = 0x7c00;
template <>
constexpr int16_t kEndless<BFloat16> = 0x7f80;

// body(i, a vector) for the elements [0, n), then body(i, one element) for the last ones.
template <class T, class Body>
void over_vectors(int64_t n, const Body& body) {
  parallel_for(n, 1 << 12, [&](int64_t i, int64_t end) {
    at_level([&](auto width) WEFT_INLINED {
      constexpr int64_t kLanes = width / sizeof(T);
      for (; i + kLanes <= end; i += kLanes) body(i, std::type_identity<Vector<T, width>>());
      for (; i < end; ++i) body(i, std::type_identity<T>());
    });
  });
}

// The neighbour of a on the way to b; all in bits, where neighbours are neighbours.
template <class V>
WEFT_INLINE void step_to(V& a, const V& b, std::type_identity_t<Element<V>> endless) {
  const Element<V> sign = std::numeric_limits<Element<V>>::min();
  const V size_a = a & ~sign, size_b = b & ~sign;
  const V order_a = a < 0 ? -size_a : size_a, order_b = b < 0 ? -size_b : size_b;
  const V next = ((a < 0) == (order_b < order_a)) ? a + 1 : a - 1;
  const V stepped = order_a == order_b ? b : size_a == 0 ? (b & sign) | 1 : next;
  a = size_a > endless ? a : size_b > endless ? b : stepped;
}

// x = mantissa * 2^exponent with a mantissa in [0.5, 1); what has none is its own, with exponent 0.
template <class V, class W>
WEFT_INLINE void mantissa_of(V& x, W& exponent) {
  using T = Element<V>;
  using B = Bits<T>;
  constexpr int kFraction = std::numeric_limits<T>::digits - 1;
  constexpr B kHalf = std::numeric_limits<T>::max_exponent - 2;  // the exponent's bits of [0.5, 1)
  const W size = __builtin_bit_cast(W, x) & std::numeric_limits<B>::max();
  const auto subnormal = size < (B{1} << kFraction);
  const auto none = (size == 0) | (size >= kEndless<T>);
  const V raised = x * static_cast<T>(B{2} << kFraction);
  const W bits = subnormal ? __builtin_bit_cast(W, raised) : __builtin_bit_cast(W, x);
  const W power = ((bits & kEndless<T>) >> kFraction) - kHalf;
  const W mantissa = (bits & ~kEndless<T>) | (kHalf << kFraction);
  exponent = none ? power - power : subnormal ? power - (kFraction + 1) : power;
  x = __builtin_bit_cast(V, none ? __builtin_bit_cast(W, x) : mantissa);
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// Euclid's: std::gcd halves, and its branches are guessed wrong more than divisions take.
uint64_t divisor_of(int64_t a, int64_t b) {
  uint64_t divisor = magnitude(a), rest = magnitude(b);
  while (rest != 0) divisor = std::exchange(rest, divisor % rest);
  return divisor;
}

int64_t gcd_of(int64_t a, int64_t b) { return static_cast<int64_t>(divisor_of(a, b)); }

int64_t lcm_of(int64_t a, int64_t b) {
  const uint64_t divisor = divisor_of(a, b);
  if (divisor == 0) return 0;
  const uint64_t product = magnitude(a) / divisor * magnitude(b);  // wraps as PyTorch's does
  return static_cast<int64_t>(product);
}

template <class Fn>
Tensor whole_pairs(const char* op, const Tensor& a, const Tensor& b, Fn&& fn) {
  const DType kind = common_dtype(a, b);
  WEFT_CHECK_AS(NotImplemented, is_integral(kind), op, ": expected an integer dtype, got ", kind);
  // In the common dtype first: -5 beside a tensor of uint8 is 251.
  return mapped_pairs<int64_t>(op, as_dtype(a, kind), as_dtype(b, kind), kind, fn);
}

}  // namespace

Tensor nextafter(const Tensor& self, const Tensor& other) {
  const char* op = "nextafter";
  const DType kind = floating_pair(op, self, other);
  const Dims sizes = broadcast_sizes(op, self.sizes(), other.sizes());
  const Tensor result = Tensor::empty(sizes, kind, self.device(), op);
  const bool known =
      dispatch_among<float, double, Half, BFloat16>(kind, [&]<class T>(std::type_identity<T>) {
        const Tensor from = spread_as<T>(self, sizes), to = spread_as<T>(other, sizes);
        const auto* const a = static_cast<const Bits<T>*>(from.data());
        const auto* const b = static_cast<const Bits<T>*>(to.data());
        auto* const out = static_cast<Bits<T>*>(result.data());
        over_vectors<Bits<T>>(result.numel(),
                              [=]<class V>(int64_t i, std::type_identity<V>) WEFT_INLINED {
                                V value, goal;
                                load(value, a + i);
                                load(goal, b + i);
                                step_to(value, goal, kEndless<T>);
                                store(value, out + i);
                              });
      });
  WEFT_CHECK_AS(Type, known, op, ": expected floats of at least 16 bits, got ", kind);
  return result;
}

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  const char* op = "frexp";
  WEFT_CHECK_AS(NotImplemented, is_floating(self.dtype()), op, ": expected a floating dtype, got ",
                self.dtype());
  const DType compute = compute_type(self.dtype());
  const Tensor x = in_order(as_dtype(self, compute));
  const Tensor mantissa = Tensor::empty(self.sizes(), compute, self.device(), op);
  const Tensor exponent = Tensor::empty(self.sizes(), DType::I32, self.device(), op);
  dispatch_float(op, compute, [&]<class T>(std::type_identity<T>) {
    const T* const from = x.data_as<const T>();
    T* const fractions = mantissa.data_as<T>();
    auto* const powers = exponent.data_as<int32_t>();
    over_vectors<T>(x.numel(), [=]<class V>(int64_t i, std::type_identity<V>) WEFT_INLINED {
      V value;
      constexpr int kLanes = sizeof(V) / sizeof(T);
      std::conditional_t<std::is_same_v<V, T>, Bits<T>, Vector<Bits<T>, sizeof(V)>> power;
      load(value, from + i);
      mantissa_of(value, power);
      store(value, fractions + i);
      Bits<T> each[kLanes];
      std::memcpy(each, &power, sizeof(power));
      for (int lane = 0; lane < kLanes; ++lane) {
        powers[i + lane] = static_cast<int32_t>(each[lane]);
      }
    });
  });
  return {as_dtype(mantissa, self.dtype()), exponent};
}

Tensor gcd(const Tensor& self, const Tensor& other) {
  return whole_pairs("gcd", self, other, gcd_of);
}
Tensor lcm(const Tensor& self, const Tensor& other) {
  return whole_pairs("lcm", self, other, lcm_of);
}

}  // namespace weft::native
