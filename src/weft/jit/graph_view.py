"""A graph with PyTorch's methods: what `.graph` and `.inlined_graph` of programs give.

    >>> import weft
    >>> graph = weft.jit.CompilationUnit("def f(x, y): return (x + y).relu()").f.graph
    >>> [node.kind() for node in graph.nodes()]
    ['prim::Constant', 'aten::add', 'aten::relu']
    >>> graph.findNode("aten::add").inputsAt(1).debugName()
    'y'

What the classes of weft.jit.ir have besides is there as well (`graph.walk()`),
and gives objects of theirs; `.ir` is the graph, node or value itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from weft.jit import schemas
from weft.jit.ir import Block, Graph, Node, Value
from weft.jit.ir.dot import to_dot
from weft.jit.ir.html import to_html
from weft.jit.ir.types import Argument, FunctionSchema


class _View:
    """Something of the IR under PyTorch's names."""

    def __init__(self, ir: Any) -> None:
        self.ir = ir

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _View) and self.ir is other.ir

    def __hash__(self) -> int:
        return hash(self.ir)

    def __str__(self) -> str:
        return str(self.ir)

    def __repr__(self) -> str:
        return repr(self.ir)


class _Searched(_View):
    """Something with blocks, in which nodes are found."""

    def _blocks(self) -> Iterable[Block]:
        raise NotImplementedError

    def findNode(self, kind: str, recurse: bool = True) -> NodeView | None:
        """The first node of a kind in its blocks, such as "aten::add"."""
        return next(_found(self._blocks(), kind, recurse), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[NodeView]:
        """The nodes of a kind in its blocks."""
        return list(_found(self._blocks(), kind, recurse))


class _Inputs(list[Any]):
    """graph.inputs of the IR, and graph.inputs() of PyTorch."""

    def __call__(self) -> Iterator[ValueView]:
        return map(ValueView, self)


class ValueView(_View):
    """A value: torch._C.Value."""

    def debugName(self) -> str:
        """Its name, without the %."""
        return str(self.ir.name)

    def type(self) -> Any:
        """Its type (weft.jit.ir.types)."""
        return self.ir.type

    def node(self) -> NodeView | None:
        """The node that makes it; None of an input."""
        return None if self.ir.node is None else NodeView(self.ir.node)

    def uses(self) -> list[UseView]:
        """Where it is used."""
        return [UseView(use.user, use.index) for use in self.ir.uses]

    def toIValue(self) -> Any:
        """The value of a constant; None of others."""
        return self.ir.constant if self.ir.is_constant else None


class UseView:
    """A place where a value is used: input `offset` of `user` (or a return of a block)."""

    def __init__(self, user: Node | Block, offset: int) -> None:
        self.user: NodeView | BlockView
        self.user = NodeView(user) if isinstance(user, Node) else BlockView(user)
        self.offset = offset


class NodeView(_Searched):
    """A node: torch._C.Node."""

    def kind(self) -> str:
        """The kind without its overload: "aten::add"."""
        return str(self.ir.name)

    def inputs(self) -> Iterator[ValueView]:
        """What it takes."""
        return map(ValueView, self.ir.inputs)

    def outputs(self) -> Iterator[ValueView]:
        """What it gives."""
        return map(ValueView, self.ir.outputs)

    def inputsAt(self, index: int) -> ValueView:
        """One of its inputs."""
        return ValueView(self.ir.inputs[index])

    def outputsAt(self, index: int) -> ValueView:
        """One of its outputs."""
        return ValueView(self.ir.outputs[index])

    def inputsSize(self) -> int:
        """How many inputs."""
        return len(self.ir.inputs)

    def outputsSize(self) -> int:
        """How many outputs."""
        return len(self.ir.outputs)

    def input(self) -> ValueView:
        """Its only input; RuntimeError if there are none or several."""
        return self._only("input", self.ir.inputs)

    def output(self) -> ValueView:
        """Its only output; RuntimeError if there are none or several."""
        return self._only("output", self.ir.outputs)

    def _only(self, what: str, values: Sequence[Value]) -> ValueView:
        if len(values) != 1:
            raise RuntimeError(
                f"Node.{what}: expected one {what}, got {len(values)} of {self.kind()}"
            )
        return ValueView(values[0])

    def blocks(self) -> Iterator[BlockView]:
        """The blocks nested in it."""
        return map(BlockView, self.ir.blocks)

    def attributeNames(self) -> list[str]:
        """Names of its attributes."""
        return list(self.ir.attrs)

    def hasAttribute(self, name: str) -> bool:
        """Whether it has the attribute."""
        return name in self.ir.attrs

    def _attribute(self, name: str) -> Any:
        """An attribute: what i, f, s and t of PyTorch give by its type."""
        if name not in self.ir.attrs:
            raise RuntimeError(
                f"Node: expected an attribute of {self.ir.kind}, one of "
                f"{self.attributeNames()}, got {name!r}"
            )
        return self.ir.attrs[name]

    i = f = s = t = ival = _attribute

    def sourceRange(self) -> str:
        """Where in the source it comes from."""
        return str(self.ir.range or "")

    def schema(self) -> str:
        """The declaration of its operator; "(no schema)" where it is none."""
        try:
            return str(schemas.of(self.ir.kind).text)
        except KeyError:
            return "(no schema)"

    def _blocks(self) -> Iterable[Block]:
        return self.ir.blocks


class BlockView(_Searched):
    """A block: torch._C.Block."""

    def nodes(self) -> Iterator[NodeView]:
        """Its nodes, those of nested blocks not included."""
        return map(NodeView, self.ir)

    def inputs(self) -> Iterator[ValueView]:
        """Its parameters."""
        return map(ValueView, self.ir.params)

    def outputs(self) -> Iterator[ValueView]:
        """What it returns."""
        return map(ValueView, self.ir.returns)

    def _blocks(self) -> Iterable[Block]:
        return [self.ir]


class GraphView(BlockView):
    """A graph: torch._C.Graph."""

    ir: Graph

    def nodes(self) -> Iterator[NodeView]:
        """Its nodes, those of nested blocks not included."""
        return map(NodeView, self.ir.block)

    @property
    def inputs(self) -> Any:
        """Its parameters: `graph.inputs()`, and as a list of the IR's values."""
        return _Inputs(self.ir.inputs)

    def _blocks(self) -> Iterable[Block]:
        return [self.ir.block]

    def to_dot(self) -> str:
        """Text for Graphviz."""
        return to_dot(self.ir)

    def to_html(self, title: str = "graph") -> str:
        """One page that shows the graph beside its source, linked line by line."""
        return to_html(self.ir, title)

    def __getattr__(self, name: str) -> Any:
        if name == "ir":
            raise AttributeError(name)
        return getattr(self.ir, name)


def _found(blocks: Iterable[Block], kind: str, recurse: bool) -> Iterator[NodeView]:
    for block in blocks:
        for node in block:
            if kind in (node.name, node.kind):
                yield NodeView(node)
            if recurse:
                yield from _found(node.blocks, kind, True)


class ArgumentView:
    """A parameter or result: torch._C.Argument. No argument of a program is by keyword only."""

    kwarg_only = False

    def __init__(self, argument: Argument) -> None:
        self.name = argument.name
        self.type = self.real_type = argument.type
        self.default_value: Any = argument.default
        self._has_default = argument.has_default

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default


class SchemaView:
    """Names, types and defaults of arguments, and the type of the result:
    torch._C.FunctionSchema."""

    overload_name = ""

    def __init__(self, schema: FunctionSchema) -> None:
        self._schema = schema
        self.name = schema.name

    @property
    def arguments(self) -> list[ArgumentView]:
        """The parameters in order; `self` of a method among them."""
        return list(map(ArgumentView, self._schema.args))

    @property
    def returns(self) -> list[ArgumentView]:
        """The result."""
        return [ArgumentView(Argument("", self._schema.returns))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaView) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return str(self._schema)

    __repr__ = __str__
