"""Graphs of traces as graphs of nodes that call PyTorch's operators."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft._C import Tensor
from weft._runtime import symbolic
from weft.fx import Graph, Node
from weft.fx.node import map_arg
from weft.jit import schemas
from weft.jit.archive.canonical import canonical
from weft.jit.archive.known import base_name, function_of, operator_of
from weft.jit.ir import TENSOR, Block, ClassType, Function, Value, clone_node
from weft.jit.ir import Graph as Program
from weft.jit.ir import Node as Step
from weft.jit.passes import inlining
from weft.library._overloads import namespace

_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "remainder": operator.mod, "pow": operator.pow,
    "neg": operator.neg, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "__and__": operator.and_,
    "__or__": operator.or_, "__lshift__": operator.lshift, "__rshift__": operator.rshift,
    "__not__": symbolic.sym_not, "Int": symbolic.sym_int, "Float": symbolic.sym_float,
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "__getitem__": operator.getitem,
}  # fmt: skip
_SYMBOLIC = {
    "aten::size.int": "sym_size.int",
    "aten::stride.int": "sym_stride.int",
    "aten::numel": "sym_numel.default",
    "aten::storage_offset": "sym_storage_offset.default",
    "aten::Int.Tensor": "item.default",
    "aten::Float.Tensor": "item.default",
    "aten::Bool.Tensor": "item.default",
    "aten::IntImplicit": "item.default",
    "aten::FloatImplicit": "item.default",
    "aten::ScalarImplicit": "item.default",
}
# What is done to lists at once: they are those of Python, whatever is in them.
_OF_LISTS: dict[str, Callable[..., Any]] = {
    "append": lambda items, item: (items.append(item), items)[1],
    "extend": lambda items, more: items.extend(more),
    "insert": lambda items, index, item: items.insert(index, item),
    "pop": lambda items, index=-1: items.pop(index),
    "clear": lambda items: items.clear(),
    "reverse": lambda items: items.reverse(),
    "copy": lambda items: list(items),
    "len": len,
    "add": lambda items, more: [*items, *more],
    "add_": lambda items, more: (items.extend(more), items)[1],
    "mul": lambda items, count: items * count,
    "__getitem__": lambda items, index: items[index],
    "_set_item": lambda items, index, item: (operator.setitem(items, index, item), items)[1],
    "slice": lambda items, start, stop, step: items[start:stop:step],
}
_INVERSE: dict[Any, Callable[..., Any]] = {
    operator.eq: operator.ne,
    operator.ne: operator.eq,
    operator.lt: operator.ge,
    operator.ge: operator.lt,
    operator.gt: operator.le,
    operator.le: operator.gt,
}
# Attributes of tensors that are views.
_VIEWS = {
    "numpy_T": "numpy_T.default",
    "H": "matrix_H.default",
    "mT": "mT.default",
    "mH": "mH.default",
}
# Overloads of operators that functions of weft do, if not the one without a name: that of the first
# parameter's name, or by the type of an argument.
_BY_FIRST = ("gru", "lstm", "rnn_relu", "rnn_tanh")
_OVERLOADS: dict[tuple[str, Any], str] = {
    ("conv_transpose3d", None): "input",
    ("unbind_copy", None): "int",
    ("unsafe_split", None): "Tensor",
    ("ctc_loss", None): "Tensor",
    ("bitwise_and", None): "Scalar_Tensor",
    ("bitwise_or", None): "Scalar_Tensor",
    ("bitwise_xor", None): "Scalar_Tensor",
    ("linalg_norm", str): "ord_str",
    ("linalg_matrix_norm", str): "str_ord",
    ("linalg_cond", str): "p_str",
    ("quantile", float): "scalar",
    ("nanquantile", float): "scalar",
}
# Overloads that PyTorch's functions take in the place of others.
_AS = {
    **{
        f"aten::{name}{mark}.Scalar": f"{name}{mark}.Tensor"
        for name in ("add", "sub", "mul", "div")
        for mark in ("", "_")
    },
    "aten::split.sizes": "split_with_sizes.default",
}
_SAME = ("prim::unchecked_cast", "aten::Int.Scalar", "aten::Float.Scalar")
_MODES = ("prim::EnterGradMode", "prim::ExitGradMode")


def portable(graph: Program) -> Program:
    """A graph of operators that PyTorch has."""
    detach_unrecorded(graph)
    made = canonical(graph)
    while any(_open_call(made, node) for node in list(made.walk())):
        made = canonical(made)
    return made


def detach_unrecorded(graph: Program) -> None:
    """In the place of the modes without gradients: what is computed there has none."""
    modes = [True]
    for node in list(graph.block):
        if node.kind == "prim::EnterAutocast":
            raise NotImplementedError("export: expected a module without autocast, got one with it")
        if node.kind in _MODES:
            modes = [*modes, node.attrs["mode"]] if node.kind == _MODES[0] else modes[:-1]
            node.destroy()
            continue
        for value in [] if modes[-1] else node.outputs:
            if value.type is TENSOR and not value.is_constant:
                with graph.inserting(after=node):
                    made = graph.emit("aten::detach", [value], [TENSOR])
                value.replace_all_uses_with(made.output)
                made.set_inputs([value])


def _open_call(graph: Program, node: Step) -> bool:
    """Inlines the call of a function that is no operator of PyTorch."""
    function = inlining.callee(node)
    if function is None or operator_of(function) is not None or _is_resampling(function):
        return False
    if len(function.graph.returns) != len(node.outputs):  # it only raises
        raise NotImplementedError(f"export: expected operators of PyTorch, got {function.name}")
    mapping: dict[Value, Value] = dict(zip(function.graph.block.params, node.inputs))
    for each in function.graph.block:
        clone_node(each, node.owner, mapping, before=node)
    node.replace_outputs_with([mapping.get(v, v) for v in function.graph.returns])
    node.destroy()
    return True


def _is_resampling(function: Function) -> bool:
    return base_name(function) == "__torch__.weft.nn._resampling_functions.interpolate"


class Converter:
    """Makes nodes for the steps of a program, and runs them on the way: branches and loops that
    depend on sizes are those of the example. `held` gives the node of an attribute by its path,
    `constant` that of a tensor; `examples` are the values of the inputs. `is_static`: sizes are
    numbers like others."""

    def __init__(
        self, graph: Graph, held: Callable[[str], Node], constant: Callable[[Tensor], Node],
        examples: dict[Node, Any], is_static: bool,
    ) -> None:  # fmt: skip
        self.is_static = is_static
        self.graph, self.held, self.constant = graph, held, constant
        self.examples = examples
        self.values: dict[Value, Any] = {}
        self.paths: dict[Value, str] = {}
        self.writes: list[tuple[str, Any]] = []  # attributes that the program sets

    def run(self, program: Program, inputs: Sequence[Node]) -> Any:
        """The values of the program's results."""
        owner, *params = program.inputs
        self.paths[owner] = ""
        self.values.update(zip(params, inputs))
        self._block(program.block)
        return self.values[program.returns[0]]

    def _block(self, block: Block) -> list[Any]:
        for step in block:
            self._step(step)
        return [self.values[each] for each in block.returns]

    def _step(self, step: Step) -> None:
        kind = step.kind
        if kind in _STEPS:
            _STEPS[kind](self, step)
            return
        args = [self.values[each] for each in step.inputs]
        if kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            made: Any = args if kind == "prim::ListConstruct" else tuple(args)
        elif kind in _SAME:
            made = args[0]
        else:
            made = self._call(step, args)
        if len(step.outputs) > 1:
            self._unpack(step.outputs, made)
        elif step.outputs:
            self.values[step.output] = made

    def _constant(self, step: Step) -> None:
        held = step.output.constant
        self.values[step.output] = self.constant(held) if isinstance(held, Tensor) else held

    def _attribute(self, step: Step) -> None:
        owner, name = self.paths[step.inputs[0]], step.attrs["name"]
        path = f"{owner}.{name}" if owner else name
        if isinstance(step.output.type, ClassType):
            self.paths[step.output] = path
        else:
            self.values[step.output] = self.held(path)

    def _set_attribute(self, step: Step) -> None:
        owner, name = self.paths[step.inputs[0]], step.attrs["name"]
        self.writes.append((f"{owner}.{name}" if owner else name, self.values[step.inputs[1]]))

    def _unpack_step(self, step: Step) -> None:
        self._unpack(step.outputs, self.values[step.inputs[0]])

    def _unpack(self, outputs: Sequence[Value], made: Any) -> None:
        for i, output in enumerate(outputs):
            if isinstance(made, (list, tuple)):
                self.values[output] = made[i]
            elif output.has_uses:
                self.values[output] = self._add(operator.getitem, (made, i))

    def _branch(self, step: Step) -> None:
        """The branch that the example takes."""
        holds = self.values[step.inputs[0]]
        taken = self._known(holds)
        if isinstance(holds, Node):
            self._assert(holds, taken)
        results = self._block(step.blocks[0 if taken else 1])
        self.values.update(zip(step.outputs, results))

    def _loop(self, step: Step) -> None:
        """As many trips as the example makes."""
        trips, goes_on, *carried = (self.values[each] for each in step.inputs)
        body, trip = step.blocks[0], 0
        while trip < self._known(trips) and self._known(goes_on):
            self.values.update(zip(body.params, [trip, *carried]))
            goes_on, *carried = self._block(body)
            trip += 1
        self.values.update(zip(step.outputs, carried))

    def _raise(self, step: Step) -> None:
        text = self._known(self.values[step.inputs[0]])
        raise RuntimeError(f"export: expected a program that does not raise, got {text}")

    def _known(self, value: Any) -> Any:
        """What a number or text is in the example."""
        return self.examples[value] if isinstance(value, Node) else value

    def _assert(self, holds: Node, taken: bool) -> None:
        """The program raises where it would decide otherwise."""
        text = "expected sizes and values like those of the export, got others"
        while holds.target is symbolic.sym_not:
            holds, taken = holds.args[0], not taken
        aten = namespace("aten")
        if getattr(holds.target, "_opname", "") == "item":
            tensor = holds.args[0]
            if not taken:
                tensor = self._emit(aten.logical_not.default, (tensor,), {})
            made = self._add(aten._assert_async.msg, (tensor, text))
            made.meta["argument_names"] = ["self", "assert_msg"]
            return
        inverse = _INVERSE.get(holds.target)
        if not taken:
            holds = self._add(*((inverse, holds.args) if inverse else (symbolic.sym_not, (holds,))))
        self._add(aten._assert_scalar.default, (holds, text))

    def _call(self, step: Step, args: list[Any]) -> Any:
        if step.kind == "prim::CallFunction":
            if _is_resampling(step.attrs["function"]):
                return self._resampled(*args)
            return self._written(step, args)
        kind = _SYMBOLIC.get(step.kind)
        if kind is not None:
            made = self._emit(_overload(kind), tuple(args), {})
            is_size = kind.startswith("sym_") and self.is_static
            return self.examples[made] if is_size else made
        found = schemas.find(step.kind)
        if found is None:
            raise NotImplementedError(f"export: expected operators of PyTorch, got {step.kind}")
        name = found.name.partition("::")[2]
        if name in _NUMBERS and not any(_is_tensor(each) for each in step.inputs):
            return self._of_python(_NUMBERS[name], args)
        if name in _OF_LISTS and isinstance(args[0], list):
            return _OF_LISTS[name](*args)
        if step.kind == "aten::dim":
            return self.examples[args[0]].dim()
        if step.kind == "prim::requires_grad":
            return self.examples[args[0]].requires_grad
        if found.is_builtin and name in _VIEWS:
            return self._emit(_overload(_VIEWS[name]), tuple(args), {})
        if found.is_builtin:  # what tensors of these sizes have, or of constants
            if found.evaluate is None:
                raise NotImplementedError(f"export: expected operators of PyTorch, got {step.kind}")
            return self._of_python(found.evaluate, args)
        target = _overload(_AS.get(step.kind, f"{name}.{found.overload or 'default'}"))
        return self._emit(target, *_arguments(found.args, args))

    def _of_python(self, function: Callable[..., Any], args: list[Any]) -> Any:
        """The result of constants now, else of a node."""
        nodes: list[Node] = []
        map_arg(args, nodes.append)
        if not nodes:
            result = function(*args)
            return self.constant(result) if isinstance(result, Tensor) else result
        made = self._add(function, tuple(args))
        result = self.examples[made]
        first = result[0] if isinstance(result, (list, tuple)) and result else result
        return made if isinstance(first, (int, float, Tensor)) else result

    def _written(self, step: Step, args: list[Any]) -> Any:
        """An operator of PyTorch that a function of weft does."""
        function = step.attrs["function"]
        name, written = operator_of(function), function_of(function)
        assert name is not None and written is not None
        short = name.partition("::")[2]
        if short == "linalg_pinv" and args[1] is None:
            named = {"hermitian": args[2], "atol": args[3], "rtol": args[4]}
            is_tensor = any(isinstance(each, Node) for each in args[3:])
            target = _overload(f"linalg_pinv.atol_rtol_{'tensor' if is_tensor else 'float'}")
            made = self._emit(target, (args[0],), {k: v for k, v in named.items() if v})
            made.meta["argument_names"] = ["self"]
            return made
        target = _overload(f"{short}.{self._overload_of(short, written, args)}")
        shown = map(_Parameter, inspect.signature(written).parameters.values())
        return self._emit(target, *_arguments(list(shown), args))

    def _overload_of(self, name: str, written: Callable[..., Any], args: list[Any]) -> str:
        """The name of PyTorch's overload that takes the arguments."""
        first = next(iter(inspect.signature(written).parameters))
        if name in _BY_FIRST:
            return first
        kind = str if any(isinstance(each, str) for each in args) else type(args[1:2] and args[1])
        return _OVERLOADS.get((name, kind), _OVERLOADS.get((name, None), "default"))

    def _resampled(
        self, input: Node, size: Any, scale: Any, mode: str, corners: Any, recompute: Any,
        antialias: bool,
    ) -> Node:  # fmt: skip
        """F.interpolate as one of PyTorch's operators."""
        dims = self.examples[input].dim() - 2
        scales, sizes = (
            list(each) if isinstance(each, (list, tuple)) else each and [each] * dims
            for each in (scale, size)
        )
        if sizes is None and (recompute or mode == "area"):
            known = self.examples[input].shape[2:]
            sizes, scales = [int(n * s) for n, s in zip(known, scales or ())], None
        aten = namespace("aten")
        if mode == "area":
            return self._emit(
                getattr(aten, f"adaptive_avg_pool{dims}d").default, (input, sizes), {}
            )
        name = f"upsample_{mode}{dims}d"
        if mode == "nearest-exact":
            name = f"_upsample_nearest_exact{dims}d"
        if antialias:
            name = f"_{name}_aa"
        middle = () if mode.startswith("nearest") else (bool(corners),)
        floats = scales and [float(each) for each in scales]
        made = self._emit(getattr(aten, name).vec, (input, sizes, *middle, floats), {})
        middle_names = ["align_corners"] * len(middle)
        made.meta["argument_names"] = ["input", "output_size", *middle_names, "scale_factors"]
        return made

    def _emit(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        return self._add(target, args, kwargs, target._opname)

    def _add(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> Node:  # fmt: skip
        node = self.graph.call_function(target, args, kwargs or {}, name=name)
        self.examples[node] = run_node(node, self.examples)
        return node


def run_node(node: Node, values: dict[Node, Any]) -> Any:
    """What a node gives, from the values of others."""
    args = map_arg(node.args, values.__getitem__)
    return node.target(*args, **dict(map_arg(node.kwargs, values.__getitem__)))  # type: ignore[operator]


_STEPS: dict[str, Callable[[Converter, Step], None]] = {
    "prim::Constant": Converter._constant,
    "prim::GetAttr": Converter._attribute,
    "prim::SetAttr": Converter._set_attribute,
    "prim::ListUnpack": Converter._unpack_step,
    "prim::TupleUnpack": Converter._unpack_step,
    "prim::If": Converter._branch,
    "prim::Loop": Converter._loop,
    "prim::RaiseException": Converter._raise,
}


class _Parameter:
    def __init__(self, given: inspect.Parameter) -> None:
        self.name = given.name
        self.default = given.default
        self.has_default = given.default is not given.empty
        self.kwarg_only = given.kind is given.KEYWORD_ONLY or given.name in ("scale", "enable_gqa")


def _arguments(
    parameters: Sequence[Any], args: list[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position and by name, without those that are the defaults."""
    by_place: list[Any] = []
    by_name: dict[str, Any] = {}
    left_out = 0
    for parameter, value in zip(parameters, args):
        default = parameter.has_default and _is_default(value, parameter.default)
        if parameter.kwarg_only:
            if not default:
                by_name[parameter.name] = value
            continue
        left_out = left_out + 1 if default else 0
        by_place.append(value)
    return tuple(by_place[: len(by_place) - left_out]), by_name


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, list) and not isinstance(default, (tuple, list)):
        return all(each == default and not isinstance(each, Node) for each in value)
    if isinstance(default, (tuple, list)) and isinstance(value, (tuple, list)):
        return list(value) == list(default)
    if isinstance(value, Node) or type(value) is not type(default):
        return False
    return bool(value == default)


def _is_tensor(value: Value) -> bool:
    return "Tensor" in str(value.type)


def _overload(name: str) -> Any:
    name, _, overload = name.partition(".")
    return getattr(getattr(namespace("aten"), name), overload)
