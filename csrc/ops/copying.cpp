// Copies, fills and conversions of the operator table.
#include "core/error.h"
#include "core/warning.h"
#include "native_copying.h"
#include "native_factories.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops_copying.h"

namespace weft::native {
static void note_cast(const char* op, DType from, DType to) {
  if (!is_complex(from) || is_complex(to) || to == DType::Bool) return;
  warn(str(op, ": expected a complex dtype, got ", from, " for ", to, ", of the real parts alone"));
}

Tensor copy_(const Tensor& self, const Tensor& src, bool) {
  note_cast("copy_", src.dtype(), self.dtype());
  copy_into(self, src, "copy_");
  return self;
}

Tensor fill_(const Tensor& self, const Scalar& value) {
  fill(self, value, "fill_");
  return self;
}

Tensor fill_(const Tensor& self, const Tensor& value) {
  WEFT_CHECK(value.dim() == 0, "fill_: expected a value of shape (), got ", AsTuple{value.sizes()});
  copy_into(self, value, "fill_");
  return self;
}

Tensor zero_(const Tensor& self) {
  fill(self, 0, "zero_");
  return self;
}

Tensor clone(const Tensor& self, std::optional<int64_t> memory_format) {
  const auto preserve = static_cast<int64_t>(MemoryFormat::Preserve);
  if (memory_format.value_or(preserve) == preserve) return clone_preserve(self);
  Tensor result =
      make_empty("clone", self.sizes(), {self.dtype(), {}, self.device(), {}, memory_format});
  copy_new(result, self);
  return result;
}

// Recorded as the clone it may make.
Tensor contiguous(const Tensor& self, int64_t memory_format) {
  const auto preserve = static_cast<int64_t>(MemoryFormat::Preserve);
  WEFT_CHECK(memory_format != preserve,
             "contiguous: expected contiguous_format or channels_last, got preserve_format");
  const bool lies_so = self.layout().has_format(static_cast<MemoryFormat>(memory_format));
  return lies_so ? self : ops::clone(self, memory_format);
}

Tensor _to_copy(const Tensor& self, std::optional<DType> dtype, std::optional<int64_t> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool,
                std::optional<int64_t> memory_format) {
  Tensor result = empty_like(self, dtype, layout, device, pin_memory, memory_format);
  note_cast("to", self.dtype(), result.dtype());
  copy_new(result, self);
  return result;
}

Scalar item(const Tensor& self) { return self.item(); }

}  // namespace weft::native
