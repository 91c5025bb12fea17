// Positions of the nonzero elements, and what masks select.
#include "native_indexing.h"
#include "native_layout.h"
#include "ops/index_plan.h"
#include "ops/views.h"

namespace weft::native {
namespace {

template <class T>
bool is_nonzero(const T& value) {
  if constexpr (is_small_float<T>) {
    return (value.bits & 0x7fffu) != 0;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value;
  } else {
    return value != T(0);
  }
}

// bool is read as bytes: memory of others may hold more than 0 and 1.
template <class Fn>
void dispatch_stored(DType dtype, Fn&& fn) {
  if (dtype == DType::Bool) dtype = DType::U8;
  dispatch(dtype, fn);
}

// Numbers of the nonzero elements of a contiguous tensor.
std::vector<int64_t> nonzero_elements(const Tensor& tensor) {
  std::vector<int64_t> found;
  dispatch_stored(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* data = tensor.data_as<const T>();
    const int64_t count = tensor.numel();
    int64_t total = 0;
    for (int64_t i = 0; i < count; ++i) total += is_nonzero(data[i]);
    found.resize(static_cast<size_t>(total));
    size_t next = 0;
    for (int64_t i = 0; i < count && next < found.size(); ++i) {
      found[next] = i;
      next += is_nonzero(data[i]);
    }
  });
  return found;
}

// Where elements lie, given in their order, one column for each dimension: the lines before an
// element are counted up, since dividing its number takes longer.
void write_places(const std::vector<int64_t>& elements, IntList sizes, int64_t* to) {
  const size_t last = sizes.size() - 1, count = elements.size();
  Dims line(last);
  int64_t begin = 0;
  for (const int64_t element : elements) {
    for (; element >= begin + sizes[last]; begin += sizes[last]) {
      for (size_t d = last; d-- > 0 && ++line[d] == sizes[d];) line[d] = 0;
    }
    for (size_t d = 0; d < last; ++d) to[d * count] = line[d];
    (to++)[last * count] = element - begin;
  }
}

Tensor expanded(const Tensor& tensor, IntList sizes) {
  if (same(tensor.sizes(), sizes)) return in_order(tensor);
  Tensor result = Tensor::empty(sizes, tensor.dtype(), tensor.device());
  copy_into(result, tensor);
  return result;
}

void check_mask(const char* op, const Tensor& mask) {
  WEFT_CHECK(mask.dtype() == DType::Bool, op, ": expected a bool mask, got ", mask.dtype());
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  const std::vector<int64_t> found = nonzero_elements(in_order(self));
  const int64_t sizes[] = {self.dim(), static_cast<int64_t>(found.size())};
  const Tensor columns = Tensor::empty(sizes, DType::I64, self.device(), "nonzero");
  if (self.dim() > 0) write_places(found, self.sizes(), columns.data_as<int64_t>());
  return columns.with_layout(views::transpose(columns.layout(), 0, 1));
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_mask("masked_select", mask);
  const Dims sizes = broadcast_sizes("masked_select", self.sizes(), mask.sizes());
  const Tensor x = expanded(self, sizes);
  const std::vector<int64_t> found = nonzero_elements(expanded(mask, sizes));
  const int64_t count[] = {static_cast<int64_t>(found.size())};
  Tensor out = Tensor::empty(count, self.dtype(), self.device(), "masked_select");
  dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* from = x.data_as<const T>();
    T* to = out.data_as<T>();
    for (size_t i = 0; i < found.size(); ++i) to[i] = from[found[i]];
  });
  return out;
}

Tensor masked_scatter_(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const char* op = "masked_scatter";
  check_mask(op, mask);
  WEFT_CHECK(self.dtype() == source.dtype(), op, ": expected tensors of one dtype, got ",
             self.dtype(), " and ", source.dtype());
  WEFT_CHECK(broadcast_sizes(op, self.sizes(), mask.sizes()) == self.sizes(), op,
             ": expected a mask that broadcasts to ", AsTuple{self.sizes()}, ", got shape ",
             AsTuple{mask.sizes()});
  self.check_writable(op);
  check_no_overlap(op, self);
  const std::vector<int64_t> found = nonzero_elements(expanded(mask, self.sizes()));
  WEFT_CHECK(static_cast<int64_t>(found.size()) <= source.numel(), op,
             ": expected a source of at least ", found.size(), " elements, got ", source.numel());
  const Tensor from =
      source.storage() == self.storage() ? contiguous_copy(source) : in_order(source);
  const Tensor work = in_order(self);
  dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
    for (size_t i = 0; i < found.size(); ++i) {
      work.data_as<T>()[found[i]] = from.data_as<const T>()[i];
    }
  });
  if (!work.is_same(self)) copy_into(self, work);
  return self;
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const Dims sizes = broadcast_sizes("masked_scatter", self.sizes(), mask.sizes());
  Tensor result = Tensor::empty(sizes, self.dtype(), self.device());
  copy_into(result, self);
  return masked_scatter_(result, mask, source);
}

Tensor _masked_select_backward(const Tensor& grad_output, IntList input_size, const Tensor& mask) {
  // The input may have been broadcast to the mask: the engine sums the result back.
  const Dims sizes = broadcast_sizes("_masked_select_backward", input_size, mask.sizes());
  return masked_scatter_(
      zeros_of(sizes, grad_output.dtype(), grad_output.device(), "_masked_select_backward"), mask,
      grad_output);
}

Tensor _masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntList size) {
  Tensor out =
      zeros_of(size, grad_output.dtype(), grad_output.device(), "_masked_scatter_backward");
  const Tensor selected = masked_select(grad_output, mask);
  const size_t bytes = static_cast<size_t>(selected.numel()) * selected.item_size();
  if (bytes > 0) std::memcpy(out.data(), selected.data(), bytes);
  return out;
}

}  // namespace weft::native
