#include "ops/gemm.h"

#include "core/thread_pool.h"
#include "ops/blas.h"
#include "ops/packed_linear.h"
#include "ops/packed_product.h"

namespace weft::native {
namespace {

template <class T>
blas::Matrix<const T> matrix_of(const Tensor& tensor, int64_t batch = 0) {
  const Dims& strides = tensor.strides();
  const size_t at = strides.size() - 2;
  const int64_t start = at == 0 ? 0 : batch * strides[0];
  return {tensor.data_as<const T>() + start, strides[at], strides[at + 1]};
}

// Whether each row of a result starts from this one.
bool is_row(const Tensor& start, const Tensor& out) {
  const int64_t n = out.sizes().back();
  return start.dim() == 1 && start.numel() == n && start.strides()[0] == 1 && n > 0 &&
         start.dtype() == out.dtype();
}

// out[rows, n] = start, broadcast. A dense row of n, the bias of a layer, is worth a loop of its
// own.
void start_from(const Tensor& out, const Tensor& start) {
  if (!start.defined()) return;
  if (!is_row(start, out)) return copy_into(out, start);
  const int64_t n = out.sizes().back();
  const size_t line = static_cast<size_t>(n) * out.item_size();
  const char* from = start.data_as<const char>();
  char* to = out.data_as<char>();
  for (int64_t row = out.numel() / n; row > 0; --row, to += line) std::memcpy(to, from, line);
}

// The bytes of a bfloat16 matrix.
blas::Matrix<const uint16_t> words_of(const Tensor& tensor, int64_t batch = 0) {
  const auto [data, row, column] = matrix_of<BFloat16>(tensor, batch);
  return {reinterpret_cast<const uint16_t*>(data), row, column};
}

template <bool Transposed>
void gemm_of(const Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b,
             const Scalar& beta, const Scalar& alpha) {
  const int64_t m = a.sizes()[0], k = a.sizes()[1], n = b.sizes()[Transposed ? 0 : 1];
  if (multiplies_in_pairs(a.dtype())) {
    const auto right = Transposed ? words_of(b).transposed() : words_of(b);
    start_from(out, start);
    return blas::bfloat16_gemm(m, n, k, words_of(a), right, start.defined(), out.data_as<float>());
  }
  dispatch_numeric(out.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto left = matrix_of<T>(a);
    const auto right = Transposed ? matrix_of<T>(b).transposed() : matrix_of<T>(b);
    start_from(out, start);
    blas::gemm<T>(m, n, k, number_as<T>(alpha), left, right, number_as<T>(beta), out.data_as<T>(),
                  n);
  });
}

// Products of a batch that are worth a thread.
int64_t batch_grain(int64_t m, int64_t n, int64_t k) {
  constexpr double kGrainWork = 128.0 * 1024;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return static_cast<int64_t>(kGrainWork / std::max(work, 1.0)) + 1;
}

}  // namespace

bool multiplies_in_pairs(DType dtype) {
  return dtype == DType::BF16 && blas::multiplies(blas::Elements::BFloat16Pairs);
}

void gemm(const Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b,
          const Scalar& beta, const Scalar& alpha) {
  gemm_of<false>(out, start, a, b, beta, alpha);
}

void gemm_transposed(const Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b,
                     const Scalar& beta, const Scalar& alpha) {
  if (packed_linear(out, start, a, b)) return;
  gemm_of<true>(out, start, a, b, beta, alpha);
}

// Threads take whole products where there are enough.
void gemm_batched(const Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b,
                  const Scalar& beta, const Scalar& alpha) {
  start_from(out, start);
  const int64_t batch = a.sizes()[0], m = a.sizes()[1], k = a.sizes()[2], n = b.sizes()[2];
  auto each = [&](FunctionRef<void(int64_t)> product) {
    const int64_t grain = batch_grain(m, n, k);
    if (batch < num_threads() && grain == 1) {
      for (int64_t i = 0; i < batch; ++i) product(i);
      return;
    }
    parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) product(i);
    });
  };
  if (multiplies_in_pairs(a.dtype())) {
    return each([&](int64_t i) {
      blas::bfloat16_gemm(m, n, k, words_of(a, i), words_of(b, i), start.defined(),
                          out.data_as<float>() + i * m * n);
    });
  }
  dispatch_numeric(out.dtype(), [&]<class T>(std::type_identity<T>) {
    each([&](int64_t i) {
      blas::gemm<T>(m, n, k, number_as<T>(alpha), matrix_of<T>(a, i), matrix_of<T>(b, i),
                    number_as<T>(beta), out.data_as<T>() + i * m * n, n);
    });
  });
}

}  // namespace weft::native
