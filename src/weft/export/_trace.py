"""weft.export.export: one run of a module as a program of operators.

The run is recorded as `jit.trace` records it. Sizes are numbers of the program only where the
caller says that they differ between calls; the program is then run for other sizes as well, which
tells which numbers depend on them and whether it still computes what the module does.
"""

from __future__ import annotations

import copy
import inspect
import math
import operator
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.export._convert import Converter, portable, run_node
from weft.export._records import FUNCTIONS, Expression, Size, TensorRecord, record_of
from weft.export.dynamic_shapes import symbols_of
from weft.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from weft.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from weft.fx import Graph, Node
from weft.fx.node import map_arg
from weft.jit.tracing.numbers import TracedFloat, TracedInt
from weft.jit.tracing.recorder import Recorder
from weft.jit.tracing.source_locations import TracerWarning
from weft.jit.tracing.trace import recorded
from weft.library._overloads import namespace
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter
from weft.random import fork_rng
from weft.utils._pytree import TreeSpec, tree_flatten, tree_flatten_with_path, tree_unflatten


class _Static(Recorder):
    """Records a run for one size of each input."""

    def size(self, kind: str, tensor: Tensor, number: int, dim: int | None = None) -> Any:
        """A size is a number like any other."""
        return number

    def leak(self, what: str) -> None:
        """Python may count what a tensor has, and not decide by its values."""
        if what not in ("len", "iteration"):
            raise RuntimeError(
                f"export: expected a module whose Python does not depend on values of tensors, got "
                f"one that reads them ({what}) at {self.locations.here()}; write the decision with "
                "torch.where, or compile the module with jit.script"
            )


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program of operators that a module runs for these arguments.

    - dynamic_shapes: the sizes that may differ between calls, by the names or positions of the
      arguments: {"x": {0: Dim("batch", max=64)}}. All others stay those of the example.

    Numbers, texts and None among the arguments are constants. RuntimeError where Python decides by
    values of tensors, and where the program for other sizes does not compute what the module does;
    NotImplementedError that names the operators that PyTorch has not.

    >>> batch = weft.export.Dim("batch")
    >>> shapes = {"input": {0: batch}}
    >>> program = weft.export.export(weft.nn.ReLU(), (weft.ones(2, 3),), dynamic_shapes=shapes)
    >>> program.module()(weft.tensor([[-1.0, 2.0, 3.0]]))
    tensor([[0., 2., 3.]])
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise ValueError(f"export: expected a tuple of arguments, got {type(args).__name__}")
    made = _Export(mod, args, kwargs or {}, dynamic_shapes)
    while True:
        try:
            return made.program()
        except _Fixed as fixed:  # a size that was only tried
            made = _Export(mod, args, kwargs or {}, dynamic_shapes, fixed.symbols)


class _Fixed(Exception):
    """Sizes that stay those of the example."""

    def __init__(self, symbols: frozenset[str]) -> None:
        super().__init__()
        self.symbols = symbols


