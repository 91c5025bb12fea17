// Recurrent layers: what a step needs of the input is there already, from one product over all
// steps; a step adds the product of its hidden state and runs the cell, a kernel of the table, over
// each sequence. A hidden state of n sequences is kept in one place: a step with fewer of them
// leaves the others as they are, so sequences of several lengths need nothing more.
#include "ops/recurrent.h"

#include "core/thread_pool.h"
#include "native_recurrent.h"
#include "ops/blas.h"
#include "ops/few_rows.h"
#include "ops/packed_weight.h"
#include "ops/programs.h"
#include "ops/scratch.h"
#include "ops/support.h"
#include "ops_reductions.h"

namespace weft::recurrent {
namespace {

using native::as_dtype;
using native::in_order;

constexpr Mode kModes[] = {
    {"LSTM", 4, true, false, "_lstm_cell", "_lstm_cell_backward"},
    {"GRU", 3, false, true, "_gru_cell", "_gru_cell_backward"},
    {"RNN_TANH", 1, false, false, "tanh", "tanh_backward"},
    {"RNN_RELU", 1, false, false, "relu", "threshold_backward"},
};

void check_shape(const char* what, const Tensor& tensor, IntList sizes, DType dtype) {
  WEFT_CHECK(tensor.sizes() == Dims(sizes), "RNN: expected ", what, " of shape ", AsTuple{sizes},
             ", got ", AsTuple{tensor.sizes()});
  WEFT_CHECK(tensor.dtype() == dtype, "RNN: expected ", what, " of dtype ", dtype, ", got ",
             tensor.dtype());
}

// Whether a tensor is there where a mode takes one; `needed`: not only then, but always then.
void check_given(const char* what, const Tensor& tensor, bool taken, bool needed,
                 const char* mode) {
  if (tensor.defined()) {
    WEFT_CHECK(taken, "RNN: expected no ", what, " for ", mode, ", got one of shape ",
               AsTuple{tensor.sizes()});
  } else {
    WEFT_CHECK(!taken || !needed, "RNN: expected a ", what, " for ", mode, ", got None");
  }
}

void check(const Layer& layer) {
  const DType dtype = layer.steps.dtype();
  WEFT_CHECK(is_floating(dtype), "RNN: expected a floating dtype, got ", dtype);
  WEFT_CHECK(layer.hidden.dim() == 2 && layer.weight.dim() == 2,
             "RNN: expected a hidden state and a weight of 2 dims, got shapes ",
             AsTuple{layer.hidden.sizes()}, " and ", AsTuple{layer.weight.sizes()});
  check_given("memory", layer.memory, layer.mode.has_memory, true, layer.mode.name);
  check_given("projection", layer.projection, layer.mode.has_memory, false, layer.mode.name);
  const int64_t n = layer.hidden.sizes()[0], out = layer.hidden.sizes()[1];
  const int64_t size = layer.mode.has_memory ? layer.memory.size(-1) : out;
  const int64_t width = layer.mode.gates * size;
  check_shape("a hidden state", layer.hidden, {{n, out}}, dtype);
  check_shape("a weight", layer.weight, {{width, out}}, dtype);
  if (layer.memory.defined()) check_shape("a memory", layer.memory, {{n, size}}, dtype);
  if (layer.bias.defined()) check_shape("a bias", layer.bias, {{width}}, dtype);
  if (layer.projection.defined()) {
    check_shape("a projection", layer.projection, {{out, size}}, dtype);
  } else {
    WEFT_CHECK(out == size, "RNN: expected states of one size, got ", out, " and ", size);
  }
  WEFT_CHECK(layer.steps.sizes().back() == width, "RNN: expected steps of ", width,
             " features, got shape ", AsTuple{layer.steps.sizes()});
}

// Programs on disk name any operator: what the gradient is given is checked as well.
void check_saved(const Layer& layer, const Saved& saved, const Tensor& grad_output,
                 const Tensor& grad_hidden, const Tensor& grad_memory) {
  const DType dtype = layer.steps.dtype();
  const auto rows = [&](const char* what, const Tensor& tensor, int64_t features) {
    Dims sizes = layer.steps.sizes();
    sizes.back() = features;
    check_shape(what, tensor, sizes, dtype);
  };
  const int64_t out = layer.hidden.sizes()[1], width = layer.weight.sizes()[0];
  const int64_t size = width / layer.mode.gates;
  rows("an output", saved.output, out);
  rows("gates", saved.gates, width);
  if (layer.memory.defined()) rows("memories", saved.memories, size);
  if (layer.projection.defined()) rows("states", saved.states, size);
  if (grad_output.defined()) rows("a gradient", grad_output, out);
  if (grad_hidden.defined()) check_shape("a gradient", grad_hidden, layer.hidden.sizes(), dtype);
  if (grad_memory.defined() && layer.memory.defined()) {
    check_shape("a gradient", grad_memory, layer.memory.sizes(), dtype);
  }
}

// An operand as the loops want it; undefined ones stay so.
Tensor operand(const Tensor& tensor) {
  return tensor.defined() ? in_order(as_dtype(tensor, compute_type(tensor.dtype()))) : Tensor();
}

template <class T>
const T* read(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_as<const T>() : nullptr;
}
template <class T>
T* write(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_as<T>() : nullptr;
}

// A kernel of the table over `n` elements of some rows that lie apart: results first.
class Kernel {
 public:
  Kernel(const char* row, DType dtype)
      : run_(tile_ops::find(row)->steps[0].horizontal->get(dtype)) {}

