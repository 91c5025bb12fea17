// Batch normalisation: each channel is a row of the tile programs, walked as the images lie.
#include "native_convolution.h"
#include "ops.h"
#include "ops/factory.h"
#include "ops/programs.h"
#include "ops/support.h"

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

}  // namespace weft::native
