"""Rules of lookups, by words, places and targets, and of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.distributed.tensor._layout import Placements
from weft.distributed.tensor._plans import Unruled, by_terms, shape_of, tensors_in
from weft.distributed.tensor._rules import by_kind, rule, whole
from weft.func._operators import Operator

if TYPE_CHECKING:
    from weft.distributed.tensor._level import Level

_aten = _C._aten


@rule("embedding")
def _embedding(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of a cut vocabulary each process looks up its own words, and has zeros for others."""
    positions = list(range(given[1].dim()))
    plan = by_terms(["ve", positions], [*positions, "e"], given[:2])

    def look_up(items: list[Any], targets: Sequence[Placements]) -> Tensor:
        layout = level.layout(given[0]).placed(targets[0])
        begin, count = layout.own(0)
        weight, words, padding, *rest = items
        if count == layout.shape[0]:
            return op.call(items)
        if count == 0:
            return _nothing(weight, [*words.shape, weight.size(1)])
        own = (words >= begin) & (words < begin + count)
        padding = op.value(given, "padding_idx") - begin
        padding = padding if 0 <= padding < count else -1
        found = op.call([weight, _C.where(own, words - begin, 0), padding, *rest])
        return found * own.unsqueeze(-1)

    return level.run(op, given, plan, look_up)


@rule("_bag_sum")
def _bag_sum(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Columns of the table may be cut."""
    tensors = tensors_in(given)
    rest = [[None] for _ in tensors[1:]]
    return level.run(op, given, by_terms([[None, "e"], *rest], [None, "e"], tensors))


def _nothing(source: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros that have a gradient: backward has the same collectives in all processes."""
    return (source.sum() * 0).expand(shape)


@rule("index.Tensor")
def _index(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """One list of places along one dimension leaves the others; other indices need all."""
    x, indices = given
    found = [at for at, each in enumerate(indices) if each is not None]
    letters = list(range(x.dim()))
    at = found[0]
    if len(found) > 1 or indices[at].dtype == _C.bool:
        return whole(level, op, given)
    positions = [f"i{n}" for n in range(indices[at].dim())]
    own = [*letters[:at], None, *letters[at + 1 :]]
    result = [*letters[:at], *positions, *letters[at + 1 :]]
    return level.run(op, given, by_terms([own, positions], result, [x, indices[at]]))


@rule("gather")
def _gather(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of what is cut along `dim` each process takes its own elements, and zeros for others."""
    x, dim, index = given[:3]
    at = dim % x.dim()
    letters = [None if one != other else d for d, (one, other) in enumerate(_sizes(x, index))]
    own = [*letters[:at], "entry", *letters[at + 1 :]]
    other = [*letters[:at], None, *letters[at + 1 :]]
    plan = by_terms([own, other], other, [x, index])

    def take(items: list[Any], targets: Sequence[Placements]) -> Tensor:
        begin, count = level.layout(x).placed(targets[0]).own(at)
        source, _, positions, *rest = items
        if count == shape_of(x)[at]:
            return op.call(items)
        if count == 0:
            return _nothing(source, positions.shape)
        here = (positions >= begin) & (positions < begin + count)
        return op.call([source, dim, _C.where(here, positions - begin, 0), *rest]) * here

    return level.run(op, given, plan, take)


def _sizes(x: Tensor, index: Tensor) -> Any:
    return zip(shape_of(x), shape_of(index), strict=True)


@rule("softmax log_softmax logsumexp")
def _softmax(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Along a dimension that is cut: by what is largest, and by the sum, over all processes."""
    x, dim = given[0], op.value(given, "dim")
    dims = [dim % x.dim()] if isinstance(dim, int) else [each % x.dim() for each in dim]
    if not any(p.is_shard(d) for p in level.layout(x).placements for d in dims):
        return by_kind(level, op, given)
    if "dtype" in [a.name for a in op.arguments]:
        dtype = op.value(given, "dtype")
        x = x if dtype in (None, Ellipsis) else _aten.to(x, dtype)
    top = level.settled(_aten.amax(_aten.detach(x), dims, True))
    shifted = _aten.sub(x, top)
    if op.name == "softmax":
        powers = _aten.exp(shifted)
        return _aten.div(powers, level.settled(_aten.sum(powers, dims, True)))
    log = _aten.log(level.settled(_aten.sum(_aten.exp(shifted), dims, True)))
    if op.name == "log_softmax":
        return _aten.sub(shifted, log)
    result = _aten.add(log, top)
    return result if op.value(given, "keepdim") else _aten.squeeze(result, dims)


@rule("nll_loss nll_loss_nd")
def _nll_loss(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """What targets take of the scores, weighted. Both may be cut along batches, scores along
    classes."""
    x, target, weight, reduction, ignored = (
        op.value(given, name) for name in ("self", "target", "weight", "reduction", "ignore_index")
    )
    at = min(x.dim() - 1, 1)
    counts = _aten.ne(target, ignored)
    positions = _aten.mul(target, counts)
    taken = _aten.squeeze(_aten.gather(x, at, _aten.unsqueeze(positions, at)), at)
    weights = _aten.to(counts, x.dtype)
    if weight is not None:
        weights = _aten.mul(weights, _aten.index(weight, [positions]))
    losses = _aten.neg(_aten.mul(taken, weights))
    if reduction == 0:
        return losses
    total = _aten.sum(losses)
    return total if reduction == 2 else _aten.div(total, _aten.sum(weights))


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


@rule("_attention")
def _attention(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Sequences and features are whole; batches and heads may be cut."""
    tensors = tensors_in(given)
    outer = [[*range(2 - t.dim(), 0)] for t in tensors]
    plan = by_terms([[*o, None, None] for o in outer], [*outer[0], None, None], tensors)
    return level.run(op, given, plan)
