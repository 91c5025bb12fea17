"""The state of compiling one function: the graph, where new nodes go, what names mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.jit.frontend.annotations import Annotations
from weft.jit.frontend.environment import Poison, Scope
from weft.jit.frontend.errors import fail
from weft.jit.frontend.resolver import MISSING, Resolver
from weft.jit.frontend.source import Code
from weft.jit.frontend.sugared import UNKNOWN, Call, Path, Simple, Sugared
from weft.jit.ir import types as ty
from weft.jit.ir.graph import Block, Graph, Node, Value
from weft.jit.ir.source import SourceRange

_STATIC_DEPTH = 16
# Behind these an attribute that was read before may be another one.
_MAY_CHANGE = frozenset(
    ("prim::SetAttr", "prim::CallMethod", "prim::CallFunction", "prim::CallPython", "aten::wait")
)


class Returns:
    """What the function being compiled returns: the declared type, or the one found so far."""

    def __init__(self, declared: ty.Type | None) -> None:
        self.declared = declared


class Emitter:
    """Compiles into one graph. The methods here make nodes; statements and expressions are
    functions of the other files that take an emitter first."""

    def __init__(
        self,
        graph: Graph,
        code: Code,
        resolver: Resolver,
        name: str,
        generic: bool = False,
        declared: ty.Type | None = None,
    ) -> None:
        self.graph = graph
        self.block: Block = graph.block
        self.code = code
        self.range = code.range  # where a node of the syntax tree stands
        self.resolver = resolver
        self.name = name
        self.annotations = Annotations(code, resolver, generic)
        self.scope = Scope()
        self.returns = Returns(declared)
        self.loops = 0
        self.repeating = 0  # loops around this place, those around an inlined function included
        self.depth = 0
        self.inlined = 0  # bodies around this place that stand in place of their calls
        self.unrolling = False  # in the body of a loop that is unrolled
        self.epoch = 0  # grows with every node that may change attributes
        # Empty literals without a declared type: the first item put into one tells its type.
        self.untyped: set[Value] = set()
        self.owner: Any = None  # the Python class whose method this is, for super()

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

    def cast(self, v: Value, type: ty.Type) -> Value:
        """The value, known to be of a narrower type."""
        return v if v.type == type else self.emit("prim::unchecked_cast", (v,), type)

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

    @contextmanager
    def as_function(
        self, code: Code, resolver: Resolver, scope: Scope, declared: ty.Type | None
    ) -> Iterator[None]:
        """Inside, the source of another function is compiled into the current block."""
        saved = self.code, self.resolver, self.annotations, self.scope, self.returns, self.loops
        self.annotations = Annotations(code, resolver, self.annotations.generic)
        self.code, self.resolver, self.scope = code, resolver, scope
        self.range = code.range
        self.returns, self.loops = Returns(declared), 0
        try:
            yield
        finally:
            self.code, self.resolver, self.annotations, self.scope, self.returns, self.loops = saved
            self.range = self.code.range

    # Names ------------------------------------------------------------------------------------

    def lookup(self, name: str, range: SourceRange) -> Sugared:
        """What a name means here; FrontendError when it means nothing."""
        found = self.scope.find(name)
        if isinstance(found, Poison):
            fail(found.message, range, found.hint)
        if found is not None:
            return found
        from weft.jit.frontend.objects import sugar

        obj = self.resolver.find(name)
        if obj is MISSING:
            fail(f"expected a name that is defined, got {name!r}", range)
        return sugar(self, obj, range, name)

    def refine(self, name: str, type: ty.Type) -> None:
        """From here on the variable is known to be of a narrower type."""
        found = self.scope.find(name)
        if not isinstance(found, Simple) or found.v.type == type:
            return
        v = self.cast(found.v, type)
        known = Path(v, found.epoch, True) if isinstance(found, Path) else Simple(v)
        self.scope.refine(name, known)

    # What is known while compiling ----------------------------------------------------------------

    def static_of(self, v: Value, depth: int = 0) -> Any:
        """The Python value that a value has in every run, or UNKNOWN: constants, and what pure
        scalar operators make of constants."""
        if v.is_constant:
            return v.constant
        node = v.node
        if node is None or depth > _STATIC_DEPTH or len(node.outputs) != 1:
            return UNKNOWN
        if node.kind == "prim::unchecked_cast":
            return self.static_of(node.inputs[0], depth + 1)
        if v.type not in (ty.INT, ty.FLOAT, ty.BOOL, ty.STR, ty.COMPLEX):
            return UNKNOWN
        return self._fold(node, depth)

    def _fold(self, node: Node, depth: int) -> Any:
        from weft.jit.frontend.calls import operator_of

        operator = operator_of(node.kind)
        if operator is None or not (operator.is_builtin and operator.folds):
            return UNKNOWN
        values = [self.static_of(value, depth + 1) for value in node.inputs]
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        try:
            return operator.python(*values)
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

    def index_value(self, v: Value, index: Value, range: SourceRange) -> Value:
        """v[index] for an index known only at run time; IndexError where no operator does it."""
        if not isinstance(v.type, ty.TupleType) or len(set(v.type.elems)) != 1:
            raise IndexError
        if index.type != ty.INT:
            raise IndexError
        elem = v.type.elems[0]
        items = [item.value(self, range) for item in self.unpack_tuple(v, range)]
        made = self.emit("prim::ListConstruct", items, ty.ListType(elem), range=range)
        from weft.jit.frontend.calls import call_operator
        from weft.jit.frontend.sugared import Arg

        arguments = [Arg(Simple(made), range), Arg(Simple(index), range)]
        return call_operator(self, "aten::__getitem__", Call(range, arguments)).value(self, range)
