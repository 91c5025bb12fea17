// Gradients of views: zeros of the input's size with the gradient written where the view looked.
#include "native_views.h"
#include "ops/accumulate.h"
#include "ops/index_plan.h"
#include "ops/support.h"
#include "ops/views.h"
#include "ops_arithmetic.h"
#include "ops_clamp_where.h"
#include "ops_copying.h"

namespace weft::native {
namespace {

// view(layout of the whole) says where the gradient goes; no element may be named twice.
template <class View>
Tensor spread(const char* op, const Tensor& grad, IntList input_size, View&& view) {
  Tensor out = zeros_of(input_size, grad.dtype(), grad.device(), op);
  copy_into(out.with_layout(view(out.layout())), grad);
  return out;
}

// The same where places may be named several times: gradients add up.
void add_at(const Tensor& out, const Layout& places, const Tensor& grad) {
  WEFT_CHECK(grad.sizes() == places.sizes, "backward of a view: expected a gradient of shape ",
             AsTuple{places.sizes}, ", got ", AsTuple{grad.sizes()});
  const std::vector<int64_t> to = element_offsets(places.sizes, places.strides);
  const Tensor from = in_order(grad);
  const Tensor target = out.with_layout(places);  // checks the bounds
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    for (size_t i = 0; i < to.size(); ++i) {
      accumulate(target.data_as<T>()[to[i]], from.data_as<const T>()[i]);
    }
  });
}

}  // namespace

Tensor _select_backward(const Tensor& grad_output, IntList input_size, int64_t dim, int64_t index) {
  return spread("_select_backward", grad_output, input_size,
                [&](const Layout& whole) { return views::select(whole, dim, index); });
}

Tensor _slice_backward(const Tensor& grad_output, IntList input_size, int64_t dim,
                       std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return spread("_slice_backward", grad_output, input_size,
                [&](const Layout& whole) { return views::slice(whole, dim, start, end, step); });
}

Tensor _diagonal_backward(const Tensor& grad_output, IntList input_size, int64_t offset,
                          int64_t dim1, int64_t dim2) {
  return spread("_diagonal_backward", grad_output, input_size,
                [&](const Layout& whole) { return views::diagonal(whole, offset, dim1, dim2); });
}

Tensor _unfold_backward(const Tensor& grad_output, IntList input_size, int64_t dimension,
                        int64_t size, int64_t step) {
  Tensor out = zeros_of(input_size, grad_output.dtype(), grad_output.device(), "_unfold_backward");
  add_at(out, views::unfold(out.layout(), dimension, size, step), grad_output);
  return out;
}

namespace {

// The stretch of storage that holds both an input's elements and those of a strided view of it,
// with both layouts counted from its start.
struct Window {
  Layout input, view;
  int64_t length;
};

Window window_of(IntList input_size, IntList input_stride, int64_t input_offset, IntList size,
                 IntList stride, std::optional<int64_t> storage_offset) {
  Window w{{Dims(input_size), Dims(input_stride), input_offset},
           {Dims(size), Dims(stride), storage_offset.value_or(input_offset)},
           0};
  const auto a = w.input.extent(), b = w.view.extent();
  const bool no_input = w.input.numel() == 0, no_view = w.view.numel() == 0;
  const int64_t begin = no_input ? b.begin : no_view ? a.begin : std::min(a.begin, b.begin);
  const int64_t end = no_input ? b.end : no_view ? a.end : std::max(a.end, b.end);
  w.input.offset = no_input ? 0 : w.input.offset - begin;
  w.view.offset = no_view ? 0 : w.view.offset - begin;
  w.length = end - begin;
  return w;
}

// Elements of an input that share a place have equal parts in it: sums become means.
void divide_by_sharers(const Tensor& memory, const Layout& input, const char* op) {
  if (input.is_non_overlapping()) return;
  const DType real = real_of(memory.dtype());
  const Tensor ones = ops::fill_(Tensor::empty(input.sizes, real), Scalar(1));
  const Tensor counts = zeros_of(memory.sizes(), real, memory.device(), op);
  add_at(counts, input, ones);
  ops::div_(memory, ops::clamp_min(counts, Scalar(1)));
}

}  // namespace

Tensor _as_strided_backward(const Tensor& grad_output, IntList input_size, IntList input_stride,
                            int64_t input_offset, IntList size, IntList stride,
                            std::optional<int64_t> storage_offset) {
  const char* op = "_as_strided_backward";
  const Window w = window_of(input_size, input_stride, input_offset, size, stride, storage_offset);
  Tensor memory = zeros_of(Dims{w.length}, grad_output.dtype(), grad_output.device(), op);
  add_at(memory, w.view, grad_output);
  divide_by_sharers(memory, w.input, op);
  return contiguous_copy(memory.with_layout(w.input));
}

Tensor _as_strided_gather(const Tensor& self, IntList input_stride, int64_t input_offset,
                          IntList size, IntList stride, std::optional<int64_t> storage_offset) {
  const Window w =
      window_of(self.sizes(), input_stride, input_offset, size, stride, storage_offset);
  const char* op = "_as_strided_gather";
  Tensor memory = zeros_of(Dims{w.length}, self.dtype(), self.device(), op);
  add_at(memory, w.input, self);
  divide_by_sharers(memory, w.input, op);
  return contiguous_copy(memory.with_layout(w.view));
}

}  // namespace weft::native
