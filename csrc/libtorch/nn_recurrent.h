// Recurrent layers and cells.
#pragma once

#include "nn_packed.h"

namespace torch::nn {
inline namespace over_weft {

// Layers over steps [t, n, inputs], or [n, t, inputs] where the batch is first. `Gates`: how many
// products of `hidden_size` a step has.
template <class Derived, int64_t Gates>
struct RecurrentLayer : Cloneable<Derived> {
  using Tensor = at::Tensor;
  explicit RecurrentLayer(const RNNOptions& given) : options(given) {}
  void reset() override {
    for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
      for (int64_t direction = 0; direction < directions(); ++direction) {
        add_weights(layer, "_l" + std::to_string(layer) + (direction > 0 ? "_reverse" : ""));
      }
    }
    reset_parameters();
  }
  void reset_parameters() {
    const double bound = 1 / std::sqrt(static_cast<double>(options.hidden_size()));
    for (const Tensor& each : this->parameters()) init::uniform_(each, -bound, bound);
  }
  std::vector<Tensor> all_weights() const { return this->parameters(); }
  void flatten_parameters() {}

  void pretty_print(std::ostream& out) const override {
    detail::write(out, "torch::nn::",
                  Gates == 4   ? "LSTM"
                  : Gates == 3 ? "GRU"
                               : "RNN",
                  "(input_size=", options.input_size(), ", hidden_size=", options.hidden_size(),
                  ", num_layers=", options.num_layers(), ", bias=", options.bias(),
                  ", batch_first=", options.batch_first(), ", dropout=", options.dropout(),
                  ", bidirectional=", options.bidirectional());
    if (options.proj_size() > 0) out << ", proj_size=" << options.proj_size();
    out << ')';
  }
  RNNOptions options;

 protected:
  // A batch of one for a sequence alone.
  Tensor as_batch(const Tensor& input) const {
    TORCH_CHECK((input.dim() == 2 || input.dim() == 3) && input.size(-1) == options.input_size(),
                this->name(), ": expected an input of 2 or 3 dims, the last ", options.input_size(),
                ", got ", input.sizes());
    return input.dim() == 2 ? input.unsqueeze(place_of_batch()) : input;
  }
  // The state [layers and directions, n, width] before the first step: zeros unless given.
  Tensor start(const Tensor& input, const Tensor& state, int64_t width) const {
    if (state.defined()) return input.dim() == 2 ? state.unsqueeze(1) : state;
    return zeros_for(input, input.dim() == 2 ? 1 : input.size(place_of_batch()), width);
  }
  Tensor as_given(const Tensor& input, const Tensor& made, int64_t place) const {
    return input.dim() == 2 ? made.squeeze(place) : made;
  }
  // Of a step's output.
  int64_t width() const {
    return options.proj_size() > 0 ? options.proj_size() : options.hidden_size();
  }
  int64_t place_of_batch() const { return options.batch_first() ? 0 : 1; }
  // Outputs and the last state of layers without memory, by the operator of their kind.
  std::tuple<Tensor, Tensor> run(const Tensor& input, const Tensor& hx,
                                 std::tuple<Tensor, Tensor> (*layers)(const Tensor&, const Tensor&,
                                                                      at::TensorList, bool, int64_t,
                                                                      double, bool, bool, bool)) {
    const auto [output, hidden] =
        layers(as_batch(input), start(input, hx, options.hidden_size()), this->parameters(),
               options.bias(), options.num_layers(), options.dropout(), this->is_training(),
               options.bidirectional(), options.batch_first());
    return {as_given(input, output, place_of_batch()), as_given(input, hidden, 1)};
  }
  // The state: of sequences in the order they were given in.
  static Tensor ordered(const Tensor& state, const Tensor& order) {
    return state.defined() && order.defined() ? state.index_select(1, order) : state;
  }
  Tensor zeros_for(const Tensor& input, int64_t count, int64_t width) const {
    return at::zeros({options.num_layers() * directions(), count, width}, input.options());
  }
  Tensor zeros_for(const utils::rnn::PackedSequence& packed, int64_t width) const {
    return zeros_for(packed.data(), packed.batch_sizes()[0].template item<int64_t>(), width);
  }
  std::tuple<utils::rnn::PackedSequence, Tensor> run_packed(
      const utils::rnn::PackedSequence& packed, const Tensor& hx,
      std::tuple<Tensor, Tensor> (*layers)(const Tensor&, const Tensor&, const Tensor&,
                                           at::TensorList, bool, int64_t, double, bool, bool)) {
    const Tensor start = hx.defined() ? ordered(hx, packed.sorted_indices())
                                      : zeros_for(packed, options.hidden_size());
    const auto [output, hidden] = layers(
        packed.data(), packed.batch_sizes(), start, this->parameters(), options.bias(),
        options.num_layers(), options.dropout(), this->is_training(), options.bidirectional());
    return {again(packed, output), ordered(hidden, packed.unsorted_indices())};
  }
  static utils::rnn::PackedSequence again(const utils::rnn::PackedSequence& packed,
                                          const Tensor& data) {
    return utils::rnn::PackedSequence(data, packed.batch_sizes(), packed.sorted_indices(),
                                      packed.unsorted_indices());
  }

 private:
  int64_t directions() const { return options.bidirectional() ? 2 : 1; }
  void add_weights(int64_t layer, const std::string& suffix) {
    const int64_t hidden = options.hidden_size(), projected = options.proj_size();
    const auto add = [&](const char* name, at::IntArrayRef sizes) {
      this->register_parameter(name + suffix, at::empty(sizes));
    };
    add("weight_ih", {Gates * hidden, layer == 0 ? options.input_size() : width() * directions()});
    add("weight_hh", {Gates * hidden, width()});
    if (options.bias()) {
      add("bias_ih", {Gates * hidden});
      add("bias_hh", {Gates * hidden});
    }
    if (projected > 0) add("weight_hr", {projected, hidden});
  }
};

#define WEFT_RECURRENT(Name, Gates)                                                      \
 public:                                                                                 \
  Name##Impl(int64_t inputs, int64_t hidden) : Name##Impl(RNNOptions(inputs, hidden)) {} \
  explicit Name##Impl(const RNNOptions& given) : RecurrentLayer(given) { Name##Impl::reset(); }
struct RNNImpl : RecurrentLayer<RNNImpl, 1> {
  WEFT_RECURRENT(RNN, 1)
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx = {}) {
    if (options.nonlinearity() == kReLU) return run(input, hx, &at::rnn_relu);
    return run(input, hx, &at::rnn_tanh);
  }
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed, const Tensor& hx = {}) {
    if (options.nonlinearity() == kReLU) return run_packed(packed, hx, &at::rnn_relu);
    return run_packed(packed, hx, &at::rnn_tanh);
  }
};
struct GRUImpl : RecurrentLayer<GRUImpl, 3> {
  WEFT_RECURRENT(GRU, 3)
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx = {}) {
    return run(input, hx, &at::gru);
  }
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed, const Tensor& hx = {}) {
    return run_packed(packed, hx, &at::gru);
  }
};
struct LSTMImpl : RecurrentLayer<LSTMImpl, 4> {
  WEFT_RECURRENT(LSTM, 4)
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(
      const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx = {}) {
    const std::vector<Tensor> begin = {
        start(input, hx ? std::get<0>(*hx) : Tensor(), width()),
        start(input, hx ? std::get<1>(*hx) : Tensor(), options.hidden_size())};
    const auto [output, hidden, memory] = at::lstm(
        as_batch(input), begin, this->parameters(), options.bias(), options.num_layers(),
        options.dropout(), this->is_training(), options.bidirectional(), options.batch_first());
    return {as_given(input, output, place_of_batch()),
            {as_given(input, hidden, 1), as_given(input, memory, 1)}};
  }
  std::tuple<utils::rnn::PackedSequence, std::tuple<Tensor, Tensor>> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed, std::optional<std::tuple<Tensor, Tensor>> hx = {}) {
    const Tensor &order = packed.sorted_indices(), &back = packed.unsorted_indices();
    const std::vector<Tensor> start = {
        hx ? ordered(std::get<0>(*hx), order) : zeros_for(packed, width()),
        hx ? ordered(std::get<1>(*hx), order) : zeros_for(packed, options.hidden_size())};
    const auto [output, hidden, memory] = at::lstm(
        packed.data(), packed.batch_sizes(), start, this->parameters(), options.bias(),
        options.num_layers(), options.dropout(), this->is_training(), options.bidirectional());
    return {again(packed, output), {ordered(hidden, back), ordered(memory, back)}};
  }
};
#undef WEFT_RECURRENT
TORCH_MODULE(RNN);
TORCH_MODULE(GRU);
TORCH_MODULE(LSTM);
using LSTMOptions = RNNOptions;
using GRUOptions = RNNOptions;

