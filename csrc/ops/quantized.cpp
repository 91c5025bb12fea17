// Products of quantised numbers, and what stands between them: conversions and sums.
#include "ops/quantized.h"

#include <cmath>
#include <limits>

#include "core/thread_pool.h"
#include "native_quantized.h"
#include "ops/byte_quads.h"
#include "ops/factory.h"
#include "ops/scratch.h"
#include "ops/vector.h"
#include "ops_arithmetic.h"
#include "ops_views.h"

namespace weft::native {
namespace quantized {

Steps checked_steps(const char* op, double scale, int64_t zero_point) {
  WEFT_CHECK(zero_point >= 0 && zero_point <= 255, op, ": expected a zero point of 0 to 255, got ",
             zero_point);
  return {static_cast<float>(scale), static_cast<int32_t>(zero_point)};
}

blas::Held held_by(const Steps& steps, bool relu) {
  const auto zero = static_cast<float>(steps.zero_point);
  return {relu ? 0.0f : -zero, 255.0f - zero, steps.zero_point};
}

void check_bytes(const char* op, const Tensor& input) {
  WEFT_CHECK(input.dtype() == DType::U8, op, ": expected an input of uint8, got ", input.dtype());
}

Weight::Weight(const char* op, const Tensor& values, const Tensor& scales,
               const Tensor& zero_points, const Tensor& bias, int64_t groups)
    : values(values), scales(scales), zero_points(zero_points), bias(bias), groups(groups) {
  WEFT_CHECK(values.dtype() == DType::I8, op, ": expected a weight of int8, got ", values.dtype());
  WEFT_CHECK(values.dim() >= 2, op, ": expected a weight of at least 2 dims, got shape ",
             AsTuple{values.sizes()});
  WEFT_CHECK(groups >= 1 && rows() % groups == 0, op, ": expected rows divisible by groups, got ",
             rows(), " and ", groups);
  const auto fits = [&](const Tensor& each, bool may_be_one) {
    return each.dim() == 1 && (each.numel() == rows() || (may_be_one && each.numel() == 1));
  };
  WEFT_CHECK(fits(scales, true) && is_floating(scales.dtype()), op, ": expected 1 or ", rows(),
             " scales, got ", AsTuple{scales.sizes()}, " of ", scales.dtype());
  WEFT_CHECK(fits(zero_points, true), op, ": expected 1 or ", rows(), " zero points, got ",
             AsTuple{zero_points.sizes()});
  WEFT_CHECK(!bias.defined() || fits(bias, false), op, ": expected a bias of shape (", rows(),
             ",), got ", bias.defined() ? AsTuple{bias.sizes()} : AsTuple{IntList{}});
  const Tensor s = in_order(as_dtype(scales, DType::F32));
  const Tensor z = in_order(as_dtype(zero_points, DType::I32));
  scales_.assign(s.data_as<const float>(), s.data_as<const float>() + s.numel());
  zeros_.assign(z.data_as<const int32_t>(), z.data_as<const int32_t>() + z.numel());
}

bool Weight::has_zeros() const {
  return std::ranges::any_of(zeros_, [](int32_t zero) { return zero != 0; });
}

Ref<PackedWeight> packed(const Weight& weight) {
  constexpr int64_t kStrip = blas::kStrip;
  const int64_t n = weight.group_rows(), words = weight.words(), strips = blas::strips_of(n);
  const int64_t size = blas::packed_size(words, n) + strips * kStrip;
  auto fill = [&](float* to) {
    std::memset(to, 0, static_cast<size_t>(weight.groups * size) * sizeof(float));
    const Tensor dense = in_order(weight.values);
    const int64_t channels = weight.channels(), taps = weight.taps(),
                  aligned = weight.aligned_channels();
    const auto* from = dense.data_as<const int8_t>();
    parallel_for(weight.rows(), grain_of(words * 4), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t j = row % n;
        float* const group = to + row / n * size;
        auto* strip = reinterpret_cast<int8_t*>(group + j / kStrip * words * kStrip + j % kStrip);
        int32_t sum = 0;
        const int8_t* at = from + row * channels * taps;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t t = 0; t < taps; ++t, ++at) {
            const int64_t k = t * aligned + c;
            strip[k / 4 * kStrip * 4 + k % 4] = *at;
            sum += *at;
          }
        }
        reinterpret_cast<int32_t*>(group + blas::packed_size(words, n))[j] = sum;
      }
    });
  };
  return packed_weight(weight.values, PackedForm::Quads, weight.groups, weight.groups * size, fill);
}

