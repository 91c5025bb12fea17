"""The recorder: which value every tensor is, and a node for every operator that ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import is_grad_enabled
from weft.jit import schemas
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Graph, Node, Value
from weft.jit.tracing import structures
from weft.jit.tracing.arguments import argument
from weft.jit.tracing.numbers import TracedFloat, TracedInt, plain
from weft.jit.tracing.overrides import OVERRIDES
from weft.jit.tracing.source_locations import SourceLocations

_LEAKS = {
    "bool": "Converting a tensor to a Python boolean",
    "int": "Converting a tensor to a Python integer",
    "float": "Converting a tensor to a Python float",
    "number": "Converting a tensor to a Python number",
    "index": "Converting a tensor to a Python index",
    "list": "Converting a tensor to a Python list",
    "array": "Converting a tensor to a NumPy array",
    "len": "Using len to get the size of a tensor",
    "iteration": "Iterating over a tensor",
}
_ADVICE = (
    " may make the trace incorrect: what Python does with it is not recorded, so that for other "
    "inputs the trace does what it did for these"
)
_COUNT = " fixes the number of steps: the trace is for tensors whose first dimension has this size"
_OTHER_SIZES = (
    "trace: expected sizes and values for which the traced function does what it did for the "
    "example inputs, got others"
)


@cache
def _operator(kind: str) -> schemas.Operator:
    return schemas.of(kind)


class Recorder:
    """Writes into `graph`. Objects it has seen are kept alive, so that an id stays theirs."""

    def __init__(self, graph: Graph, outermost: CodeType | None = None) -> None:
        self.graph = graph
        self.locations = SourceLocations(outermost)
        self.modules: Any = None  # where attributes are found, when a module is traced
        self._values: dict[int, tuple[Any, Value]] = {}
        self._devices: dict[int, tuple[Any, Value]] = {}
        self._unseen: set[Node] = set()  # not asked for by the program: dropped when not used
        self._guards: set[Any] = set()
        self.decisions = 0  # of weft, which the program checks
        self._sizes: dict[Any, Value] = {}
        self._modes = [("", _mode())]  # those entered, by the node that leaves them

    # Recording --------------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Within, this thread records; whatever happens, not behind it."""
        _C._trace_begin()
        before = _C._set_recorder(self)
        try:
            yield
        finally:
            _C._set_recorder(before)
            _C._trace_end()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within, nothing is recorded."""
        before = _C._set_recorder(None)
        try:
            yield
        finally:
            _C._set_recorder(before)

    def emit(
        self,
        kind: str,
        inputs: Iterable[Value],
        types: Iterable[ty.Type],
        attrs: dict[str, Any] | None = None,
    ) -> Node:
        """A node at the place where the program is."""
        return self.graph.emit(kind, inputs, types, attrs, self.locations.here())

    def quiet(
        self, kind: str, inputs: Iterable[Value], types: Iterable[ty.Type], **attrs: Any
    ) -> Value:
        """A node that goes when nobody uses it."""
        node = self.emit(kind, inputs, types, attrs)
        self._unseen.add(node)
        return node.output

    # Called by the extension --------------------------------------------------------------------

    def operator(self, schema: str, given: tuple[Any, ...], result: Any) -> Any:
        """An operator of the table ran."""
        op = _operator(f"aten::{schema[: schema.index('(')]}")
        inputs = [argument(self, arg, item) for arg, item in zip(op.args, given)]
        self.follow_modes()
        node = self.emit(op.kind, inputs, [each.type for each in op.returns])
        return self._results(op, node, given, result)

    def override(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Something that is no operator of the table was asked of a tensor."""
        return OVERRIDES[name](self, *args, **kwargs)

    def builtin(self, kind: str, inputs: Iterable[Value], result: Any) -> Any:
        """A builtin operator ran: records it and gives the result a value."""
        self.follow_modes()
        op = _operator(kind)
        node = self.emit(kind, inputs, [each.type for each in op.returns])
        return structures.bind(self, node.output, result) if node.outputs else result

    def _results(
        self, op: schemas.Operator, node: Node, given: tuple[Any, ...], result: Any
    ) -> Any:
        if len(node.outputs) > 1:
            for output, item in zip(node.outputs, result):
                structures.bind(self, output, item)
            return result
        if not node.outputs:
            return result
        result = structures.bind(self, node.output, result)
        if isinstance(result, Tensor) and result.requires_grad and not _tensors(op):
            self.requires_grad(result, True)  # zeros(2, requires_grad=True)
        return result

    def requires_grad(self, tensor: Tensor, flag: bool) -> None:
        """requires_grad_() ran."""
        inputs = [self.tensor(tensor), self.constant(flag)]
        self.bind(tensor, self.emit("aten::requires_grad_", inputs, [ty.TENSOR]).output)

    def follow_modes(self) -> None:
        """Records that gradients are recorded, or autocast is on, otherwise than for the operator
        before."""
        mode, modes = _mode(), self._modes
        while mode != modes[-1][1] and any(mode == before for _, before in modes[:-1]):
            self.emit(modes.pop()[0], (), ())
        grad, dtype = modes[-1][1]
        if mode[0] != grad:
            self.emit("prim::EnterGradMode", (), (), {"mode": mode[0]})
            modes.append(("prim::ExitGradMode", (mode[0], dtype)))
        if mode[1] != dtype:
            self.emit("prim::EnterAutocast", [self.constant(mode[1])], ())
            modes.append(("prim::ExitAutocast", mode))

    # Values -----------------------------------------------------------------------------------

    def bind(self, tensor: Tensor, value: Value) -> None:
        """From here on the tensor is that value."""
        self._values[id(tensor)] = (tensor, value)

    def known(self, tensor: Tensor) -> Value | None:
        """The value of a tensor that the trace has made or read."""
        found = self._values.get(id(tensor))
        return None if found is None else found[1]

    def follows(self, tensor: Tensor) -> bool:
        """Whether a tensor is one of the trace, not a constant."""
        value = self.known(tensor)
        if value is None:
            return self.modules is not None and self.modules.has(tensor)
        return not value.is_constant

    def tensor(self, tensor: Tensor) -> Value:
        """The value of a tensor: recorded, an attribute of the module, or a constant."""
        value = self.known(tensor)
        if value is None:
            value = self.modules.value(self, tensor) if self.modules is not None else None
            value = value if value is not None else self._constant_tensor(tensor)
            self.bind(tensor, value)
        return value

    def _constant_tensor(self, tensor: Tensor) -> Value:
        if _C._trace_made(tensor):
            self.locations.warn(
                "A tensor that was made by something that is not recorded becomes a constant of "
                "the trace; for other inputs the trace uses the same tensor"
            )
        elif tensor.requires_grad:
            raise RuntimeError(
                "trace: expected tensors from outside that do not require grad, got one of shape "
                f"{tuple(plain(n) for n in tensor.shape)} that does; make it an argument, or a "
                "parameter of the module that is traced, or use detach()"
            )
        return self.constant(tensor, ty.TENSOR)

    def constant(self, value: Any, type: ty.Type | None = None) -> Value:
        """A constant at this place."""
        with self.graph.at_range(self.locations.here()):
            made = self.graph.constant(value, type)
        assert made.node is not None
        self._unseen.add(made.node)
        return made

    def number(self, number: Any) -> Value:
        """The value of a Python number."""
        if isinstance(number, (TracedInt, TracedFloat)) and number._recorder is self:
            return number._value
        number = plain(number)
        exact = next(each for each in (bool, int, float, complex) if isinstance(number, each))
        return self.constant(exact(number))  # of NumPy's or an enum's kind, too

    def size(self, kind: str, tensor: Tensor, number: int, dim: int | None = None) -> Any:
        """A size, or another int that a tensor has: the same value as long as the tensor is."""
        if not self.follows(tensor):
            return number
        value = self.tensor(tensor)
        key = (kind, value, dim)
        if key not in self._sizes:
            inputs = [value] if dim is None else [value, self.constant(dim)]
            self._sizes[key] = self.quiet(kind, inputs, [ty.INT])
        return TracedInt(self, number, self._sizes[key])

    def emit_number(self, kind: str, inputs: list[Value], result: Any) -> Any:
        """Arithmetic on numbers: the result with its origin."""
        type = ty.FLOAT if isinstance(result, float) else ty.INT
        value = self.quiet(kind, inputs, [type])
        made = TracedFloat if type is ty.FLOAT else TracedInt
        return made(self, result, value)

    def device(self, given: Any) -> Value:
        """The value of a device; that of a tensor stays the tensor's."""
        found = self._devices.get(id(given))
        if found is not None:
            return self.quiet("prim::device", [found[1]], [ty.DEVICE])
        return self.constant(given if isinstance(given, _C.device) else _C.device(given))

    def bind_device(self, device: Any, tensor: Tensor) -> None:
        """Notes whose device it is."""
        self._devices[id(device)] = (device, self.tensor(tensor))

    def object(self, given: Any) -> Value:
        """The value of a compiled module."""
        value = self.modules.object(self, given) if self.modules is not None else None
        if value is None:
            raise RuntimeError(
                "trace: expected calls of compiled modules that are submodules of the traced one, "
                "got another; trace a module that holds it"
            )
        return value

    # Warnings ---------------------------------------------------------------------------------

    def leak(self, what: str) -> None:
        """Python learns what a value of the trace is."""
        advice = _COUNT if what in ("iteration", "len") else _ADVICE
        self.locations.warn(_LEAKS[what] + advice)

    def guard(self, kind: str, values: list[Value], truth: bool) -> None:
        """weft decided by a value: the program raises where it would decide otherwise."""
        self.decisions += 1
        key = (kind, *(v.constant if v.is_constant else v for v in values))
        if key in self._guards:
            return
        self._guards.add(key)
        holds = self.emit(kind, values, [ty.BOOL]).output
        if not truth:
            holds = self.emit("aten::__not__", [holds], [ty.BOOL]).output
        node = self.emit("prim::If", [holds], [])
        node.add_block()
        with self.graph.inserting(at_end=node.add_block()):
            text = self.graph.constant(_OTHER_SIZES)
            self.emit("prim::RaiseException", [text], [], {"exception": "RuntimeError"})

    # The end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Leaves the modes, and drops what nobody uses."""
        while len(self._modes) > 1:
            self.emit(self._modes.pop()[0], (), ())
        for node in reversed(list(self.graph.block.nodes)):
            if node in self._unseen and not any(output.has_uses for output in node.outputs):
                node.destroy()
        self._unseen.clear()


def _mode() -> tuple[bool, Any]:
    """Whether gradients are recorded, and what autocast lowers to."""
    return is_grad_enabled(), _C._autograd._autocast_dtype()


def _tensors(op: schemas.Operator) -> bool:
    return any(arg.type is ty.TENSOR or ty.TENSOR in arg.type.children for arg in op.args)
