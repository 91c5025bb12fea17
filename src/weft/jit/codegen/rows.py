"""Row operators as steps of a fusion group: softmax, layer norm, sums, variances, norms and
logsumexp over the last dimension.

The iteration space of a value decides what may meet: "elements" one for each element, "row" one for
each row with the row as a dimension of size 1, "squeezed" the same without it, "all" one for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.jit.ir.record import NamedTuple
from weft.jit.operator_facts import RowFacts, row_of_id

if TYPE_CHECKING:
    from weft.jit.codegen.steps import Steps


class NotFusible(Exception):
    """The operator, or its gradient, is not made of steps that a group can run."""


class RowStep(NamedTuple):
    """A row operator in the place of a step's name."""

    id: str
    over: str = "last"  # or "all"
    dim: int = -1  # as the program says it; the runtime sees whether it is the last one
    keepdim: bool = True
    length: int = 0  # what the last size must be; 0: anything


class RowResult(NamedTuple):
    """A further result of the row operator before, in the place of a step's name."""

    index: int  # type: ignore[assignment]  # a tuple's own method of that name is not used


ELEMENTS, ROW, SQUEEZED, ALL = "elements", "row", "squeezed", "all"
_ELEMENTS_ALONE = {ELEMENTS}

# What is told of a tensor's shape: nothing but that it is the group's, or that with rows of size 1.
SHAPE, KEPT = object(), object()


def applies(row: RowFacts) -> bool:
    """Whether `apply` knows a row."""
    return row.is_row_step or "normalizes" in row.tags


def apply(steps: Steps, row: RowFacts, names: Mapping[str, Any]) -> Any:
    """The result of a row operator: an operand, or a tuple of them. Raises NotFusible."""
    if "normalizes" in row.tags:
        return _layer_norm(steps, names)
    if "spreads" in row.tags:
        return _spread(steps, names)
    if "reshapes" in row.tags:
        return _with_row(steps, names)
    if names.get("dtype") is not None:
        raise NotFusible(f"{row.key}: a dtype")
    tensors = {name: names[name] for name, what in zip(names, row.operands) if what == "Tensor"}
    if row.kind == "reduce":
        form = _reduced_form(row, names)
        results = [ALL if form.over == "all" else ROW if form.keepdim else SQUEEZED]
    else:
        form = _rowwise_form(row, names)
        results = [_space(row, f"result{i}") for i in range(row.results)]
    for name, value in tensors.items():
        space = _space(row, name)
        if steps.space(value) != space:
            raise NotFusible(f"{row.key}: expected {space}, got {steps.space(value)}")
        # The sum of a mask counts in int64, which is no work for a group.
        if value.kind == "step" and _is_mask(steps.steps[value.index][0]):
            raise NotFusible(f"{row.key}: of a mask")
    if any(isinstance(op, RowStep) and op.over != form.over for op, _, _ in steps.steps):
        raise NotFusible(f"{row.key}: sums over rows and over all in one group")
    numbers = [names[name] for name in row.attributes]
    first = steps.add(form, list(tensors.values()), numbers, results[0])
    more = [steps.add(RowResult(i), [first], [], e) for i, e in enumerate(results) if i]
    return (first, *more) if more else first


def _space(row: RowFacts, name: str) -> str:
    """Of an operand or result of a rowwise row."""
    return ROW if name in row.per_row else ELEMENTS


def _is_mask(op: object) -> bool:
    return type(op) is str and row_of_id(op).gives_mask


def _whole(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotFusible(f"expected {what} that is known, got {value!r}")
    return value


def _reduced_form(row: RowFacts, names: Mapping[str, Any]) -> RowStep:
    dims = names.get("dim")
    dims = [dims] if type(dims) is int else dims
    if dims is not None and not isinstance(dims, (list, tuple)):
        raise NotFusible(f"{row.key}: expected dims that are known")
    keepdim = names.get("keepdim", False)
    if not dims:
        if "fusible_rows" in row.tags:
            raise NotFusible(f"{row.key}: all dimensions")
        if keepdim:
            raise NotFusible(f"{row.key}: all dimensions, and keeping them")
        return RowStep(row.id, "all")
    if len(dims) != 1 or not isinstance(keepdim, bool):
        raise NotFusible(f"{row.key}: expected one dimension, got {dims}")
    return RowStep(row.id, "last", _checked(_whole(dims[0], "a dimension")), keepdim)


def _rowwise_form(row: RowFacts, names: Mapping[str, Any]) -> RowStep:
    if "normalized_shape" in names:
        shape = names["normalized_shape"]
        if not isinstance(shape, (list, tuple)) or len(shape) != 1:
            raise NotFusible(f"{row.key}: expected one dimension that is known")
        length = _whole(shape[0], "a size")
        if not 1 <= length < 2**32:
            raise NotFusible(f"{row.key}: expected a size, got {length}")
        return RowStep(row.id, length=length)
    return RowStep(row.id, dim=_checked(_whole(names["dim"], "a dimension")))


def _checked(dim: int) -> int:
    if not -1 <= dim <= 63:
        raise NotFusible(f"expected the last dimension, got {dim}")
    return dim


def _layer_norm(steps: Steps, names: Mapping[str, Any]) -> Any:
    input, shape, eps = names["input"], names["normalized_shape"], names["eps"]
    weight, bias = names["weight"], names["bias"]
    if weight is not None and bias is not None:
        return steps.apply("_layer_norm_affine", [input, shape, weight, bias, eps])[0]
    result = steps.apply("_layer_norm", [input, shape, eps])[0]
    if weight is not None:
        return steps.apply("mul.Tensor", [result, weight])
    if bias is not None:
        return steps.apply("add.Tensor", [result, bias, 1])
    return result


def _spread(steps: Steps, names: Mapping[str, Any]) -> Any:
    """A gradient of rows, or of all, for every element: what reads it takes it along."""
    grad = names.get("grad", names.get("self"))
    sizes = names.get("sizes", names.get("size"))
    if sizes is not SHAPE or steps.space(grad) == ELEMENTS:
        raise NotFusible("expected a gradient of rows")
    return grad


def _with_row(steps: Steps, names: Mapping[str, Any]) -> Any:
    """A value of rows in the shape that has the row as a dimension of size 1: it counts as such."""
    value = names["self"]
    if names["shape"] is not KEPT or steps.space(value) not in (ROW, SQUEEZED):
        raise NotFusible("expected a value of rows, to have the row's dimension")
    return value


def space_of(spaces: Sequence[str], strict: bool) -> str:
    """Of a pointwise step with operands of these spaces. `strict`: as operators broadcast; else
    what lacks the row's dimension is taken as if it had it."""
    kinds = set(spaces)
    if kinds == _ELEMENTS_ALONE:
        return ELEMENTS
    if ELEMENTS in kinds and not (strict and kinds & {SQUEEZED, ALL}):
        return ELEMENTS
    if not strict and kinds == {ROW, SQUEEZED}:
        return ROW
    if len(kinds) != 1:
        raise NotFusible(f"expected values that go together, got {', '.join(sorted(kinds))}")
    (kind,) = kinds
    if strict and kind == ALL:
        raise NotFusible("a step behind a sum over all")
    return kind
