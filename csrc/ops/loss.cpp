// Negative log likelihood: picks one log probability a sample.
#include "native_losses.h"
#include "ops/support.h"
#include "ops_losses.h"

namespace weft::native {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// Log probabilities as [batch, classes, inner], targets as [batch, inner].
struct Classes {
  int64_t batch, count, inner;
  Tensor targets;  // contiguous int64
  Tensor weights;  // undefined, or contiguous of the computing dtype
  int64_t ignored;
};

// Programs tell batches of other sizes (ValueError, as in PyTorch) from other wrong shapes.
void check_target_shape(const char* op, IntList input, IntList expected, IntList target) {
  if (same(target, expected)) return;
  const bool batches = input.size() > 1 && !target.empty() && target[0] != input[0];
  fail(batches ? ErrorKind::Value : ErrorKind::Runtime,
       {op, ": expected a target of shape ", AsTuple{expected}, " for input ", AsTuple{input},
        ", got ", AsTuple{target}});
}

Classes make_classes(const char* op, IntList input, const Tensor& target, const Tensor& weight,
                     DType compute, int64_t ignore_index) {
  WEFT_CHECK(!input.empty(), op, ": expected an input of at least 1 dim, got a 0-d tensor");
  const size_t at = input.size() == 1 ? 0 : 1;
  Dims expected(input);
  expected.erase(at);
  const bool bytes = target.dtype() == DType::U8 && input.size() <= 2;
  WEFT_CHECK(target.dtype() == DType::I64 || bytes, op, ": expected a target of dtype int64, got ",
             target.dtype());
  check_target_shape(op, input, expected, target.sizes());
  const Split3 split = split_at(input, static_cast<int64_t>(at));
  Classes c{split.outer, split.size,  split.inner, in_order(as_dtype(target, DType::I64)),
            {},          ignore_index};
  if (weight.defined()) {
    WEFT_CHECK(weight.dim() == 1 && weight.numel() == c.count, op, ": expected a weight of shape (",
               c.count, ",), got ", AsTuple{weight.sizes()});
    c.weights = in_order(as_dtype(weight, compute));
  }
  const int64_t* values = c.targets.data_as<const int64_t>();
  for (int64_t i = 0; i < c.batch * c.inner; ++i) {
    WEFT_CHECK_INDEX(values[i] == ignore_index || (values[i] >= 0 && values[i] < c.count), op,
                     ": expected a target in [0, ", c.count - 1, "], got ", values[i]);
  }
  return c;
}

// Calls body(sample, element of the input, weight) for each sample that counts.
template <class T, class Fn>
void for_each_sample(const Classes& c, Fn&& body) {
  const int64_t* targets = c.targets.data_as<const int64_t>();
  const T* weights = c.weights.defined() ? c.weights.data_as<const T>() : nullptr;
  for (int64_t i = 0; i < c.batch * c.inner; ++i) {
    const int64_t target = targets[i];
    if (target == c.ignored) continue;
    const int64_t element = (i / c.inner * c.count + target) * c.inner + i % c.inner;
    body(i, element, weights ? weights[target] : T(1));
  }
}

void check_reduction(const char* op, int64_t reduction) {
  WEFT_CHECK_VALUE(reduction >= kNone && reduction <= kSum, op,
                   ": expected reduction 0 (none), 1 (mean) or 2 (sum), got ", reduction);
}

}  // namespace

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            const Tensor& weight, int64_t reduction,
                                            int64_t ignore_index) {
  const char* op = "nll_loss";
  check_reduction(op, reduction);
  const DType compute = compute_type(self.dtype());
  WEFT_CHECK(!weight.defined() || weight.dtype() == self.dtype(), op,
             ": expected a weight of dtype ", self.dtype(), ", got ", weight.dtype());
  const Classes c = make_classes(op, self.sizes(), target, weight, compute, ignore_index);
  const Tensor x = in_order(as_dtype(self, compute));
  Tensor total = zeros_of({}, compute, self.device(), op);
  Tensor out = zeros_of(reduction == kNone ? IntList(target.sizes()) : IntList(), compute,
                        self.device(), op);
  dispatch_float(op, compute, [&]<class T>(std::type_identity<T>) {
    const T* from = x.data_as<const T>();
    T* to = out.data_as<T>();
    if (reduction == kNone) {
      for_each_sample<T>(c, [&](int64_t i, int64_t at, T w) { to[i] = -w * from[at]; });
      return;
    }
    double sum = 0, weights = 0;
    for_each_sample<T>(c, [&](int64_t, int64_t at, T w) {
      sum -= double{w} * double{from[at]};
      weights += double{w};
    });
    *to = static_cast<T>(reduction == kMean ? sum / weights : sum);
    *total.data_as<T>() = static_cast<T>(weights);
  });
  return {as_dtype(out, self.dtype()), as_dtype(total, self.dtype())};
}

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(ops::nll_loss_forward(self, target, weight, reduction, ignore_index));
}

Tensor _nll_loss_backward(const Tensor& grad_output, IntList input_size, const Tensor& target,
                          const Tensor& weight, int64_t reduction, int64_t ignore_index,
                          const Tensor& total_weight) {
  const char* op = "_nll_loss_backward";
  check_reduction(op, reduction);
  const DType compute = compute_type(grad_output.dtype());
  const Classes c = make_classes(op, input_size, target, weight, compute, ignore_index);
  const IntList expected = reduction == kNone ? IntList(target.sizes()) : IntList();
  WEFT_CHECK(same(grad_output.sizes(), expected), op, ": expected a gradient of shape ",
             AsTuple{expected}, ", got ", AsTuple{grad_output.sizes()});
  const Tensor grad = in_order(as_dtype(grad_output, compute));
  const Tensor total = as_dtype(total_weight, compute);
  Tensor out = zeros_of(input_size, compute, grad_output.device(), op);
  dispatch_float(op, compute, [&]<class T>(std::type_identity<T>) {
    const T* from = grad.data_as<const T>();
    T* to = out.data_as<T>();
    const T scale = reduction == kMean ? T(1) / *total.data_as<const T>() : T(1);
    for_each_sample<T>(c, [&](int64_t i, int64_t at, T w) {
      to[at] = -w * scale * from[reduction == kNone ? i : 0];
    });
  });
  return as_dtype(out, grad_output.dtype());
}

}  // namespace weft::native