Sinks::Sinks(const Weight& weight, const Steps& in, const Result& result,
             FunctionRef<const int32_t*(int64_t group)> sums)
    : stride_(blas::strips_of(weight.group_rows()) * blas::kStrip) {
  const int64_t n = weight.group_rows(), depth = weight.words() * 4;
  const auto size = static_cast<size_t>(weight.groups * stride_);
  columns_.resize(size), bias_.resize(size), scale_.resize(size);
  if (weight.has_zeros()) zeros_.resize(size);
  const Tensor bias =
      weight.bias.defined() ? in_order(as_dtype(weight.bias, DType::F32)) : Tensor();
  const bool single = weight.scales.numel() == 1;
  for (int64_t row = 0; row < weight.rows(); ++row) {
    const auto at = static_cast<size_t>(row / n * stride_ + row % n);
    const float both = in.scale * weight.scale(row);
    const float add = bias.defined() ? bias.data_as<const float>()[row] : 0.0f;
    // Unsigned, since sums wrap around.
    const auto zero = static_cast<uint32_t>(in.zero_point),
               own = static_cast<uint32_t>(weight.zero(row));
    const auto sum = static_cast<uint32_t>(sums(row / n)[row % n]);
    columns_[at] = static_cast<int32_t>(zero * (own * static_cast<uint32_t>(depth) - sum));
    if (!zeros_.empty()) zeros_[at] = weight.zero(row);
    scale_[at] = result.to_bytes ? both / result.out.scale : both;
    bias_[at] = !result.to_bytes ? add : single ? add * (1.0f / both) : add / both;
  }
  base_ = {
      columns_.data(), bias_.data(),    scale_.data(), zeros_.empty() ? nullptr : zeros_.data(),
      nullptr,         result.to_bytes, result.relu,   held_by(result.out, result.relu)};
}

blas::Requantised Sinks::of(int64_t group) const { return base_.at(0, group * stride_); }

void multiply(int64_t m, int64_t n, int64_t words, RowsOf rows, const float* strips,
              const blas::Requantised& to, void* out, int64_t row) {
  constexpr int64_t kMost = 192, kLeast = 24, kWords = 64 << 10;  // of a block of rows
  const int64_t most = std::clamp(kWords / std::max<int64_t>(words, 1), kLeast, kMost);
  const blas::Split s = blas::split_work(m, most, n, 1, words);
  const auto item = static_cast<int64_t>(to.to_bytes ? sizeof(uint8_t) : sizeof(float));
  parallel_for(s.pieces(), s.grain, [&](int64_t begin, int64_t end) {
    Scratch<float> room(s.block * words + 2 * blas::kStrip);
    Scratch<int32_t> sums(to.weight_zeros ? s.block : 0);
    for (int64_t i = begin; i < end; ++i) {
      const auto [group, first, count, column, columns] = s[i];
      if (count <= 0) continue;
      const Rows from = rows(first, count, room.data());
      blas::Requantised here = to;
      if (to.weight_zeros) {
        for (int64_t r = 0; r < count; ++r) {
          const auto* bytes = reinterpret_cast<const uint8_t*>(from.data + r * from.row);
          int32_t sum = 0;
          for (int64_t p = 0; p < words * 4; ++p) sum += bytes[p];
          sums.data()[r] = sum;
        }
        here.row_sums = sums.data();
      }
      here = here.at(0, column);
      auto* c = static_cast<uint8_t*>(out) + (first * row + column) * item;
      blas::gemm_strips(count, columns, words, from.data, from.row, strips + column * words,
                        words * blas::kStrip, false, reinterpret_cast<float*>(c), row, {},
                        blas::Elements::Int8Quads, &here);
    }
  });
}

