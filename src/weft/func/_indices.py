"""Rules of indexing by tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.func._operators import Operator
from weft.func._rules import Unbatchable, inserted, rule

if TYPE_CHECKING:
    from weft.func._level import Level

_aten = _C._aten


@rule("index.Tensor")
def _index(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Indices of the batch are joined by one that counts the samples, where the tensor is, too."""
    tensor, indices = given[0], list(given[1])
    places = [i for i, each in enumerate(indices) if isinstance(each, Tensor)]
    batched = [i for i in places if level.samples(indices[i]) is not None]
    if any(indices[i].dtype in (_C.bool, _C.uint8) for i in batched):
        raise RuntimeError(
            "vmap: expected operators whose sizes do not depend on elements, got an index by a mask"
        )
    if not batched:
        with level.outside():
            made = op.call([level.samples(tensor), [None, *indices]])
            return level.wrap(_front(made, places, _rank(indices, places)))
    if level.samples(tensor) is None and not _masks(indices, places):
        with level.outside():
            made = op.call([tensor, _of_all(level, indices, places)])
            first = places[0] if _adjacent(places) else 0
            return level.wrap(_aten.movedim(made, first, 0) if first else made)
    if places != list(range(len(places))) or _masks(indices, places):
        raise Unbatchable
    rank = _rank(indices, places)
    with level.outside():
        count = _aten.arange(level.size)
        count = _aten.view(count, (level.size, *(1,) * rank))
        made = [count, *_of_all(level, indices, places)]
        return level.wrap(op.call([level.samples(tensor), made]))


def _masks(indices: list[Any], places: list[int]) -> bool:
    return any(indices[i].dtype in (_C.bool, _C.uint8) for i in places)


def _rank(indices: list[Any], places: list[int]) -> int:
    return max(indices[i].dim() for i in places)


def _adjacent(places: list[int]) -> bool:
    return places == list(range(places[0], places[0] + len(places)))


def _front(made: Tensor, places: list[int], rank: int) -> Tensor:
    """Indices apart from each other come first: the samples are behind them."""
    return made if _adjacent(places) else _aten.movedim(made, rank, 0)


def _of_all(level: Level, indices: list[Any], places: list[int]) -> list[Any]:
    """The indices with a first dimension for the samples, of equal rank."""
    rank = _rank(indices, places)
    return [
        each
        if i not in places or (samples := level.samples(each)) is None
        else inserted(samples, rank - each.dim())
        for i, each in enumerate(indices)
    ]
