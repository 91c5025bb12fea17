"""How an operator may be cut: dimensions as letters, and the cheapest placements for a call.

A plan gives every dimension of the operands and of the result a letter. Where the processes cut
each dimension of one letter alike, what they compute of their parts are parts of the result; a
letter that the result lacks, but that is summed over, leaves a sum over the processes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft._C import Tensor
from weft.distributed.tensor._layout import Layout, Placements
from weft.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from weft.func._operators import Operator
from weft.jit.passes import shape_words
from weft.jit.passes.shape_call import compiled

Letters = Sequence[Any]  # None for a dimension that is not cut
LINEAR = ("sum", "avg")


class Plan(NamedTuple):
    """Letters of the operands (all tensors of the call, in order) and of every result.

    sums: how what processes compute is reduced, by letter that results lack. partial: sets of
    operands that may be reductions by `reductions` (None: by any), and then results are. added:
    operands that are added to the rest, so they must be terms where results are. shape: the sizes
    of the result, where the operator takes them as an argument.
    """

    operands: Sequence[Letters]
    result: Letters
    sums: Mapping[Any, str] = {}
    partial: Sequence[Sequence[int]] = ()
    reductions: Sequence[str] | None = LINEAR
    added: Sequence[int] = ()
    shape: Sequence[int] | None = None


class Way(NamedTuple):
    """Placements along one dimension of a mesh."""

    operands: tuple[Placement, ...]
    result: Placement


def ways(plan: Plan, now: Sequence[Placement]) -> Iterator[Way]:
    """What a plan allows, for operands that are placed so now: along dimensions of which one is
    cut."""
    everywhere: list[Placement] = [Replicate() for _ in plan.operands]
    yield Way(tuple(everywhere), Replicate())
    cut = [own[each.dim] for own, each in zip(plan.operands, now) if isinstance(each, Shard)]
    for letter in dict.fromkeys(each for own in plan.operands for each in own if each in cut):
        if letter is None or not (letter in plan.result or letter in plan.sums):
            continue
        placed: list[Placement] = [
            Shard(list(own).index(letter)) if letter in own else Replicate()
            for own in plan.operands
        ]
        yield _way(plan, placed, _result(plan, letter))
    for chosen in plan.partial:
        for reduction in {each.reduce_op for i in chosen if isinstance(each := now[i], Partial)}:
            if plan.reductions is None or reduction in plan.reductions:
                terms = Partial(reduction)
                placed = [terms if i in chosen else each for i, each in enumerate(everywhere)]
                yield _way(plan, placed, terms)


def _result(plan: Plan, letter: Any) -> Placement:
    if letter in plan.result:
        return Shard(list(plan.result).index(letter))
    return Partial(plan.sums[letter])


def _way(plan: Plan, placed: Sequence[Placement], result: Placement) -> Way:
    is_sum = isinstance(result, Partial)
    return Way(
        tuple(result if is_sum and i in plan.added else each for i, each in enumerate(placed)),
        result,
    )


def cost(size: int, now: Placement, then: Placement) -> float:
    """About how many bytes each process sends and takes for a tensor of `size` bytes: of equal
    ones those of PyTorch's placements."""
    if now == then:
        return 0
    if isinstance(now, Replicate):
        return size * 1e-3
    if isinstance(then, Partial):
        return math.inf
    return 1 + (2 * size if isinstance(now, Partial) and isinstance(then, Replicate) else size)


def cheapest(
    plan: Plan, layouts: Sequence[Layout], sizes: Sequence[int], in_place: bool
) -> tuple[list[Placements], Placements] | None:
    """Placements of the operands and of the result: along each dimension of the mesh the way by
    which least is sent. In place the first operand stays as it is; None where it cannot."""
    chosen = []
    for at in range(layouts[0].mesh.ndim):
        now = [layout.placements[at] for layout in layouts]

        def price(way: Way, now: list[Placement] = now) -> float:
            if in_place and (way.operands[0] != now[0] or way.result != now[0]):
                return math.inf
            return isinstance(way.result, Partial) + sum(map(cost, sizes, now, way.operands))

        best = min(ways(plan, now), key=price)
        if price(best) == math.inf:
            return None
        chosen.append(best)
    operands = [tuple(way.operands[i] for way in chosen) for i in range(len(layouts))]
    return operands, tuple(way.result for way in chosen)