namespace {

using Bytes16 = Vector<uint32_t, 16>;  // as words
using Floats4 = Vector<float, 16>;

// Calls fn(first, count) for parts of n elements on the threads.
template <class Fn>
void for_each_part(int64_t n, Fn&& fn) {
  parallel_for(n, int64_t{1} << 15, [&](int64_t begin, int64_t end) { fn(begin, end - begin); });
}

template <int kBytes>
WEFT_INLINE void write(const Vector<float, kBytes> (&x)[4], const blas::Held& held, uint8_t* to) {
  Vector<int32_t, kBytes> whole[4], bytes;
  for (int q = 0; q < 4; ++q) blas::rounded_words(whole[q], x[q], held);
  blas::joined(bytes, whole);
  std::memcpy(to, &bytes, kBytes);
}

void to_bytes(const float* from, int64_t n, const Steps& steps, uint8_t* to) {
  for_each_part(n, [&](int64_t first, int64_t count) {
    at_level(
        [](auto, const float* x, int64_t left, uint8_t* y, const Steps* by) WEFT_INLINED {
          // As PyTorch: the zero point is added before rounding.
          const auto zero = static_cast<float>(by->zero_point);
          const blas::Held held{0.0f, 255.0f, 0};
          const float inverse = 1.0f / by->scale;
          auto some = [&](const float* of, uint8_t* into) WEFT_INLINED {
            Floats4 numbers[4];
            for (int q = 0; q < 4; ++q) {
              load(numbers[q], of + q * 4);
              numbers[q] = numbers[q] * inverse + zero;
            }
            write<16>(numbers, held, into);
          };
          for (; left >= 16; left -= 16, x += 16, y += 16) some(x, y);
          if (left == 0) return;
          float last[16] = {};
          uint8_t bytes[16];
          std::copy_n(x, left, last);
          some(last, bytes);
          std::copy_n(bytes, left, y);
        },
        from + first, count, to + first, &steps);
  });
}

void to_floats(const uint8_t* from, int64_t n, const Steps& steps, float* to) {
  for_each_part(n, [&](int64_t first, int64_t count) {
    at_level(
        [](auto, const uint8_t* x, int64_t left, float* y, float zero, float by) WEFT_INLINED {
          for (; left >= 16; left -= 16, x += 16, y += 16) {
            Bytes16 bytes;
            Floats4 numbers[4];
            std::memcpy(&bytes, x, sizeof(bytes));
            blas::words_of(bytes, numbers);
            for (int q = 0; q < 4; ++q) store(Floats4((numbers[q] - zero) * by), y + q * 4);
          }
          for (; left > 0; --left, ++x, ++y) *y = (*x - zero) * by;
        },
        from + first, count, to + first, static_cast<float>(steps.zero_point), steps.scale);
  });
}

// to[i] = what fn makes of a[i] and b[i], held. fn(x, y): of vectors, changes x.
template <class Fn>
void by_pairs(const uint8_t* a, const uint8_t* b, int64_t n, const blas::Held& held, uint8_t* to,
              const Fn& fn) {
  for_each_part(n, [&](int64_t first, int64_t count) {
    at_level(
        [](auto bytes, const uint8_t* x, const uint8_t* y, int64_t left, uint8_t* z,
           const blas::Held* by, const Fn* each) WEFT_INLINED {
          constexpr int kBytes = bytes();
          auto some = [&](const uint8_t* p, const uint8_t* q, uint8_t* into) WEFT_INLINED {
            Vector<uint32_t, kBytes> pair[2];
            Vector<float, kBytes> numbers[4], others[4];
            std::memcpy(&pair[0], p, kBytes), std::memcpy(&pair[1], q, kBytes);
            blas::words_of(pair[0], numbers), blas::words_of(pair[1], others);
            for (int v = 0; v < 4; ++v) (*each)(numbers[v], others[v]);
            write<kBytes>(numbers, *by, into);
          };
          for (; left >= kBytes; left -= kBytes, x += kBytes, y += kBytes, z += kBytes)
            some(x, y, z);
          if (left == 0) return;
          uint8_t last[2][kBytes] = {};
          std::copy_n(x, left, last[0]), std::copy_n(y, left, last[1]);
          some(last[0], last[1], last[0]);
          std::copy_n(last[0], left, z);
        },
        a + first, b + first, count, to + first, &held, &fn);
  });
}

Tensor like(const Tensor& self, DType dtype) { return empty_preserve(self, dtype, self.device()); }

// Both in memory of one order without gaps.
std::pair<Tensor, Tensor> alike(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == DType::U8 && b.dtype() == DType::U8, op,
             ": expected tensors of uint8, got ", a.dtype(), " and ", b.dtype());
  const bool is_dense = a.is_contiguous() || goes_by_channels(a);
  if (is_dense && a.layout().sizes == b.layout().sizes &&
      a.layout().strides == b.layout().strides) {
    return {a, b};
  }
  const Dims sizes = broadcast_sizes(op, a.sizes(), b.sizes());
  return {in_order(ops::expand(a, sizes)), in_order(ops::expand(b, sizes))};
}

}  // namespace
}  // namespace quantized

