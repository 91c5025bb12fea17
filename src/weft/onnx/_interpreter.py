"""Runs a program on symbols: what it computes from them becomes nodes of the ONNX graph.

What is known while exporting is Python's: numbers, strings, dtypes, modules, and the branches that
they decide. Calls are followed, writes in place become new values (`_memory.py`), branches and
loops that depend on tensors become If and Loop (`_control_flow.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft._C import Tensor
from weft._runtime.rules import Rules
from weft.jit.archive.known import base_name
from weft.jit.ir import Block, Function, Node, Value
from weft.jit.passes.inlining import callee
from weft.jit.passes.operators import operator_of
from weft.onnx import _table
from weft.onnx._control_flow import branch, loop
from weft.onnx._graph import Graph
from weft.onnx._lists import LISTS
from weft.onnx._memory import Memory, Ref
from weft.onnx._state import OnnxExporterError, UnsupportedOperatorError
from weft.onnx._symbols import Symbol, Unsupported

Env = dict[Value, Any]


class Uninitialized:
    """A value that nobody reads, of a path that has ended."""


class Instance:
    """An object of a class of the program."""

    def __init__(self) -> None:
        self.attributes: dict[str, Ref] = {}


class Interpreter:
    """`names` are those of the model's tensors, by id."""

    def __init__(self, graph: Graph, names: Mapping[int, str]) -> None:
        self.g, self.memory = graph, Memory(graph)
        self._names = names
        self._tensors: dict[int, Ref] = {}
        self._held: list[Tensor] = []  # whose ids are keys
        self._attributes: dict[tuple[int, str], Ref] = {}
        self.missing: dict[str, list[str]] = {}  # places of operators without mapping

    # Programs -------------------------------------------------------------------------------------

    def call(self, function: Function, args: Sequence[Any]) -> list[Any]:
        """What a function gives for arguments."""
        env: Env = dict(zip(function.graph.block.params, args))
        return self.block(function.graph.block, env)

    def block(self, block: Block, env: Env) -> list[Any]:
        """Runs the nodes of a block; gives what it returns."""
        for node in block:
            results = self._node(node, env)
            env.update(zip(node.outputs, results))
        return [env[value] for value in block.returns]

    def _node(self, node: Node, env: Env) -> Sequence[Any]:
        args = [env[value] for value in node.inputs]
        try:
            if node.kind == "prim::If":
                return branch(self, node, args[0], env)
            if node.kind == "prim::Loop":
                return loop(self, node, args, env)
            own = _NODES.get(node.kind)
            return own(self, node, args) if own is not None else self._operator(node, args)
        except OnnxExporterError:
            raise
        except Exception as error:
            text = f"export: expected to map {node.kind} at {node.range}, got {error}"
            raise OnnxExporterError(text) from error

    # Values ---------------------------------------------------------------------------------------

    def tensor(self, tensor: Tensor) -> Ref:
        """A tensor of the model: the same one is the same constant."""
        if id(tensor) not in self._tensors:
            self._held.append(tensor)
            name = self._names.get(id(tensor), "constant")
            self._tensors[id(tensor)] = Ref(self.memory, self.g.constant(tensor, name=name))
        return self._tensors[id(tensor)]

    def value(self, value: Any) -> Any:
        """Something from outside of the program as a value of it."""
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, Symbol):
            return value if value.is_number else Ref(self.memory, value)
        if isinstance(value, list):
            return Ref(self.memory, [self.value(each) for each in value])
        if isinstance(value, tuple):
            return tuple(map(self.value, value))
        return value

    def resolve(self, value: Any) -> Any:
        """A value of the program as mappings take it: symbols, numbers, and lists of these."""
        if isinstance(value, Ref):
            return self.resolve(value.read())
        if isinstance(value, (list, tuple)):
            return type(value)([self.resolve(each) for each in value])
        return value

    # Operators ------------------------------------------------------------------------------------

    def _operator(self, node: Node, args: list[Any]) -> Sequence[Any]:
        operator = operator_of(node)
        if operator is None:
            return self._unmapped(node, node.kind)
        key = node.kind.removeprefix("aten::")
        if operator.is_builtin:
            found = LISTS.get(key)
            if found is not None and args and isinstance(args[0], Ref):
                return [found(self, *args)]
            return self._builtin(node, operator, key, args)
        try:
            if operator.writes_self:
                return [self._write(key, args)]
            result = _table.run(self.g, key, self.resolve(args))
        except _table.NoMapping as missing:
            return self._unmapped(
                node, f"aten::{missing.key}" if "::" not in missing.key else missing.key
            )
        results = list(result) if len(node.outputs) > 1 else [result]
        if operator.aliases or operator.may_give_input:
            return [self._view(key, args, i, r) for i, r in enumerate(results)]
        return [self.value(each) for each in results]

    def _builtin(self, node: Node, operator: Any, key: str, args: list[Any]) -> Sequence[Any]:
        """Arithmetic of Python's, which runs now where everything is known."""
        given = self.resolve(args)
        if operator.python is not None and not _has_symbol(given):
            result = operator.python(*given)
            return [self.value(e) for e in (result if len(node.outputs) > 1 else [result])]
        names = (key, f"number::{key.removeprefix('prim::').partition('.')[0]}")
        for name in names:
            try:
                result = _table.run(self.g, name, given)
            except _table.NoMapping:
                continue
            return [self.value(e) for e in (result if len(node.outputs) > 1 else [result])]
        return self._unmapped(node, node.kind)

    def _write(self, key: str, args: list[Any]) -> Any:
        """An operator in place: the target holds the result of the operator that is not."""
        target = args[0]
        name, dot, overload = key.partition(".")
        given = self.resolve(args)
        before = given[0]
        functional = key if _table.handler(key, self.g.opset) else f"{name[:-1]}{dot}{overload}"
        result = _table.run(self.g, functional, given)
        if isinstance(result, Symbol) and isinstance(before, Symbol) and before.dtype is not None:
            result = self.g.cast(result, before.dtype)
            if before.sizes is not None and result.sizes != before.sizes:
                result = self.g.expand(result, before.shape)
        target.write(result)
        return target

    def _view(self, key: str, args: list[Any], index: int, result: Any) -> Any:
        """A result that shares elements with the first argument."""
        base = args[0]
        if not isinstance(base, Ref) or isinstance(result, Unsupported):
            return self.value(result)
        rest = self.resolve(args[1:])

        def replay(item: int | None = None) -> Callable[[Any], Any]:
            def run(source: Any) -> Any:
                made = _table.run(self.g, key, [source, *rest])
                made = made[index] if isinstance(made, tuple) else made
                return made if item is None else made[item]

            return run

        if isinstance(result, (list, tuple)):
            items = [Ref(self.memory, e, base, replay(i)) for i, e in enumerate(result)]
            return Ref(self.memory, items)
        return Ref(self.memory, result, base, replay())

    def _unmapped(self, node: Node, key: str) -> Sequence[Any]:
        uses = self.missing.setdefault(key, [])
        place = str(node.range or "an unknown place")
        if place not in uses:
            uses.append(place)
        return [self.value(Unsupported()) for _ in node.outputs]

    def check(self) -> None:
        """UnsupportedOperatorError that names every operator without a mapping."""
        if self.missing:
            lines = [f"  {key} at {', '.join(at[:3])}" for key, at in sorted(self.missing.items())]
            raise UnsupportedOperatorError(
                "export: expected operators that have a mapping to ONNX (see "
                "weft.onnx.register_custom_op_symbolic), got\n" + "\n".join(lines)
            )

    def attribute(self, owner: Any, name: str) -> Ref:
        """An attribute of a module or of an object."""
        if isinstance(owner, Instance):
            return owner.attributes.setdefault(name, Ref(self.memory, Uninitialized()))
        key = (id(owner), name)
        if key not in self._attributes:
            held = getattr(owner, name)
            self._attributes[key] = Ref(self.memory, self.value(held))
        return self._attributes[key]


