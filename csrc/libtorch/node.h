// torch::autograd::Node and what hosts write nodes of their own with; edges, and the engine.
#pragma once

#include <unordered_set>

#include "custom_function.h"
#include "storage.h"

namespace c10 {
inline namespace over_weft {

// What handles of a tensor point to: a name for weft's tensor, by which handles are told apart.
class TensorImpl final {
 public:
  TensorImpl() = delete;
  weft_tensor* handle() { return reinterpret_cast<weft_tensor*>(this); }
  void set_allow_tensor_metadata_change(bool) {}
  // Functions that are recorded say themselves what they write to.
  void bump_version() {}
  // The tensor lies in the memory of the host, in the order of its dims.
  void ShareExternalPointer(DataPtr&& data, caffe2::TypeMeta type, size_t);
};

}  // namespace over_weft
}  // namespace c10

namespace at {
inline namespace over_weft {

using c10::TensorImpl;
inline TensorImpl* Tensor::unsafeGetTensorImpl() const {
  return reinterpret_cast<TensorImpl*>(get());
}
struct OptionalDeviceGuard {};

}  // namespace over_weft
}  // namespace at

namespace c10 {
inline namespace over_weft {

inline void TensorImpl::ShareExternalPointer(DataPtr&& data, caffe2::TypeMeta type, size_t) {
  weft_tensor* shared = nullptr;
  detail::check(weft_tensor_share(handle(), &shared));
  const at::Tensor self(shared);
  const auto kept = std::make_shared<DataPtr>(std::move(data));
  const at::Tensor made = at::from_blob(
      kept->get(), self.sizes(), self.strides(), [kept](void*) {}, at::TensorOptions(type));
  detail::check(weft_tensor_set_data(shared, made.get()));
}

}  // namespace over_weft
}  // namespace c10