using quantized::checked_steps;
using quantized::Steps;

namespace {

template <class T>
Tensor quantize_as(const Tensor& x, const Tensor& out, const Steps& steps) {
  const auto* from = x.data_as<const float>();
  auto* to = out.data_as<T>();
  constexpr double kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const float by = 1.0f / steps.scale;
  quantized::for_each_part(x.numel(), [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      const double q = std::nearbyint(from[i] * by + static_cast<float>(steps.zero_point));
      to[i] = static_cast<T>(q > kLow ? std::min(q, kHigh) : kLow);
    }
  });
  return out;
}

}  // namespace

Tensor _quantize(const Tensor& self, double scale, int64_t zero_point, DType dtype) {
  const char* op = "_quantize";
  const Tensor floats = as_dtype(self, DType::F32);
  const Tensor x = floats.is_contiguous() || goes_by_channels(floats) ? floats : in_order(floats);
  const Tensor out = quantized::like(x, dtype);
  if (dtype == DType::U8) {
    quantized::to_bytes(x.data_as<const float>(), x.numel(), checked_steps(op, scale, zero_point),
                        out.data_as<uint8_t>());
    return out;
  }
  WEFT_CHECK(dtype == DType::I8 || dtype == DType::I32, op, ": expected uint8, int8 or int32, got ",
             dtype);
  const Steps steps{static_cast<float>(scale), static_cast<int32_t>(zero_point)};
  return dtype == DType::I8 ? quantize_as<int8_t>(x, out, steps)
                            : quantize_as<int32_t>(x, out, steps);
}

Tensor _dequantize(const Tensor& self, double scale, int64_t zero_point) {
  const auto zero = static_cast<float>(zero_point), by = static_cast<float>(scale);
  const bool is_dense = self.is_contiguous() || goes_by_channels(self);
  if (self.dtype() != DType::U8 || !is_dense) {
    return ops::mul(ops::sub(as_dtype(self, DType::F32), zero), by);
  }
  const Tensor out = quantized::like(self, DType::F32);
  quantized::to_floats(self.data_as<const uint8_t>(), self.numel(),
                       {by, static_cast<int32_t>(zero_point)}, out.data_as<float>());
  return out;
}

namespace {

// What make(steps of the one, of the other, 1 / those of the result) makes of each two numbers.
template <class Make>
Tensor of_pairs(const char* op, const Tensor& self, const Steps& a, const Tensor& other,
                const Steps& b, bool relu, const Steps& to, const Make& make) {
  const auto [x, y] = quantized::alike(op, self, other);
  const Tensor out = quantized::like(x, DType::U8);
  quantized::by_pairs(x.data_as<const uint8_t>(), y.data_as<const uint8_t>(), out.numel(),
                      quantized::held_by(to, relu), out.data_as<uint8_t>(),
                      make(a, b, 1.0f / to.scale));
  return out;
}

}  // namespace

