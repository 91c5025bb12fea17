#include "runtime/fused_totals.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "core/error.h"
#include "ops/programs.h"
#include "ops/tile_plan.h"

namespace weft {
namespace {

using Kind = FusedOperand::Kind;
using Over = FusedStep::Over;
using Source = FusedTotals::Source;

// As codegen/tiles.py keeps groups within what tile programs and native code hold.
constexpr size_t kMostSteps = 48, kMostOperands = 16, kMostNumbers = 32;

// Which values the steps of a group have: a step has all its results, one after the other.
struct Values {
  explicit Values(const FusedSpec& spec) {
    for (size_t s = 0; s < spec.steps.size(); ++s) {
      first.push_back(step.size());
      step.insert(step.end(), tile_ops::find(spec.steps[s].op)->output_count, s);
    }
  }
  std::vector<size_t> first;  // by step
  std::vector<size_t> step;   // by value
};

bool same_number(const Value& a, const Value& b) {
  if (a.tag() != b.tag()) return false;
  if (a.tag() != ValueTag::Double) return a.to_int() == b.to_int();
  return std::bit_cast<uint64_t>(a.to_double()) == std::bit_cast<uint64_t>(b.to_double());
}

// Which values of a group's gradient are the group's own, computed again.
class Repeats {
 public:
  explicit Repeats(const FusedSpec& forward)
      : forward_(forward),
        backward_(forward.backward->group->spec()),
        theirs_(forward),
        own_(backward_),
        value_(own_.step.size(), -1) {
    for (size_t s = 0; s < backward_.steps.size(); ++s) find(s);
  }

  // The forward value that a value of the gradient is; -1: none.
  int of(size_t value) const { return value_[value]; }

 private:
  void find(size_t s) {
    for (size_t f = 0; f < forward_.steps.size(); ++f) {
      const FusedStep &again = backward_.steps[s], &step = forward_.steps[f];
      if (!same_form(again, step) || !same_numbers(again, step)) continue;
      const bool affine = again.op != step.op;
      if (!same_tensors(again, step, affine ? 1 : step.tensors.size())) continue;
      const size_t count = tile_ops::find(again.op)->output_count;
      // A layer norm has the same statistics with weights and without, but other elements.
      for (size_t r = affine ? 1 : 0; r < count; ++r)
        value_[own_.first[s] + r] = static_cast<int>(theirs_.first[f] + r);
      return;
    }
  }

  static bool same_form(const FusedStep& again, const FusedStep& step) {
    const bool op =
        again.op == step.op || (again.op == "_layer_norm" && step.op == "_layer_norm_affine");
    return op && again.over == step.over && again.dim == step.dim &&
           again.keepdim == step.keepdim && again.length == step.length;
  }

  bool same_numbers(const FusedStep& again, const FusedStep& step) const {
    const auto same = [&](const FusedOperand& a, const FusedOperand& b) {
      if (a.kind != b.kind) return false;
      if (a.kind != Kind::Constant) return a.index == b.index;
      return same_number(backward_.constants[a.index], forward_.constants[b.index]);
    };
    return std::ranges::equal(again.numbers, step.numbers, same);
  }

  bool same_tensors(const FusedStep& again, const FusedStep& step, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const FusedOperand &a = again.tensors[i], &b = step.tensors[i];
      const int index = a.kind == Kind::Step ? value_[a.index] : a.index;
      if (a.kind != b.kind || index != b.index) return false;
      if (a.kind == Kind::Input && a.index >= forward_.input_count) return false;
    }
    return true;
  }

  const FusedSpec &forward_, &backward_;
  const Values theirs_, own_;
  std::vector<int> value_;
};

class Builder {
 public:
  Builder(const FusedSpec& forward, const std::vector<uint8_t>& kept)
      : forward_(forward),
        backward_(*forward.backward),
        old_(backward_.group->spec()),
        kept_(kept),
        repeats_(forward),
        values_(old_),
        place_(values_.step.size()) {}

  std::unique_ptr<FusedTotals> run();
  // The forward values that are read of those that could be kept.
  std::vector<uint8_t> read();

