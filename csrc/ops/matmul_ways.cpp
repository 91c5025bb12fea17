#include "ops/matmul_ways.h"

#include "core/thread_pool.h"
#include "ops/blas.h"
#include "ops/blas_columns.h"
#include "ops/scratch.h"

namespace weft::native {
namespace {

template <class T>
blas::Matrix<const T> matrix_of(const Tensor& tensor, int64_t batch = 0) {
  const Dims& strides = tensor.strides();
  const size_t at = strides.size() - 2;
  const int64_t start = at == 0 ? 0 : batch * strides[0];
  return {tensor.data_as<const T>() + start, strides[at], strides[at + 1]};
}

// out = beta * out + alpha * a @ b; out is contiguous, of the operands' (computing) dtype.
void gemm_into(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
               const Scalar& alpha, const Finish& finish) {
  dispatch_numeric(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t m = a.sizes()[0], k = a.sizes()[1], n = b.sizes()[1];
    blas::gemm<T>(m, n, k, number_as<T>(alpha), matrix_of<T>(a), matrix_of<T>(b),
                  number_as<T>(beta), out.data_as<T>(), n, finish);
  });
}

// out = beta * out + alpha * a @ b^T.
void gemm_transposed_into(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                          const Scalar& alpha, const Finish& finish) {
  dispatch_numeric(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t m = a.sizes()[0], k = a.sizes()[1], n = b.sizes()[0];
    blas::gemm<T>(m, n, k, number_as<T>(alpha), matrix_of<T>(a), matrix_of<T>(b).transposed(),
                  number_as<T>(beta), out.data_as<T>(), n, finish);
  });
}

// Products of a batch that are worth a thread.
int64_t batch_grain(int64_t m, int64_t n, int64_t k) {
  constexpr double kGrainWork = 128.0 * 1024;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return static_cast<int64_t>(kGrainWork / std::max(work, 1.0)) + 1;
}

// The same as gemm_into for each matrix of a batch; threads take whole products where there are
// enough.
void batched_gemm_into(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                       const Scalar& alpha, const Finish& finish) {
  const int64_t batch = a.sizes()[0], m = a.sizes()[1], k = a.sizes()[2], n = b.sizes()[2];
  dispatch_numeric(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto product = [&](int64_t i) {
      blas::gemm<T>(m, n, k, number_as<T>(alpha), matrix_of<T>(a, i), matrix_of<T>(b, i),
                    number_as<T>(beta), out.data_as<T>() + i * m * n, n, finish.at(i * m, 0));
    };
    const int64_t grain = batch_grain(m, n, k);
    if (batch < num_threads() && grain == 1) {
      for (int64_t i = 0; i < batch; ++i) product(i);
      return;
    }
    parallel_for(batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) product(i);
    });
  });
}

// Calls fn with float or double; false for other types.
template <class Fn>
bool dispatch_parts(DType dtype, Fn&& fn) {
  if (dtype == DType::F32) return fn(std::type_identity<float>{});
  return dtype == DType::F64 && fn(std::type_identity<double>{});
}

bool takes_panels(const Tensor& a, const Tensor& b) {
  return dispatch_parts(a.dtype(), [&]<class T>(std::type_identity<T>) {
    return blas::takes_panels<T>(a.sizes()[0], b.sizes()[1], b.sizes()[0], matrix_of<T>(b));
  });
}

bool has_panels(const Tensor& a, const Tensor& b) {
  return dispatch_parts(a.dtype(), [&]<class T>(std::type_identity<T>) {
    return blas::has_panels<T>(a.sizes()[0], b.sizes()[1], b.sizes()[0], matrix_of<T>(b));
  });
}

void gemm_of_panels(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                    const Scalar& alpha, const Finish& finish, Prologue* before,
                    const Tensor& row) {
  const int64_t m = a.sizes()[0], k = a.sizes()[1], n = b.sizes()[1];
  dispatch_parts(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto rows = [&](int64_t first, int64_t count, T* to) {
      before->part({first, count, 0, k}, to);
    };
    const blas::RowMaker<T> make(rows);
    blas::gemm_by_panels<T>(
        m, n, k, number_as<T>(alpha), matrix_of<T>(a), matrix_of<T>(b), number_as<T>(beta),
        out.data_as<T>(), n,
        {before ? &make : nullptr, row.defined() ? row.data_as<const T>() : nullptr}, finish);
    return true;
  });
}

