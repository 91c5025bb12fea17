// Batch normalisation: each channel is a row of the tile programs, walked as the images lie. The
// gradients of layer normalisation, by blocks of rows.
#include "core/thread_pool.h"
#include "native_convolution.h"
#include "native_rows.h"
#include "ops.h"
#include "ops/factory.h"
#include "ops/programs.h"
#include "ops/support.h"
#include "ops/views.h"

namespace weft::native {
namespace {

// The dimensions of an input (N, C, ...), and those of its vectors, which broadcast against it.
struct Channels {
  int64_t count, each;  // channels, and values of one
  Dims others, vector;  // dimensions that are none of channels; sizes
  Tensor empty(DType dtype, Device device) const { return Tensor::empty(vector, dtype, device); }
  // A vector as an operand; `missing` in each place where there is none.
  Tensor operand(const Tensor& tensor, int missing, DType dtype, Device device) const {
    if (tensor.defined()) return ops::view(in_order(tensor), vector);
    const Tensor number = Tensor::empty({}, dtype, device);
    fill(number, missing, "batch_norm");
    return number;
  }
  Tensor flat(const Tensor& tensor) const { return ops::view(tensor, {{count}}); }
};

Channels channels_of(const char* op, const Tensor& input) {
  WEFT_CHECK(input.dim() >= 2, op, ": expected an input of shape (N, C, ...), got ",
             AsTuple{input.sizes()});
  WEFT_CHECK_AS(NotImplemented, is_floating(input.dtype()), op, ": expected a floating dtype, got ",
                input.dtype());
  const int64_t count = input.size(1);
  Channels c{count, count ? input.numel() / count : 0, {}, Dims(input.sizes().size(), 1)};
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) c.others.push_back(d);
  }
  c.vector[1] = count;
  return c;
}

// An image or its gradient, uninitialised.
Tensor image_of(const char* op, const Tensor& like) {
  const MemoryFormat format = like.layout().suggested_format();
  return make_empty(op, like.sizes(),
                    {like.dtype(), {}, like.device(), {}, static_cast<int64_t>(format)});
}

void check_vector(const char* op, const char* what, const Tensor& tensor, const Channels& c) {
  if (!tensor.defined()) return;
  WEFT_CHECK(tensor.dim() == 1 && tensor.numel() == c.count, op, ": expected a ", what,
             " of shape (", c.count, ",), got ", AsTuple{tensor.sizes()});
}

// running = (1 - momentum) * running + momentum * fresh * scale, whatever the dtypes.
void update_running(const Tensor& running, const Tensor& fresh, double scale, double momentum) {
  if (!running.defined()) return;
  running.check_writable("batch_norm");
  const Tensor old = in_order(as_dtype(running, DType::F64)), by = as_dtype(fresh, DType::F64);
  const Tensor updated = Tensor::empty(running.sizes(), DType::F64, running.device());
  for (int64_t c = 0; c < running.numel(); ++c) {
    updated.data_as<double>()[c] = (1 - momentum) * old.data_as<const double>()[c] +
                                   momentum * scale * by.data_as<const double>()[c];
  }
  copy_into(running, updated);
}

