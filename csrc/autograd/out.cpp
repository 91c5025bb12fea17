#include "autograd/out.h"

#include "autograd/placement.h"
#include "core/error.h"
#include "core/warning.h"
#include "ops/copy.h"
#include "ops/overlap.h"

namespace weft::autograd {

void resize_out(const char* op, const Tensor& out, IntList sizes) {
  if (same(out.sizes(), sizes)) return;
  out.check_writable(op);
  if (out.numel() > 0) {
    warn(str(op, ": expected out of shape ", AsTuple{sizes}, ", got ", AsTuple{out.sizes()},
             ", which is resized and loses its elements; this is deprecated: give it no elements "
             "before, out.resize_(0)"));
  }
  resize(op, out, Dims(sizes));
}

void check_out_graph(const char* op, bool needs_graph) {
  WEFT_CHECK(!needs_graph, op,
             ": expected operands without gradient for out=, got one that requires "
             "grad; use the form without out=, or no_grad()");
}

DType out_dtype(const char* op, std::optional<DType> dtype, const Tensor& out) {
  WEFT_CHECK(!dtype || *dtype == out.dtype(), op, ": expected dtype ", out.dtype(),
             ", which is that of out, got ", *dtype);
  return out.dtype();
}

void check_out_dtype(const char* op, DType dtype, const Tensor& out, bool or_byte) {
  WEFT_CHECK(out.dtype() == dtype || (or_byte && out.dtype() == DType::U8), op,
             ": expected out of dtype ", dtype, ", got ", out.dtype());
}

void check_distinct_out(const char* op, const Tensor& out,
                        std::initializer_list<const Tensor*> operands) {
  for (const Tensor* operand : operands) {
    WEFT_CHECK(overlap(out, *operand) == Overlap::None, op,
               ": expected out in memory of its own, got one that shares it with an operand");
  }
  WEFT_CHECK(out.layout().is_non_overlapping(), op,
             ": expected out with distinct elements, got strides ", AsTuple{out.strides()},
             " for shape ", AsTuple{out.sizes()});
}

Tensor write_out(const char* op, const Tensor& result, const Tensor& out) {
  check_out_dtype(op, result.dtype(), out);
  return cast_out(op, result, out);
}

Tensor cast_out(const char* op, const Tensor& result, const Tensor& out) {
  WEFT_CHECK(can_cast(result.dtype(), out.dtype()), op, ": expected out of a dtype that holds ",
             result.dtype(), ", got ", out.dtype());
  resize_out(op, out, result.sizes());
  out.check_writable(op);
  copy_into(out, result, op);
  return out;
}

Tensor fill_out(const char* op, const Tensor& result, const Tensor& out) {
  if (out.numel() != result.numel()) return cast_out(op, result, out);
  return cast_out(op, result.with_layout(Layout::contiguous(out.sizes())), out);
}

}  // namespace weft::autograd