// A right operand that is made as it is (turned: as a weight, transposed) some columns at a time.
template <bool Turned>
blas::RightSizes right_sizes(const Tensor& b) {
  return {b.sizes()[Turned ? 1 : 0], b.sizes()[Turned ? 0 : 1], Turned};
}

template <bool Turned>
bool takes_columns(const Tensor& a, const Tensor& b) {
  return dispatch_parts(a.dtype(), [&]<class T>(std::type_identity<T>) {
    return blas::takes_columns<T>(a.sizes()[0], right_sizes<Turned>(b));
  });
}

template <bool Turned>
void gemm_of_columns(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                     const Scalar& alpha, const Finish& finish, Prologue& before) {
  dispatch_parts(a.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto make = [&](const Part& part, T* to) { before.part(part, to); };
    const blas::RightSizes sizes = right_sizes<Turned>(b);
    blas::gemm_by_columns<T>(a.sizes()[0], sizes, number_as<T>(alpha), matrix_of<T>(a),
                             number_as<T>(beta), out.data_as<T>(), sizes.n, make, finish);
    return true;
  });
}

// Threads take whole products of a batch: each makes one matrix at a time.
bool makes_matrices(const Tensor& made) {
  constexpr int64_t kMost = int64_t{1} << 19;  // elements
  const bool floating = made.dtype() == DType::F32 || made.dtype() == DType::F64;
  const Dims& sizes = made.sizes();
  return floating && sizes[0] >= 2 * num_threads() && sizes[1] * sizes[2] <= kMost;
}

// `Right`: what is made is b.
template <bool Right>
void gemm_of_matrices(const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                      const Scalar& alpha, const Finish& finish, Prologue& before) {
  const int64_t batch = a.sizes()[0], m = a.sizes()[1], k = a.sizes()[2], n = b.sizes()[2];
  dispatch_parts(a.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(batch, batch_grain(m, n, k), [&](int64_t begin, int64_t end) {
      const int64_t rows = Right ? k : m, columns = Right ? n : k;
      Scratch<T> matrix(rows * columns);
      const blas::Matrix<const T> made{matrix.data(), columns, 1};
      for (int64_t i = begin; i < end; ++i) {
        before.part({i * rows, rows, 0, columns}, matrix.data());
        blas::gemm<T>(m, n, k, number_as<T>(alpha), Right ? matrix_of<T>(a, i) : made,
                      Right ? made : matrix_of<T>(b, i), number_as<T>(beta),
                      out.data_as<T>() + i * m * n, n, finish.at(i * m, 0));
      }
    });
    return true;
  });
}

}  // namespace

const Gemm kPlain{gemm_into,      takes_panels,         has_panels,
                  gemm_of_panels, takes_columns<false>, gemm_of_columns<false>};
const Gemm kTransposed{
    gemm_transposed_into,
    [](const Tensor& a, const Tensor& b) { return takes_panels(a, transposed(b)); },
    [](const Tensor& a, const Tensor& b) { return has_panels(a, transposed(b)); },
    [](const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
       const Finish& finish, Prologue* before, const Tensor& row) {
      gemm_of_panels(out, a, transposed(b), beta, alpha, finish, before, row);
    },
    takes_columns<true>,
    gemm_of_columns<true>};
const Gemm kBatched{batched_gemm_into,
                    [](const Tensor& a, const Tensor&) { return makes_matrices(a); },
                    [](const Tensor&, const Tensor&) { return false; },
                    [](const Tensor& out, const Tensor& a, const Tensor& b, const Scalar& beta,
                       const Scalar& alpha, const Finish& finish, Prologue* before, const Tensor&) {
                      gemm_of_matrices<false>(out, a, b, beta, alpha, finish, *before);
                    },
                    [](const Tensor&, const Tensor& b) { return makes_matrices(b); },
                    gemm_of_matrices<true>};

}  // namespace weft::native