class _Export:
    """One export under way. `fixed`: symbols of sizes that turned out to stay."""

    def __init__(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any,
        fixed: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.module, self.args, self.kwargs = module, args, kwargs
        self.leaves, self.in_spec = tree_flatten((args, kwargs))
        self.names = _argument_names(module, args)
        self.symbols = symbols_of(module.forward, self.leaves, self.in_spec, shapes)
        self.fixed = fixed
        for symbol in fixed:
            self.symbols.drop(symbol)
        self.graph = Graph()
        self.last: list[Node | None] = [None, None]  # of what it holds, and of a call's inputs
        self.specs: tuple[list[InputSpec], list[InputSpec]] = ([], [])  # likewise
        self.state: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.held: dict[str, Node] = {}
        self.examples: dict[Node, Any] = {}
        self.tensors: dict[Node, Tensor] = {}  # those that it holds
        self.out_spec: TreeSpec | None = None
        self.results: list[Any] = []

    def program(self) -> ExportedProgram:
        """Records, converts and checks."""
        tensors = [each for each in self.leaves if isinstance(each, Tensor)]
        examples = [_copied(each) for each in tensors]
        recorder = Recorder if self.symbols.places else _Static
        with warnings.catch_warnings(), fork_rng(), _buffers_kept(self.module):
            warnings.simplefilter("ignore", TracerWarning)
            given = [_copied(each) for each in tensors]
            traced = portable(recorded(self._call, self.module, given, recorder))
        self._hold()
        inputs = [self._input(name, leaf) for name, leaf in zip(self._leaf_names(), self.leaves)]
        nodes = [n for n, leaf in zip(inputs, self.leaves) if isinstance(leaf, Tensor)]
        self.examples.update(zip(nodes, map(_copied, examples)))
        converter = Converter(
            self.graph, self.held.__getitem__, self._constant, self.examples,
            not self.symbols.places,
        )  # fmt: skip
        with fork_rng(), no_grad():
            computed = converter.run(traced, nodes)
        self._finish(converter, computed, nodes, examples)
        assert self.out_spec is not None
        names = [*self.names, *self.kwargs]
        signature = ModuleCallSignature([], [], self.in_spec, self.out_spec, names)
        calls = [ModuleCallEntry("", signature)]
        calls += [ModuleCallEntry(name) for name, _ in self.module.named_modules() if name]
        specs = ExportGraphSignature([*self.specs[0], *self.specs[1]], self._outputs())
        return ExportedProgram(
            Module(), self.graph, specs, self.state,
            self.symbols.ranges, calls, (self.args, self.kwargs), self.constants,
        )  # fmt: skip

    def _call(self, *tensors: Any) -> Any:
        """The module as a function of tensors, whose results are flat."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(each, Tensor) else each for each in self.leaves]
        args, kwargs = tree_unflatten(leaves, self.in_spec)
        self.results, self.out_spec = tree_flatten(self.module(*args, **kwargs))
        for each in self.results:
            if not isinstance(each, (Tensor, TracedInt, TracedFloat, int, float, str, type(None))):
                raise TypeError(
                    f"export: expected results that are tensors or numbers, got {type(each)}"
                )
        return tuple(each for each in self.results if _is_computed(each))

    # Inputs ---------------------------------------------------------------------------------------

    def _hold(self) -> None:
        """Inputs for all parameters and buffers."""
        seen: dict[int, Node] = {}
        kept = self.module.state_dict(keep_vars=True)
        named = (
            *self.module.named_parameters(remove_duplicate=False),
            *self.module.named_buffers(remove_duplicate=False),
        )
        for name, tensor in named:
            is_parameter = isinstance(tensor, Parameter)
            (self.state if name in kept else self.constants)[name] = tensor
            if id(tensor) in seen:
                self.held[name] = seen[id(tensor)]
                continue
            kind = InputKind.PARAMETER if is_parameter else InputKind.BUFFER
            persistent = None if is_parameter else name in kept
            self.held[name] = seen[id(tensor)] = self._held(kind, name, tensor, persistent)

    def _held(
        self, kind: InputKind, target: str, tensor: Tensor, persistent: bool | None = None
    ) -> Node:
        letter = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b"}.get(kind, "c")
        node = self._placeholder(f"{letter}_{target.replace('.', '_')}", tensor, 0)
        self.specs[0].append(InputSpec(kind, TensorArgument(node.name), target, persistent))
        self.tensors[node] = tensor
        if kind is InputKind.BUFFER:  # which the program may change
            self.examples[node] = tensor.detach().clone()
        return node

    def _placeholder(self, name: str, example: Any, group: int) -> Node:
        """An input behind the last one of its group: what the program holds comes first."""
        last = next((each for each in reversed(self.last[: group + 1]) if each is not None), None)
        with self.graph.inserting_after(last) if last else self.graph.inserting_before():
            node = self.graph.create_node("placeholder", name, name=name)
        node.target = node.name
        self.last[group] = node
        self.examples[node] = example
        return node

    def _leaf_names(self) -> Iterator[str]:
        """A name for each leaf of the arguments: "x", "pair_0"."""
        for path, _ in tree_flatten_with_path((self.args, self.kwargs))[0]:
            _, first, *rest = (getattr(step, "key", getattr(step, "idx", "")) for step in path)
            name = self.names[first] if isinstance(first, int) else first
            text = "_".join(map(str, (name, *rest)))
            yield "".join(c if c.isalnum() else "_" for c in text)

    def _input(self, name: str, leaf: Any) -> Node:
        node = self._placeholder(name, leaf, 1)
        arg: Any = TensorArgument(node.name)
        if not isinstance(leaf, Tensor):
            arg = ConstantArgument(node.name, leaf)
        self.specs[1].append(InputSpec(InputKind.USER_INPUT, arg, None))
        return node

    def _constant(self, tensor: Tensor) -> Node:
        """An input for a tensor that is the same in every call."""
        for name, known in self.constants.items():
            if known is tensor:
                return self.held[name]
        found = (path for path, value in _plain_tensors(self.module) if value is tensor)
        name = next(found, f"lifted_tensor_{len(self.constants)}")
        self.constants[name] = tensor
        self.held[name] = self._held(InputKind.CONSTANT_TENSOR, name, tensor)
        return self.held[name]

    # Outputs --------------------------------------------------------------------------------------

    def _finish(
        self, converter: Converter, computed: Any, nodes: list[Node], examples: list[Tensor]
    ) -> None:
        values = iter(computed)
        results = [next(values) if _is_computed(each) else each for each in self.results]
        copy_ = namespace("aten").copy_.default
        for path, value in converter.writes:
            self.graph.call_function(copy_, (self.held[path], value), name="copy_")
        self.graph.output(tuple(results))
        _Sizes(self, nodes, examples).settle()
        for node in reversed(self.graph.nodes):
            if getattr(node.target, "_opname", "") == "_assert_scalar" and node.args[0] is True:
                self.graph.erase_node(node)  # about sizes that do not differ
        self.graph.eliminate_dead_code(_stays)
        for node in [n for n in self.graph.nodes if n.op == "call_function"]:
            if not hasattr(node.target, "_schema") and node.target not in FUNCTIONS.values():
                raise NotImplementedError(
                    f"export: expected operators of PyTorch, got {node.target!r}"
                )

    def _outputs(self) -> list[OutputSpec]:
        specs = []
        for each in self.graph.output_node().args[0]:
            arg: Any = ConstantArgument("", each)
            if isinstance(each, Node):
                is_tensor = isinstance(each.meta.get("tensor_meta"), TensorRecord)
                arg = (TensorArgument if is_tensor else SymIntArgument)(each.name)
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        return specs


@contextmanager
def _buffers_kept(module: Module) -> Iterator[None]:
    """Behind it the module has the buffers that it had, with their values."""
    kept = []
    for path, buffer in module.named_buffers(remove_duplicate=False):
        owner, _, name = path.rpartition(".")
        kept.append((module.get_submodule(owner), name, buffer, buffer.detach().clone()))
    try:
        yield
    finally:
        for at, name, buffer, value in kept:
            with no_grad():
                buffer.copy_(value)
            setattr(at, name, buffer)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _plain_tensors(module: Module) -> Iterator[tuple[str, Tensor]]:
    """Tensors that are no parameters or buffers, by their paths."""
    for path, each in module.named_modules():
        for name, value in vars(each).items():
            if isinstance(value, Tensor) and name not in each._kinds:
                yield f"{path}.{name}" if path else name, value


def _is_computed(value: Any) -> bool:
    return isinstance(value, (Tensor,)) or type(value) in (TracedInt, TracedFloat)


def _stays(node: Node) -> bool:
    """Whether a node that nobody reads does something."""
    if node.op in ("placeholder", "output"):
        return True
    target: Any = node.target
    schema = getattr(target, "_schema", None)
    return schema is not None and (schema.is_mutable or target._opname.startswith("_assert"))


def _argument_names(module: Module, args: tuple[Any, ...]) -> list[str]:
    parameters = list(inspect.signature(module.forward).parameters.values())
    names: list[str] = []
    for each in parameters:
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            names.append(each.name)
        elif each.kind is each.VAR_POSITIONAL:
            names += [f"{each.name}_{i}" for i in range(len(args) - len(names))]
    if len(names) < len(args):
        raise TypeError(
            f"export: expected at most {len(names)} arguments by position, got {len(args)}"
        )
    return names[: len(args)]


# Sizes --------------------------------------------------------------------------------------------


_RELATIONS: dict[Any, str] = {
    getattr(operator, name.lower()): name for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")
}


class _Sizes:
    """Runs a graph for the sizes of the example and for others, and writes down what is what."""

    def __init__(self, export: _Export, nodes: list[Node], tensors: list[Tensor]) -> None:
        self.export, self.nodes, self.tensors = export, nodes, tensors
        self.hints = export.symbols.hints
        self.others = {each: self._others(each, i) for i, each in enumerate(self.hints)}
        self.unknown = 0

    def settle(self) -> None:
        """Describes every node, and makes numbers that never differ constants."""
        found = [self._run(self.hints)]
        for symbol, others in self.others.items():
            try:
                found += [self._checked({**self.hints, symbol: each}) for each in others]
            except RuntimeError:
                if symbol not in self.export.symbols.tried:
                    raise
                raise _Fixed(self.export.fixed | {symbol}) from None
        for node in list(self.export.graph.nodes):
            values: list[Any] = [each.get(node) for each in found]
            if isinstance(values[0], Tensor):
                record = self._record(values)
                node.meta["tensor_meta"] = record
                node.meta["val"] = record.example()
            elif _has_tensors(values[0]) and node.op == "call_function":
                parts = zip(*values)
                node.meta["tensor_meta"] = [self._record(list(p)) for p in parts if _are_tensors(p)]
            elif _is_number(values[0]) and node.op == "call_function":
                self._settle_number(node, values)
            elif node.op == "call_function" and node.users:
                self._replace(node, values[0])

    def _others(self, symbol: str, index: int) -> list[int]:
        """Two other values in the range of a symbol: a formula that fits all three is linear."""
        low, high = self.export.symbols.ranges[symbol]
        hint, last = self.hints[symbol], math.inf if high is None else high
        wanted = (hint + 3 + 2 * index, hint + 4 + 2 * index, high, hint + 1, hint - 1, hint - 2)
        inside = [n for n in wanted if n is not None and max(low or 1, 1) <= n <= last]
        return [n for n in dict.fromkeys(inside) if n != hint][:2]

    def _inputs(self, values: dict[str, int]) -> list[Tensor]:
        """The example's tensors, in these sizes."""
        made = list(map(_copied, self.tensors))
        places = [i for i, each in enumerate(self.export.leaves) if isinstance(each, Tensor)]
        for (leaf, dim), size in self.export.symbols.sizes(values).items():
            at = places.index(leaf)
            rows = _C.arange(size) % max(made[at].shape[dim], 1)
            flag = made[at].requires_grad
            made[at] = made[at].detach().index_select(dim, rows).requires_grad_(flag)
        return made

    def _run(self, values: dict[str, int]) -> dict[Node, Any]:
        """What every node gives."""
        export = self.export
        found: dict[Node, Any] = {}
        given = dict(zip(self.nodes, self._inputs(values)))
        with fork_rng(), no_grad():
            for node in export.graph.nodes:
                if node.op == "placeholder":
                    held = given.get(node, export.tensors.get(node, export.examples[node]))
                    is_buffer = isinstance(held, Tensor) and not isinstance(held, Parameter)
                    found[node] = held.detach().clone() if is_buffer else held
                elif node.op == "output":
                    found[node] = map_arg(node.args, found.__getitem__)[0]
                else:
                    found[node] = run_node(node, found)
        return found

    def _checked(self, values: dict[str, int]) -> dict[Node, Any]:
        """The run for other sizes, which has to give what the module gives."""
        text = ", ".join(f"{n} = {v}" for n, v in values.items())
        module = copy.deepcopy(self.export.module)
        given = iter(self._inputs(values))
        leaves = [next(given) if isinstance(e, Tensor) else e for e in self.export.leaves]
        args, kwargs = tree_unflatten(leaves, self.export.in_spec)
        try:
            with fork_rng(), no_grad():
                wanted = tree_flatten(module(*args, **kwargs))[0]
            found = self._run(values)
        except RuntimeError as error:
            raise RuntimeError(
                f"export: expected a module that does the same for all sizes, got one for which "
                f"the program fails where {text}: {error}"
            ) from error
        got = found[self.export.graph.output_node()]
        for one, other in zip(wanted, got):
            if isinstance(one, Tensor) and not _is_close(one, other):
                raise RuntimeError(
                    "export: expected a module that does the same for all sizes, got one that "
                    f"gives other results than its program where {text}"
                )
        return found

    def _record(self, values: list[Tensor]) -> TensorRecord:
        record = record_of(values[0])
        sizes = [self._size([v.shape[d] for v in values]) for d in range(values[0].dim())]
        strides = [self._size([v.stride(d) for v in values]) for d in range(values[0].dim())]
        return record._replace(sizes=sizes, strides=strides)

    def _size(self, values: list[int]) -> Size:
        """The formula of a size, if it is linear in one symbol; else a new symbol."""
        first, rest = values[0], iter(values[1:])
        moving = []
        for symbol, others in self.others.items():
            steps = [divmod(next(rest) - first, each - self.hints[symbol]) for each in others]
            if any(step != (0, 0) for step in steps):
                moving.append((symbol, steps))
        if not moving:
            return first
        (symbol, ((factor, more), *same)), *further = moving
        if not further and not more and all(step == (factor, 0) for step in same):
            summand = first - factor * self.hints[symbol]
            text = symbol if factor == 1 else f"{factor}*{symbol}"
            if summand:
                text += f" {'+' if summand > 0 else '-'} {abs(summand)}"
            return Expression(text, first)
        return self._unknown(first)

    def _unknown(self, hint: int | None) -> Expression:
        """A symbol of its own."""
        name = f"u{self.unknown}"
        self.unknown += 1
        self.export.symbols.ranges[name] = (None, None)
        return Expression(name, hint)

    def _settle_number(self, node: Node, values: list[Any]) -> None:
        node.meta["number_type"] = type(values[0])
        if node.all_input_nodes:
            self._describe_number(node, values)
        else:  # of constants
            self._replace(node, values[0])

    def _describe_number(self, node: Node, values: list[Any]) -> None:
        """A number that is the same for all sizes is a constant, unless a tensor's value gives
        it."""
        relation = _RELATIONS.get(node.target)
        if relation is not None:
            sides = (n.meta["number"] if isinstance(n, Node) else n for n in node.args)
            node.meta["number"] = Expression(f"{relation}({', '.join(map(str, sides))})", None)
            return
        is_value = getattr(node.target, "_opname", "") == "item" or any(
            "number" in each.meta for each in node.all_input_nodes
        )
        if is_value:
            node.meta["number"] = self._unknown(None)
        elif any(each != values[0] for each in values) and type(values[0]) is int:
            node.meta["number"] = self._size(values)
        elif all(each == values[0] for each in values):
            self._replace(node, values[0])
        elif node.target is not operator.getitem:
            node.meta["number"] = self._unknown(None)

    def _replace(self, node: Node, value: Any) -> None:
        """Puts a constant in the place of a node."""
        for user in list(node.users):
            user.args = map_arg(user.args, lambda n: value if n is node else n)
            user.kwargs = map_arg(user.kwargs, lambda n: value if n is node else n)


def _has_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value)


def _are_tensors(values: tuple[Any, ...]) -> bool:
    return all(isinstance(each, Tensor) for each in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_close(one: Tensor, other: Any) -> bool:
    if not isinstance(other, Tensor) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(_C.allclose(one.double(), other.double(), 1e-3, 1e-3, equal_nan=True)) or (
        one.is_complex()
    )
