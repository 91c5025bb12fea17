// Joining and splitting: cat, stack, split, chunk, unbind.
#include <climits>
#include <cmath>

#include "core/thread_pool.h"
#include "native_indexing.h"
#include "native_views.h"
#include "ops/memory_order.h"
#include "ops/strided.h"
#include "ops/support.h"
#include "ops/views.h"
#include "ops_indexing.h"
#include "ops_views.h"

namespace weft::native {
namespace {

// PyTorch lets empty 1-d tensors join anything.
bool is_skipped(const Tensor& tensor) { return tensor.dim() == 1 && tensor.sizes()[0] == 0; }

// A tensor of the list that counts; the first one when none does.
const Tensor& model_of(const TensorList& tensors) {
  for (const Tensor& tensor : tensors) {
    if (!is_skipped(tensor)) return tensor;
  }
  return tensors[0];
}

Dims joined_sizes(const TensorList& tensors, const Tensor& model, int64_t dim) {
  Dims sizes = model.sizes();
  sizes[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (is_skipped(tensor)) continue;
    bool fits = tensor.dim() == model.dim();
    for (int64_t d = 0; fits && d < model.dim(); ++d) {
      fits = d == dim || tensor.sizes()[d] == model.sizes()[d];
    }
    WEFT_CHECK(fits, "cat: expected sizes that match ", AsTuple{model.sizes()}, " but for dim ",
               dim, ", got ", AsTuple{tensor.sizes()}, " for tensor ", i);
    sizes[dim] += tensor.sizes()[dim];
  }
  return sizes;
}

// Copies a contiguous tensor [outer, size * inner] into its stretch of every line of out.
void copy_stretch(const Tensor& from, const Tensor& out, int64_t outer, size_t line, size_t start) {
  const size_t stretch =
      static_cast<size_t>(from.numel()) * from.item_size() / static_cast<size_t>(outer);
  const char* source = from.data_as<const char>();
  char* target = out.data_as<char>() + start;
  for (int64_t i = 0; i < outer; ++i) {
    strided::copy_line(target + static_cast<size_t>(i) * line,
                       source + static_cast<size_t>(i) * stretch, stretch);
  }
}

// Contiguous, from tensors whose sizes fit.
Tensor joined(const TensorList& tensors, IntList sizes, int64_t dim, DType dtype) {
  Tensor out = Tensor::empty(sizes, dtype, tensors[0].device(), "cat");
  if (out.numel() == 0) return out;
  const Split3 split = split_at(out.sizes(), dim);
  const size_t line = static_cast<size_t>(split.size * split.inner) * out.item_size();
  constexpr int64_t kLarge = 1 << 16;  // elements worth the threads of copy_into
  int64_t start = 0;
  for (const Tensor& tensor : tensors) {
    if (is_skipped(tensor) || tensor.numel() == 0) continue;
    const int64_t size = tensor.sizes()[dim];
    if (tensor.dtype() == dtype && tensor.numel() < kLarge && tensor.is_contiguous()) {
      copy_stretch(tensor, out, split.outer, line,
                   static_cast<size_t>(start * split.inner) * out.item_size());
    } else {
      copy_into(out.with_layout(views::narrow(out.layout(), dim, start, size)), tensor);
    }
    start += size;
  }
  return out;
}

// The format that a tensor suggests and none of the others contradicts, else the usual one.
MemoryFormat common_format(const TensorList& tensors) {
  MemoryFormat format = MemoryFormat::Contiguous;
  for (const Tensor& tensor : tensors) {
    if (format == MemoryFormat::Contiguous) format = tensor.layout().suggested_format();
  }
  if (format == MemoryFormat::Contiguous) return format;
  for (const Tensor& tensor : tensors) {
    const Layout& layout = tensor.layout();
    const bool fits = layout.has_format(format) || layout.suggested_format() == format;
    if (!fits && !is_skipped(tensor)) return MemoryFormat::Contiguous;
  }
  return format;
}

}  // namespace

Tensor cat(const TensorList& tensors, int64_t dim) {
  WEFT_CHECK_VALUE(!tensors.empty(), "cat: expected at least one tensor, got none");
  DType dtype = tensors[0].dtype();
  for (const Tensor& tensor : tensors) {
    WEFT_CHECK(tensor.dim() > 0, "cat: expected tensors of at least 1 dim, got a 0-d tensor");
    dtype = promote(dtype, tensor.dtype());
  }
  const Tensor& model = model_of(tensors);
  if (is_skipped(model)) dim = 0;  // of nothing but such ones, any dim is as good
  dim = wrap_dim("cat", dim, model.dim());
  const Dims sizes = joined_sizes(tensors, model, dim);
  const MemoryFormat format = common_format(tensors);
  if (format == MemoryFormat::Contiguous) return joined(tensors, sizes, dim, dtype);
  const MemoryOrder order(format);
  TensorList turned;
  for (const Tensor& tensor : tensors) {
    if (!is_skipped(tensor)) turned.push_back(order.turned(tensor));
  }
  Dims turned_sizes = turned[0].sizes();
  const int64_t at = order.dim(dim, model.dim());
  turned_sizes[at] = sizes[dim];
  return order.back(joined(turned, turned_sizes, at, dtype));
}

Tensor stack(const TensorList& tensors, int64_t dim) {
  WEFT_CHECK(!tensors.empty(), "stack: expected at least one tensor, got none");
  dim = wrap_dim("stack", dim, tensors[0].dim() + 1);
  TensorList lines;
  lines.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    WEFT_CHECK(tensor.sizes() == tensors[0].sizes(), "stack: expected tensors of one shape, got ",
               AsTuple{tensors[0].sizes()}, " and ", AsTuple{tensor.sizes()});
    lines.push_back(ops::unsqueeze(tensor, dim));
  }
  return ops::cat(lines, dim);
}