// One step; the state is zero unless given.
template <class Derived, int64_t Gates>
struct RecurrentCell : Cloneable<Derived> {
  using Tensor = at::Tensor;
  explicit RecurrentCell(const RNNOptions& given) : options(given) {}
  void reset() override {
    const int64_t rows = Gates * options.hidden_size();
    const double bound = 1 / std::sqrt(static_cast<double>(options.hidden_size()));
    const auto add = [&](const char* name, at::IntArrayRef sizes, bool wanted) {
      return this->register_parameter(name, wanted ? at::empty(sizes) : Tensor(), wanted);
    };
    weight_ih = add("weight_ih", {rows, options.input_size()}, true);
    weight_hh = add("weight_hh", {rows, options.hidden_size()}, true);
    bias_ih = add("bias_ih", {rows}, options.bias());
    bias_hh = add("bias_hh", {rows}, options.bias());
    for (const Tensor& each : this->parameters()) init::uniform_(each, -bound, bound);
  }
  RNNOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  Tensor start(const Tensor& input, const Tensor& state) const {
    if (state.defined()) return state;
    std::vector<int64_t> sizes = input.sizes().vec();
    sizes.back() = options.hidden_size();
    return at::zeros(sizes, input.options());
  }
  Tensor from_input(const Tensor& x) const { return at::linear(x, weight_ih, bias_ih); }
  Tensor from_state(const Tensor& h) const { return at::linear(h, weight_hh, bias_hh); }
};
#define WEFT_CELL(Name)                                                                        \
  Name##Impl(int64_t inputs, int64_t hidden) : Name##Impl(RNNOptions(inputs, hidden)) {}       \
  explicit Name##Impl(const RNNOptions& given) : RecurrentCell(given) { Name##Impl::reset(); } \
  WEFT_PRETTY(Name, o.input_size(), ", ", o.hidden_size(), o.bias() ? "" : ", bias=false")
