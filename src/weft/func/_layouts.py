"""Rules of operators that move elements (views, copies, joins, indices), and of matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.func._batched import seen_by
from weft.func._operators import Operator
from weft.func._rules import (
    BY_KIND,
    Unbatchable,
    along,
    expanded,
    finish,
    inserted,
    listed,
    pointwise,
    rank_of,
    rule,
    shifted_call,
)

if TYPE_CHECKING:
    from weft.func._level import Level

_aten = _C._aten


def _plain(value: Any) -> list[int]:
    return [int(each) for each in value] if isinstance(value, (list, tuple)) else [int(value)]


@rule("view", "reshape")
def _view(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    sizes = _plain(given[1])
    known = 1
    for each in sizes:
        known *= each if each >= 0 else 1
    count = given[0].numel()
    if sizes.count(-1) > 1 or (-1 in sizes and known == 0) or min(sizes, default=0) < -1:
        raise Unbatchable
    sizes = [count // known if each == -1 else each for each in sizes]
    with level.outside():
        return level.wrap(op.call([level.expanded(given[0]), [level.size, *sizes]]))


@rule("expand", "repeat")
def _expand(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    sizes = _plain(given[1])
    missing = len(sizes) - given[0].dim()
    if missing < 0:
        raise Unbatchable
    first = level.size if op.name == "expand" else 1
    with level.outside():
        samples = inserted(level.expanded(given[0]), missing)
        return level.wrap(op.call([samples, [first, *sizes], *given[2:]]))


@rule("permute")
def _permute(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    rank = given[0].dim()
    dims = _plain(given[1])
    if sorted(each % rank for each in dims) != list(range(rank)):
        raise Unbatchable
    with level.outside():
        changed = [0, *(each % rank + 1 for each in dims)]
        return level.wrap(op.call([level.expanded(given[0]), changed]))


@rule("t")
def _t(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    rank = given[0].dim()
    if rank > 2:
        raise Unbatchable
    return _aten.transpose(given[0], 0, 1) if rank == 2 else _aten.alias(given[0])


@rule("squeeze")
def _squeeze(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    if len(given) > 1:
        return along(level, op, given)
    ones = [i + 1 for i, size in enumerate(given[0].shape) if size == 1]
    with level.outside():
        return level.wrap(_aten.squeeze(level.expanded(given[0]), ones))


@rule("unsqueeze", "stack")
def _unsqueeze(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The dimension may be one more than there are."""
    return shifted_call(level, op, given, rank_of(given) + 1)