TensorList split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  WEFT_CHECK(self.dim() > 0, "split: expected at least 1 dim, got a 0-d tensor");
  dim = wrap_dim("split", dim, self.dim());
  int64_t total = 0;
  bool fits = true;
  for (int64_t size : split_sizes) {
    fits = fits && size >= 0 && !__builtin_add_overflow(total, size, &total);
  }
  WEFT_CHECK(fits && total == self.sizes()[dim], "split: expected sizes that add up to ",
             self.sizes()[dim], ", got ", AsTuple{split_sizes});
  TensorList pieces;
  pieces.reserve(split_sizes.size());
  int64_t start = 0;
  for (int64_t size : split_sizes) {
    pieces.push_back(ops::narrow(self, dim, start, size));
    start += size;
  }
  return pieces;
}

TensorList split(const Tensor& self, IntList split_size, int64_t dim) {
  return split_with_sizes(self, split_size, dim);
}

TensorList split(const Tensor& self, int64_t split_size, int64_t dim) {
  WEFT_CHECK(self.dim() > 0, "split: expected at least 1 dim, got a 0-d tensor");
  dim = wrap_dim("split", dim, self.dim());
  const int64_t size = self.sizes()[dim];
  WEFT_CHECK(split_size > 0 || (split_size == 0 && size == 0),
             "split: expected split_size > 0, got ", split_size);
  if (size == 0) return {ops::narrow(self, dim, 0, 0)};
  TensorList pieces;
  for (int64_t start = 0; start < size;) {
    const int64_t length = std::min(split_size, size - start);
    pieces.push_back(ops::narrow(self, dim, start, length));
    start += length;
  }
  return pieces;
}

TensorList chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  WEFT_CHECK(self.dim() > 0, "chunk: expected at least 1 dim, got a 0-d tensor");
  WEFT_CHECK(chunks > 0, "chunk: expected chunks > 0, got ", chunks);
  dim = wrap_dim("chunk", dim, self.dim());
  const int64_t size = self.sizes()[dim];
  if (size == 0) {
    // As many empty pieces as were asked for.
    TensorList pieces;
    for (int64_t i = 0; i < chunks; ++i) pieces.push_back(ops::narrow(self, dim, 0, 0));
    return pieces;
  }
  return split(self, (size - 1) / std::min(chunks, size) + 1, dim);
}

TensorList tensor_split(const Tensor& self, IntList indices, int64_t dim) {
  WEFT_CHECK(self.dim() > 0, "tensor_split: expected at least 1 dim, got a 0-d tensor");
  TensorList pieces;
  int64_t start = 0;
  for (int64_t end : indices) {
    pieces.push_back(ops::slice(self, dim, start, end, 1));
    start = end;
  }
  pieces.push_back(ops::slice(self, dim, start, std::nullopt, 1));
  return pieces;
}

TensorList tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  WEFT_CHECK(self.dim() > 0, "tensor_split: expected at least 1 dim, got a 0-d tensor");
  WEFT_CHECK(sections > 0 && sections <= INT_MAX, "tensor_split: expected sections ",
             sections > 0 ? "that fit in memory" : "> 0", ", got ", sections);
  dim = wrap_dim("tensor_split", dim, self.dim());
  const int64_t size = self.sizes()[dim], longer = size % sections;
  TensorList pieces;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t length = size / sections + (i < longer ? 1 : 0);
    pieces.push_back(ops::narrow(self, dim, start, length));
    start += length;
  }
  return pieces;
}

TensorList tensor_split(const Tensor& self, const Tensor& where, int64_t dim) {
  WEFT_CHECK(where.dtype() == DType::I64 && where.dim() <= 1,
             "tensor_split: expected a number or a vector of int64, got ", where.dtype(),
             " of shape ", AsTuple{where.sizes()});
  const Tensor at = in_order(where);
  const auto* numbers = at.data_as<const int64_t>();
  if (where.dim() == 0) return tensor_split(self, *numbers, dim);
  return tensor_split(self, IntList(numbers, static_cast<size_t>(at.numel())), dim);
}

TensorList unbind(const Tensor& self, int64_t dim) {
  WEFT_CHECK_INDEX(self.dim() > 0, "unbind: expected at least 1 dim, got a 0-d tensor");
  dim = wrap_dim("unbind", dim, self.dim());
  TensorList pieces;
  const int64_t size = self.sizes()[dim];
  pieces.reserve(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) pieces.push_back(ops::select(self, dim, i));
  return pieces;
}

}  // namespace weft::native
