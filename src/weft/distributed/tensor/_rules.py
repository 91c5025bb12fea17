"""Which plan an operator has: by the facts of its row, and by its name where they do not tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.distributed.tensor._layout import Layout, Placements, span
from weft.distributed.tensor._plans import (
    Plan,
    by_formula,
    by_terms,
    shape_of,
    tensors_in,
    without,
)
from weft.distributed.tensor.placement_types import Replicate
from weft.func._operators import CannotEvaluate, Operator, run_body

if TYPE_CHECKING:
    from weft.distributed.tensor._level import Level

Rule = Callable[["Level", Operator, Sequence[Any]], Any]
_aten = _C._aten
_BY_NAME: dict[str, Rule] = {}


class Unruled(Exception):
    """No rule covers a call."""


def rule(names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of operators of these names."""

    def register(function: Rule) -> Rule:
        _BY_NAME.update(dict.fromkeys(names.split(), function))
        return function

    return register


def apply(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The result of an operator on tensors of several processes."""
    name = op.name.removesuffix("_") if op.in_place else op.name
    found = _BY_NAME.get(op.key) or _BY_NAME.get(op.name) or _BY_NAME.get(name)
    try:
        return (found or _by_kind)(level, op, given)
    except (Unruled, CannotEvaluate):
        raise NotImplementedError(
            f"{op.name}: expected an operator with a rule for DTensor, got one without; "
            "full_tensor() and to_local() give plain tensors"
        ) from None


def _by_kind(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    kind, row = op.kind, op.row
    if kind == "random":
        return _random(level, op, given)
    if kind == "compose" and row is not None and row.body:
        return run_body(op, given)
    formula = row.shape if row is not None else ""
    if kind == "pointwise" and not formula.startswith("broadcast("):
        formula = f"broadcast({', '.join(a.name for a in op.arguments if 'Tensor' in a.type)})"
    return level.run(op, given, _told(op, given, formula))


def _told(op: Operator, given: Sequence[Any], formula: str) -> Plan:
    """The plan of a formula; along what the operator calls a dimension nothing is cut. Of several
    tensors it tells only where they broadcast."""
    tensors = tensors_in(given)
    plan = by_formula(op, given, formula) if formula else None
    if plan is None:
        raise Unruled
    dims = [a.value(v) for a, v in zip(op.arguments, given) if a.is_dimension]
    if formula == op.arguments[0].name and op.kind != "view":
        if len(tensors) != 1 or not dims or None in dims:
            raise Unruled
        listed = [e for d in dims for e in (d if isinstance(d, (list, tuple)) else [d])]
        return without(plan, listed)
    if len(tensors) > 1 and op.name not in _JOINING and not formula.startswith("broadcast("):
        raise Unruled
    if op.kind == "view":
        return plan._replace(partial=[[0]], reductions=None)
    return _summed(op, plan, tensors)


_JOINING = ("cat", "stack", "index_select")

# What passes sums on: all tensors together, any one of them, or the first.
_TOGETHER = frozenset(("add", "sub", "rsub", "cat", "stack", "copy"))
_ONE = frozenset(("mul", "sum", "where", "neg", "lerp", "real", "imag", "conj"))
_FIRST = frozenset(("div", "masked_fill"))
_REDUCTIONS = {"sum": "sum", "amax": "max", "amin": "min", "max": "max", "min": "min"}


def _summed(op: Operator, plan: Plan, tensors: Sequence[Tensor]) -> Plan:
    name = op.name.removesuffix("_")
    partial: list[list[int]] = []
    if name in _TOGETHER and not op.key.endswith("Scalar"):
        partial = [list(range(len(tensors)))]
    elif name in _ONE and name != "where":
        partial = [[i] for i in range(len(tensors))]
    elif name in _FIRST:
        partial = [[0]]
    sums: dict[Any, str] = {}
    if op.kind == "reduce" and len(op.returns) == 1 and op.name in _REDUCTIONS:
        reduction = _REDUCTIONS[op.name]
        for letter, size in zip(plan.operands[0], shape_of(tensors[0])):
            if letter not in plan.result and (reduction == "sum" or _fills(tensors[0], size)):
                sums[letter] = reduction
    return plan._replace(partial=partial, sums=sums)


def _mesh_size(tensors: Sequence[Tensor]) -> int:
    return next(t._layout.mesh.size() for t in tensors if hasattr(t, "_layout"))


def _fills(tensor: Tensor, size: int) -> bool:
    """Whether every process gets something of a dimension of this size."""
    count = _mesh_size([tensor])
    return span(size, count, count - 1)[1] > 0


# Elements, one by one -----------------------------------------------------------------------------


@rule("clone contiguous _to_copy to alias detach type_as nan_to_num view_as_real view_as_complex")
def _alike(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of the sizes of the first tensor, whatever its elements are terms of."""
    letters = list(range(len(shape_of(given[0]))))
    others = [[None] * t.dim() for t in tensors_in(given)[1:]]
    linear = op.name != "nan_to_num"
    plan = Plan([letters, *others], letters, {}, [[0]] if linear else [], None)
    return level.run(op, given, plan)


@rule("copy_ fill_ zero_ erfinv digamma lgamma i0 nextafter gcd lcm clamp")
def _elements(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    names = [a.name for a, v in zip(op.arguments, given) if isinstance(v, Tensor)]
    plan = by_formula(op, given, f"broadcast({', '.join(names)})")
    assert plan is not None
    return level.run(op, given, _summed(op, plan, tensors_in(given)))


@rule("zeros_like ones_like full_like empty_like")
def _like(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """New parts beside those of the first tensor, of which no element counts."""
    layout = level.layout(given[0])
    placements = tuple(Replicate() if p.is_partial() else p for p in layout.placements)
    with level.outside():
        return level.wrap(op.call(given), layout.placed(placements))


@rule("new_zeros new_ones new_full new_empty")
def _new(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    layout = level.layout(given[0])
    with level.outside():
        made = op.call(given)
        every = (Replicate(),) * layout.mesh.ndim
        return level.wrap(made, Layout(layout.mesh, every, tuple(made.shape)))


def _random(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Each process draws all, by the same numbers, and keeps what is its own."""
    first, *rest = given
    layout = level.layout(first)
    if any(p.is_partial() for p in layout.placements) or tensors_in(rest):
        raise Unruled
    with level.outside():
        whole = op.call([first.new_empty(layout.shape).detach(), *rest])
        own = level.part(whole, layout)
        if op.in_place:
            first.copy_(own)
            return first
        return level.wrap(own, layout)


@rule("dropout")
def _dropout(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    x = level.settled(given[0])
    layout = level.layout(x)
    with level.outside():
        kept = op.call([x.new_ones(layout.shape).detach(), *given[1:]])
        mask = level.wrap(level.part(kept, layout), layout)
    return _aten.mul(x, mask)


# Products -----------------------------------------------------------------------------------------

_TERMS = {
    "mm": ("ij,jk", "ik"),
    "mv": ("ij,j", "i"),
    "dot": ("i,i", ""),
    "bmm": ("bij,bjk", "bik"),
    "addmm": ("ik,ij,jk", "ik"),
    "baddbmm": ("bik,bij,bjk", "bik"),
    "addmv": ("i,ij,j", "i"),
}


def _factors(level: Level, op: Operator, given: Sequence[Any], terms: Any, result: Any) -> Any:
    tensors, added = tensors_in(given), []
    if op.name.startswith(("add", "badd")):
        added = [0]
    elif op.name == "linear":
        added = list(range(2, len(tensors)))
    plan = by_terms(terms, result, tensors)
    partial = [[i] for i in range(len(terms)) if i not in added]
    return level.run(op, given, plan._replace(partial=partial, added=added))


@rule(" ".join(_TERMS))
def _product(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    left, result = _TERMS[op.name]
    terms = [t[len(t) - x.dim() :] for t, x in zip(left.split(","), tensors_in(given))]
    return _factors(level, op, given, terms, result)


@rule("linear")
def _linear(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    rows = list(range(given[0].dim() - 1))
    terms = [[*rows, "i"], "oi"[2 - given[1].dim() :], "o"]
    result = [*rows, "o"] if given[1].dim() == 2 else rows
    return _factors(level, op, given, terms[: len(tensors_in(given))], result)


@rule("matmul")
def _matmul(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    a, b = given
    outer = [list(range(min(2 - x.dim(), 0), 0)) for x in given]
    left, right = ["i"] * (a.dim() > 1), ["k"] * (b.dim() > 1)
    terms = [[*outer[0], *left, "j"], [*outer[1], "j", *right]]
    return _factors(level, op, given, terms, [*max(outer, key=len), *left, *right])


@rule("einsum")
def _einsum(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    left, arrow, result = given[0].replace(" ", "").partition("->")
    if "." in left:
        raise Unruled
    if not arrow:
        result = "".join(sorted(each for each in set(left) - {","} if left.count(each) == 1))
    return _factors(level, op, given, left.split(","), result)


@rule("embedding")
def _embedding(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of a cut vocabulary each process looks up its own words, and has zeros for others."""
    places = list(range(given[1].dim()))
    plan = by_terms(["ve", places], [*places, "e"], given[:2])

    def look_up(items: list[Any], targets: Sequence[Placements]) -> Tensor:
        layout = level.layout(given[0]).placed(targets[0])
        begin, count = layout.own(0)
        weight, words, padding, *rest = items
        if count == layout.shape[0]:
            return op.call(items)
        if count == 0:
            return weight.new_zeros((*words.shape, weight.size(1)))
        own = (words >= begin) & (words < begin + count)
        padding = op.value(given, "padding_idx") - begin
        padding = padding if 0 <= padding < count else -1
        found = op.call([weight, _C.where(own, words - begin, 0), padding, *rest])
        return found * own.unsqueeze(-1)

    return level.run(op, given, plan, look_up)


@rule("_attention")
def _attention(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Sequences and features are whole; batches and heads may be cut."""
    tensors = tensors_in(given)
    outer = [[*range(2 - t.dim(), 0)] for t in tensors]
    plan = by_terms([[*o, None, None] for o in outer], [*outer[0], None, None], tensors)
    return level.run(op, given, plan)


# Along dimensions ---------------------------------------------------------------------------------


@rule("mean")
def _mean(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """A sum, divided: parts may differ in size."""
    named = {a.name: v for a, v in zip(op.arguments, given) if v is not Ellipsis}
    x = named.pop("self")
    shape, dims = shape_of(x), named.get("dim")
    total = _aten.sum(x, **named) if dims is not None else _aten.sum(x, dtype=named.get("dtype"))
    count = 1
    for size in shape if dims in (None, [], ()) else _at(shape, dims):
        count *= size
    return _aten.div(total, count)


def _at(shape: Sequence[int], dims: Any) -> list[int]:
    return [shape[dim] for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]


@rule("layer_norm")
def _layer_norm(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    tensors, inner = tensors_in(given), [None] * len(given[1])
    outer: list[Any] = list(range(given[0].dim() - len(inner)))
    plan = by_terms([[*outer, *inner], inner, inner][: len(tensors)], [*outer, *inner], tensors)
    return level.run(op, given, plan)


@rule("tril triu conv1d conv2d conv3d max_pool2d avg_pool2d adaptive_avg_pool2d")
def _leading(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The first dimension may be cut where it counts matrices or images."""
    first, *others = tensors_in(given)
    rank = first.dim()
    letters = [0 if rank > 2 else None, *[None] * (rank - 1)]
    plan = by_terms([letters, *([None] * t.dim() for t in others)], letters, [first, *others])
    return level.run(op, given, plan)


_FORMULAS = {"repeat_interleave.self_int": "resized(self, dim, None)"}


@rule(" ".join((*_FORMULAS, "topk")))
def _told_here(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    formula = _FORMULAS.get(op.key) or (op.row.shape if op.row is not None else "")
    return level.run(op, given, _told(op, given, formula))


@rule("split split_with_sizes chunk unbind tensor_split.sections")
def _parts(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    dim = op.value(given, "dim")
    plan = by_formula(op, given, "without(self, dim)" if op.name == "unbind" else "self")
    assert plan is not None
    return level.run(op, given, without(plan, [dim])._replace(partial=[[0]], reductions=None))


@rule("index.Tensor")
def _index(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """One list of places along one dimension leaves the others; other indices need all."""
    x, indices = given
    found = [at for at, each in enumerate(indices) if each is not None]
    letters = list(range(x.dim()))
    at = found[0]
    if len(found) > 1 or indices[at].dtype == _C.bool:
        return _whole(level, op, given)
    places = [f"i{n}" for n in range(indices[at].dim())]
    own = [*letters[:at], None, *letters[at + 1 :]]
    result = [*letters[:at], *places, *letters[at + 1 :]]
    return level.run(op, given, by_terms([own, places], result, [x, indices[at]]))


@rule(
    "gather scatter scatter_add scatter_reduce index_put index_add index_copy index_fill equal "
    "nll_loss nll_loss_nd nonzero masked_select cumsum.dimname isin unique_dim take_along_dim "
    "bincount histc searchsorted bucketize one_hot item"
)
def _whole(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Every process has all, and computes all."""
    operands = [[None] * t.dim() for t in tensors_in(given)]
    return level.run(op, given, Plan(operands, [None] * 1000))


# Views --------------------------------------------------------------------------------------------


@rule("view reshape flatten unflatten ravel")
def _view(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """A dimension stays cut that stays as it is; of those that become one, or of one that becomes
    several, the outermost, where all processes have as much of it."""
    before = shape_of(given[0])
    after = _viewed(op, given, before)
    count, letters = _mesh_size([given[0]]), []
    result: list[Any] = [None] * len(after)
    own: list[Any] = [None] * len(before)
    letters = _groups(before, after) if 0 not in before else []
    for one, other in letters:
        i = next((d for d in one if before[d] != 1), None)
        j = next((d for d in other if after[d] != 1), None)
        if i is None or j is None:
            continue
        if before[i] == after[j] or (before[i] % count == 0 and after[j] % count == 0):
            own[i] = result[j] = i
    plan = Plan([own], result, {}, [[0]], None, (), after)
    reshape = level.operator("view.size" if op.name == "view" else "reshape")
    return level.run(reshape, [given[0], after], plan)


def _viewed(op: Operator, given: Sequence[Any], before: Sequence[int]) -> list[int]:
    values = {a.name: a.value(v) for a, v in zip(op.arguments, given)}
    if "start_dim" in values:
        first, last = (values[name] % max(len(before), 1) for name in ("start_dim", "end_dim"))
        return _filled(before[first : last + 1], [-1], before[:first], before[last + 1 :])
    if "sizes" in values and "dim" in values:
        at = values["dim"] % len(before)
        return _filled([before[at]], values["sizes"], before[:at], before[at + 1 :])
    return _filled(before, list(given[1]) if len(given) > 1 else [-1])


def _filled(
    before: Sequence[int],
    wanted: Sequence[int],
    left: Sequence[int] = (),
    right: Sequence[int] = (),
) -> list[int]:
    count, known = 1, 1
    for size in before:
        count *= size
    for size in wanted:
        known *= size if size != -1 else 1
    filled = [count // max(known, 1) if size == -1 else size for size in wanted]
    return [*left, *filled, *right]


def _groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions before and after that have the same elements, from the first on.

    >>> _groups((4, 6), (4, 2, 3)), _groups((2, 3, 5), (6, 5))
    ([([0], [0]), ([1], [1, 2])], [([0, 1], [0]), ([2], [1])])
    """
    groups, i, j = [], 0, 0
    while i < len(before) and j < len(after):
        one, other, left, right = [i], [j], before[i], after[j]
        while left != right:
            if left < right:
                i += 1
                one.append(i)
                left *= before[i]
            else:
                j += 1
                other.append(j)
                right *= after[j]
        groups.append((one, other))
        i, j = i + 1, j + 1
    return groups


@rule("expand")
def _expand(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    shape = shape_of(given[0])
    new = len(given[1]) - len(shape)
    after = [
        shape[at - new] if size == -1 or (at >= new and size == shape[at - new]) else size
        for at, size in enumerate(given[1])
    ]
    letters = [None if size == 1 else at for at, size in enumerate(shape)]
    plan = Plan([letters], [*[None] * new, *letters], {}, [[0]], None, (), after)
    return level.run(op, [given[0], after, *given[2:]], plan)


@rule("movedim")
def _movedim(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    rank = given[0].dim()
    source, target = ([v] if isinstance(v, int) else list(v) for v in given[1:3])
    places = {t % rank: s % rank for s, t in zip(source, target)}
    rest = iter(d for d in range(rank) if d not in places.values())
    return _aten.permute(given[0], [places[d] if d in places else next(rest) for d in range(rank)])
