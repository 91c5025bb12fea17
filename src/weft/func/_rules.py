"""How operators work on a batch: rules by the facts of the table's rows.

A rule gets the level, the operator and its arguments as the function gave them, with at least one
tensor of the batch among the latter, and gives the result as the function sees it. It computes one
level further out (`level.outside()`), with the samples along the first dimension. What a rule does
not cover raises Unbatchable, and runs sample by sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft._runtime.rules import Rules
from weft.func._batched import seen_by
from weft.func._operators import CannotEvaluate, Operator, run_body

if TYPE_CHECKING:
    from weft.func._level import Level

Rule = Callable[["Level", Operator, Sequence[Any]], Any]
_aten = _C._aten
rule = Rules()  # by the names of rows whose facts do not tell


class Unbatchable(Exception):
    """A call that no rule covers."""


def rule_of(op: Operator) -> Rule:
    """The rule of an operator: that of its name, or that of its kind of row."""
    found = rule.get(op.key) or rule.get(op.name)
    if found is not None:
        return found
    if op.kind == "compose" and op.row is not None and op.row.body and not op.in_place:
        return composed
    return BY_KIND.get(op.kind, _none)


def _none(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    raise Unbatchable


def finish(level: Level, op: Operator, given: Sequence[Any], result: Any) -> Any:
    """The result of samples as the function sees it; of an operator in place, its argument."""
    if op.in_place:
        return given[0]
    if isinstance(result, Tensor):
        return level.wrap(result)
    return type(result)([level.wrap(each) for each in result])


# Composed rows: as the operators that they are made of --------------------------------------------


def composed(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """By the rules of the operators in the row's body. One that writes does so to copies of
    arguments, which then are of the batch."""
    if op.body_writes:
        given = [level.spread(each) if isinstance(each, Tensor) else each for each in given]
    try:
        return run_body(op, given)
    except CannotEvaluate:
        raise Unbatchable from None


# Operators on elements: samples broadcast as one does ---------------------------------------------


def pointwise(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Dimensions of size 1 behind the first, so that the others line up."""
    tensors = [each for each in given if isinstance(each, Tensor)]
    rank = max(each.dim() for each in tensors)
    if op.in_place and given[0].dim() < rank:
        _fails(op, given)
    samples = [level.samples(each) for each in given]
    masks = op.row is not None and op.row.has_masks
    with level.outside():
        dtypes = [
            _dtype(tensors, each, masks) if isinstance(each, Tensor) else None for each in given
        ]
        items = [
            _aligned(each, _rounded(op, i, whole, dtype), rank, _computed_in(op, dtype))
            if isinstance(each, Tensor)
            else each
            for i, (each, whole, dtype) in enumerate(zip(given, samples, dtypes))
        ]
        result = op.call(items)
        rounded = next((dtype for dtype in dtypes if dtype in _SHORT), None)
        if rounded is not None and isinstance(result, Tensor) and result.dtype == _C.float32:
            result = _aten.to(result, rounded)
    return finish(level, op, given, result)


# Kernels compute these in float32.
_SHORT = (_C.float16, _C.bfloat16)


def _rounded(op: Operator, place: int, samples: Tensor | None, dtype: Any) -> Tensor | None:
    """Numbers beside 16-bit floats are rounded first, but for right operands that are not."""
    exact = op.row is not None and "exact_number" in op.row.tags and place == 1
    return samples if samples is None or dtype not in _SHORT or exact else _aten.to(samples, dtype)


def _computed_in(op: Operator, dtype: Any) -> Any:
    """The dtype in which samples enter that count as `dtype`."""
    of_dtype = op.row is not None and "depends_on_dtype" in op.row.tags
    return _C.float32 if dtype in _SHORT and not of_dtype else dtype


def _aligned(tensor: Tensor, samples: Tensor | None, rank: int, dtype: Any) -> Tensor:
    if samples is None:
        # Beside samples of no dimension it counts as little as they do when dtypes are promoted.
        return _aten.unsqueeze(tensor, 0) if rank == 0 else tensor
    if dtype is not None:
        samples = _aten.to(samples, dtype)
    return inserted(samples, rank - tensor.dim())


def inserted(samples: Tensor, count: int) -> Tensor:
    """Samples with `count` more dimensions of size 1, before those of each sample."""
    for _ in range(count):
        samples = _aten.unsqueeze(samples, 1)
    return samples