  class Operands {
   public:
    template <class T>
    void add(T* at) {
      list_[count_++] = const_cast<std::remove_const_t<T>*>(at);
    }
    template <class T>
    void add(T* first, int64_t distance, int64_t count) {
      for (int64_t i = 0; i < count; ++i) add(first + i * distance);
    }
    void* const* data() const { return list_; }

   private:
    void* list_[tile::kMaxOperands];
    int count_ = 0;
  };

  void operator()(const Operands& operands, int64_t n) const {
    const tile::ScalarSlot zeros[tile::kFirstAttribute + 1] = {};  // a threshold is 0
    run_(operands.data(), n, zeros);
  }

 private:
  tile::KernelFn run_;
};

// Sizes, weights and loops that both directions of time share.
template <class T>
struct Loop {
  const Mode& mode;
  Steps order;
  int64_t sequences, size, out, width;  // of the memory, of the hidden state, of the gates
  const T *steps, *hidden, *memory, *weight, *bias, *projection;

  // The row of a state that a sequence has before a turn: of the step before, if it took part.
  const T* before(int64_t turn, int64_t sequence, int64_t each, const T* all,
                  const T* start) const {
    const size_t t = turn > 0 ? order.at(turn - 1) : 0;
    const bool took_part = turn > 0 && sequence < order.sizes[t];
    return took_part ? all + (order.starts[t] + sequence) * each : start + sequence * each;
  }
};

template <class T>
Loop<T> loop_of(const Layer& l) {
  const int64_t n = l.hidden.sizes()[0], out = l.hidden.sizes()[1];
  const int64_t width = l.weight.sizes()[0];
  return {l.mode,
          steps_of(l.steps, l.batch_sizes, n, l.backwards),
          n,
          width / l.mode.gates,
          out,
          width,
          read<T>(l.steps),
          read<T>(l.hidden),
          read<T>(l.memory),
          read<T>(l.weight),
          read<T>(l.bias),
          read<T>(l.projection)};
}

// ---- forward ----

template <class T>
struct Results {
  T *output, *hidden, *memory, *gates, *memories, *states;
};

// The weight of the gates as all turns meet it; layers of inference keep it.
template <class T>
struct Gates {
  Ref<native::PackedWeight> kept;
  const blas::PackedMatrix<T> matrix;

