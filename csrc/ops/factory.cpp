// Tensors made from sizes or from the form of another one.
#include "ops/factory.h"

#include <atomic>
#include <cmath>

#include "native_factories.h"
#include "ops/support.h"

namespace weft::native {
namespace {

std::atomic<bool> fills_unset_memory{false};

// All bits but the sign; of unsigned integers and bools that as well.
Scalar largest(DType dtype) {
  const bool is_signed =
      dtype == DType::I8 || dtype == DType::I16 || dtype == DType::I32 || dtype == DType::I64;
  if (dtype == DType::Bool) return Scalar(true);
  const auto bits = static_cast<int>(8 * item_size(dtype)) - (is_signed ? 1 : 0);
  return Scalar(static_cast<int64_t>(~uint64_t{0} >> (64 - bits)));
}

}  // namespace

void set_fills_unset_memory(bool fills) { fills_unset_memory = fills; }

Tensor unset(Tensor tensor) {
  if (!fills_unset_memory.load(std::memory_order_relaxed) || !tensor.on_cpu()) return tensor;
  const bool has_nan = is_differentiable(tensor.dtype());
  fill(tensor, has_nan ? Scalar(std::nan("")) : largest(tensor.dtype()));
  return tensor;
}

void check_options(const char* op, const FactoryOptions& options) {
  if (options.device) check_available(op, *options.device);
  WEFT_CHECK(options.layout.value_or(0) == 0, op, ": expected the strided layout, got another one");
  WEFT_CHECK(!options.pin_memory.value_or(false), op, ": expected pin_memory=False, got True");
}

Tensor make_empty(const char* op, IntList size, const FactoryOptions& options) {
  check_options(op, options);
  const Device device = options.device.value_or(Device{});
  const int64_t format = options.memory_format.value_or(0);
  const auto plain = static_cast<int64_t>(MemoryFormat::Contiguous);
  if (format == plain) return Tensor::empty(size, options.dtype, device, op);
  const auto last = static_cast<int64_t>(MemoryFormat::ChannelsLast);
  WEFT_CHECK(format == last || format == last + 1, op,
             ": expected contiguous_format, channels_last or channels_last_3d, got another format");
  const int64_t dims = format == last ? 4 : 5;
  WEFT_CHECK(static_cast<int64_t>(size.size()) == dims, op, ": expected ", dims, " dims for ",
             kMemoryFormats[static_cast<size_t>(format)], ", got shape ", AsTuple{size});
  const Tensor dense = Tensor::empty(size, options.dtype, device, op);
  const auto strides = strides_of(static_cast<MemoryFormat>(format), size);
  return dense.with_layout({Dims(size), strides, 0});
}

Tensor in_format(const char* op, const Tensor& tensor, MemoryFormat format, DType dtype) {
  if (tensor.dtype() == dtype && tensor.layout().has_format(format)) return tensor;
  Tensor result = make_empty(op, tensor.sizes(),
                             {dtype, {}, tensor.device(), {}, static_cast<int64_t>(format)});
  copy_into(result, tensor);
  return result;
}

Tensor empty_as(const char* op, const Tensor& model, IntList size, DType dtype) {
  const bool fits = static_cast<int64_t>(size.size()) == model.dim();
  const auto format = fits ? model.layout().suggested_format() : MemoryFormat::Contiguous;
  return make_empty(op, size, {dtype, {}, model.device(), {}, static_cast<int64_t>(format)});
}

Tensor empty(IntList size, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
             MaybeBool pin_memory, MaybeInt memory_format) {
  return unset(
      make_empty("empty", size,
                 {dtype ? *dtype : default_dtype(), layout, device, pin_memory, memory_format}));
}

Tensor empty_strided(IntList size, IntList stride, MaybeDType dtype, MaybeInt layout,
                     MaybeDevice device, MaybeBool pin_memory) {
  const char* op = "empty_strided";
  const FactoryOptions options{dtype ? *dtype : default_dtype(), layout, device, pin_memory, {}};
  check_options(op, options);
  WEFT_CHECK(size.size() == stride.size(), op, ": expected as many strides as sizes, got ",
             AsTuple{size}, " and ", AsTuple{stride});
  checked_numel(op, size);
  int64_t reach = 1;  // elements from the first to the last one
  for (size_t i = 0; i < size.size(); ++i) {
    int64_t step = 0;
    WEFT_CHECK(stride[i] >= 0 &&
                   !__builtin_mul_overflow(std::max<int64_t>(size[i] - 1, 0), stride[i], &step) &&
                   !__builtin_add_overflow(reach, step, &reach),
               op, ": expected strides >= 0 within memory, got ", AsTuple{stride});
  }
  const int64_t elements[] = {reach};
  const Tensor memory =
      unset(Tensor::empty(elements, options.dtype, device.value_or(Device{}), op));
  return Tensor(memory.storage(), {Dims(size), Dims(stride), 0}, options.dtype);
}

Tensor zeros(IntList size, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
             MaybeBool pin_memory) {
  Tensor out =
      make_empty("zeros", size, {dtype ? *dtype : default_dtype(), layout, device, pin_memory, {}});
  zero_memory(out, "zeros");
  return out;
}

namespace {

Tensor filled(const char* op, const Tensor& out, const Scalar& value) {
  fill(out, value, op);
  return out;
}

}  // namespace

Tensor full(IntList size, const Scalar& fill_value, MaybeDType dtype, MaybeInt layout,
            MaybeDevice device, MaybeBool pin_memory) {
  const DType kind = dtype ? *dtype : fill_value.dtype();
  return filled("full", make_empty("full", size, {kind, layout, device, pin_memory, {}}),
                fill_value);
}

Tensor ones(IntList size, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
            MaybeBool pin_memory) {
  const DType kind = dtype ? *dtype : default_dtype();
  return filled("ones", make_empty("ones", size, {kind, layout, device, pin_memory, {}}), 1);
}

Tensor empty_like(const Tensor& self, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
                  MaybeBool pin_memory, MaybeInt memory_format) {
  const Device place = device.value_or(self.device());
  const FactoryOptions options{dtype.value_or(self.dtype()), layout, place, pin_memory,
                               memory_format};
  const auto preserve = static_cast<int64_t>(MemoryFormat::Preserve);
  if (memory_format.value_or(preserve) != preserve)
    return unset(make_empty("empty_like", self.sizes(), options));
  check_options("empty_like", options);
  if (self.is_contiguous())
    return unset(Tensor::empty(self.sizes(), options.dtype, place, "empty_like"));
  return unset(empty_preserve(self, options.dtype, place));
}

Tensor zeros_like(const Tensor& self, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
                  MaybeBool pin_memory, MaybeInt memory_format) {
  Tensor out = empty_like(self, dtype, layout, device, pin_memory, memory_format);
  zero_memory(out, "zeros_like");
  return out;
}

Tensor full_like(const Tensor& self, const Scalar& fill_value, MaybeDType dtype, MaybeInt layout,
                 MaybeDevice device, MaybeBool pin_memory, MaybeInt memory_format) {
  return filled("full_like", empty_like(self, dtype, layout, device, pin_memory, memory_format),
                fill_value);
}

Tensor ones_like(const Tensor& self, MaybeDType dtype, MaybeInt layout, MaybeDevice device,
                 MaybeBool pin_memory, MaybeInt memory_format) {
  return filled("ones_like", empty_like(self, dtype, layout, device, pin_memory, memory_format), 1);
}

}  // namespace weft::native
