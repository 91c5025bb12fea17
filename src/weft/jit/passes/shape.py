"""Shape propagation: the dtype and the sizes of tensors, as far as they follow from the graph.

What is known of the graph's inputs (`Value.shape`, set by whoever knows) is carried forward through
operators. A size is a number, a symbol, or unknown; a symbol stands for one number throughout, such
as the size that `aten::size.int` gave. Everything found holds whenever the program comes that far.

A tensor whose sizes are changed in place (`t_`, `resize_`, `out=`) gets no shape, nor does anything
that may share memory with it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from weft.jit.ir import TENSOR, Graph, Node, ShapeInfo, Value
from weft.jit.ir.graph import Block
from weft.jit.ir.node_rules import CALLS
from weft.jit.ir.value import Dim
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.operators import operator_of, operator_of_kind
from weft.jit.passes.options import DEFAULT, Options
from weft.jit.passes.shape_call import ShapeCall, Sizes, sizes_of
from weft.jit.passes.shape_dtypes import dtypes_of

_UNKNOWN = ShapeInfo()
_AUTOCAST = frozenset(("prim::EnterAutocast",))


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Sets the shape of every tensor in the graph; True if one was not the same before."""
    if not _may_tell(graph):
        return False
    values = [v for v in graph.block.values() if v.type == TENSOR]
    before = [value.shape for value in values]
    _Propagation(graph).block(graph.block)
    changed = [value for value, shape in zip(values, before) if value.shape != shape]
    if graph.touched is not None:  # the graph itself is the same: analyses stay
        users = [user for value in changed for user in (value.node, *value.users)]
        graph.touched.update((user, None) for user in users if isinstance(user, Node))
    return bool(changed)


class _Propagation:
    def __init__(self, graph: Graph) -> None:
        self.sizes = Sizes()
        self.reshaped: list[Value] = []
        self.has_calls = False
        self.mixed = graph.may_have(_AUTOCAST)
        for node in graph.walk():
            self.has_calls |= node.kind in CALLS
            self.reshaped += _reshaped(node)
        self.aliases = graph.cached(AliasAnalysis) if self.reshaped or self.has_calls else None
        for param in graph.inputs:
            if param.type == TENSOR:
                self._set(param, param.shape)
                self.sizes.reserve(param.shape)

    def block(self, block: Block) -> None:
        """The nodes of a block, whose parameters have their shapes."""
        for node in block:
            if node.kind == "prim::If":
                self._if(node)
            elif node.kind == "prim::Loop":
                self._loop(node)
            elif node.kind == "weft::Fused":
                self._fused(node)
            else:
                self._node(node)

    def _set(self, value: Value, shape: ShapeInfo | None) -> None:
        if shape is not None and (shape == _UNKNOWN or self._may_change(value)):
            shape = None
        value.shape = shape

    def _may_change(self, value: Value) -> bool:
        """Whether something here or in a call may give the tensor other sizes."""
        if self.aliases is None:
            return False
        if self.has_calls and self.aliases.is_external(value):
            return True
        return any(self.aliases.may_alias(value, v) for v in self.reshaped)

    def _node(self, node: Node) -> None:
        if node.kind == "prim::Constant" and node.output.type == TENSOR:
            tensor = node.attrs["value"]
            self._set(node.output, ShapeInfo(tensor.dtype, tuple(tensor.shape)))
            return
        operator = operator_of(node)
        self.sizes.learn(node)
        if not any(value.type == TENSOR for value in node.outputs):
            return
        if operator is None or (operator.keeps_shapes and _none_known(node)):
            for value in node.outputs:
                value.shape = None
            return
        call = ShapeCall(node, operator, self.sizes)
        sizes, dtypes = sizes_of(call), dtypes_of(call)
        lowered = self.mixed and operator.row is not None and _is_lowered(operator.row.tags)
        for value, dtype in zip(node.outputs, dtypes):
            if value.type == TENSOR:  # whatever autocast makes of its dtype
                self._set(value, ShapeInfo(None if lowered else dtype, sizes))

    def _fused(self, node: Node) -> None:
        body = node.blocks[0]
        for value, param in zip(node.inputs, body.params):
            self._set(param, value.shape)
        self.block(body)
        for output, value in zip(node.outputs, body.returns):
            self._set(output, value.shape)

    def _if(self, node: Node) -> None:
        for block in node.blocks:
            self.block(block)
        for output, yes, no in zip(node.outputs, *(block.returns for block in node.blocks)):
            if output.type == TENSOR:
                self._set(output, join(_shape(yes), _shape(no)))

    def _loop(self, node: Node) -> None:
        """A carried value is what it starts as, joined with what a trip makes of that."""
        body = node.blocks[0]
        carried = [
            (before, param, again, output)
            for before, param, again, output in zip(
                node.inputs[2:], body.params[1:], body.returns[1:], node.outputs
            )
            if output.type == TENSOR
        ]
        for before, param, _, _ in carried:
            self._set(param, _shape(before))
        settled = False
        while not settled:
            self.block(body)
            settled = True
            for _, param, again, _ in carried:
                joined = join(param.shape, _shape(again))
                settled &= joined == param.shape
                self._set(param, joined)
        for _, param, _, output in carried:
            self._set(output, param.shape)


def _is_lowered(tags: Iterable[str]) -> bool:
    """Whether autocast changes the dtype of an operator's results."""
    return any(tag.startswith("autocast") for tag in tags)


def _may_tell(graph: Graph) -> bool:
    """Whether some shape is known, or a node may tell one where none is known of what it reads."""
    if any(param.shape is not None for param in graph.inputs):
        return True
    for node in graph.walk():
        if node.kind == "prim::Constant":
            if node.output.type is TENSOR:
                return True
        elif not _keeps_shapes(node.kind):
            return True
        for value in node.outputs:
            if value.shape is not None:
                return True
    return False


@functools.cache
def _keeps_shapes(kind: str) -> bool:
    operator = operator_of_kind(kind)
    return operator is not None and bool(operator.keeps_shapes)


def _none_known(node: Node) -> bool:
    """Whether nothing is known of the tensors that a node reads."""
    return all(value.shape is None for value in node.inputs if value.type == TENSOR)


def _shape(value: Value) -> ShapeInfo | None:
    return value.shape if value.type == TENSOR else None


def join(a: ShapeInfo | None, b: ShapeInfo | None) -> ShapeInfo | None:
    """What holds for a tensor that has one shape or the other.

    >>> str(join(ShapeInfo(None, (2, "n")), ShapeInfo(None, (3, "n"))))
    'Tensor(*, [*, n])'
    """
    if a is None or b is None:
        return None
    sizes: tuple[Dim, ...] | None = None
    if a.sizes is not None and b.sizes is not None and len(a.sizes) == len(b.sizes):
        sizes = tuple(x if x == y else None for x, y in zip(a.sizes, b.sizes))
    joined = ShapeInfo(a.dtype if a.dtype == b.dtype else None, sizes)
    return None if joined == ShapeInfo() else joined


def _reshaped(node: Node) -> list[Value]:
    """Tensors whose sizes a node may change."""
    operator = operator_of(node)
    if operator is not None and not operator.writes:
        return []
    if operator is not None and "relayout" in operator.tags:
        return [node.inputs[0]]
    if operator is None or operator.is_builtin:
        return []
    pairs = zip(operator.args, node.inputs)
    return [value for arg, value in pairs if arg.is_written and arg.kwarg_only]
