// Options that all tensor factories take, checked in one place.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace weft::native {

using MaybeDType = std::optional<DType>;
using MaybeInt = std::optional<int64_t>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;

struct FactoryOptions {
  DType dtype;
  MaybeInt layout;
  MaybeDevice device;
  MaybeBool pin_memory;
  MaybeInt memory_format;
};

// Whether `empty` and its kin fill what they make: floating numbers with NaN, others with the
// largest that there is.
void set_fills_unset_memory(bool fills);
// The tensor, filled if so.
Tensor unset(Tensor tensor);

// Raises RuntimeError for a layout, device or memory this build has not.
void check_options(const char* op, const FactoryOptions& options);

// Uninitialised, laid out as asked.
Tensor make_empty(const char* op, IntList size, const FactoryOptions& options);
// Whether images lie by channels, and not in planes as well.
inline bool goes_by_channels(const Tensor& images) {
  return !images.is_contiguous() && images.layout().has_format(MemoryFormat::ChannelsLast);
}

// The tensor itself where it has the dtype and the format, else a copy that has.
Tensor in_format(const char* op, const Tensor& tensor, MemoryFormat format, DType dtype);
// In the format that the layout of `model` suggests, where the result has as many dimensions.
Tensor empty_as(const char* op, const Tensor& model, IntList size, DType dtype);

}  // namespace weft::native
