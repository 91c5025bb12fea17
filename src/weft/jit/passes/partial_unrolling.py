"""Partial unrolling: a loop of arithmetic on elements makes several trips at once.

    %y : Tensor = prim::Loop(%n, %true, %x)         %m : int = prim::max.int(%n, %zero)
      block0(%i : int, %y.1 : Tensor):              %whole : int = aten::floordiv.int(%m, %four)
        %y.2 : Tensor = aten::mul.Tensor(%y.1, %w)  %rest : int = aten::remainder.int(%m, %four)
        -> (%true, %y.2)                       =>   %a : Tensor = prim::Loop[unrolled=4](%whole, ..)
                                                      block0(...): four of the body, -> ...
                                                    %y : Tensor = prim::Loop[unrolled=1](%rest, ..)

Exact: the same operators run in the same order. What is won is won by fusion: the trips of a body
become one group, and the carried tensors are read and written once for all of them, not once for
each. So a body must be such that they do:

- whatever depends on a carried tensor is cheap arithmetic on elements, as many trips of it as make
  a group of 16 steps;
- what else there is (a view of what comes from outside, the index it takes) has no effects.

`x = x * w + 0.5` over 1M elements took 13.6 ms for 32 trips one by one and 2.4 ms eight at a time,
over 64 elements 7.6 and 3.8 us. Loops of other bodies stay, because nothing is won there:

- A function such as tanh or exp costs more than reading and writing its tensor. Two of them in a
  row were up to 1.5 times slower: a loop with both needs more registers than there are.
- A body with products or branches does not become a group. What is left to save is the jump, 1 to 2
  ns a trip, and a copy of the body pays as much for an index of its own: loops over ints and floats
  written out four times were 1.05 to 1.17 times faster, an LSTM not at all.
- A loop with a condition asks it after each trip.
"""

from __future__ import annotations

from weft.jit.codegen import tiles
from weft.jit.ir import INT, TENSOR, Graph, Node, Value, clone_node
from weft.jit.ir.graph import Block
from weft.jit.passes.effects import WHILE_TRIPS, has_effects
from weft.jit.passes.fusion import MOST_OUTPUTS
from weft.jit.passes.options import DEFAULT, Options

# Trips at once, the most that fit first, and steps of the group they make. Beyond these it is no
# longer memory that a group waits for.
_FACTORS = (8, 4, 2)
_MOST_STEPS = 16


def run(graph: Graph, options: Options = DEFAULT) -> bool:
    """Unrolls loops in every block; True if there was one."""
    return _block(graph.block, options)


def _block(block: Block, options: Options) -> bool:
    changed = False
    for node in block:
        if node.kind == tiles.FUSED:
            continue
        for inner in node.blocks:
            changed |= _block(inner, options)
        if node.kind == "prim::Loop" and "unrolled" not in node.attrs:
            factor = _factor(node, options)
            if factor > 1:
                _unroll(node, factor)
                changed = True
    return changed


def _factor(loop: Node, options: Options) -> int:
    """How many trips to make at once; 1 where a loop stays."""
    trips, condition, again = *loop.inputs[:2], loop.blocks[0].returns[0]
    if not all(v.is_constant and v.constant is True for v in (condition, again)):
        return 1
    if trips.is_constant and (trips.constant == WHILE_TRIPS or trips.constant < 2):
        return 1
    steps = _steps(loop)
    if not steps:
        return 1
    for factor in _FACTORS:
        short = trips.is_constant and trips.constant < factor
        if not short and _fits(loop, steps, factor, options):
            return factor
    return 1


def _steps(loop: Node) -> list[Node]:
    """What a trip does to the carried tensors; nothing where that is no group."""
    body = loop.blocks[0]
    carried = {value for value in body.params[1:] if value.type == TENSOR}
    if len(carried) != len(body.params) - 1 or not 1 <= len(carried) <= MOST_OUTPUTS:
        return []
    steps = []
    for node in body:
        if not carried.intersection(node.inputs):
            if node.blocks or has_effects(node):
                return []
            continue
        row = tiles.row_of(node)
        if row is None or "cheap" not in row.tags:
            return []
        steps.append(node)
        carried.add(node.output)
    # A value that is replaced by another of them would be computed by trips that nobody sees.
    return steps if all(value in carried for value in body.returns[1:]) else []