namespace torch::autograd {
inline namespace over_weft {

inline constexpr const char* ERR_BACKWARD_TWICE =
    "backward: expected what the first pass has freed; retain_graph=true keeps it";

struct Node;
struct Edge {
  std::shared_ptr<Node> function;
  uint32_t input_nr = 0;

  Edge() = default;
  Edge(std::shared_ptr<Node> of, uint32_t number) : function(std::move(of)), input_nr(number) {}
  bool is_valid() const { return function != nullptr; }
};
using edge_list = std::vector<Edge>;

// A step of the history: the host's own, or (TensorNode) that of a tensor.
struct Node : std::enable_shared_from_this<Node> {
  Node() = default;
  explicit Node(edge_list edges) : edges_(std::move(edges)) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  variable_list operator()(variable_list&& inputs) { return apply(std::move(inputs)); }
  virtual std::string name() const { return torch::autograd::detail::name_of_type(typeid(*this)); }
  virtual void release_variables() {}
  virtual const edge_list& next_edges() const { return edges_; }
  const Edge& next_edge(size_t index) const { return next_edges().at(index); }
  size_t num_outputs() const { return next_edges().size(); }
  bool should_compute_output(size_t index) const { return next_edge(index).is_valid(); }
  bool task_should_compute_output(size_t index) const { return should_compute_output(index); }
  void set_next_edges(edge_list&& edges) { edges_ = std::move(edges); }
  void add_next_edge(Edge edge) { edges_.push_back(std::move(edge)); }
  void clear_input_metadata() {}
  std::shared_ptr<Node> getptr() { return shared_from_this(); }

  // Gradients of what the function took, from those of what it gave.
  virtual variable_list apply(variable_list&& inputs) = 0;

 private:
  edge_list edges_;
};

// The step that made a tensor, or where the gradient of a leaf is added.
struct TensorNode : Node {
  explicit TensorNode(at::Tensor of) : tensor(std::move(of)) {}
  std::string name() const override { refuse("name"); }
  const edge_list& next_edges() const override { refuse("next_edges"); }
  variable_list apply(variable_list&&) override { refuse("apply"); }

  at::Tensor tensor;

 private:
  [[noreturn]] static void refuse(const char* what) {
    c10::detail::fail<c10::NotImplementedError>(__FILE__, __LINE__, "", "Node::", what,
                                                ": expected a node of the host's own, got one of "
                                                "an operator, of which weft.h tells nothing");
  }
};

namespace impl {

inline Edge gradient_edge(const at::Tensor& tensor) {
  return {std::make_shared<TensorNode>(tensor), 0};
}

}  // namespace impl

namespace detail {

inline const at::Tensor& tensor_of(const char* op, const Edge& edge) {
  const auto* node = dynamic_cast<const TensorNode*>(edge.function.get());
  TORCH_CHECK_NOT_IMPLEMENTED(node, op, ": expected an edge of a tensor, got one of a node");
  return node->tensor;
}

}  // namespace detail

class Engine {
 public:
  static Engine& get_default_engine() {
    static Engine engine;
    return engine;
  }
  // Gradients of inputs; without inputs, leaves get them.
  variable_list execute(const edge_list& roots, const variable_list& grads, bool keep_graph,
                        bool create_graph, bool accumulate = false, const edge_list& inputs = {}) {
    variable_list outputs, wanted;
    for (const Edge& each : roots) outputs.push_back(detail::tensor_of("execute", each));
    for (const Edge& each : inputs) wanted.push_back(detail::tensor_of("execute", each));
    if (wanted.empty() || accumulate) {
      backward(outputs, grads, keep_graph, create_graph, wanted);
      return {};
    }
    return grad(outputs, wanted, grads, keep_graph, create_graph, true);
  }
};

// ---- nodes of the host ----

template <class... Tensors>
edge_list collect_next_edges(const Tensors&... given) {
  edge_list edges;
  const auto add = [&](const at::Tensor& each) {
    edges.push_back(each.defined() && each.requires_grad() ? impl::gradient_edge(each) : Edge());
  };
  const auto add_all = [&](const auto& each) {
    if constexpr (std::is_convertible_v<decltype(each), const at::Tensor&>) {
      add(each);
    } else {
      for (const at::Tensor& tensor : each) add(tensor);
    }
  };
  (add_all(given), ...);
  return edges;
}
inline void deleteNode(Node* node) { delete node; }

using optional_variable_list = std::vector<std::optional<Variable>>;
using _jvp_fn_t = std::function<variable_list(variable_list, variable_list)>;
using _view_as_self_fn_t = std::function<at::Tensor(at::Tensor)>;
inline optional_variable_list to_optional(const variable_list& tensors) {
  return {tensors.begin(), tensors.end()};
}
inline optional_variable_list to_optional(const Variable& tensor) { return {tensor}; }
template <class T>
T to_output_type(const optional_variable_list& tensors) {
  if constexpr (std::is_same_v<T, variable_list>) {
    variable_list given;
    for (const auto& each : tensors) given.push_back(each.value_or(Variable()));
    return given;
  } else {
    return tensors.at(0).value();
  }
}

// What zeros stand for a gradient that is not there.
struct VariableInfo {
  VariableInfo() = default;
  explicit VariableInfo(const Variable& tensor, bool = false)
      : scalar_type(tensor.scalar_type()),
        size(tensor.sizes().vec()),
        requires_grad(tensor.requires_grad()),
        is_empty(false) {}
  template <class Guard>
  Variable zeros(Guard&) const {
    return is_empty ? Variable() : at::zeros(size, at::TensorOptions(scalar_type));
  }

  at::Layout layout = at::kStrided;
  at::Device device = at::kCPU;
  at::ScalarType scalar_type = at::kFloat;
  std::vector<int64_t> size;
  bool requires_grad = false, is_empty = true;
};

// A tensor for backward. What the node itself gave is kept without its history, which would hold
// the node. Writes to the tensor meanwhile are not seen, as weft.h does not count them:
// AutogradContext::save_for_backward is what guards tensors.
class SavedVariable {
 public:
  SavedVariable() = default;
  SavedVariable(const Variable& tensor, bool is_output, bool = false)
      : tensor_(is_output ? tensor.detach() : tensor), is_output_(is_output) {}

  Variable unpack(const std::shared_ptr<Node>& = nullptr) const {
    TORCH_CHECK_NOT_IMPLEMENTED(!is_output_ || !at::GradMode::is_enabled(),
                                "SavedVariable: expected a backward pass that records no "
                                "gradients, got one through an output of the function");
    return tensor_;
  }
  void reset_data() { tensor_.reset(); }

 private:
  Variable tensor_;
  bool is_output_ = false;
};

namespace detail {

// What the library owns of a host's node.
struct NodeCall {
  std::shared_ptr<Node> node;
  size_t input_count, output_count;

  static weft_status backward(const weft_tensor* const* gradients, const weft_tensor* const*,
                              const int*, weft_tensor** out, void* given) {
    return c10::detail::guarded([&] {
      NodeCall& call = *static_cast<NodeCall*>(given);
      variable_list inputs(call.output_count);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!gradients[i]) continue;
        weft_tensor* shared = nullptr;
        c10::detail::check(weft_tensor_share(gradients[i], &shared));
        inputs[i] = at::Tensor(shared);
      }
      const variable_list found = (*call.node)(std::move(inputs));
      TORCH_CHECK(found.size() == call.input_count, "backward: expected ", call.input_count,
                  " gradients, got ", found.size());
      for (size_t i = 0; i < found.size(); ++i) {
        if (found[i].defined()) c10::detail::check(weft_tensor_share(found[i].get(), out + i));
      }
    });
  }
};

}  // namespace detail