def _has_symbol(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_symbol, value))
    return isinstance(value, (Symbol, Unsupported, Instance))


# The IR's own nodes -------------------------------------------------------------------------------

_NODES = Rules()
_NODES("prim::Constant")(lambda it, node, args: [it.value(node.attrs["value"])])
_NODES("prim::ListConstruct")(lambda it, node, args: [Ref(it.memory, list(args))])
_NODES("prim::TupleConstruct")(lambda it, node, args: [tuple(args)])
_NODES("prim::CreateObject")(lambda it, node, args: [Instance()])
_NODES("prim::Uninitialized")(lambda it, node, args: [Uninitialized()])
_NODES("prim::unchecked_cast")(lambda it, node, args: args)
_NODES(
    "prim::Print",
    "prim::EnterGradMode",
    "prim::ExitGradMode",
    "prim::EnterContext",
    "prim::ExitContext",
)(lambda it, node, args: [None] * len(node.outputs))
_NODES("prim::DictConstruct")(
    lambda it, node, args: [Ref(it.memory, dict(zip(args[::2], args[1::2])))]
)
_NODES("prim::GetAttr")(lambda it, node, args: [it.attribute(args[0], node.attrs["name"]).read()])


@_NODES("prim::TupleUnpack", "prim::ListUnpack")
def _unpack(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    held = args[0].read() if isinstance(args[0], Ref) else args[0]
    if isinstance(held, Symbol):
        return list(it._unmapped(node, node.kind))
    if isinstance(held, Unsupported):
        return [held] * len(node.outputs)
    if len(held) != len(node.outputs):
        raise ValueError(f"{node.kind}: expected {len(node.outputs)} items, got {len(held)}")
    return list(held)


@_NODES("prim::TupleIndex")
def _index(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    return [args[0][node.attrs["index"]] if not isinstance(args[0], Unsupported) else args[0]]


@_NODES("prim::SetAttr")
def _set(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    it.attribute(args[0], node.attrs["name"]).write(args[1])
    return []


@_NODES("prim::CallFunction", "prim::CallMethod")
def _call(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    function = callee(node)
    if function is None and node.kind == "prim::CallMethod":
        function = args[0]._jit_info.type.methods.get(node.attrs["name"])
    if function is None:
        return list(it._unmapped(node, node.kind))
    key = base_name(function).removeprefix("__torch__.")
    found = _table.handler(key, it.g.opset)
    if found is not None:
        return [it.value(found(it.g, *it.resolve(args)))]
    return it.call(function, args)


@_NODES("prim::CallPython")
def _python(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    """A call of Python: of an operator that a program defines, or of what cannot be exported."""
    target = node.attrs["callable"]
    operator = getattr(target, "__self__", None)  # of weft.library
    name = getattr(operator, "qualname", getattr(target, "__qualname__", repr(target)))
    try:
        result = _table.run(it.g, str(name), it.resolve(args))
    except _table.NoMapping:
        return list(it._unmapped(node, str(name)))
    return [it.value(e) for e in (result if len(node.outputs) > 1 else [result])]


@_NODES("prim::RaiseException")
def _raise(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    raise OnnxExporterError(f"export: expected a program that ends, got {args[0]!r} raised")


@_NODES("prim::isinstance")
def _isinstance(it: Interpreter, node: Node, args: list[Any]) -> list[Any]:
    held = args[0].read() if isinstance(args[0], Ref) else args[0]
    texts = {str(each) for each in node.attrs["types"]}
    if isinstance(held, Symbol) and not held.is_number:
        return ["Tensor" in texts]
    kind = (held.python_type if isinstance(held, Symbol) else type(held)).__name__
    if kind in ("list", "tuple", "dict", "Instance"):
        return list(it._unmapped(node, node.kind))
    return [kind in texts]
