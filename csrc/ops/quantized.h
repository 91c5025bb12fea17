// Quantised numbers: integers q that stand for (q - zero_point) * scale; of a weight in int8 with
// one scale and zero point, or one for each of its rows. What the layers share (quantized.cpp,
// quantized_conv.cpp): weights packed for the product of bytes, and what makes results of its sums.
#pragma once

#include <vector>

#include "ops/packed_gemm.h"
#include "ops/packed_weight.h"
#include "ops/quantized_sink.h"
#include "ops/support.h"

namespace weft::native::quantized {

struct Steps {
  float scale;
  int32_t zero_point;
};
// RuntimeError unless bytes can have them.
Steps checked_steps(const char* op, double scale, int64_t zero_point);

blas::Held held_by(const Steps& steps, bool relu = false);

// A weight of shape (groups * n, channels, ...taps): int8, with float scales and integer zero
// points.
struct Weight {
  Tensor values, scales, zero_points, bias;
  int64_t groups;

  // RuntimeError unless they fit each other.
  Weight(const char* op, const Tensor& values, const Tensor& scales, const Tensor& zero_points,
         const Tensor& bias, int64_t groups);
  int64_t rows() const { return values.sizes()[0]; }
  int64_t group_rows() const { return rows() / groups; }
  int64_t channels() const { return values.sizes()[1]; }
  int64_t taps() const { return values.numel() / std::max<int64_t>(1, rows() * channels()); }
  // Of a row as it is multiplied: taps of channels that are filled up to whole words.
  int64_t aligned_channels() const { return (channels() + 3) / 4 * 4; }
  int64_t words() const { return taps() * aligned_channels() / 4; }
  float scale(int64_t row) const {
    return scales_[scales_.size() == 1 ? 0 : static_cast<size_t>(row)];
  }
  int32_t zero(int64_t row) const {
    return zeros_[zeros_.size() == 1 ? 0 : static_cast<size_t>(row)];
  }
  bool has_zeros() const;

 private:
  std::vector<float> scales_;
  std::vector<int32_t> zeros_;
};
void check_bytes(const char* op, const Tensor& input);

// Strips of each group, and behind them the sums of its rows (int32).
Ref<PackedWeight> packed(const Weight& weight);

// Where results go: bytes of `out`, or floats.
struct Result {
  bool to_bytes;
  Steps out;
  bool relu;
};

// Requantised of all groups, each from a whole number of strips on.
class Sinks {
 public:
  // `sums`: those of the rows of a group.
  Sinks(const Weight& weight, const Steps& in, const Result& result,
        FunctionRef<const int32_t*(int64_t group)> sums);
  blas::Requantised of(int64_t group) const;

 private:
  blas::Requantised base_;
  int64_t stride_;
  std::vector<int32_t> columns_, zeros_;
  std::vector<float> bias_, scale_;
};

// Rows [first, first + count) of the left factor, `words` each; `to` is room for them.
struct Rows {
  const float* data;
  int64_t row;
};
using RowsOf = FunctionRef<Rows(int64_t first, int64_t count, float* to)>;

// out[i, j] = to(sum of a[i] * strips[j]) for m rows of n columns; `row` apart in out.
void multiply(int64_t m, int64_t n, int64_t words, RowsOf rows, const float* strips,
              const blas::Requantised& to, void* out, int64_t row);

}  // namespace weft::native::quantized
