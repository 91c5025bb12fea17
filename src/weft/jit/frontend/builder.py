"""Nodes of a graph, made at the place where the compiler is, and what is known of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.jit import python_classes, schemas
from weft.jit.frontend.environment import Scope
from weft.jit.frontend.values import UNKNOWN, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.node_rules import CALLS
from weft.jit.ir.source import SourceRange

_STATIC_DEPTH = 16
# Behind these an attribute that was read before may be another one.
_MAY_CHANGE = CALLS - {"prim::fork"} | {"prim::SetAttr"}
_SCALARS = (ty.INT, ty.FLOAT, ty.BOOL, ty.STR, ty.COMPLEX)


class GraphBuilder:
    """A graph, and the block and the scope to which is added."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.block: Block = graph.block
        self.scope = Scope()
        self.epoch = 0  # grows with every node that may change attributes
        # Empty literals without a declared type: the first item put into one tells its type.
        self.untyped: set[Value] = set()

    # Nodes ------------------------------------------------------------------------------------

    def node(
        self,
        kind: str,
        inputs: Sequence[Value],
        types: Sequence[ty.Type],
        attrs: dict[str, Any] | None = None,
        range: SourceRange | None = None,
    ) -> Node:
        """A node at the end of the current block."""
        if kind in _MAY_CHANGE:
            self.epoch += 1
        return self.graph.emit(kind, inputs, types, attrs, range)

    def emit(
        self,
        kind: str,
        inputs: Sequence[Value],
        type: ty.Type,
        attrs: dict[str, Any] | None = None,
        range: SourceRange | None = None,
    ) -> Value:
        """The value of a node with one output."""
        return self.node(kind, inputs, (type,), attrs, range).output

    def constant(self, value: Any, type: ty.Type | None = None) -> Value:
        """A constant in the current block."""
        return self.graph.constant(value, type)

    def none(self) -> Simple:
        """The value None."""
        return Simple(self.constant(None))

    def uninitialized(self, type: ty.Type) -> Value:
        """A value that is never read: it stands on paths that do not reach its use."""
        return self.emit("prim::Uninitialized", (), type)

    def raise_error(self, cls: type[BaseException], message: Value, range: SourceRange) -> None:
        """The node that raises."""
        name = cls.__name__
        if cls.__module__ != "builtins":
            name = f"{cls.__module__}.{cls.__qualname__}"
            python_classes.register(name, cls)  # raised as itself where this process knows it
        self.node("prim::RaiseException", (message,), (), {"exception": name}, range)

    def cast(self, v: Value, type: ty.Type) -> Value:
        """The value, known to be of a narrower type."""
        return v if v.type == type else self.emit("prim::unchecked_cast", (v,), type)

    def either(
        self,
        test: Value,
        type: ty.Type,
        yes: Callable[[], Value],
        no: Callable[[], Value],
        range: SourceRange | None = None,
    ) -> Value:
        """yes() if test else no()."""
        node = self.node("prim::If", (test,), (type,), range=range)
        for make in (yes, no):
            block = node.add_block()
            with self.within(block, Scope(self.scope)):
                made = make()
            block.set_returns([made])
        return node.output

    def is_visible(self, block: Block) -> bool:
        """Whether what was made in a block can be used here."""
        return self.block.is_within(block)

    @contextmanager
    def within(self, block: Block, scope: Scope) -> Iterator[None]:
        """Inside, new nodes go to the end of a block and names to a scope."""
        saved = self.block, self.scope
        self.block, self.scope = block, scope
        try:
            with self.graph.inserting(at_end=block):
                yield
        finally:
            self.block, self.scope = saved

    # What is known while compiling ----------------------------------------------------------------

    def static_of(self, v: Value, depth: int = 0) -> Any:
        """The Python value that a value has in every run, or UNKNOWN: constants, and what pure
        scalar operators make of constants."""
        if v.is_constant:
            return v.constant
        node = v.node
        if node is None or depth > _STATIC_DEPTH or len(node.outputs) != 1:
            return UNKNOWN
        if node.kind == "prim::unchecked_cast" and not node.attrs:
            return self.static_of(node.inputs[0], depth + 1)
        if v.type not in _SCALARS:
            return UNKNOWN
        return self._fold(node, depth)

    def _fold(self, node: Node, depth: int) -> Any:
        operator = schemas.find(node.kind)
        if operator is None or not (operator.is_builtin and operator.folds):
            return UNKNOWN
        values = [self.static_of(value, depth + 1) for value in node.inputs]
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        function = operator.python
        assert function is not None
        try:
            return function(*values)
        except Exception:  # 1 / 0: left to the run
            return UNKNOWN

    # Tuples ---------------------------------------------------------------------------------------

    def unpack_tuple(self, v: Value, range: SourceRange) -> list[Sugared]:
        """The elements of a tuple value."""
        assert isinstance(v.type, ty.TupleType)
        if (
            v.node is not None
            and v.node.kind == "prim::TupleConstruct"
            and all(a.type == b for a, b in zip(v.node.inputs, v.type.elems))
        ):
            return [Simple(each) for each in v.node.inputs]
        if v.is_constant and isinstance(v.constant, tuple):
            return [Simple(self.constant(c, t)) for c, t in zip(v.constant, v.type.elems)]
        node = self.node("prim::TupleUnpack", (v,), v.type.elems, range=range)
        return [Simple(output) for output in node.outputs]
