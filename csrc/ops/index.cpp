// Advanced indexing: reading and writing the places that index tensors and masks name.
//
// All indices are checked before anything is written.
#include "core/thread_pool.h"
#include "native_indexing.h"
#include "native_layout.h"
#include "ops/accumulate.h"
#include "ops/index_plan.h"
#include "ops_arithmetic.h"
#include "ops_factories.h"

namespace weft::native {
namespace {

// Rows a thread should have at least, so that it moves some tens of kilobytes.
int64_t row_grain(int64_t run) { return (int64_t{1} << 14) / std::max<int64_t>(run, 1) + 1; }

// Picked places that follow each other, as one run each; none where that would not pay.
struct Runs {
  explicit Runs(const IndexPlan& plan) {
    constexpr int64_t kLonger = 4;  // than rows, that copying runs pays
    const std::vector<int64_t>& at = plan.picked;
    const auto begins = [&](size_t i) { return i == 0 || at[i] != at[i - 1] + plan.run; };
    auto most = static_cast<int64_t>(at.size()) / kLonger;
    for (size_t i = 0; i < at.size() && most >= 0; ++i) most -= begins(i);
    if (most < 0 || !plan.after.empty()) return;
    for (size_t i = 0; i < at.size(); ++i) {
      if (begins(i)) starts.push_back(at[i]), lengths.push_back(0);
      lengths.back() += plan.run;
    }
  }
  std::vector<int64_t> starts, lengths;
};

template <class T>
void read_runs(const IndexPlan& plan, const Runs& runs, const T* self, T* out, int64_t begin,
               int64_t end) {
  out += begin * static_cast<int64_t>(plan.picked.size()) * plan.run;
  for (; begin < end; ++begin) {
    const T* from = self + plan.before[static_cast<size_t>(begin)];
    for (size_t i = 0; i < runs.starts.size(); ++i) {
      const int64_t length = runs.lengths[i];
      const T* const start = from + runs.starts[i];
      if (length == 1) {
        *out = *start;
      } else {
        std::memcpy(out, start, static_cast<size_t>(length) * sizeof(T));
      }
      out += length;
    }
  }
}

template <class T>
void read_rows(const IndexPlan& plan, const T* self, T* out, int64_t begin, int64_t end) {
  const int64_t run = plan.run;
  if (!plan.after.empty()) {
    const int64_t* after = plan.after.data();
    plan.each_row(begin, end, [=](int64_t row, int64_t offset) {
      for (int64_t i = 0; i < run; ++i) out[row * run + i] = self[offset + after[i]];
    });
  } else if (run == 1) {
    plan.each_row(begin, end, [=](int64_t row, int64_t offset) { out[row] = self[offset]; });
  } else {
    plan.each_row(begin, end, [=](int64_t row, int64_t offset) {
      std::memcpy(out + row * run, self + offset, static_cast<size_t>(run) * sizeof(T));
    });
  }
}

Tensor read(const char* op, const Tensor& self, const IndexPlan& plan) {
  Tensor out = Tensor::empty(plan.result_sizes, self.dtype(), self.device(), op);
  if (out.numel() == 0) return out;
  const auto groups = static_cast<int64_t>(plan.before.size());
  const Runs runs(plan);
  dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
    if (!runs.starts.empty()) {
      return parallel_for(groups, row_grain(out.numel() / groups), [&](int64_t begin, int64_t end) {
        read_runs(plan, runs, self.data_as<const T>(), out.data_as<T>(), begin, end);
      });
    }
    parallel_for(plan.rows(), row_grain(plan.run), [&](int64_t begin, int64_t end) {
      read_rows(plan, self.data_as<const T>(), out.data_as<T>(), begin, end);
    });
  });
  return out;
}

// Threads take whole groups of rows that share `before`: two rows of one group may be the same
// place.
template <class Fn>
void for_each_written_row(const IndexPlan& plan, Fn&& body) {
  const auto picked = static_cast<int64_t>(plan.picked.size());
  const auto groups = static_cast<int64_t>(plan.before.size());
  if (picked == 0 || plan.run == 0) return;
  parallel_for(groups, row_grain(plan.run * picked), [&](int64_t begin, int64_t end) {
    plan.each_row(begin * picked, end * picked, body);
  });
}

