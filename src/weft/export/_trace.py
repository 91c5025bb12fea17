"""weft.export.export: one run of a module as a program of operators.

The run is recorded as `jit.trace` records it. Sizes are numbers of the program only where the
caller says that they differ between calls; the program is then run for other sizes as well, which
tells which numbers depend on them and whether it still computes what the module does.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.export._convert import Converter, portable
from weft.export._records import FUNCTIONS, TensorRecord
from weft.export._sizes import Fixed, Sizes, copied
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
    if preserve_module_call_signature:
        raise NotImplementedError(
            "export: expected no preserve_module_call_signature, got "
            f"{preserve_module_call_signature}; programs of weft are flat"
        )
    made = _Export(mod, args, kwargs or {}, dynamic_shapes)
    while True:
        try:
            return made.program()
        except Fixed as fixed:  # a size that was only tried
            made = _Export(mod, args, kwargs or {}, dynamic_shapes, fixed.symbols)


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
        examples = [copied(each) for each in tensors]
        recorder = Recorder if self.symbols.places else _Static
        with warnings.catch_warnings(), fork_rng(), _buffers_kept(self.module):
            warnings.simplefilter("ignore", TracerWarning)
            given = [copied(each) for each in tensors]
            traced = portable(recorded(self._call, self.module, given, recorder))
        self._hold()
        inputs = [self._input(name, leaf) for name, leaf in zip(self._leaf_names(), self.leaves)]
        nodes = [n for n, leaf in zip(inputs, self.leaves) if isinstance(leaf, Tensor)]
        self.examples.update(zip(nodes, map(copied, examples)))
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
        Sizes(self, nodes, examples).settle()
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


def _plain_tensors(module: Module) -> Iterator[tuple[str, Tensor]]:
    """Tensors that are no parameters or buffers, by their paths."""
    for path, each in module.named_modules():
        for name, value in vars(each).items():
            if isinstance(value, Tensor) and name not in each._kinds:
                yield f"{path}.{name}" if path else name, value


def _is_computed(value: Any) -> bool:
    return isinstance(value, Tensor) or type(value) in (TracedInt, TracedFloat)


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
