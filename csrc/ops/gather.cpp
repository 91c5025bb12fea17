// gather and scatter: along one dimension, an index tensor says which element goes with each place.
#include "native.h"
#include "ops.h"
#include "ops/accumulate.h"
#include "ops/index_plan.h"

namespace weft::native {
namespace {

Tensor as_vector(const Tensor& tensor) {
  return tensor.dim() > 0 ? tensor : tensor.with_layout({{1}, {1}, tensor.offset()});
}

// `self` in the sizes of index, with the stride along dim taken out: the indices supply that part.
struct Places {
  Tensor index;               // contiguous int64, checked
  std::vector<int64_t> base;  // offsets of all places but for the part along dim
  int64_t stride;             // of self along dim
  int64_t at(int64_t i) const {
    return base[static_cast<size_t>(i)] + index.data_as<const int64_t>()[i] * stride;
  }
};

// Checks that index fits inside `limit` in every dimension but `dim` (dim < 0: in every one).
void check_fits(const char* op, const char* what, const Tensor& index, const Tensor& limit,
                int64_t dim) {
  bool fits = index.dim() == limit.dim();
  for (int64_t d = 0; fits && d < index.dim(); ++d) {
    fits = d == dim || index.sizes()[d] <= limit.sizes()[d];
  }
  WEFT_CHECK(fits, op, ": expected an index no larger than ", what, " ", AsTuple{limit.sizes()},
             dim < 0 ? "" : " outside dim ", dim < 0 ? "" : std::to_string(dim), ", got shape ",
             AsTuple{index.sizes()});
}

Places make_places(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  WEFT_CHECK(index.dtype() == DType::I64 || index.dtype() == DType::I32, op,
             ": expected an int64 or int32 index, got ", index.dtype());
  Places places{in_order(as_dtype(index, DType::I64)), {}, self.strides()[dim]};
  const int64_t size = self.sizes()[dim], count = index.numel();
  const int64_t* values = places.index.data_as<const int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    WEFT_CHECK_INDEX(values[i] >= 0 && values[i] < size, op, ": expected index in [0, ", size - 1,
                     "] for dim ", dim, ", got ", values[i]);
  }
  Dims strides = self.strides();
  strides[dim] = 0;
  places.base = element_offsets(index.sizes(), strides);
  return places;
}

// Offsets of the elements of src that go with the places of index.
std::vector<int64_t> source_offsets(const Tensor& index, const Tensor& src) {
  return element_offsets(index.sizes(), src.strides());
}

enum class Write { Set, Add };

void scatter_into(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& src, Write how) {
  dim = wrap_dim(op, dim, self.dim());
  WEFT_CHECK(src.dtype() == self.dtype(), op, ": expected tensors of one dtype, got ", self.dtype(),
             " and ", src.dtype());
  self.check_writable(op);
  check_no_overlap(op, self);
  if (index.numel() == 0) return;
  const Tensor target = as_vector(self), places = as_vector(index);
  Tensor from = as_vector(src);
  check_fits(op, "self", places, target, dim);
  check_fits(op, "src", places, from, -1);
  if (from.storage() == target.storage()) from = contiguous_copy(from);
  const Places plan = make_places(op, target, dim, places);
  const std::vector<int64_t> source = source_offsets(places, from);
  const auto count = static_cast<int64_t>(source.size());
  if (how == Write::Set) {
    dispatch_size(self.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      for (int64_t i = 0; i < count; ++i) {
        target.data_as<T>()[plan.at(i)] = from.data_as<const T>()[source[i]];
      }
    });
    return;
  }
  dispatch(self.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t i = 0; i < count; ++i) {
      accumulate(target.data_as<T>()[plan.at(i)], from.data_as<const T>()[source[i]]);
    }
  });
}

// One value seen in the shape of index.
Tensor filled(const Scalar& value, const Tensor& index, DType dtype) {
  const Tensor number = Tensor::scalar(value, dtype);
  return number.with_layout({index.sizes(), Dims(index.sizes().size()), 0});
}

}  // namespace

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  dim = wrap_dim("gather", dim, self.dim());
  Tensor out = Tensor::empty(index.sizes(), self.dtype(), {}, "gather");
  if (index.numel() == 0) return out;
  const Tensor from = as_vector(self), places = as_vector(index);
  check_fits("gather", "self", places, from, dim);
  const Places plan = make_places("gather", from, dim, places);
  dispatch_size(self.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* data = from.data_as<const T>();
    T* to = out.data_as<T>();
    for (int64_t i = 0; i < out.numel(); ++i) to[i] = data[plan.at(i)];
  });
  return out;
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into("scatter", self, dim, index, src, Write::Set);
  return self;
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter_(self, dim, index, filled(value, index, self.dtype()));
}

Tensor scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_into("scatter_add", self, dim, index, src, Write::Add);
  return self;
}

Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_(contiguous_copy(self), dim, index, src);
}

Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return scatter_(contiguous_copy(self), dim, index, value);
}

Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_add_(contiguous_copy(self), dim, index, src);
}

}  // namespace weft::native