template <class T>
void write_rows(const IndexPlan& plan, const T* values, T* self) {
  for_each_written_row(plan, [&](int64_t row, int64_t offset) {
    const T* from = values + row * plan.run;
    T* to = self + offset;
    for (int64_t i = 0; i < plan.run; ++i) to[plan.element_offset(i)] = from[i];
  });
}

template <class T>
void add_rows(const IndexPlan& plan, const T* values, T* self) {
  for_each_written_row(plan, [&](int64_t row, int64_t offset) {
    const T* from = values + row * plan.run;
    T* to = self + offset;
    if (plan.after.empty()) {
      for (int64_t i = 0; i < plan.run; ++i) accumulate(to[i], from[i]);
    } else {
      for (int64_t i = 0; i < plan.run; ++i) accumulate(to[plan.element_offset(i)], from[i]);
    }
  });
}

// Values in the shape of the places they go to, in memory that self does not share.
Tensor values_for(const char* op, const Tensor& self, const Tensor& values, IntList sizes) {
  WEFT_CHECK(values.dtype() == self.dtype(), op, ": expected values of dtype ", self.dtype(),
             ", got ", values.dtype());
  WEFT_CHECK(same(broadcast_sizes(op, values.sizes(), sizes), sizes), op,
             ": expected values that broadcast to ", AsTuple{sizes}, ", got shape ",
             AsTuple{values.sizes()});
  if (same(values.sizes(), sizes) && values.is_contiguous() && values.storage() != self.storage()) {
    return values;
  }
  Tensor dense = Tensor::empty(sizes, self.dtype(), self.device(), op);
  copy_into(dense, values);
  return dense;
}

void write(const char* op, const Tensor& self, const IndexPlan& plan, const Tensor& values,
           bool accumulate_values) {
  self.check_writable(op);
  check_no_overlap(op, self);
  const Tensor dense = values_for(op, self, values, plan.result_sizes);
  if (!accumulate_values) {
    dispatch_size(self.dtype(), [&]<class T>(std::type_identity<T>) {
      write_rows(plan, dense.data_as<const T>(), self.data_as<T>());
    });
    return;
  }
  dispatch(self.dtype(), [&]<class T>(std::type_identity<T>) {
    add_rows(plan, dense.data_as<const T>(), self.data_as<T>());
  });
}

// The index list that selects along one dimension.
TensorList along(int64_t dim, const Tensor& index) {
  TensorList indices(static_cast<size_t>(dim) + 1);
  indices.back() = index;
  return indices;
}

// index as a vector; dim wrapped; both checked.
Tensor vector_index(const char* op, const Tensor& index) {
  WEFT_CHECK_INDEX(index.dim() <= 1, op, ": expected a 1-d index, got shape ",
                   AsTuple{index.sizes()});
  WEFT_CHECK(index.dtype() == DType::I64 || index.dtype() == DType::I32, op,
             ": expected an int64 or int32 index, got ", index.dtype());
  return as_vector(index);
}

}  // namespace

Tensor index(const Tensor& self, const TensorList& indices) {
  return read("index", self, plan_index("index", self, indices));
}

Tensor index_put_(const Tensor& self, const TensorList& indices, const Tensor& values,
                  bool accumulate_values) {
  write("index_put_", self, plan_index("index_put_", self, indices), values, accumulate_values);
  return self;
}

Tensor _index_backward(const Tensor& grad_output, IntList input_size, const TensorList& indices) {
  Tensor out = zeros_of(input_size, grad_output.dtype(), grad_output.device(), "_index_backward");
  write("_index_backward", out, plan_index("_index_backward", out, indices), grad_output, true);
  return out;
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  dim = wrap_dim("index_select", dim, self.dim());
  const Tensor places = vector_index("index_select", index);
  if (self.dim() == 0) {
    WEFT_CHECK(places.numel() == 1, "index_select: expected one index for a 0-d tensor, got ",
               places.numel());
    const Tensor vector = as_vector(self);
    const Tensor out =
        read("index_select", vector, plan_index("index_select", vector, {places}, false));
    return out.with_layout({});
  }
  return read("index_select", self, plan_index("index_select", self, along(dim, places), false));
}

