// weft._C._autograd: what the Python files of weft.autograd are written with.
#include "bindings/autograd.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "autograd/hooks.h"
#include "autograd/task.h"
#include "autograd/views.h"
#include "bindings/bindings.h"
#include "bindings/caster.h"
#include "bindings/errors.h"
#include "core/mutex.h"

namespace nb = nanobind;

namespace weft::py {

using autograd::Node;

Shared share(PyObject* object) {
  Py_INCREF(object);
  return Shared(object, drop_reference);
}

Tensor tensor_or_none(const char* op, const char* what, PyObject* object) {
  if (object == Py_None) return {};
  WEFT_CHECK_TYPE(is_tensor(object), op, ": expected ", what, " of type Tensor or None, got ",
                  short_type_name(object));
  return unwrap(object);
}

TensorList tensors_or_none(const char* op, const char* what, PyObject* object) {
  WEFT_CHECK_TYPE(PyTuple_Check(object) || PyList_Check(object), op, ": expected ", what,
                  " as a tuple or list, got ", short_type_name(object));
  TensorList result;
  const Items items(object);
  result.reserve(items.size());
  for (PyObject* const item : items) result.push_back(tensor_or_none(op, what, item));
  return result;
}

namespace {

// Guards `python_wrapper` of all nodes, and the classes of them.
constinit Mutex node_objects;

// The Python object of a node. One at a time: the node knows it while it lives.
struct NodeObject {
  Ref<Node> node;
  Object held;  // a list of all Python objects that the node holds, for the collector

  explicit NodeObject(Ref<Node> of) : node(std::move(of)) { hold(); }
  NodeObject(const NodeObject&) = delete;
  ~NodeObject() {
    const std::lock_guard lock(node_objects);
    if (node->python_wrapper == self) node->python_wrapper = nullptr;
  }
  PyObject* self = nullptr;

