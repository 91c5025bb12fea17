"""Which plan an operator has: by the facts of its row, and by its name where they do not tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft._runtime.rules import Rules
from weft.distributed.tensor._layout import Layout, of_gradient, span
from weft.distributed.tensor._plans import (
    Plan,
    Unruled,
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
_BY_NAME = Rules()


def rule(names: str) -> Callable[[Rule], Rule]:
    """Registers the rule of operators of these names."""
    return _BY_NAME(*names.split())


def apply(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The result of an operator on tensors of several processes."""
    name = op.name.removesuffix("_") if op.in_place else op.name
    found = _BY_NAME.get(op.key) or _BY_NAME.get(op.name) or _BY_NAME.get(name)
    try:
        return (found or by_kind)(level, op, given)
    except (Unruled, CannotEvaluate, IndexError):
        level.try_sizes(op, given)
        raise NotImplementedError(
            f"{op.name}: expected an operator with a rule for DTensor, got one without; "
            "full_tensor() and to_local() give plain tensors"
        ) from None


def by_kind(level: Level, op: Operator, given: Sequence[Any]) -> Any:
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
        if len(tensors) != 1 or not dims:
            raise Unruled
        if any(dim in (None, [], ()) for dim in dims):
            return whole_plan(tensors)
        listed = [e for d in dims for e in (d if isinstance(d, (list, tuple)) else [d])]
        return without(plan, listed)
    if len(tensors) > 1 and op.name not in _JOINING and not formula.startswith("broadcast("):
        raise Unruled
    if op.kind == "view":
        return plan._replace(partial=[[0]], reductions=None)
    return _summed(op, plan, tensors)


_JOINING = ("cat", "stack", "index_select")

# What passes sums on: all tensors together, or any one of them.
_TOGETHER = frozenset(("add", "sub", "rsub", "cat", "stack", "copy"))
_ONE = frozenset(("mul", "sum", "neg"))
_REDUCTIONS = {"sum": "sum", "amax": "max", "amin": "min", "max": "max", "min": "min"}


def _summed(op: Operator, plan: Plan, tensors: Sequence[Tensor]) -> Plan:
    name = op.name.removesuffix("_")
    partial: list[list[int]] = []
    if name in _TOGETHER and not op.key.endswith("Scalar"):
        partial = [list(range(len(tensors)))]
    elif name in _ONE:
        partial = [[i] for i in range(len(tensors))]
    elif name == "div":
        partial = [[0]]
    sums: dict[Any, str] = {}
    if op.kind == "reduce" and len(op.returns) == 1 and op.name in _REDUCTIONS:
        reduction = _REDUCTIONS[op.name]
        for letter, size in zip(plan.operands[0], shape_of(tensors[0])):
            if letter not in plan.result and (reduction == "sum" or _fills(tensors[0], size)):
                sums[letter] = reduction
    return plan._replace(partial=partial, sums=sums)


def mesh_size(tensors: Sequence[Tensor]) -> int:
    return next(t._layout.mesh.size() for t in tensors if hasattr(t, "_layout"))


def _fills(tensor: Tensor, size: int) -> bool:
    """Whether every process gets something of a dimension of this size."""
    count = mesh_size([tensor])
    return span(size, count, count - 1)[1] > 0


# Elements, one by one -----------------------------------------------------------------------------


@rule("clone contiguous _to_copy to alias detach type_as nan_to_num view_as_real view_as_complex")
def _alike(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Of the sizes of the first tensor, whatever its elements are terms of."""
    letters = list(range(len(shape_of(given[0]))))
    others = [[None] * t.dim() for t in tensors_in(given)[1:]]
    dtypes = {v.dtype if isinstance(v, Tensor) else v for v in given if hasattr(v, "itemsize")}
    linear = op.name != "nan_to_num" and dtypes <= {given[0].dtype}
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
    with level.outside():
        return level.wrap(op.call(given), layout.placed(of_gradient(layout.placements)))


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
    if tensors_in(rest) or (op.in_place and any(p.is_partial() for p in layout.placements)):
        raise Unruled
    layout = layout.placed(of_gradient(layout.placements))
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


# Along dimensions ---------------------------------------------------------------------------------


@rule("mean")
def _mean(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """A sum, divided: parts may differ in size."""
    named = {a.name: v for a, v in zip(op.arguments, given) if v is not Ellipsis}
    x = named.pop("self")
    shape, dims = shape_of(x), named.get("dim")
    total = _aten.sum(x, **named) if dims is not None else _aten.sum(x, dtype=named.get("dtype"))
    return _aten.div(total, math.prod(shape if dims in (None, [], ()) else _at(shape, dims)))


def _at(shape: Sequence[int], dims: Any) -> list[int]:
    return [shape[dim] for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]


@rule("layer_norm")
def _layer_norm(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    tensors, inner = tensors_in(given), [None] * len(given[1])
    outer: list[Any] = list(range(given[0].dim() - len(inner)))
    plan = by_terms([[*outer, *inner], inner, inner][: len(tensors)], [*outer, *inner], tensors)
    return level.run(op, given, plan)


@rule("group_norm")
def _group_norm(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Samples may be cut."""
    first, *vectors = tensors_in(given)
    letters = [0, *[None] * (first.dim() - 1)]
    plan = by_terms([letters, *([None] for _ in vectors)], letters, [first, *vectors])
    return level.run(op, given, plan)


@rule("tril triu conv1d conv2d conv3d max_pool2d avg_pool2d adaptive_avg_pool2d")
def _leading(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The first dimension may be cut where it counts matrices or images."""
    first, *others = tensors_in(given)
    rank = first.dim()
    is_batch = rank == others[0].dim() if others else rank > 2
    letters = [0 if is_batch else None, *[None] * (rank - 1)]
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


@rule(
    "scatter scatter_add scatter_reduce index_put index_add index_copy index_fill equal "
    "nonzero masked_select isin unique_dim take_along_dim "
    "bincount histc searchsorted bucketize one_hot"
)
def whole(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Every process has all, and computes all."""
    return level.run(op, given, whole_plan(tensors_in(given)))


def whole_plan(tensors: Sequence[Tensor]) -> Plan:
    """Of tensors that every process has all of."""
    return Plan([[None] * t.dim() for t in tensors], ())