  Gates(const Loop<T>& l, const Tensor& weight)
      : matrix({l.weight, 1, l.out}, l.out, l.mode.gates, l.size, l.bias, l.order.rows,
               [&](int64_t elements, FunctionRef<void(T*)> fill) -> const T* {
                 if constexpr (std::is_same_v<T, float>) {
                   kept = native::kept_weight(weight, native::PackedForm::Gates, l.mode.gates,
                                              elements, fill);
                 }
                 return kept ? reinterpret_cast<const T*>(kept->data()) : nullptr;
               }) {}
};

template <class T>
void run_steps(const Loop<T>& l, const Kernel& cell, const Tensor& weights, const Results<T>& r) {
  const Gates<T> gates_of(l, weights);
  const blas::PackedMatrix<T>& weight = gates_of.matrix;
  const blas::PackedMatrix<T> projection({l.projection, 1, l.size}, l.projection ? l.size : 0, 1,
                                         l.projection ? l.out : 0, nullptr, l.order.rows);
  for (int64_t turn = 0; turn < l.order.count(); ++turn) {
    const size_t t = l.order.at(turn);
    const int64_t first = l.order.starts[t], count = l.order.sizes[t];
    const T* const steps = l.steps + first * l.width;
    T* const gates = r.gates + first * l.width;
    T* const output = r.output + first * l.out;
    T* const states = l.projection ? r.states + first * l.size : output;
    T* const memories = l.mode.has_memory ? r.memories + first * l.size : nullptr;
    weight.for_each_share(count, [&](int64_t first, int64_t last) {
      weight.multiply(first, last, count, r.hidden, l.out, l.mode.keeps_apart ? nullptr : steps,
                      gates, l.width);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = i * l.size + first, gate = i * l.width + first;
        Kernel::Operands operands;
        operands.add(states + at);
        if (memories) operands.add(memories + at);
        if (l.mode.keeps_apart) operands.add(steps + gate, l.size, l.mode.gates);
        operands.add(gates + gate, l.size, l.mode.gates);
        if (memories) operands.add(r.memory + at);
        if (l.mode.keeps_apart) operands.add(r.hidden + at);
        cell(operands, last - first);
      }
    });
    projection.for_each_share(count, [&](int64_t first, int64_t last) {
      projection.multiply(first, last, count, states, l.size, nullptr, output, l.out);
    });
    std::copy_n(output, count * l.out, r.hidden);
    if (memories) std::copy_n(memories, count * l.size, r.memory);
  }
}

// ---- backward ----

template <class T>
struct SavedRows {
  const T *output, *gates, *memories, *states, *grad_output;
};

// Gradients while they go back through time. `hidden` and `memory` are those of the states before
// the turns that are over; `before` gathers the hidden states that met the weight.
template <class T>
struct Flow {
  T *steps, *gates, *hidden, *memory, *before, *output;
};

// Columns of a step: the hidden states that met the weight, the gradient of the output.
template <class T>
void outputs_back(const Loop<T>& l, int64_t turn, int64_t first, int64_t last,
                  const SavedRows<T>& saved, const Flow<T>& f) {
  const size_t t = l.order.at(turn);
  for (int64_t i = 0; i < l.order.sizes[t]; ++i) {
    const int64_t row = (l.order.starts[t] + i) * l.out;
    const T* const before = l.before(turn, i, l.out, saved.output, l.hidden);
    std::copy(before + first, before + last, f.before + row + first);
    for (int64_t j = first; saved.grad_output && j < last; ++j) {
      f.hidden[i * l.out + j] += saved.grad_output[row + j];
    }
  }
}

// The cells of units [first, last) of a step.
template <class T>
void cells_back(const Loop<T>& l, const Kernel& cell, int64_t turn, int64_t first, int64_t last,
                const T* grad, const SavedRows<T>& saved, const Flow<T>& f) {
  const size_t t = l.order.at(turn);
  for (int64_t i = 0; i < l.order.sizes[t]; ++i) {
    const int64_t row = l.order.starts[t] + i, gate = row * l.width + first;
    const int64_t at = i * l.size + first;
    Kernel::Operands operands;
    operands.add(f.steps + gate, l.size, l.mode.gates);
    if (l.mode.keeps_apart) {
      operands.add(f.gates + gate + 2 * l.size);
      operands.add(f.hidden + at);
    }
    if (l.mode.has_memory) operands.add(f.memory + at);
    operands.add(grad + at);
    if (l.mode.has_memory) operands.add(f.memory + at);
    if (l.mode.keeps_apart) operands.add(l.steps + gate, l.size, l.mode.gates);
    if (l.mode.gates == 1) {
      operands.add(saved.output + row * l.out + first);
    } else {
      operands.add(saved.gates + gate, l.size, l.mode.gates);
    }
    const T* const memory = l.before(turn, i, l.size, saved.memories, l.memory);
    if (l.mode.has_memory) operands.add(memory + first);
    if (l.mode.keeps_apart) operands.add(f.before + row * l.size + first);
    cell(operands, last - first);
    for (int64_t g = 0; l.mode.keeps_apart && g < 2; ++g) {
      std::copy_n(f.steps + gate + g * l.size, last - first, f.gates + gate + g * l.size);
    }
  }
}

template <class T>
void run_back(const Loop<T>& l, const Kernel& cell, const SavedRows<T>& saved, const Flow<T>& f) {
  const blas::PackedMatrix<T> weight({l.weight, l.out, 1}, l.width, 1, l.out, nullptr,
                                     l.order.rows);
  const blas::PackedMatrix<T> projection({l.projection, l.size, 1}, l.projection ? l.out : 0, 1,
                                         l.projection ? l.size : 0, nullptr, l.order.rows);
  Scratch<T> states(l.projection ? l.sequences * l.size : 0);
  const auto gates_back = [&](int64_t turn, int64_t first, int64_t last) {
    const size_t t = l.order.at(turn);
    weight.multiply(first, last, l.order.sizes[t], f.gates + l.order.starts[t] * l.width, l.width,
                    l.mode.keeps_apart ? f.hidden : nullptr, f.hidden, l.out);
  };
  const int64_t turns = l.order.count();
  for (int64_t turn = turns - 1; turn >= 0; --turn) {
    const size_t t = l.order.at(turn);
    const int64_t count = l.order.sizes[t];
    weight.for_each_share(count, [&](int64_t first, int64_t last) {
      if (turn + 1 < turns) gates_back(turn + 1, first, last);
      outputs_back(l, turn, first, last, saved, f);
      if (!l.projection) cells_back<T>(l, cell, turn, first, last, f.hidden, saved, f);
    });
    if (!l.projection) continue;
    std::copy_n(f.hidden, count * l.out, f.output + l.order.starts[t] * l.out);
    projection.for_each_share(count, [&](int64_t first, int64_t last) {
      projection.multiply(first, last, count, f.hidden, l.out, nullptr, states.data(), l.size);
      cells_back<T>(l, cell, turn, first, last, states.data(), saved, f);
    });
  }
  weight.for_each_share(l.order.sizes[l.order.at(0)],
                        [&](int64_t first, int64_t last) { gates_back(0, first, last); });
}

// sums[i, j] = sum over rows of a[row, i] * b[row, j]: one product for the steps of all time.
template <class T>
Tensor summed_product(int64_t rows, const Tensor& like, const T* a, const T* b) {
  const int64_t m = like.sizes()[0], n = like.sizes()[1];
  Tensor out = Tensor::empty(like.sizes(), like.dtype(), like.device(), "RNN");
  blas::gemm<T>(m, n, rows, T(1), {a, 1, m}, {b, n, 1}, T(0), out.data_as<T>(), n);
  return out;
}

Tensor empty_like(const Tensor& like) {
  return like.defined() ? Tensor::empty(like.sizes(), like.dtype(), like.device(), "RNN")
                        : Tensor();
}

// A gradient that flows on from here: zeros where it is missing.
Tensor flowing(const Tensor& grad, const Tensor& like) {
  if (!like.defined()) return {};
  if (!grad.defined()) return native::zeros_of(like.sizes(), like.dtype(), like.device(), "RNN");
  Tensor result = empty_like(like);
  native::copy_into(result, grad);
  return result;
}

template <class T>
Gradients gradients(const Layer& layer, const Saved& saved, const Tensor& grad_output,
                    const Tensor& grad_hidden, const Tensor& grad_memory) {
  const Loop<T> l = loop_of<T>(layer);
  const Kernel cell(layer.mode.cell_backward, layer.steps.dtype());
  Gradients g;
  g.steps = empty_like(layer.steps);
  g.hidden = flowing(grad_hidden, layer.hidden);
  g.memory = flowing(grad_memory, layer.memory);
  // Of gates that are sums of both parts, the parts have one gradient.
  const Tensor gates = layer.mode.keeps_apart ? empty_like(layer.steps) : g.steps;
  Scratch<T> before(l.order.rows * l.out);
  Scratch<T> outputs(l.projection ? l.order.rows * l.out : 0);
  const SavedRows<T> rows{read<T>(saved.output), read<T>(saved.gates), read<T>(saved.memories),
                          read<T>(saved.states), read<T>(grad_output)};
  run_back<T>(l, cell, rows,
              {write<T>(g.steps), write<T>(gates), write<T>(g.hidden), write<T>(g.memory),
               before.data(), outputs.data()});
  g.weight = summed_product<T>(l.order.rows, layer.weight, gates.data_as<const T>(), before.data());
  if (l.projection) {
    g.projection = summed_product<T>(l.order.rows, layer.projection, outputs.data(), rows.states);
  }
  if (layer.bias.defined()) {
    const int64_t flat[] = {l.order.rows, l.width}, dims[] = {0};
    g.bias = ops::sum(gates.with_layout(Layout::contiguous(Dims(IntList(flat)))), IntList(dims));
  }
  return g;
}

}  // namespace