struct RNNCellImpl : RecurrentCell<RNNCellImpl, 1> {
  WEFT_CELL(RNNCell)
  Tensor forward(const Tensor& x, const Tensor& hx = {}) {
    const Tensor sum = from_input(x) + from_state(start(x, hx));
    return options.nonlinearity() == kReLU ? sum.relu() : sum.tanh();
  }
};
struct GRUCellImpl : RecurrentCell<GRUCellImpl, 3> {
  WEFT_CELL(GRUCell)
  Tensor forward(const Tensor& x, const Tensor& hx = {}) {
    const Tensor h = start(x, hx);
    const std::vector<Tensor> a = from_input(x).chunk(3, -1), b = from_state(h).chunk(3, -1);
    const Tensor reset_gate = (a[0] + b[0]).sigmoid(), update_gate = (a[1] + b[1]).sigmoid();
    const Tensor made = (a[2] + reset_gate * b[2]).tanh();
    return (h - made) * update_gate + made;
  }
};
struct LSTMCellImpl : RecurrentCell<LSTMCellImpl, 4> {
  WEFT_CELL(LSTMCell)
  std::tuple<Tensor, Tensor> forward(const Tensor& x,
                                     std::optional<std::tuple<Tensor, Tensor>> hx = {}) {
    const Tensor h = start(x, hx ? std::get<0>(*hx) : Tensor()),
                 c = start(x, hx ? std::get<1>(*hx) : Tensor());
    const std::vector<Tensor> gates = (from_input(x) + from_state(h)).chunk(4, -1);
    const Tensor memory = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
    return {gates[3].sigmoid() * memory.tanh(), memory};
  }
};
#undef WEFT_CELL
TORCH_MODULE(RNNCell);
TORCH_MODULE(GRUCell);
TORCH_MODULE(LSTMCell);
using RNNCellOptions = RNNOptions;
using GRUCellOptions = RNNOptions;
using LSTMCellOptions = RNNOptions;

}  // namespace over_weft
}  // namespace torch::nn