namespace {

// In the dtype of `x`, to which the factor is converted first.
Tensor scaled(const Tensor& x, const Scalar& factor) {
  return ops::mul(x, ops::full({}, factor, x.dtype()));
}

}  // namespace

Tensor index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  const Scalar& alpha) {
  dim = wrap_dim("index_add", dim, self.dim());
  const Tensor target = as_vector(self), from = as_vector(source);
  const Tensor places = vector_index("index_add", index);
  const IndexPlan plan = plan_index("index_add", target, along(dim, places), false);
  WEFT_CHECK(from.sizes() == plan.result_sizes, "index_add: expected a source of shape ",
             AsTuple{plan.result_sizes}, ", got ", AsTuple{source.sizes()});
  const bool plain = !alpha.is_complex() && alpha.to_double() == 1;
  write("index_add", target, plan, plain ? from : scaled(from, alpha), true);
  return self;
}

Tensor index_copy_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  WEFT_CHECK(index.dtype() == DType::I64, "index_copy: expected an int64 index, got ",
             index.dtype());
  dim = wrap_dim("index_copy", dim, self.dim());
  const Tensor target = as_vector(self), from = as_vector(source);
  const Tensor places = vector_index("index_copy", index);
  const IndexPlan plan = plan_index("index_copy", target, along(dim, places), false);
  WEFT_CHECK(from.sizes() == plan.result_sizes, "index_copy: expected a source of shape ",
             AsTuple{plan.result_sizes}, ", got ", AsTuple{source.sizes()});
  write("index_copy", target, plan, from, false);
  return self;
}

Tensor index_fill_(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_number(value, self.dtype(), "index_fill");
  WEFT_CHECK_INDEX(index.dtype() == DType::I64, "index_fill: expected an int64 index, got ",
                   index.dtype());
  dim = wrap_dim("index_fill", dim, self.dim());
  const Tensor target = as_vector(self);
  const Tensor places = vector_index("index_fill", index);
  const IndexPlan plan = plan_index("index_fill", target, along(dim, places));
  write("index_fill", target, plan, Tensor::scalar(value, self.dtype()), false);
  return self;
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  const char* op = "embedding";
  WEFT_CHECK(weight.dim() == 2, op, ": expected a 2-d weight, got shape ", AsTuple{weight.sizes()});
  index_values(op, indices);
  return read(op, weight, plan_index(op, weight, {indices}, false));
}

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices,
                                int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  const char* op = "embedding_dense_backward";
  const Tensor places = index_values(op, indices);
  WEFT_CHECK(grad_output.dim() == indices.dim() + 1, op, ": expected a gradient of ",
             indices.dim() + 1, " dims, got shape ", AsTuple{grad_output.sizes()});
  const int64_t width = grad_output.sizes().back();
  const int64_t sizes[] = {num_weights, width};
  Tensor out = zeros_of(sizes, grad_output.dtype(), grad_output.device(), op);
  const IndexPlan plan = plan_index(op, out, {places}, false);
  WEFT_CHECK(grad_output.sizes() == plan.result_sizes, op, ": expected a gradient of shape ",
             AsTuple{plan.result_sizes}, ", got ", AsTuple{grad_output.sizes()});
  const Tensor grad = in_order(grad_output);
  const int64_t* at = places.data_as<const int64_t>();
  std::vector<int64_t> uses(scale_grad_by_freq ? static_cast<size_t>(num_weights) : 0);
  for (int64_t i = 0; i < places.numel() && scale_grad_by_freq; ++i) ++uses[at[i]];
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* from = grad.data_as<const T>();
    T* to = out.data_as<T>();
    // Threads take columns: every row of the result then has one writer.
    parallel_for(width,
                 std::max<int64_t>(16, (int64_t{1} << 15) / std::max<int64_t>(1, places.numel())),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = 0; i < places.numel(); ++i) {
                     if (at[i] == padding_idx) continue;
                     for (int64_t j = begin; j < end; ++j) {
                       const T value = from[i * width + j];
                       accumulate(to[at[i] * width + j],
                                  scale_grad_by_freq ? divide(value, uses[at[i]]) : value);
                     }
                   }
                 });
  });
  return out;
}

}  // namespace weft::native
