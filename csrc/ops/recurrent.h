// One layer of a recurrent network in one direction, over all of its steps.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/tensor.h"

namespace weft::recurrent {

// What the kinds of layers differ in, by the name that modules have for them.
struct Mode {
  const char* name;
  int64_t gates;                     // rows of a weight for each element of the hidden state
  bool has_memory;                   // beside the hidden state
  bool keeps_apart;                  // what the input and what the hidden state give to a gate
  const char *cell, *cell_backward;  // rows of the table
};
// Raises RuntimeError for names that there are not.
const Mode& mode_of(const std::string& name);

// The sequences that take part with each step, longest first. Step t has sizes[t] rows of the data,
// from starts[t] on, of the first sequences.
struct Steps {
  std::vector<int64_t> sizes, starts;
  int64_t rows = 0;
  bool backwards = false;

  int64_t count() const { return static_cast<int64_t>(sizes.size()); }
  // The step that comes at a turn.
  size_t at(int64_t turn) const {
    return static_cast<size_t>(backwards ? count() - 1 - turn : turn);
  }
};
// Of data [t, n, features], or [rows, features] with batch sizes. Raises RuntimeError for data or
// sizes that do not fit so many sequences.
Steps steps_of(const Tensor& data, const Tensor& batch_sizes, int64_t sequences, bool backwards);

// The arguments of _recurrent_steps. Undefined: memory, bias and projection that there are not.
struct Layer {
  const Tensor &steps, &batch_sizes, &hidden, &memory, &weight, &bias, &projection;
  const Mode& mode;
  bool backwards;
};
// The results of _recurrent_steps. Raises RuntimeError for arguments that do not fit each other.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> forward(const Layer& layer);

// Those that the gradient reads.
struct Saved {
  const Tensor &output, &gates, &memories, &states;
};
// Undefined: a missing gradient.
struct Gradients {
  Tensor steps, hidden, memory, weight, bias, projection;
};

// The gradients of a layer for its arguments; records nothing.
Gradients backward(const Layer& layer, const Saved& saved, const Tensor& grad_output,
                   const Tensor& grad_hidden, const Tensor& grad_memory);

}  // namespace weft::recurrent
