"""The memory a program will need, as far as its graph says: which tensor lies where, and when.

`memory_plan` optimises a graph as calls without gradients do, follows shapes through it, and gives
each tensor the program makes a lifetime and a slot. Sizes are formulas of the symbols in the given
shapes. What is not known is written `|%y|`, the bytes of %y. What may be shared when the program
runs, but is not certain to be, is not shared here. Operators' scratch is not part of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.jit.codegen import tiles
from weft.jit.codegen.liveness import Liveness
from weft.jit.ir import TENSOR, Graph, Node, ShapeInfo, Value, parse_ir
from weft.jit.ir.graph import Block
from weft.jit.ir.record import record
from weft.jit.passes import shape
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.memory_planning import may_reuse
from weft.jit.passes.operators import operator_of
from weft.jit.passes.options import INFERENCE
from weft.jit.pipeline import optimize_graph


class Formula:
    """A sum of products of symbols with whole factors.

    >>> n = Formula({("n",): 4})
    >>> str(n + n + Formula({(): 16})), (n + n).is_at_least(n)
    ('8*n + 16', True)
    """

    def __init__(self, terms: Mapping[tuple[str, ...], int] | None = None) -> None:
        self.terms = {key: factor for key, factor in (terms or {}).items() if factor}

    def __add__(self, other: Formula) -> Formula:
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            terms[key] = terms.get(key, 0) + factor
        return Formula(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def is_at_least(self, other: Formula) -> bool:
        """Whether it is as large for every value of the symbols."""
        return all(self.terms.get(key, 0) >= factor for key, factor in other.terms.items())

    def __str__(self) -> str:
        order = sorted(self.terms.items(), key=lambda item: (-len(item[0]), item[0]))
        parts = [
            "*".join([str(factor)] * (factor != 1 or not key) + list(key)) for key, factor in order
        ]
        return " + ".join(parts) or "0"

    __repr__ = __str__


@record(frozen=True)
class Buffer:
    """A piece of memory: the tensors that lie there one after another, each in the place of the
    one before; the steps from which and up to which it is held; the slot it shares with others."""

    tensors: tuple[str, ...]
    nbytes: Formula
    first: int
    last: int
    slot: int


@record(frozen=True)
class MemoryPlan:
    """`peak`: the sums that can be the largest; more than one where that depends on the symbols.
    `steps`: what the steps are, by number."""

    buffers: tuple[Buffer, ...]
    peak: tuple[Formula, ...]
    steps: tuple[str, ...]

    @property
    def slots(self) -> int:
        """How many pieces of memory there are at most."""
        return len({buffer.slot for buffer in self.buffers})

    def __str__(self) -> str:
        peak = ", ".join(map(str, self.peak)) or "0"
        peak = f"max({peak})" if len(self.peak) > 1 else peak
        lines = [f"peak {peak} bytes, {len(self.buffers)} blocks in {self.slots} slots"]
        rows = [("slot", "bytes", "steps", "tensors")]
        for buffer in self.buffers:
            held = f"{buffer.first}..{buffer.last}"
            rows.append((str(buffer.slot), str(buffer.nbytes), held, " > ".join(buffer.tensors)))
        rows += [("", "", "", "")] + [("", "", str(i), step) for i, step in enumerate(self.steps)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths)]
            lines.append("  ".join([*cells, row[3]]).rstrip())
        return "\n".join(lines)


def memory_plan(program: Any, *inputs: Any) -> MemoryPlan:
    """The plan of a scripted or traced function or module, or of a graph.

    `inputs` tell the shapes of its arguments: a tensor has that shape, "Tensor(float32, [n, 3])" a
    symbolic one, None stands for arguments that are no tensors or of which nothing is known.

    >>> import weft
    >>> @weft.jit.script
    ... def f(x, w):
    ...     return weft.softmax(weft.mm(x, w), 1)
    >>> print(weft.jit.memory_plan(f, "Tensor(float32, [n, 8])", "Tensor(float32, [8, m])"))
    peak 4*m*n bytes, 1 blocks in 1 slots
    slot  bytes  steps  tensors
    0     4*m*n  0..2   %1 > %4
    <BLANKLINE>
                 0      aten::mm
                 1      aten::softmax.int
    """
    program = getattr(program, "ir", program)  # of a view of a graph
    graph = (program if isinstance(program, Graph) else program.inlined_graph).copy()
    params = [value for value in graph.inputs if value.name != "self"]
    if len(inputs) > len(params):
        raise ValueError(f"memory_plan: expected at most {len(params)} inputs, got {len(inputs)}")
    for value, given in zip(params, inputs):
        if value.type == TENSOR:
            value.shape = _shape_of(given)
    optimize_graph(graph, 2, INFERENCE)
    shape.run(graph)
    return _Planner(graph).plan()


def _shape_of(given: Any) -> ShapeInfo | None:
    if given is None:
        return None
    if isinstance(given, str):
        return parse_ir(f"graph(%x : {given}):\n  return (%x)\n").inputs[0].shape
    return ShapeInfo(given.dtype, tuple(given.shape))


def _nbytes(value: Value) -> Formula:
    info = value.shape
    if info is None or info.dtype is None or info.sizes is None or None in info.sizes:
        return Formula({(f"|%{value.name}|",): 1})
    factor, symbols = info.dtype.itemsize, []
    for size in info.sizes:
        if isinstance(size, str):
            symbols.append(size)
        else:
            assert size is not None
            factor *= size
    return Formula({tuple(sorted(symbols)): factor})


class _Planner:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.live = Liveness(graph)
        self.aliases = AliasAnalysis(graph)
        self.steps = [n for n in _nodes(graph.block) if n.kind != "prim::Constant"]
        self.positions = {node: place for place, node in enumerate(self.steps)}
        self.chains: list[list[Value]] = []  # tensors that lie in one place, in order

    def plan(self) -> MemoryPlan:
        for node in self.steps:
            self._add(node)
        spans = [self._span(chain) for chain in self.chains]
        order = sorted(range(len(spans)), key=spans.__getitem__)
        free: list[tuple[int, int, Formula]] = []  # from which step on, slot, bytes
        buffers = []
        for index in order:
            (first, last), nbytes = spans[index], _nbytes(self.chains[index][0])
            found = next((f for f in free if f[0] <= first and f[2] == nbytes), None)
            slot = found[1] if found else len(free)
            free = [f for f in free if f is not found] + [(last + 1, slot, nbytes)]
            names = tuple(f"%{value.name}" for value in self.chains[index])
            buffers.append(Buffer(names, nbytes, first, last, slot))
        peak = _largest(self._held(buffers, step) for step in range(len(self.steps)))
        return MemoryPlan(tuple(buffers), tuple(peak), tuple(n.kind for n in self.steps))

    def _held(self, buffers: list[Buffer], step: int) -> Formula:
        total = Formula()
        for buffer in buffers:
            made = self.steps[buffer.first]
            if buffer.first <= step <= buffer.last and not _are_apart(made, self.steps[step]):
                total += buffer.nbytes
        return total

    # ---- what lies where ----

    def _add(self, node: Node) -> None:
        donors = self._donors(node)
        for value in node.outputs:
            if value.type != TENSOR or not _is_fresh(node):
                continue
            donor = next((d for d in donors if _is_same_size(d[-1], value)), None)
            if donor is None:
                self.chains.append([value])
            else:
                donors.remove(donor)
                donor.append(value)

    def _donors(self, node: Node) -> list[list[Value]]:
        """The places that may be taken over: of tensors whose last holder dies here."""
        if node.kind == tiles.FUSED:
            given = list(node.inputs) if _takes_over(node) else []
        else:
            given = [node.inputs[index] for index in node.attrs.get("reuses", ())]
        last_used = [value for value in given if value in self.live.last_uses[node]]
        return [c for c in self.chains if c[-1] in last_used and self._dies_in(c, node)]

    def _dies_in(self, chain: list[Value], node: Node) -> bool:
        return max(self._last_use(value, node) for value in chain) == self.positions[node]

    def _span(self, chain: list[Value]) -> tuple[int, int]:
        """The steps at which the first of some tensors is made and the last one of them is let
        go, which may be held by a container or a view of it."""
        assert chain[0].node is not None
        return self.positions[chain[0].node], max(map(self._last_use, chain))

    def _last_use(self, value: Value, seen_from: Node | None = None) -> int:
        """The step of the last use of a tensor, or of what may show or hold it; for a node of a
        branch what other branches do does not count."""
        assert value.node is not None
        last = self.positions[value.node]
        for other in _values(self.graph.block):
            if other is not value and not self.aliases.may_alias(value, other):
                continue
            for use in other.uses:
                if seen_from is None or not _are_apart(use.user, seen_from):
                    last = max(last, self._place(use.user))
        return last

    def _place(self, user: Node | Block) -> int:
        """The step of a user; what a branch or loop hands on is used behind all of its steps."""
        if isinstance(user, Node):
            return self.positions.get(user, self._end_of_group(user))
        if user.node is None:
            return len(self.steps)
        if user.node.kind == tiles.FUSED:
            return self.positions[user.node]
        return max([self.positions[user.node], *(self.positions[n] for n in _steps_in(user.node))])

    def _end_of_group(self, node: Node) -> int:
        while node.owner.node is not None and node not in self.positions:
            node = node.owner.node
        return self.positions.get(node, 0)


def _nodes(block: Block) -> Iterator[Node]:
    """Nodes in the order in which they run; those of a group are one step."""
    for node in block:
        yield node
        if node.kind != tiles.FUSED:
            for inner in node.blocks:
                yield from _nodes(inner)


def _are_apart(a: Node | Block, b: Node | Block) -> bool:
    """Whether two stand in different branches of one `if`, so that only one of them runs."""
    branches = dict(_branches(a))
    return any(branches.get(node, block) is not block for node, block in _branches(b))


def _branches(user: Node | Block) -> Iterator[tuple[Node, Block]]:
    block = user if isinstance(user, Block) else user.owner
    while block.node is not None:
        if block.node.kind == "prim::If":
            yield block.node, block
        block = block.node.owner


def _steps_in(node: Node) -> list[Node]:
    return [n for block in node.blocks for n in _nodes(block) if n.kind != "prim::Constant"]


def _values(block: Block) -> Iterator[Value]:
    yield from block.params
    for node in _nodes(block):
        yield from node.outputs
        if node.kind != tiles.FUSED:
            for inner in node.blocks:
                yield from inner.params


def _takes_over(group: Node) -> bool:
    """Whether results of a group certainly lie where its operands lay: not behind a product or a
    sum, which are made first, nor where a later stage of rows may read an operand again."""
    (block,) = group.blocks
    inside = [node for node in block if operator_of(node) is not None or node.kind == tiles.FUSED]
    rows = any(map(tiles.row_operator, inside))
    known = all(node.kind == tiles.FUSED or may_reuse(node) for node in inside)
    return known and (not rows or len(group.outputs) == 1)


def _is_fresh(node: Node) -> bool:
    """Whether what a node gives lies in memory of its own."""
    if node.kind == tiles.FUSED:
        return True
    operator = operator_of(node)
    if operator is None or operator.may_give_input:
        return False
    return not any(result.alias for result in operator.returns)


def _is_same_size(a: Value, b: Value) -> bool:
    """Whether two tensors are known to have one dtype and the same sizes."""
    if a.shape is None or a.shape.dtype is None or a.shape.sizes is None:
        return False
    return a.shape == b.shape and None not in a.shape.sizes


def _largest(sums: Iterable[Formula]) -> list[Formula]:
    """Those that no other is always as large as."""
    found: list[Formula] = []
    for each in sums:
        if not any(other.is_at_least(each) for other in found):
            found = [other for other in found if not each.is_at_least(other)] + [each]
    return found
