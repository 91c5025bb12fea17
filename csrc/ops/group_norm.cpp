// Group normalisation: channels are rows, whose moments make those of their groups.
#include "native_convolution.h"
#include "ops.h"
#include "ops/factory.h"
#include "ops/programs.h"
#include "ops/support.h"

namespace weft::native {
namespace {

// Images as (samples, groups, channels of a group, parts of a channel, positions of a part).
struct Groups {
  Groups(const char* op, const Tensor& input, int64_t groups);

  const char* op;
  Dims images, sizes;
  MemoryFormat format;
  DType dtype, compute;
  Device device;

  Tensor image() const;
  // Of an image or a gradient, in the format of the input.
  Tensor view(const Tensor& image) const;
  // A vector of the channels, or a number in its place.
  Tensor vector(const Tensor& tensor, int missing) const;
  // For values of parts of channels, of channels, of groups: the dimensions that count them.
  Tensor empty(size_t dims) const;
  // Values of groups, or of all channels, as values of channels.
  Tensor spread(const Tensor& values) const;
  bool planes() const { return format == MemoryFormat::Contiguous; }
};

constexpr size_t kGroups = 2, kChannels = 3, kParts = 4;
constexpr int64_t kDims[] = {0, 1, 2, 3, 4};

// The dimensions behind the first `count`: those of a row.
IntList behind(size_t count) { return IntList(kDims).subspan(count); }

constexpr int64_t kElements = 32 * 1024;  // stay in a near cache

// All channels of a part are as many elements where they lie together; planes have no parts.
int64_t parts_of(MemoryFormat format, int64_t channels, int64_t positions) {
  if (format == MemoryFormat::Contiguous || positions == 0) return 1;
  int64_t parts = std::max<int64_t>(1, channels * positions / kElements);
  while (positions % parts) ++parts;
  return parts;
}

Groups::Groups(const char* op, const Tensor& input, int64_t groups)
    : op(op),
      images(input.sizes()),
      format(input.layout().suggested_format()),
      dtype(input.dtype()),
      compute(compute_type(dtype)),
      device(input.device()) {
  WEFT_CHECK_AS(NotImplemented, is_floating(dtype), op, ": expected a floating dtype, got ", dtype);
  int64_t positions = 1;
  for (size_t d = 2; d < images.size(); ++d) positions *= images[d];
  const int64_t parts = parts_of(format, images[1], positions);
  sizes = {images[0], groups, images[1] / groups, parts, positions / parts};
}

Tensor Groups::image() const {
  return make_empty(op, images, {dtype, {}, device, {}, static_cast<int64_t>(format)});
}

Tensor Groups::view(const Tensor& image) const {
  const Tensor laid = in_format(op, image, format, dtype);
  const int64_t positions = sizes[3] * sizes[4], channels = images[1];
  const int64_t channel = planes() ? positions : 1, step = planes() ? 1 : channels;
  Dims strides{channels * positions, sizes[2] * channel, channel, sizes[4] * step, step};
  return laid.with_layout({sizes, std::move(strides), laid.offset()});
}

Tensor Groups::vector(const Tensor& tensor, int missing) const {
  if (tensor.defined()) return ops::view(in_order(tensor), Dims{sizes[1], sizes[2], 1, 1});
  const Tensor number = Tensor::empty({}, compute, device);
  fill(number, missing, op);
  return number;
}

Tensor Groups::empty(size_t dims) const {
  Dims some(sizes);
  for (size_t d = dims; d < some.size(); ++d) some[d] = 1;
  return Tensor::empty(some, compute, device);
}

Tensor Groups::spread(const Tensor& values) const {
  Tensor made = empty(kChannels);
  copy_into(made, values);
  return made;
}

void run(const char* row, std::initializer_list<const Tensor*> inputs, IntList dims,
         std::span<const Scalar> numbers, std::span<Tensor> results) {
  tile::run(*tile_ops::find(row),
            {.inputs = {inputs.begin(), inputs.size()},
             .attributes = numbers,
             .dims = dims,
             .keepdim = true},
            results);
}

Tensor product(const Tensor& a, const Tensor& b) {
  Tensor result;
  const Tensor* both[] = {&a, &b};
  tile::run(*tile_ops::find("mul_Tensor"), {.inputs = both}, {&result, 1});
  return result;
}

struct Moments {
  Tensor mean, rstd;  // of groups
};

// Rows are whole groups that lie together and stay in the cache, or parts of channels.
Moments moments_of(const Groups& g, const Tensor& x, double eps) {
  const int64_t group = g.sizes[2] * g.sizes[3] * g.sizes[4];
  const bool whole = g.planes() && group <= kElements;
  const size_t dims = whole ? kGroups : kParts;
  Tensor parts[] = {g.empty(dims), g.empty(dims)}, groups[] = {g.empty(kGroups), g.empty(kGroups)};
  run("_row_moments", {&x}, behind(dims), {}, parts);
  const Scalar numbers[] = {Scalar(static_cast<double>(whole ? group : g.sizes[4])), Scalar(eps)};
  run("_moments_of_parts", {&parts[0], &parts[1]}, behind(kGroups), numbers, groups);
  return {groups[0], groups[1]};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _group_norm(const Tensor& input, int64_t groups,
                                               const Tensor& weight, const Tensor& bias,
                                               double eps) {
  const Groups g("group_norm", input, groups);
  const Dims rows{g.sizes[0], groups};
  const Tensor out = g.image();
  if (input.numel() == 0) {
    const Tensor zeros = zeros_of(rows, g.compute, g.device, g.op);
    return {out, zeros, zeros};
  }
  const Tensor x = g.view(input);
  const Moments moments = moments_of(g, x, eps);
  const Tensor mean = g.spread(moments.mean), shift = g.spread(g.vector(bias, 0)),
               scale = g.spread(product(moments.rstd, g.vector(weight, 1)));
  Tensor to = g.view(out);
  run("_scaled_rows", {&x, &mean, &scale, &shift}, behind(kChannels), {}, {&to, 1});
  return {out, ops::view(moments.mean, rows), ops::view(moments.rstd, rows)};
}

std::tuple<Tensor, Tensor, Tensor> _group_norm_backward(const Tensor& grad_output,
                                                        const Tensor& input, const Tensor& weight,
                                                        const Tensor& mean, const Tensor& rstd,
                                                        int64_t groups, double) {
  const Groups g("_group_norm_backward", input, groups);
  const DType vector = weight.defined() ? weight.dtype() : g.compute;
  const Tensor out = g.image(), to_weight = zeros_of({{g.images[1]}}, vector, g.device, g.op),
               to_bias = zeros_of({{g.images[1]}}, vector, g.device, g.op);
  if (input.numel() == 0) return {out, to_weight, to_bias};
  const Dims rows{g.sizes[0], groups, 1, 1, 1}, columns{1, groups, g.sizes[2], 1, 1};
  const Tensor grad = g.view(grad_output), x = g.view(input), r = ops::view(in_order(rstd), rows),
               m = g.spread(ops::view(in_order(mean), rows)),
               scale = g.spread(product(r, g.vector(weight, 1)));
  Tensor sums[] = {g.empty(kChannels), g.empty(kChannels)},
         moved[] = {g.empty(kGroups), g.empty(kGroups)};
  run("_scaled_rows_sums", {&grad, &x, &m}, behind(kChannels), {}, sums);
  const Scalar count[] = {Scalar(static_cast<double>(g.sizes[3] * g.sizes[4]))};
  run("_sums_of_parts", {&sums[0], &sums[1], &scale, &r}, behind(kGroups), count, moved);
  const Tensor level = g.spread(moved[0]), slope = g.spread(moved[1]), along = product(sums[1], r);
  Tensor to = g.view(out), vectors[] = {ops::view(to_weight, columns), ops::view(to_bias, columns)};
  run("_scaled_rows_backward", {&grad, &x, &m, &scale, &level, &slope}, behind(kChannels), {},
      {&to, 1});
  run("sum_dim_IntList", {&along}, IntList(kDims, 1), {}, {&vectors[0], 1});
  run("sum_dim_IntList", {&sums[0]}, IntList(kDims, 1), {}, {&vectors[1], 1});
  return {out, to_weight, to_bias};
}

}  // namespace weft::native