// Makes a node the history of what a function gave; without a node outputs are as they are.
template <class Outputs>
optional_variable_list _wrap_outputs(const variable_list& inputs,
                                     const std::unordered_set<at::TensorImpl*>& constants,
                                     const std::unordered_set<at::TensorImpl*>& written,
                                     const Outputs& outputs, const std::shared_ptr<Node>& node,
                                     const _jvp_fn_t& = {},
                                     const std::unordered_set<at::TensorImpl*>& = {},
                                     const _view_as_self_fn_t& = {}, bool = false) {
  variable_list given;
  for (const std::optional<Variable>& each : outputs) given.push_back(each.value_or(Variable()));
  if (!node) return to_optional(given);
  const auto shared = [](const std::unordered_set<at::TensorImpl*>& from) {
    variable_list tensors;
    for (at::TensorImpl* each : from) {
      weft_tensor* handle = nullptr;
      c10::detail::check(weft_tensor_share(each->handle(), &handle));
      tensors.emplace_back(handle);
    }
    return tensors;
  };
  c10::detail::FunctionRecord record;
  record.name = node->name();
  record.inputs = inputs;
  record.written = shared(written);
  record.constants = shared(constants);
  record.fills_gradients = false;
  auto call =
      std::make_unique<detail::NodeCall>(detail::NodeCall{node, inputs.size(), given.size()});
  const variable_list finished = record.run(
      given, detail::NodeCall::backward,
      [](void* owned) { delete static_cast<detail::NodeCall*>(owned); }, call.get());
  call.release();
  return to_optional(finished);
}

// Errors name the lines of programs; operators of backward passes are not traced.
struct AnomalyMode {
  static bool is_enabled() { return false; }
  static bool should_check_nan() { return true; }
  static void set_enabled(bool enabled, bool = true) {
    TORCH_CHECK_NOT_IMPLEMENTED(!enabled, "AnomalyMode: expected it not to be enabled");
  }
};

}  // namespace over_weft
}  // namespace torch::autograd

namespace at {
inline namespace over_weft {

inline std::shared_ptr<torch::autograd::Node> Tensor::grad_fn() const {
  return is_leaf() ? nullptr : torch::autograd::impl::gradient_edge(*this).function;
}

}  // namespace over_weft
}  // namespace at

namespace ska {
template <class Key, class Value>
using flat_hash_map = std::unordered_map<Key, Value>;
}