const Mode& mode_of(const std::string& name) {
  for (const Mode& mode : kModes) {
    if (name == mode.name) return mode;
  }
  fail(ErrorKind::Runtime,
       {"RNN: expected mode 'LSTM', 'GRU', 'RNN_TANH' or 'RNN_RELU', got '", name, "'"});
}

Steps steps_of(const Tensor& data, const Tensor& batch_sizes, int64_t sequences, bool backwards) {
  Steps steps;
  steps.backwards = backwards;
  if (!batch_sizes.defined()) {
    WEFT_CHECK(data.dim() == 3 && data.sizes()[1] == sequences, "RNN: expected steps of shape (t, ",
               sequences, ", features), got ", AsTuple{data.sizes()});
    steps.sizes.assign(static_cast<size_t>(data.sizes()[0]), sequences);
  } else {
    WEFT_CHECK(data.dim() == 2 && batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::I64,
               "RNN: expected data of 2 dims and batch sizes of 1 dim and dtype torch.int64, got ",
               AsTuple{data.sizes()}, " and ", AsTuple{batch_sizes.sizes()}, " of dtype ",
               batch_sizes.dtype());
    const Tensor sizes = in_order(batch_sizes);
    const int64_t* const from = sizes.data_as<const int64_t>();
    steps.sizes.assign(from, from + sizes.numel());
  }
  WEFT_CHECK(!steps.sizes.empty(), "RNN: expected at least 1 step, got 0");
  int64_t most = sequences;
  for (const int64_t size : steps.sizes) {
    WEFT_CHECK(size >= 0 && size <= most, "RNN: expected batch sizes that do not grow, at most ",
               sequences, ", got ", size, " after ", most);
    steps.starts.push_back(steps.rows);
    steps.rows += most = size;
  }
  WEFT_CHECK(!batch_sizes.defined() || data.sizes()[0] == steps.rows,
             "RNN: expected batch sizes whose sum is ", data.sizes()[0], ", got ", steps.rows);
  return steps;
}