def _fits(loop: Node, steps: list[Node], factor: int, options: Options) -> bool:
    body = loop.blocks[0]
    size = sum(1 for node in body if node.kind != "prim::Constant")
    if size * factor > options.unroll_limit or len(steps) * factor > _MOST_STEPS:
        return False
    results = {node.output for node in steps} | set(body.params[1:])
    own = {value for node in body for value in node.outputs} - results  # anew in each trip
    read = {v for node in steps for v in node.inputs if v not in results and not tiles.is_known(v)}
    passed = len(body.params) - 1
    operands = len(read - own) + factor * len(read & own) + 2 * passed
    if options.gradients:  # the group that gives them takes results and theirs, and makes one for
        # each place where an input is read
        uses = sum(value in read for node in steps for value in node.inputs)
        operands += factor * uses + 2 * passed
    return operands <= tiles.MOST_OPERANDS


# ---- the loops ----


def _unroll(loop: Node, factor: int) -> None:
    graph = loop.graph
    with graph.inserting(before=loop), graph.at_range(loop.range):
        whole, rest, done = _trip_counts(loop, factor)
        many = _loop_like(loop, whole, loop.inputs[2:], factor)
        if rest.is_constant and rest.constant == 0:
            loop.replace_outputs_with(many.outputs)
        else:
            last = _loop_like(loop, rest, many.outputs, 1, done)
            loop.replace_outputs_with(last.outputs)
    loop.destroy()


def _trip_counts(loop: Node, factor: int) -> tuple[Value, Value, Value | None]:
    """Trips of the loop that makes several, of the one behind it, and, if somebody asks for the
    index, the trips made before that."""
    graph, trips, indexed = loop.graph, loop.inputs[0], loop.blocks[0].params[0].has_uses
    if trips.is_constant:
        whole, rest = divmod(trips.constant, factor)
        done = graph.constant(whole * factor, INT) if indexed and rest else None
        return graph.constant(whole, INT), graph.constant(rest, INT), done
    zero, by = graph.constant(0, INT), graph.constant(factor, INT)
    most = graph.emit("prim::max.int", [trips, zero], [INT]).output
    many = graph.emit("aten::floordiv.int", [most, by], [INT]).output
    left = graph.emit("aten::remainder.int", [most, by], [INT]).output
    made = graph.emit("aten::mul.int", [many, by], [INT]).output if indexed else None
    return many, left, made


def _loop_like(
    loop: Node, trips: Value, carried: tuple[Value, ...] | list[Value], factor: int,
    first: Value | None = None,
) -> Node:  # fmt: skip
    """A loop whose body is that of another one, `factor` times; its trips count from `first`."""
    graph, old = loop.graph, loop.blocks[0]
    types = [value.type for value in loop.outputs]
    copy = graph.emit(
        loop.kind, [trips, loop.inputs[1], *carried], types, {"unrolled": factor}, loop.range
    )
    for new, value in zip(copy.outputs, loop.outputs):
        new.shape = value.shape
    body = copy.add_block()
    params = [body.add_param(value.type, value.name) for value in old.params]
    for param, value in zip(params, old.params):
        param.shape = value.shape
    index, values = params[0], params[1:]
    with graph.inserting(at_end=body):
        if old.params[0].has_uses and factor > 1:
            index = graph.emit("aten::mul.int", [index, graph.constant(factor, INT)], [INT]).output
        if first is not None:
            index = graph.emit("aten::add.int", [index, first], [INT]).output
        for trip in range(factor):
            at = index
            if trip and old.params[0].has_uses:
                at = graph.emit("aten::add.int", [index, graph.constant(trip, INT)], [INT]).output
            mapping = dict(zip(old.params, [at, *values]))
            for node in old:
                clone_node(node, body, mapping)
            values = [mapping.get(value, value) for value in old.returns[1:]]
    body.set_returns([loop.inputs[1], *values])
    return copy