def _dtype(tensors: Sequence[Tensor], tensor: Tensor, masks: bool) -> Any:
    """The dtype that a 0-d tensor of the batch takes beside larger ones: it does not decide as much
    as its samples, which have a dimension, would."""
    larger = [each for each in tensors if each.dim() > 0]
    if tensor.dim() or not larger or (masks and _is_mask(tensor, tensors)):
        return None
    with seen_by(None):
        common = larger[0].new_zeros(0)
        for each in larger[1:]:
            common = _aten.add(common, each.new_zeros(0))
        return _aten.add(common, tensor.new_zeros(())).dtype


def _is_mask(tensor: Tensor, tensors: Sequence[Tensor]) -> bool:
    """Whether an argument of a row with masks or indices takes no part in promotion. Beside a mask
    integers are values."""
    if tensor.is_floating_point() or tensor.is_complex():
        return False
    return tensor.dtype == _C.bool or not any(each.dtype == _C.bool for each in tensors)


def _fails(op: Operator, given: Sequence[Any]) -> None:
    """Raises what the operator raises for one sample."""
    with seen_by(None):
        op.call([each.clone() if isinstance(each, Tensor) else each for each in given])
    raise Unbatchable


# Operators along dimensions -----------------------------------------------------------------------


def along(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Dimensions count from the second one on."""
    rank = rank_of(given)
    if rank == 0:
        raise Unbatchable
    return shifted_call(level, op, given, rank)


def rank_of(given: Sequence[Any]) -> int:
    return max(each.dim() for each in listed(given))


def listed(given: Sequence[Any]) -> list[Tensor]:
    found = []
    for each in given:
        items = each if isinstance(each, (list, tuple)) else [each]
        found += [item for item in items if isinstance(item, Tensor)]
    return found


def shifted_call(level: Level, op: Operator, given: Sequence[Any], rank: int) -> Any:
    items: list[Any] = []
    for argument, value in zip(op.arguments, given):
        if argument.is_dimension:
            value = argument.value(value)
            value = value if value is None else shifted(value, rank)
        elif argument.type.startswith("Tensor"):
            value = expanded(level, value)
        items.append(value)
    with level.outside():
        result = op.call(items)
    return finish(level, op, given, result)


def shifted(dims: Any, rank: int) -> Any:
    """Dimensions of one sample as those of all. Unbatchable beyond the rank."""
    if isinstance(dims, (list, tuple)):
        return [shifted(each, rank) for each in dims]
    if not -rank <= dims < rank:
        raise Unbatchable
    return dims + 1 if dims >= 0 else dims


def expanded(level: Level, value: Any) -> Any:
    if isinstance(value, Tensor):
        return level.expanded(value)
    if isinstance(value, (list, tuple)):
        return [expanded(level, each) for each in value]
    return value


def reduced(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Over the dimensions given; over all of a sample's where none are."""
    names = [argument.name for argument in op.arguments]
    keep = "keepdim" in names and op.value(given, "keepdim")
    rank = given[0].dim()
    dims = op.value(given, "dim") if "dim" in names else None
    over_all = dims is None or (isinstance(dims, (list, tuple)) and not dims)
    if keep and (over_all or rank == 0):
        raise Unbatchable
    if not over_all and rank:
        return shifted_call(level, op, given, rank)
    if not over_all and dims not in (0, -1, [0], [-1], (0,), (-1,)):
        raise Unbatchable
    return _over_all(level, op, given)


# Reductions of all elements, as reductions over one dimension with the same gradient.
_OVER_ONE = {"max": "amax", "min": "amin"}


def _over_all(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Over the only dimension of samples that are flat."""
    place = next((i for i, each in enumerate(op.arguments) if each.name == "dim"), None)
    with level.outside():
        count = given[0].numel()
        flat = _aten.reshape(level.expanded(given[0]), (level.size, count))
        if place is not None:
            dim = [1] if op.arguments[place].type.startswith("int[") else 1
            result = op.call([flat, *given[1:place], dim, *given[place + 1 :]])
        else:
            options = {a.name: v for a, v in zip(op.arguments, given) if v is not Ellipsis}
            function = getattr(_aten, _OVER_ONE.get(op.name, op.name))
            result = function(**{**options, op.arguments[0].name: flat, "dim": 1})
    return finish(level, op, given, result)


def rows(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Operators along rows: what has one entry a row must be of the batch, or nothing is."""
    tensors = listed(given)
    if len(tensors) > 1:
        raise Unbatchable
    return along(level, op, given)


BY_KIND: dict[str, Rule] = {
    "pointwise": pointwise,
    "reduce": reduced,
    "rowwise": rows,
    "view": along,
}