Tensor _quantized_add(const Tensor& self, double scale, int64_t zero_point, const Tensor& other,
                      double other_scale, int64_t other_zero_point, bool relu, double out_scale,
                      int64_t out_zero_point) {
  const char* op = "_quantized_add";
  return of_pairs(
      op, self, checked_steps(op, scale, zero_point), other,
      checked_steps(op, other_scale, other_zero_point), relu,
      checked_steps(op, out_scale, out_zero_point), [](const Steps& a, const Steps& b, float by) {
        const float of_a = a.scale, of_b = b.scale;
        const float from_a = -of_a * static_cast<float>(a.zero_point),
                    from_b = -of_b * static_cast<float>(b.zero_point);
        return [=](auto& p, const auto& q)
                   WEFT_INLINED { p = ((p * of_a + from_a) + (q * of_b + from_b)) * by; };
      });
}

Tensor _quantized_mul(const Tensor& self, double scale, int64_t zero_point, const Tensor& other,
                      double other_scale, int64_t other_zero_point, bool relu, double out_scale,
                      int64_t out_zero_point) {
  const char* op = "_quantized_mul";
  return of_pairs(
      op, self, checked_steps(op, scale, zero_point), other,
      checked_steps(op, other_scale, other_zero_point), relu,
      checked_steps(op, out_scale, out_zero_point), [](const Steps& a, const Steps& b, float each) {
        const float by = a.scale * b.scale * each;
        const auto of_a = static_cast<float>(a.zero_point), of_b = static_cast<float>(b.zero_point);
        return [=](auto& p, const auto& q) WEFT_INLINED { p = (p - of_a) * (q - of_b) * by; };
      });
}

namespace {

using quantized::Result;
using quantized::Weight;

// Rows of bytes as they lie, or filled up to whole words with `zero`.
Tensor in_words(const Tensor& rows, int64_t words, int32_t zero) {
  const int64_t k = rows.sizes()[1];
  const bool is_aligned = rows.offset() % static_cast<int64_t>(sizeof(float)) == 0;
  if (k == words * 4 && rows.is_contiguous() && is_aligned) return rows;
  const int64_t sizes[] = {rows.sizes()[0], words * 4};
  const Tensor out = Tensor::empty(sizes, DType::U8, rows.device());
  const Tensor from = in_order(rows);
  for (int64_t i = 0; i < sizes[0]; ++i) {
    uint8_t* const to = out.data_as<uint8_t>() + i * sizes[1];
    std::copy_n(from.data_as<const uint8_t>() + i * k, k, to);
    std::fill(to + k, to + sizes[1], static_cast<uint8_t>(zero));
  }
  return out;
}

Tensor linear_of(const Tensor& rows, const Steps& in, const Weight& weight, const Result& result) {
  const int64_t m = rows.sizes()[0], n = weight.rows(), words = weight.words();
  const int64_t sizes[] = {m, n};
  const Tensor out = Tensor::empty(sizes, result.to_bytes ? DType::U8 : DType::F32, rows.device());
  const Tensor x = in_words(rows, words, in.zero_point);
  const Ref<PackedWeight> strips = quantized::packed(weight);
  const float* const b = strips->data();
  const quantized::Sinks sinks(weight, in, result, [&](int64_t) {
    return reinterpret_cast<const int32_t*>(b + blas::packed_size(words, n));
  });
  quantized::multiply(
      m, n, words,
      [&](int64_t first, int64_t, float*) -> quantized::Rows {
        return {reinterpret_cast<const float*>(x.data_as<const uint8_t>()) + first * words, words};
      },
      b, sinks.of(0), out.data(), n);
  return out;
}

Tensor checked_rows(const char* op, const Tensor& input, const Weight& weight) {
  const int64_t k = weight.values.sizes()[1];
  WEFT_CHECK(weight.values.dim() == 2 && input.dim() >= 1 && input.sizes().back() == k, op,
             ": expected an input of shape (..., k) and a weight of shape (n, k), got ",
             AsTuple{input.sizes()}, " and ", AsTuple{weight.values.sizes()});
  const int64_t m = k == 0 ? 0 : input.numel() / k;
  const int64_t sizes[] = {m, k};
  return in_order(input).with_layout(Layout::contiguous(sizes));
}

Tensor shaped(const Tensor& out, const Tensor& input) {
  Dims sizes = input.sizes();
  sizes.back() = out.sizes()[1];
  return out.with_layout(Layout::contiguous(sizes));
}

}  // namespace