 private:
  std::optional<FusedOperand> kept_place(int forward_value) const;
  bool is_normal(size_t value) const;
  void need(size_t value);
  void need_all();
  FusedOperand placed(const FusedOperand& one) const;
  FusedOperand constant(const Value& number);
  FusedOperand add(std::string op, std::vector<FusedOperand> tensors,
                   std::vector<FusedOperand> numbers);
  void add_step(size_t s);
  void add_normal(size_t s);
  FusedOperand of_edge(const FusedBackward::Edge& edge) const;
  Source output(const FusedOperand& value, const FusedBackward::Edge& edge);
  void add_sums();
  bool fits() const;

  const FusedSpec& forward_;
  const FusedBackward& backward_;
  const FusedSpec& old_;
  const std::vector<uint8_t>& kept_;
  const Repeats repeats_;
  const Values values_;
  std::vector<bool> needed_ = std::vector<bool>(old_.steps.size());
  std::vector<bool> read_ = std::vector<bool>(kept_.size());
  std::vector<std::optional<FusedOperand>> place_;  // by old value
  FusedSpec spec_;
  size_t made_ = 0;  // values of spec_
  FusedTotals result_;
};

std::optional<FusedOperand> Builder::kept_place(int forward_value) const {
  const auto at = std::ranges::find(kept_, forward_value);
  if (forward_value < 0 || at == kept_.end()) return {};
  return FusedOperand{Kind::Input, static_cast<uint8_t>(old_.input_count + (at - kept_.begin()))};
}

// Whether a value is the elements of a layer norm the statistics of which are there.
bool Builder::is_normal(size_t value) const {
  const size_t step = values_.step[value], first = values_.first[step];
  return old_.steps[step].op == "_layer_norm" && value == first &&
         kept_place(repeats_.of(first + 1)) && kept_place(repeats_.of(first + 2));
}

void Builder::need(size_t value) {
  if (const auto kept = kept_place(repeats_.of(value))) {
    read_[kept->index - old_.input_count] = true;
    return;
  }
  const size_t step = values_.step[value];
  needed_[step] = true;
  if (is_normal(value)) {
    need(value + 1);
    need(value + 2);
  }
  for (const FusedOperand& one : old_.steps[step].tensors) {
    if (one.kind == Kind::Step) need(one.index);
  }
}

void Builder::need_all() {
  for (uint8_t value : old_.outputs) need(value);
}

std::vector<uint8_t> Builder::read() {
  need_all();
  std::vector<uint8_t> found;
  for (size_t k = 0; k < kept_.size(); ++k) {
    if (read_[k]) found.push_back(kept_[k]);
  }
  return found;
}

FusedOperand Builder::placed(const FusedOperand& one) const {
  return one.kind == Kind::Step ? *place_[one.index] : one;
}

FusedOperand Builder::constant(const Value& number) {
  const auto same = [&](const Value& other) { return same_number(other, number); };
  const auto at = std::ranges::find_if(spec_.constants, same);
  const auto index = static_cast<uint8_t>(at - spec_.constants.begin());
  if (at == spec_.constants.end()) spec_.constants.push_back(number);
  return {Kind::Constant, index};
}

FusedOperand Builder::add(std::string op, std::vector<FusedOperand> tensors,
                          std::vector<FusedOperand> numbers) {
  spec_.steps.push_back({std::move(op), std::move(tensors), std::move(numbers)});
  return {Kind::Step, static_cast<uint8_t>(made_++)};
}

void Builder::add_step(size_t s) {
  const size_t first = values_.first[s], count = tile_ops::find(old_.steps[s].op)->output_count;
  if (is_normal(first)) return add_normal(s);
  FusedStep step = old_.steps[s];
  for (FusedOperand& one : step.tensors) one = placed(one);
  spec_.steps.push_back(std::move(step));
  for (size_t r = 0; r < count; ++r) {
    place_[first + r] = FusedOperand{Kind::Step, static_cast<uint8_t>(made_ + r)};
  }
  made_ += count;
}

// The elements of a layer norm from its statistics, as its kernel computes them.
void Builder::add_normal(size_t s) {
  const size_t first = values_.first[s];
  const FusedOperand x = placed(old_.steps[s].tensors[0]);
  const FusedOperand centred =
      add("sub_Tensor", {x, *place_[first + 1]}, {constant(Value(int64_t{1}))});
  place_[first] = add("mul_Tensor", {centred, *place_[first + 2]}, {});
}

FusedOperand Builder::of_edge(const FusedBackward::Edge& edge) const {
  if (edge.from_output) return *place_[old_.outputs[edge.index]];
  return {Kind::Input, static_cast<uint8_t>(forward_.input_count + edge.index)};
}

// The source of an edge alone, or of a sum.
Source Builder::output(const FusedOperand& value, const FusedBackward::Edge& edge) {
  if (value.kind == Kind::Input) return {Source::Kind::Gradient, edge.index};
  const auto at = std::ranges::find(spec_.outputs, value.index);
  const auto index = static_cast<uint8_t>(at - spec_.outputs.begin());
  if (at == spec_.outputs.end()) spec_.outputs.push_back(value.index);
  return {Source::Kind::Output, index};
}

void Builder::add_sums() {
  const std::vector<FusedBackward::Edge>& edges = backward_.edges;
  const auto reads = [&](uint8_t input) {
    return std::ranges::count(edges, input, &FusedBackward::Edge::input);
  };
  for (size_t k = 0; k < edges.size(); ++k) {
    const uint8_t input = edges[k].input;
    const bool earlier = std::ranges::any_of(
        result_.sums, [&](const FusedTotals::Sum& sum) { return sum.input == input; });
    if (earlier) {
      result_.sources.push_back({Source::Kind::Earlier, 0});
      continue;
    }
    if (reads(input) < 2) {
      result_.sources.push_back(output(of_edge(edges[k]), edges[k]));
      continue;
    }
    FusedOperand sum{Kind::Input, spec_.input_count++};
    result_.sums.push_back({input, sum.index});
    const FusedOperand one = constant(Value(int64_t{1}));
    for (size_t j = k; j < edges.size(); ++j) {
      if (edges[j].input == input) sum = add("add_Tensor", {sum, of_edge(edges[j])}, {one});
    }
    result_.sources.push_back(output(sum, edges[k]));
  }
}

bool Builder::fits() const {
  std::vector<bool> reads(spec_.input_count);
  size_t numbers = 0;
  for (const FusedStep& step : spec_.steps) {
    numbers += step.numbers.size();
    for (const FusedOperand& one : step.tensors) {
      if (one.kind == Kind::Input) reads[one.index] = true;
    }
  }
  const auto operands = static_cast<size_t>(std::ranges::count(reads, true)) + spec_.outputs.size();
  return spec_.input_count <= 64 && spec_.steps.size() <= kMostSteps && numbers <= kMostNumbers &&
         operands <= kMostOperands && !spec_.outputs.empty();
}

std::unique_ptr<FusedTotals> Builder::run() {
  spec_.input_count = static_cast<uint8_t>(old_.input_count + kept_.size());
  spec_.constants = old_.constants;
  spec_.dropped_inputs = old_.dropped_inputs;
  // What is kept lacks the row's dimension.
  for (size_t k = 0; k < kept_.size(); ++k)
    spec_.dropped_inputs |= uint64_t{1} << (old_.input_count + k);
  need_all();
  for (size_t value = 0; value < place_.size(); ++value) {
    place_[value] = kept_place(repeats_.of(value));
  }
  for (size_t s = 0; s < old_.steps.size(); ++s) {
    if (needed_[s]) add_step(s);
  }
  add_sums();
  if ((kept_.empty() && result_.sums.empty()) || !fits()) return nullptr;
  result_.group = make_ref<FusedGroup>(std::move(spec_));
  return std::make_unique<FusedTotals>(std::move(result_));
}

}  // namespace

std::vector<uint8_t> repeated_statistics(const FusedSpec& forward,
                                         const std::function<bool(uint8_t)>& is_of_rows) {
  const Repeats repeats(forward);
  std::vector<uint8_t> found;
  const FusedSpec& backward = forward.backward->group->spec();
  const std::vector<uint8_t>& outputs = backward.outputs;
  const Values values(backward);
  for (size_t v = 0; v < values.step.size(); ++v) {
    const int value = repeats.of(v);
    if (value < 0 || !is_of_rows(static_cast<uint8_t>(value))) continue;
    if (std::ranges::find(outputs, v) != outputs.end()) continue;
    if (std::ranges::find(found, value) == found.end())
      found.push_back(static_cast<uint8_t>(value));
  }
  return Builder(forward, found).read();
}

std::unique_ptr<FusedTotals> FusedTotals::make(const FusedSpec& forward,
                                               const std::vector<uint8_t>& kept) {
  return Builder(forward, kept).run();
}

}  // namespace weft
