"""Rules of views: which dimensions stay cut in other sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft.distributed.tensor._plans import Plan, Unruled, shape_of
from weft.distributed.tensor._rules import mesh_size, rule
from weft.func._operators import Operator

if TYPE_CHECKING:
    from weft.distributed.tensor._level import Level

_aten = _C._aten


@rule("view reshape flatten unflatten ravel")
def _view(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """A dimension stays cut that stays as it is; of those that become one, or of one that becomes
    several, the outermost, where all processes have as much of it."""
    if op.key == "view.dtype":
        raise Unruled
    before = shape_of(given[0])
    after = _viewed(op, given, before)
    if math.prod(before) != math.prod(after):
        raise RuntimeError(
            f"{op.name}: expected sizes of {math.prod(before)} elements, got {after}"
        )
    count = mesh_size([given[0]])
    result: list[Any] = [None] * len(after)
    own: list[Any] = [None] * len(before)
    for one, other in _groups(before, after) if 0 not in before else []:
        i = next((d for d in one if before[d] != 1), None)
        j = next((d for d in other if after[d] != 1), None)
        if i is None or j is None:
            continue
        if before[i] == after[j] or (before[i] % count == 0 and after[j] % count == 0):
            own[i] = result[j] = i
    plan = Plan([own], result, {}, [[0]], None, (), after)
    reshape = level.operator("view" if op.name == "view" else "reshape")
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
    known = math.prod(size for size in wanted if size != -1)
    filled = [math.prod(before) // max(known, 1) if size == -1 else size for size in wanted]
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


@rule("squeeze")
def _squeeze(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of the whole tensor: a part may have one element where that has several."""
    shape = shape_of(given[0])
    dims = given[1] if len(given) > 1 else range(len(shape))
    listed = [d % max(len(shape), 1) for d in ([dims] if isinstance(dims, int) else dims)]
    ones = [dim for dim in listed if shape and shape[dim] == 1]
    letters = [None if size == 1 else at for at, size in enumerate(shape)]
    result = [each for at, each in enumerate(letters) if at not in ones]
    plan = Plan([letters], result, {}, [[0]], None)
    return level.run(level.operator("squeeze.dims"), [given[0], ones], plan)


@rule("movedim")
def _movedim(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    rank = given[0].dim()
    source, target = ([v] if isinstance(v, int) else list(v) for v in given[1:3])
    moved = {t % rank: s % rank for s, t in zip(source, target)}
    rest = iter(d for d in range(rank) if d not in moved.values())
    return _aten.permute(given[0], [moved[d] if d in moved else next(rest) for d in range(rank)])