void run(const char* row, std::initializer_list<const Tensor*> inputs, const Channels& c,
         std::span<const Scalar> numbers, std::span<Tensor> results) {
  tile::run(*tile_ops::find(row),
            {.inputs = {inputs.begin(), inputs.size()}, .attributes = numbers, .dims = c.others},
            results);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _batch_norm_train(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, double momentum,
                                                     double eps) {
  const char* op = "batch_norm";
  const Channels c = channels_of(op, input);
  check_vector(op, "weight", weight, c);
  check_vector(op, "bias", bias, c);
  check_vector(op, "running_mean", running_mean, c);
  check_vector(op, "running_var", running_var, c);
  WEFT_CHECK_VALUE(c.each > 1, op, ": expected more than 1 value per channel when training, got ",
                   "shape ", AsTuple{input.sizes()});
  const Device device = input.device();
  const DType compute = compute_type(input.dtype());
  const Tensor w = c.operand(weight, 1, compute, device), b = c.operand(bias, 0, compute, device);
  Tensor results[] = {image_of(op, input), c.empty(compute, device), c.empty(compute, device),
                      c.empty(compute, device)};
  const Scalar numbers[] = {Scalar(eps)};
  run("_batch_norm_rows", {&input, &w, &b}, c, numbers, results);
  const auto& [out, mean, invstd, squares] = results;
  update_running(running_mean, mean, 1, momentum);
  update_running(running_var, squares, 1 / static_cast<double>(c.each - 1), momentum);
  return {out, c.flat(mean), c.flat(invstd)};
}

std::tuple<Tensor, Tensor, Tensor> _batch_norm_backward(const Tensor& grad_output,
                                                        const Tensor& input, const Tensor& weight,
                                                        const Tensor& mean, const Tensor& invstd) {
  const char* op = "_batch_norm_backward";
  const Channels c = channels_of(op, input);
  WEFT_CHECK(grad_output.sizes() == input.sizes(), op, ": expected a gradient of shape ",
             AsTuple{input.sizes()}, ", got ", AsTuple{grad_output.sizes()});
  const Device device = input.device();
  const DType compute = compute_type(input.dtype());
  const DType vector = weight.defined() ? weight.dtype() : compute;
  const Tensor w = c.operand(weight, 1, compute, device), m = c.operand(mean, 0, compute, device),
               r = c.operand(invstd, 1, compute, device);
  Tensor results[] = {image_of(op, input), c.empty(vector, device), c.empty(vector, device)};
  run("_batch_norm_rows_backward", {&grad_output, &input, &w, &m, &r}, c, {}, results);
  return {results[0], c.flat(results[1]), c.flat(results[2])};
}

namespace {

Tensor matrix(const Tensor& tensor, int64_t rows, int64_t columns) {
  return ops::view(in_order(tensor), Dims{rows, columns});
}

// Rows [begin, end) of a matrix.
Tensor rows_of(const Tensor& matrix, int64_t begin, int64_t end) {
  return matrix.with_layout(views::slice(matrix.layout(), 0, begin, end, 1));
}

void run(const char* row, std::initializer_list<const Tensor*> inputs, int64_t dim,
         std::span<Tensor> results) {
  tile::run(*tile_ops::find(row),
            {.inputs = {inputs.begin(), inputs.size()}, .dims = IntList(&dim, 1), .keepdim = true},
            results);
}

void sum_rows(const Tensor& matrix, Tensor to) { run("sum_dim_IntList", {&matrix}, 0, {&to, 1}); }

}  // namespace

// A block of rows stays in the second cache from its gradient to the sums over its rows.
std::tuple<Tensor, Tensor, Tensor> _layer_norm_affine_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight, const Tensor& mean,
    const Tensor& rstd, IntList, double) {
  constexpr int64_t kElements = 24 * 1024, kLeast = 16;
  const Device device = input.device();
  const Tensor out = Tensor::empty(input.sizes(), input.dtype(), device),
               to_weight = Tensor::empty(weight.sizes(), weight.dtype(), device),
               to_bias = Tensor::empty(weight.sizes(), weight.dtype(), device);
  const int64_t length = weight.numel(), rows = mean.numel();
  const Tensor g = matrix(grad_output, rows, length), x = matrix(input, rows, length),
               w = matrix(weight, 1, length), m = matrix(mean, rows, 1), r = matrix(rstd, rows, 1),
               to = matrix(out, rows, length);
  const int64_t each = std::max(kLeast, kElements / std::max<int64_t>(1, length));
  const int64_t blocks = (rows + each - 1) / each;
  const DType compute = compute_type(input.dtype());
  const Tensor along = Tensor::empty(Dims{blocks, length}, compute, device),
               total = Tensor::empty(Dims{blocks, length}, compute, device);
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    const Tensor products = Tensor::empty(Dims{each, length}, compute, device);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * each, last = std::min(first + each, rows);
      const auto part = [&](const Tensor& all) { return rows_of(all, first, last); };
      const Tensor grads = part(g), xs = part(x), ms = part(m), rs = part(r);
      Tensor results[] = {part(to), rows_of(products, 0, last - first)};
      run("_layer_norm_products", {&grads, &xs, &w, &ms, &rs}, 1, results);
      sum_rows(results[1], rows_of(along, block, block + 1));
      sum_rows(grads, rows_of(total, block, block + 1));
    }
  });
  sum_rows(along, matrix(to_weight, 1, length));
  sum_rows(total, matrix(to_bias, 1, length));
  return {out, to_weight, to_bias};
}

}  // namespace weft::native