Gradients backward(const Layer& layer, const Saved& saved, const Tensor& grad_output,
                   const Tensor& grad_hidden, const Tensor& grad_memory) {
  check(layer);
  check_saved(layer, saved, grad_output, grad_hidden, grad_memory);
  const DType dtype = layer.steps.dtype();
  const Tensor steps = operand(layer.steps), hidden = operand(layer.hidden);
  const Tensor memory = operand(layer.memory), weight = operand(layer.weight);
  const Tensor projection = operand(layer.projection), output = operand(saved.output);
  const Tensor gates = operand(saved.gates), memories = operand(saved.memories);
  const Tensor states = operand(saved.states);
  const Layer computed{steps,      layer.batch_sizes, hidden,     memory,         weight,
                       layer.bias, projection,        layer.mode, layer.backwards};
  Gradients g;
  native::dispatch_float("RNN", steps.dtype(), [&]<class T>(std::type_identity<T>) {
    g = gradients<T>(computed, {output, gates, memories, states}, operand(grad_output),
                     operand(grad_hidden), operand(grad_memory));
  });
  for (Tensor* one : {&g.steps, &g.hidden, &g.memory, &g.weight, &g.bias, &g.projection}) {
    if (one->defined()) *one = as_dtype(*one, dtype);
  }
  return g;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> forward(const Layer& given) {
  check(given);
  const Tensor in = operand(given.steps), w = operand(given.weight), b = operand(given.bias);
  const Tensor h = operand(given.hidden), m = operand(given.memory), p = operand(given.projection);
  const Layer layer{in, given.batch_sizes, h, m, w, b, p, given.mode, given.backwards};
  const DType compute = in.dtype(), dtype = given.steps.dtype();
  const auto made = [&](int64_t features, bool wanted) {
    Dims sizes = in.sizes();
    sizes.back() = features;
    return Tensor::empty(wanted ? sizes : Dims{0}, compute, in.device(), "RNN");
  };
  const int64_t out = h.sizes()[1], size = m.defined() ? m.sizes()[1] : out;
  const Tensor output = made(out, true), gates = made(in.sizes().back(), true);
  const Tensor memories = made(size, m.defined()), states = made(size, p.defined());
  const Tensor last = flowing(h, h);
  const Tensor last_memory = m.defined() ? flowing(m, m) : made(0, false);
  native::dispatch_float("RNN", compute, [&]<class T>(std::type_identity<T>) {
    const Loop<T> loop = loop_of<T>(layer);
    run_steps<T>(loop, Kernel(given.mode.cell, compute), w,
                 {write<T>(output), write<T>(last), write<T>(last_memory), write<T>(gates),
                  write<T>(memories), write<T>(states)});
  });
  return {as_dtype(output, dtype), as_dtype(last, dtype),     as_dtype(last_memory, dtype),
          as_dtype(gates, dtype),  as_dtype(memories, dtype), as_dtype(states, dtype)};
}

}  // namespace weft::recurrent

namespace weft::native {

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> _recurrent_steps(
    const Tensor& steps, const Tensor& batch_sizes, const Tensor& hidden, const Tensor& memory,
    const Tensor& weight, const Tensor& bias, const Tensor& projection, const std::string& mode,
    bool backwards) {
  return recurrent::forward({steps, batch_sizes, hidden, memory, weight, bias, projection,
                             recurrent::mode_of(mode), backwards});
}

}  // namespace weft::native