@rule("squeeze_", "swapaxes_", "t_", "transpose_", "unsqueeze_")
def _relaid(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The tensor gets the samples of the view, and the layout of one of them."""
    seen = given[0]
    view = getattr(_aten, op.name[:-1])(*given)
    with seen_by(None), no_grad():
        op.call(given)
    seen.__dict__["_batch"] = view.__dict__["_batch"]


@rule("cat")
def _cat(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    if len({each.dim() for each in given[0]}) > 1 or rank_of(given) == 0:
        raise Unbatchable
    return shifted_call(level, op, given, rank_of(given))


@rule("as_strided")
def _as_strided(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Strides and offset are those of the first sample, as far from its storage's beginning."""
    samples, sizes, strides, *offset = level.expanded(given[0]), *given[1:]
    strides = [samples.stride(0), *strides]
    with level.outside():
        return level.wrap(op.call([samples, [level.size, *sizes], strides, *offset]))


@rule(
    *("tensor_split.indices", "repeat_interleave.self_int", "gather", "scatter", "scatter_add"),
    *("scatter_reduce.two", "take_along_dim", "diff", "_pinv"),
)
def along_all(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Along the dimensions that were given; over all of them there is no rule, nor for a number
    beside a vector, which stand for each other here."""
    if any(tensor.dim() == 0 for tensor in listed(given)):
        raise Unbatchable
    for argument, value in zip(op.arguments, given):
        if argument.is_dimension and argument.value(value) in (None, []):
            raise Unbatchable
    return along(level, op, given)


@rule("index_select")
def _index_select(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Unbatched indices stay as they are."""
    tensor, dim, index = given
    if level.samples(index) is not None or not tensor.dim():
        raise Unbatchable
    if not -tensor.dim() <= dim < tensor.dim():
        raise Unbatchable
    with level.outside():
        place = dim + 1 if dim >= 0 else dim
        return level.wrap(op.call([level.samples(tensor), place, index]))


# Of one tensor, whose leading dimensions do not matter ------------------------------------------


@rule("clone", "contiguous", "_to_copy")
def _copy(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    place = op.index("memory_format")
    if given[place] in (_C.channels_last, _C.channels_last_3d):
        raise Unbatchable
    return leading(level, op, given)


@rule(
    *("view_as_real", "view_as_complex", "alias", "alias_copy", "detach", "imag", "zero_"),
    *("fill_.Scalar", "isin.Tensor_Scalar"),
)
def leading(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """As for one: more dimensions in front make no difference."""
    items = [expanded(level, each) for each in given]
    with level.outside():
        result = op.call(items)
    return finish(level, op, given, result)


@rule("tril", "triu", "svd", "matrix_power", "logdet", "linalg_cholesky_ex")
def matrices(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    if rank_of(given) < 2:
        raise Unbatchable
    return leading(level, op, given)


rule("copy_")(pointwise)


@rule("fill_.Tensor")
def _fill(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    _aten.copy_(given[0], given[1])
    return given[0]


@rule("constant_pad_nd")
def _pad(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    if len(op.value(given, "pad")) > 2 * given[0].dim():
        raise Unbatchable
    return leading(level, op, given)


@rule("new_empty", "new_zeros", "new_ones", "new_full")
def _new(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """A tensor of the batch, so that operators in place may write samples to it."""
    with level.outside():
        sizes = [level.size, *_plain(given[1])]
        return level.wrap(op.call([level.expanded(given[0]), sizes, *given[2:]]))


# Rows that are written by hand, by their formulas of sizes ----------------------------------------


def _native(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of several tensors only where they broadcast. Otherwise the formula names the one tensor, or
    its leading dimensions, where more of these make no difference."""
    shape, tags = (op.row.shape, op.row.tags) if op.row is not None else ("", frozenset())
    if re.fullmatch(r"broadcast\([\w, ]*\)", shape):
        return pointwise(level, op, given)
    names = [each.name for each in op.arguments if each.type.startswith("Tensor")]
    if op.in_place or len(names) != 1 or not shape:
        raise Unbatchable
    if any(each.is_dimension for each in op.arguments) and "backward" not in tags:
        return along_all(level, op, given)
    if shape == names[0]:
        return leading(level, op, given)
    if f"{names[0]}[:-" in shape:
        return matrices(level, op, given)
    raise Unbatchable


BY_KIND["native"] = _native


@rule("index.Tensor")
def _index(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Indices of the batch are joined by one that counts the samples, where the tensor is, too."""
    tensor, indices = given[0], list(given[1])
    positions = [i for i, each in enumerate(indices) if isinstance(each, Tensor)]
    batched = [i for i in positions if level.samples(indices[i]) is not None]
    if any(indices[i].dtype in (_C.bool, _C.uint8) for i in batched):
        raise RuntimeError(
            "vmap: expected operators whose sizes do not depend on elements, got an index by a mask"
        )
    if not batched:
        with level.outside():
            made = op.call([level.samples(tensor), [None, *indices]])
            return level.wrap(_front(made, positions, _rank(indices, positions)))
    if level.samples(tensor) is None and not _masks(indices, positions):
        with level.outside():
            made = op.call([tensor, _of_all(level, indices, positions)])
            first = positions[0] if _adjacent(positions) else 0
            return level.wrap(_aten.movedim(made, first, 0) if first else made)
    if positions != list(range(len(positions))) or _masks(indices, positions):
        raise Unbatchable
    rank = _rank(indices, positions)
    with level.outside():
        count = _aten.arange(level.size)
        count = _aten.view(count, (level.size, *(1,) * rank))
        made = [count, *_of_all(level, indices, positions)]
        return level.wrap(op.call([level.samples(tensor), made]))


def _masks(indices: list[Any], positions: list[int]) -> bool:
    return any(indices[i].dtype in (_C.bool, _C.uint8) for i in positions)


def _rank(indices: list[Any], positions: list[int]) -> int:
    return max(indices[i].dim() for i in positions)


def _adjacent(positions: list[int]) -> bool:
    return positions == list(range(positions[0], positions[0] + len(positions)))


def _front(made: Tensor, positions: list[int], rank: int) -> Tensor:
    """Indices apart from each other come first: the samples are behind them."""
    return made if _adjacent(positions) else _aten.movedim(made, rank, 0)


def _of_all(level: Level, indices: list[Any], positions: list[int]) -> list[Any]:
    """The indices with a first dimension for the samples, of equal rank."""
    rank = _rank(indices, positions)
    return [
        each
        if i not in positions or (samples := level.samples(each)) is None
        else inserted(samples, rank - each.dim())
        for i, each in enumerate(indices)
    ]
