#include "ops/packed_linear.h"

#include <optional>

#include "ops/few_rows.h"
#include "ops/packed_product.h"
#include "ops/packed_weight.h"
#include "ops/packed_words.h"

namespace weft::native {
namespace {

constexpr int64_t kStrip = blas::kStrip;

// How many numbers of this dtype make an element of the tiles; 0: they do not take it.
int64_t numbers_each(DType dtype) {
  if (dtype == DType::F32) return 1;
  return dtype == DType::BF16 && blas::multiplies(blas::Elements::BFloat16Pairs) ? 2 : 0;
}

bool fits(const Tensor& out, const Tensor& start, const Tensor& rows, const Tensor& weight) {
  constexpr int64_t kLeast = 128 * 128;  // elements of a weight: smaller ones are packed in no time
  const int64_t k = weight.sizes()[1], n = weight.sizes()[0], each = numbers_each(weight.dtype());
  if (each == 0 || out.dtype() != DType::F32 || rows.dtype() != weight.dtype()) return false;
  if (k < each * kStrip || n < 2 * kStrip || n * k < kLeast || rows.strides()[1] != 1) return false;
  if (each == 1 && blas::takes_few_rows<float>(rows.sizes()[0], {nullptr, 1, k})) return false;
  return !start.defined() || (start.dtype() == DType::F32 && start.dim() == 1 &&
                              start.sizes()[0] == n && start.strides()[0] == 1);
}

// A matrix of rows as the tiles read it.
class Factor {
 public:
  explicit Factor(const Tensor& tensor) {
    const int64_t row = tensor.strides()[0], column = tensor.strides()[1];
    if (tensor.dtype() == DType::F32) {
      matrix_ = {tensor.data_as<const float>(), row, column};
    } else {
      const auto* data = reinterpret_cast<const uint16_t*>(tensor.data_as<const BFloat16>());
      matrix_ = pairs_
                    .emplace(blas::Matrix<const uint16_t>{data, row, column}, tensor.sizes()[0],
                             tensor.sizes()[1])
                    .words();
    }
  }
  const blas::Matrix<const float>& matrix() const { return matrix_; }

 private:
  std::optional<blas::WordMatrix<uint16_t>> pairs_;
  blas::Matrix<const float> matrix_;
};

}  // namespace

bool packed_linear(const Tensor& out, const Tensor& start, const Tensor& rows,
                   const Tensor& weight) {
  if (!fits(out, start, rows, weight)) return false;
  const bool in_pairs = weight.dtype() == DType::BF16;
  const int64_t m = rows.sizes()[0], n = weight.sizes()[0];
  const int64_t k = in_pairs ? (weight.sizes()[1] + 1) / 2 : weight.sizes()[1];
  auto fill = [&](float* to) { blas::pack_matrix(Factor(weight).matrix().transposed(), k, n, to); };
  // Floats need not be packed as a whole.
  const int64_t size = blas::packed_size(k, n);
  const Ref<PackedWeight> strips =
      in_pairs ? packed_weight(weight, PackedForm::PairStrips, 1, size, fill)
               : kept_weight(weight, PackedForm::Strips, 1, size, fill);
  const Factor left(rows);
  blas::Matrix<const float> right{};
  if (!strips) right = Factor(weight).matrix().transposed();
  blas::PackedProduct{m,
                      n,
                      k,
                      left.matrix(),
                      right,
                      strips ? strips->data() : nullptr,
                      {start.defined() ? start.data_as<const float>() : nullptr},
                      false,
                      in_pairs ? blas::Elements::BFloat16Pairs : blas::Elements::Floats,
                      out.data_as<float>()}
      .run();
  return true;
}

}  // namespace weft::native