Tensor _quantized_linear(const Tensor& input, double scale, int64_t zero_point,
                         const Tensor& weight, const Tensor& scales, const Tensor& zero_points,
                         const Tensor& bias, bool relu, double out_scale, int64_t out_zero_point) {
  const char* op = "_quantized_linear";
  const Weight w(op, weight, scales, zero_points, bias, 1);
  quantized::check_bytes(op, input);
  const Tensor rows = checked_rows(op, input, w);
  return shaped(linear_of(rows, checked_steps(op, scale, zero_point), w,
                          {true, checked_steps(op, out_scale, out_zero_point), relu}),
                input);
}

namespace {

// Steps that span what numbers hold, and 0: as many as 8 bits tell, or 7.
Steps steps_of(const char* op, const float* x, int64_t n, bool reduce_range) {
  float low = 0, high = 0;
  bool is_finite = true;
  at_level(
      [](auto bytes, const float* from, int64_t count, float* least, float* most, bool* ok)
          WEFT_INLINED {
            using Floats = Vector<float, bytes()>;
            constexpr int64_t kLanes = bytes() / sizeof(float);
            Floats small{}, large{}, wrong{};
            int64_t i = 0;
            for (; i + kLanes <= count; i += kLanes) {
              Floats v;
              load(v, from + i);
              small = v < small ? v : small;
              large = v > large ? v : large;
              wrong += v - v;  // 0, or NaN
            }
            for (int64_t l = 0; l < kLanes; ++l) {
              *least = std::min(*least, small[l]), *most = std::max(*most, large[l]);
              *ok &= wrong[l] == 0;
            }
            for (; i < count; ++i) {
              *least = std::min(*least, from[i]), *most = std::max(*most, from[i]);
              *ok &= from[i] - from[i] == 0;
            }
          },
      x, n, &low, &high, &is_finite);
  WEFT_CHECK(is_finite, op, ": expected finite numbers, got ", low, " to ", high);
  const double steps = reduce_range ? 127 : 255;
  double scale = (static_cast<double>(high) - low) / steps;
  if (static_cast<float>(scale) == 0.0f || std::isinf(1.0f / static_cast<float>(scale))) {
    scale = 0.1;
  }
  constexpr float kLeast = 6.1e-5f;  // of the scales that PyTorch's kernels take
  if (scale < kLeast) {
    const auto given = static_cast<float>(scale);
    scale = kLeast;
    if (low == 0.0f) {
      high = static_cast<float>(kLeast * steps);
    } else if (high == 0.0f) {
      low = static_cast<float>(-kLeast * steps);
    } else {
      low *= kLeast / given, high *= kLeast / given;
    }
  }
  const double from_low = -low / scale, from_high = steps - high / scale;
  const double zero = std::abs(low / scale) < steps - std::abs(high / scale) ? from_low : from_high;
  return {static_cast<float>(scale),
          static_cast<int32_t>(std::nearbyint(std::clamp(zero, 0.0, steps)))};
}

}  // namespace

Tensor _quantized_linear_dynamic(const Tensor& input, const Tensor& weight, const Tensor& scales,
                                 const Tensor& zero_points, const Tensor& bias, bool relu,
                                 bool reduce_range) {
  const char* op = "linear_dynamic";
  const Weight w(op, weight, scales, zero_points, bias, 1);
  const Tensor rows = checked_rows(op, as_dtype(input, DType::F32), w);
  const Steps in = steps_of(op, rows.data_as<const float>(), rows.numel(), reduce_range);
  const Tensor x = Tensor::empty(rows.sizes(), DType::U8, rows.device());
  quantized::to_bytes(rows.data_as<const float>(), rows.numel(), in, x.data_as<uint8_t>());
  return shaped(linear_of(x, in, w, {false, {}, relu}), input);
}

}  // namespace weft::native