  // To be called when the node holds others than before.
  void hold() {
    Object list;  // most hold none
    const visitproc append = [](PyObject* object, void* to) {
      Object& made = *static_cast<Object*>(to);
      if (!made) made = Object::checked(PyList_New(0));
      return PyList_Append(made.get(), object);
    };
    check_status(visit_node(*node, append, &list, true));
    const std::lock_guard lock(node_objects);
    std::swap(held, list);
  }
};

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const NodeObject* object = nb::inst_ptr<NodeObject>(self);
  Py_VISIT(object->held.get());
  return object->node->use_count() == 1 ? visit_node(*object->node, visit, arg) : 0;
}

int node_clear(PyObject* self) {
  NodeObject* object = nb::inst_ptr<NodeObject>(self);
  const Object held = std::exchange(object->held, Object());
  if (object->node->use_count() == 1) clear_node(*object->node);
  return 0;
}

// The object of a node that holds others than before.
nb::object changed(const Ref<Node>& node) {
  nb::object object = nb::steal(wrap_node(node));
  nb::inst_ptr<NodeObject>(object)->hold();
  return object;
}

Object call(const Shared& function, std::initializer_list<PyObject*> args) {
  return Object::checked(PyObject_Vectorcall(function.get(), args.begin(), args.size(), nullptr));
}

// What a node hook returned: nothing, one gradient, or a tuple of them.
TensorList hook_result(const char* op, const Object& result, size_t count) {
  if (result.get() == Py_None) return {};
  if (count == 1 && is_tensor(result.get())) return {unwrap(result.get())};
  TensorList grads = tensors_or_none(op, "a result", result.get());
  WEFT_CHECK(grads.size() == count, op, ": expected ", count, " gradients from a hook, got ",
             grads.size());
  return grads;
}

// One class per kind of hook, so that the collector can find the function inside a std::function.
struct PythonTensorHook {
  Shared held;
  Tensor operator()(const Tensor& grad) const {
    TakeGil gil;
    const Object argument = Object::steal(wrap(grad));
    const Object result = call(held, {argument.get()});
    return tensor_or_none("register_hook", "a result", result.get());
  }
};

struct PythonPreHook {
  Shared held;
  TensorList operator()(const TensorList& grads) const {
    TakeGil gil;
    const Object argument = Object::steal(wrap_tuple(grads));
    return hook_result("register_prehook", call(held, {argument.get()}), grads.size());
  }
};

struct PythonPostHook {
  Shared held;
  TensorList operator()(const TensorList& inputs, const TensorList& grads) const {
    TakeGil gil;
    const Object first = Object::steal(wrap_tuple(inputs));
    const Object second = Object::steal(wrap_tuple(grads));
    return hook_result("register_hook", call(held, {first.get(), second.get()}), inputs.size());
  }
};

struct PythonAccumulatedHook {
  Shared held;
  void operator()() const {
    TakeGil gil;
    call(held, {});
  }
};

template <class Held, class Entry>
int visit_hooks(const std::vector<Entry>& entries, visitproc visit, void* arg, bool all) {
  for (const Entry& entry : entries) {
    const Held* hook = entry.function.template target<Held>();
    if (hook && (all || hook->held.use_count() == 1)) Py_VISIT(hook->held.get());
  }
  return 0;
}

// A node that Python holds on to (grad_fn, a hook's handle) is not the tensor's alone.
void track_wrapper(PyObject* tensor) {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

void check_callable(const char* op, nb::handle hook) {
  WEFT_CHECK_TYPE(PyCallable_Check(hook.ptr()), op, ": expected a callable, got ",
                  short_type_name(hook.ptr()));
}

const Tensor& tensor_argument(const char* op, nb::handle object) {
  WEFT_CHECK_TYPE(is_tensor(object.ptr()), op, ": expected a Tensor, got ",
                  short_type_name(object.ptr()));
  return unwrap(object.ptr());
}

nb::object next_functions(const NodeObject& self) {
  nb::list list;
  for (const autograd::Edge& edge : self.node->edges) {
    list.append(nb::make_tuple(nb::steal(wrap_node(edge.node)), edge.index));
  }
  return nb::tuple(list);
}

// What a program hung on the node; in anomaly mode also where it was recorded, by PyTorch's name.
nb::object metadata(NodeObject& self) {
  const std::shared_ptr<const autograd::Hooks> hooks = autograd::hooks_of(*self.node);
  if (hooks && hooks->metadata) return nb::borrow(static_cast<PyObject*>(hooks->metadata.get()));
  nb::dict made;
  if (hooks && !hooks->origin.empty()) {
    nb::list lines;
    lines.append(hooks->origin);
    made["traceback_"] = lines;
  }
  autograd::set_metadata(*self.node, share(made.ptr()));
  self.hold();
  return nb::borrow(static_cast<PyObject*>(autograd::hooks_of(*self.node)->metadata.get()));
}

void bind_node(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                                {0, nullptr}};
  nb::class_<NodeObject>(module, "Node", "One recorded operator call.", nb::type_slots(slots))
      .def("name",
           [](const NodeObject& self) {
             return str(self.node->is_accumulator ? "torch::autograd::" : "", self.node->name());
           })
      .def_prop_ro("metadata", metadata, "A dict that stays with the node.")
      .def("__repr__",
           [](const NodeObject& self) {
             return str("<", self.node->name(), " object at ", static_cast<void*>(self.node.get()),
                        ">");
           })
      .def(
          "__eq__",
          [](const NodeObject& self, nb::handle other) {
            const NodeObject* node = nullptr;
            return nb::try_cast(other, node) && node && node->node == self.node;
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const NodeObject& self) { return reinterpret_cast<intptr_t>(self.node.get()) >> 4; })
      .def_prop_ro("_context",
                   [](const NodeObject& self) {
                     PyObject* context = function_context(*self.node);
                     return nb::borrow(context ? context : Py_None);
                   })
      .def_prop_ro("_leaf",
                   [](const NodeObject& self) -> Tensor {
                     if (!self.node->is_accumulator) return {};
                     return static_cast<autograd::AccumulateGrad&>(*self.node).slot->leaf();
                   })
      .def("_sequence_nr", [](const NodeObject& self) { return self.node->sequence; })
      .def_prop_ro("next_functions", next_functions,
                   "A tuple of (Node or None, input number), one per differentiable input.")
      .def("_register_hook",
           [](NodeObject& self, nb::handle hook) {
             check_callable("register_hook", hook);
             const PythonPostHook held{share(hook.ptr())};
             const uint64_t id = autograd::register_post_hook(*self.node, held);
             self.hold();
             return id;
           })
      .def("_register_prehook",
           [](NodeObject& self, nb::handle hook) {
             check_callable("register_prehook", hook);
             const PythonPreHook held{share(hook.ptr())};
             const uint64_t id = autograd::register_pre_hook(*self.node, held);
             self.hold();
             return id;
           })
      .def("_remove_hook", [](NodeObject& self, uint64_t id) {
        autograd::remove_hook(*self.node, id);
        self.hold();
      });
}

void bind_mode(nb::module_& module) {
  module.def("is_grad_enabled", [] { return autograd::grad_enabled(); });
  module.def("set_grad_enabled", [](bool enabled) { return autograd::set_grad_enabled(enabled); });
  // What autocast lowers to: a dtype or None. The number returned is for _restore_autocast.
  module.def(
      "_set_autocast",
      [](std::optional<DType> dtype) -> int {
        const int wanted = dtype ? 1 + static_cast<int>(*dtype) : 0;
        return std::exchange(autograd::mode.autocast, static_cast<unsigned char>(wanted));
      },
      nb::arg("dtype").none());
  module.def("_restore_autocast",
             [](int old) { autograd::mode.autocast = static_cast<unsigned char>(old); });
  module.def("_autocast_dtype", []() -> std::optional<DType> {
    const int set = autograd::mode.autocast;
    if (set == 0) return std::nullopt;
    return static_cast<DType>(set - 1);
  });
  module.def("is_inference_enabled", [] { return autograd::inference_enabled(); });
  module.def("set_inference_enabled",
             [](bool enabled) { return autograd::set_inference_enabled(enabled); });
  module.def("_begin_transform", autograd::begin_transform);
  module.def("_end_transform", autograd::end_transform);
}

void bind_hooks(nb::module_& module) {
  // (node, id) of a new hook.
  module.def("register_hook", [](nb::handle tensor, nb::handle hook) {
    check_callable("register_hook", hook);
    const Tensor& target = tensor_argument("register_hook", tensor);
    const uint64_t id = autograd::register_hook(target, PythonTensorHook{share(hook.ptr())});
    track_wrapper(tensor.ptr());
    return nb::make_tuple(changed(autograd::gradient_edge(target).node), id);
  });
  module.def(
      "running_backwards",
      [] {
        nb::list numbers;
        for (const uint64_t number : autograd::running_backwards()) numbers.append(number);
        return numbers;
      },
      "The runs of backward under way in this thread, the innermost first, as numbers.");
  module.def("call_at_end", [](nb::handle function) {
    check_callable("queue_callback", function);
    autograd::call_at_end(PythonAccumulatedHook{share(function.ptr())});
  });
  module.def("takes_part", [](const NodeObject& self) { return autograd::takes_part(*self.node); });
  // The hook takes no argument: weft.autograd holds the tensor weakly.
  module.def("register_accumulated_hook", [](nb::handle tensor, nb::handle hook) {
    check_callable("register_post_accumulate_grad_hook", hook);
    const Tensor& target = tensor_argument("register_post_accumulate_grad_hook", tensor);
    const uint64_t id =
        autograd::register_accumulated_hook(target, PythonAccumulatedHook{share(hook.ptr())});
    track_wrapper(tensor.ptr());
    return nb::make_tuple(changed(autograd::gradient_edge(target).node), id);
  });
}

autograd::Targets targets_of(const char* op, const char* what, nb::handle objects) {
  autograd::Targets targets;
  targets.reserve(static_cast<size_t>(PyTuple_GET_SIZE(objects.ptr())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(objects.ptr()); ++i) {
    targets.push_back(target_of(op, what, PyTuple_GET_ITEM(objects.ptr(), i)));
  }
  return targets;
}

nb::object run_backward(nb::tuple roots, nb::handle grads, nb::tuple inputs, bool retain_graph,
                        bool create_graph, bool accumulate, bool allow_unused) {
  const char* op = accumulate ? "backward" : "grad";
  autograd::Targets from = targets_of(op, "roots", roots), to = targets_of(op, "inputs", inputs);
  const TensorList grad_list = tensors_or_none(op, "gradients", grads.ptr());
  TensorList result;
  {
    ReleaseGil release;
    result = autograd::backward_of(std::move(from), grad_list, std::move(to),
                                   {retain_graph, create_graph, accumulate, allow_unused});
  }
  return nb::steal(wrap_tuple(result));
}

// The class of a node, named like its operator as in PyTorch: programs that draw graphs read it.
// Classes live as long as the process, one for each name.
nb::handle node_class(const Node& node) {
  static std::map<std::string, PyObject*> classes;
  {
    const std::lock_guard lock(node_objects);
    if (const auto known = classes.find(node.name()); known != classes.end()) return known->second;
  }
  const nb::handle base = nb::type<NodeObject>();
  nb::dict members;
  members["__slots__"] = nb::tuple();
  members["__module__"] = "torch.autograd";
  nb::object made = base.type()(node.name(), nb::make_tuple(base), members);
  const std::lock_guard lock(node_objects);
  const auto [known, first] = classes.emplace(node.name(), made.ptr());
  if (first) made.release();
  return known->second;
}

// A new reference to the object that a node has, which is `made` (or none) if it had none.
PyObject* object_of(Node& node, PyObject* made) {
  const std::lock_guard lock(node_objects);
  auto* const known = static_cast<PyObject*>(node.python_wrapper);
  if (known && try_reference(known)) return known;
  if (!made) return nullptr;
  node.python_wrapper = made;
  return new_ref(made);
}

}  // namespace

int visit_node(Node& node, visitproc visit, void* arg, bool all) {
  if (node.has_hooks.load(std::memory_order_acquire)) {
    const std::shared_ptr<const autograd::Hooks> hooks = autograd::hooks_of(node);
    int status = visit_hooks<PythonTensorHook>(hooks->tensor, visit, arg, all);
    if (!status) status = visit_hooks<PythonPreHook>(hooks->pre, visit, arg, all);
    if (!status) status = visit_hooks<PythonPostHook>(hooks->post, visit, arg, all);
    if (!status) status = visit_hooks<PythonAccumulatedHook>(hooks->accumulated, visit, arg, all);
    if (status) return status;
    if (all || hooks->metadata.use_count() == 1) {
      Py_VISIT(static_cast<PyObject*>(hooks->metadata.get()));
    }
  }
  return visit_function(node, visit, arg, all);
}

void clear_node(Node& node) {
  if (node.has_hooks.load(std::memory_order_acquire)) autograd::remove_all_hooks(node);
  clear_function(node);
}

PyObject* wrap_node(const Ref<Node>& node) {
  if (!node) return new_ref(Py_None);
  if (PyObject* known = object_of(*node, nullptr)) return known;
  auto* object = new NodeObject(node);
  const nb::object made = nb::inst_take_ownership(node_class(*node), object);
  object->self = made.ptr();
  findable(made.ptr());
  return object_of(*node, made.ptr());
}

bool is_edge(PyObject* object) {
  return PyTuple_Check(object) && PyTuple_GET_SIZE(object) >= 2 &&
         nb::isinstance<NodeObject>(PyTuple_GET_ITEM(object, 0));
}

autograd::Target target_of(const char* op, const char* what, PyObject* object) {
  if (is_tensor(object) || !is_edge(object)) return tensor_or_none(op, what, object);
  const Ref<Node>& node = nb::inst_ptr<NodeObject>(PyTuple_GET_ITEM(object, 0))->node;
  uint32_t index = 0;
  const bool known =
      nb::try_cast(nb::handle(PyTuple_GET_ITEM(object, 1)), index) && index < node->results.size();
  WEFT_CHECK(known, op, ": expected a GradientEdge to one of ", node->results.size(),
             " results of ", node->name(), ", got another");
  return autograd::Edge{node, index};
}

void bind_autograd(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("_autograd");
  bind_node(module);
  bind_mode(module);
  bind_hooks(module);
  bind_function_node(module);
  bind_anomaly_and_saved_hooks(module);
  module.def("run_backward", run_backward);
  module.def("gradient_edge", [](nb::handle tensor) {
    const autograd::Edge edge =
        autograd::gradient_edge(tensor_argument("get_gradient_edge", tensor));
    track_wrapper(tensor.ptr());
    return nb::make_tuple(nb::steal(wrap_node(edge.node)), edge.index);
  });
}

}  // namespace weft::py