# Letters ------------------------------------------------------------------------------------------


def tensors_in(given: Sequence[Any]) -> list[Tensor]:
    """The tensors among arguments, in order, those of lists too."""
    found = []
    for each in given:
        items = each if isinstance(each, (list, tuple)) else (each,)
        found += [item for item in items if isinstance(item, Tensor)]
    return found


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of the whole tensor."""
    layout = getattr(tensor, "_layout", None)
    return tuple(tensor.shape) if layout is None else layout.shape


class Unruled(Exception):
    """No rule covers a call."""


def agreed(operands: Sequence[Letters], tensors: Sequence[Tensor]) -> list[list[Any]]:
    """The letters of dimensions of more than one element. Unruled where one has two sizes."""
    sizes: dict[Any, int] = {}
    for letters, tensor in zip(operands, tensors):
        for letter, size in zip(letters, shape_of(tensor)):
            if letter is not None and size != 1 and sizes.setdefault(letter, size) != size:
                raise Unruled
    return [
        [None if size == 1 else letter for letter, size in zip(letters, shape_of(tensor))]
        for letters, tensor in zip(operands, tensors)
    ]


def by_terms(terms: Sequence[Letters], result: Letters, tensors: Sequence[Tensor]) -> Plan:
    """The plan of a product: letters of its factors that the result lacks are summed over."""
    operands = agreed(terms, tensors)
    cut = {letter for letters in operands for letter in letters} - {None}
    left = [letter if letter in cut else None for letter in result]
    return Plan(operands, left, {each: "sum" for each in cut if each not in left})


def by_formula(op: Operator, given: Sequence[Any], formula: str) -> Plan | None:
    """The plan of an operator whose results have the sizes of a formula (`shape=` of its row), of
    whatever stands at those dimensions. None where it does not tell."""
    together = formula.startswith(("broadcast(", "joined(", "stacked("))
    from_end = formula.startswith("broadcast(")
    owners = itertools.count()

    def seen(value: Any) -> Any:
        if isinstance(value, Tensor):
            owner, shape = next(owners), shape_of(value)
            dims = range(-len(shape), 0) if from_end else range(len(shape))
            return [
                1 if size == 1 else f"{0 if together else owner}:{at}"
                for at, size in zip(dims, shape)
            ]
        if isinstance(value, (list, tuple)):
            return tuple(map(seen, value))
        return shape_words.ABSENT if value is None else value

    names = {a.name: seen(a.value(v)) for a, v in zip(op.arguments, given)}
    if names.get("dim") == ():
        names["dim"] = shape_words.ABSENT
    operands = [
        seen_tensor
        for value in names.values()
        for seen_tensor in (
            [value] if isinstance(value, list) else value if _of_lists(value) else []
        )
    ]
    try:
        result = list(eval(compiled(formula), {"__builtins__": {}, **shape_words.WORDS}, names))
    except (shape_words.Untold, IndexError, TypeError):
        return None
    letters = [_cut(each) for each in operands]
    if formula.startswith("joined("):  # where parts are joined they differ in size
        letters = [[each if each in result else None for each in own] for own in letters]
    return Plan(agreed(letters, tensors_in(given)), _cut(result))


def _of_lists(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], list)


def _cut(sizes: Sequence[Any]) -> list[Any]:
    return [each if isinstance(each, str) else None for each in sizes]


def without(plan: Plan, dims: Sequence[int]) -> Plan:
    """The plan without cuts along some dimensions of the first operand."""
    first = plan.operands[0]
    gone = {first[dim % len(first)] for dim in dims} if first else set()
    keep = lambda letters: [None if each in gone else each for each in letters]  # noqa: E731
    return plan._replace(operands=[keep(each) for each in plan.operands], result=keep(plan.result))
